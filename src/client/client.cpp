// SPDX-License-Identifier: MIT
// Client: the handle on the shared part, which leases and locks keep alive (but not running).
#include <cassert>
#include <utility>

#include <redlock/client.hpp>

#include "client/client_impl.hpp"

namespace redlock {

Result<Client> Client::create(ClientOptions options) {
  auto impl = Impl::create(std::move(options));
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
