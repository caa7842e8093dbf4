// SPDX-License-Identifier: MIT
// Client: the handle on the shared part, which leases and locks keep alive (but not running).
#include <cassert>
#include <utility>

#include <redlock/client.hpp>

#include "client/call_for.hpp"
#include "client/client_impl.hpp"

namespace redlock {

namespace client {
namespace {

/// The end of a client, which is no call of its engine.
class AskClose final : public PreparedOperation<CloseReport> {
 public:
  AskClose(std::shared_ptr<Client::Impl> client, std::chrono::milliseconds at_most)
      : client_(std::move(client)), at_most_(at_most) {}
  [[nodiscard]] std::optional<Result<CloseReport>> start(
      std::unique_ptr<PreparedOperation<CloseReport>> /*self*/,
      Callback<CloseReport>& callback) override {
    const bool elsewhere = client_->resumes_elsewhere();
    if (elsewhere) callback = resuming(*client_, std::move(callback));
    auto known = client_->start_closing(at_most_, callback);
    if (!known || !elsewhere) return known;
    callback(std::move(*known));
    return std::nullopt;
  }

 private:
  std::shared_ptr<Client::Impl> client_;
  std::chrono::milliseconds at_most_;
};

}  // namespace
}  // namespace client

Result<Client> Client::create(ClientOptions options) {
  auto impl = Impl::create(std::move(options), nullptr);
  if (!impl) return tl::make_unexpected(std::move(impl.error()));
  return Client(std::move(*impl));
}

Result<Client> Client::create(ClientOptions options, uv_loop_s* loop) {
  if (loop == nullptr) {
    return tl::make_unexpected(
        Error{Errc::invalid_argument,
              "the loop is a null pointer: give an initialised uv_loop_t, or no loop for a client "
              "that runs its own loop",
              {}});
  }
  auto impl = Impl::create(std::move(options), loop);
  if (!impl) return tl::make_unexpected(std::move(impl.error()));
  return Client(std::move(*impl));
}

Client::Client(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;

Client& Client::operator=(Client&& other) noexcept {
  if (this == &other) return *this;
  if (impl_) impl_->shut_down();
  impl_ = std::move(other.impl_);
  return *this;
}

Client::~Client() {
  if (impl_) impl_->shut_down();
}

Result<CloseReport> Client::close(std::chrono::milliseconds at_most) {
  return impl_->close(at_most);
}

Operation<CloseReport> Client::async_close(std::chrono::milliseconds at_most) {
  return Operation<CloseReport>(std::make_unique<client::AskClose>(impl_, at_most));
}

RedLock Client::lock(std::string name) const {
  return RedLock(*this, std::move(name));
}

RedLock Client::lock(std::string name, Owner owner) const {
  return RedLock(*this, std::move(name), owner);
}

const ClientOptions& Client::options() const noexcept {
  return impl_->options();
}

const std::shared_ptr<Client::Impl>& Client::impl() const noexcept {
  return impl_;
}

}  // namespace redlock
