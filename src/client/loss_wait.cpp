// SPDX-License-Identifier: MIT
#include "client/loss_wait.hpp"

#include <new>
#include <utility>

#include "client/call_for.hpp"
#include "client/sentence.hpp"

namespace redlock::client {

std::optional<Result<LossReason>> LossWait::start(
    std::unique_ptr<PreparedOperation<LossReason>> self, Callback<LossReason>& callback) {
  // As soon as it waits it may be completed and destroyed.
  const std::shared_ptr<Client::Impl> client = lease_->client;
  const bool elsewhere = client->resumes_elsewhere();
  if (elsewhere) callback = resuming(*client, std::move(callback));
  self_ = std::move(self);
  callback_.emplace(std::move(callback));
  std::optional<Result<LossReason>> known;
  try {
    known = begin();
  } catch (...) {  // it does not wait
    on_stop_.reset();
    self = std::move(self_);
    throw;
  }
  if (!known) return known;
  on_stop_.reset();
  callback = std::move(*callback_);
  self = std::move(self_);
  if (!elsewhere) return known;
  callback(std::move(*known));
  return std::nullopt;
}

std::optional<Result<LossReason>> LossWait::begin() {
  if (lease_->client->forked()) return tl::make_unexpected(lease_->client->closed_error());
  static_cast<void>(Lease::State::lost(lease_));  // so that the guard watches it
  if (stop_.stop_possible()) on_stop_.emplace(stop_, Cancel{this});
  return lease_->await_loss(*this);
}

void LossWait::fail(Errc why) noexcept {
  why_ = why;
  // Held here, because this may be gone as soon as it is posted.
  const std::shared_ptr<Client::Impl> client = lease_->client;
  if (!client->post(*this)) run();
}

void LossWait::run() {
  Error error{why_, "out of memory", {}};  // which a string holds in itself
  try {
    error = why_ == Errc::cancelled ? cancelled_error() : empty_lease();
  } catch (const std::bad_alloc&) {
    // The code says enough.
  }
  complete(tl::make_unexpected(std::move(error)));
}

Error LossWait::cancelled_error() const {
  return {Errc::cancelled,
          "waiting for the loss of " + in_quotes(lease_->name()) + " was cancelled",
          {}};
}

void LossWait::complete(Result<LossReason>&& result) noexcept {
  Callback<LossReason> callback = std::move(*callback_);
  const std::shared_ptr<Client::Impl> client = lease_->client;  // the lease may be its last owner
  // Destroyed before the callback is called, which may destroy all else.
  auto self = std::move(self_);
  self.reset();
  callback(std::move(result));
}

}  // namespace redlock::client
