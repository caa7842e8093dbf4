// SPDX-License-Identifier: MIT
// The functions of a lease. Reading needs no lock and no loop; the other functions are calls (see
// call_for.hpp), and dropping a lease posts the lease's state, which is a task itself.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <redlock/lease.hpp>

#include "client/call_for.hpp"
#include "client/lease_state.hpp"
#include "client/loss_wait.hpp"
#include "client/options_check.hpp"
#include "client/requests.hpp"

namespace redlock {

namespace client {
namespace {

struct AskExtend {
  std::shared_ptr<Lease::State> lease;
  std::optional<std::chrono::milliseconds> length;  // none: only asks whether the lock is still
                                                    // ours

  [[nodiscard]] const std::string& name() const { return lease->name(); }
  [[nodiscard]] std::optional<Error> before_start(Client::Impl& /*client*/) const {
    if (lease->ended()) return empty_lease();
    return std::nullopt;
  }
  void ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) const {
    // To confirm is to ask for no longer lease than there is. The grant of a healed node then
    // counts as well.
    const auto left = std::chrono::floor<std::chrono::milliseconds>(lease->valid_until() - now);
    client.core().engine().extend(now, id, lease->grant,
                                  length.value_or(std::max(left, std::chrono::milliseconds(1))));
  }
  [[nodiscard]] Result<BootClock::time_point> read(Client::Impl& client,
                                                   const EngineResult& result) const {
    // The guard may have reported the loss just before this result: a lost lease is not revived.
    if (lease->loss_reason()) return tl::make_unexpected(lost_before(name(), client));
    return std::get<engine::ExtendSucceeded>(result).valid_until;
  }
};

struct AskRelease {
  std::shared_ptr<Lease::State> lease;

  [[nodiscard]] const std::string& name() const { return lease->name(); }
  /// Ends the lease for its holder.
  [[nodiscard]] std::optional<Error> before_start(Client::Impl& /*client*/) const {
    if (!lease->end()) return empty_lease();
    return std::nullopt;
  }
  void ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) const {
    client.forget(lease->grant);
    client.core().engine().release(now, id, lease->grant);
  }
  [[nodiscard]] Result<Released> read(Client::Impl& /*client*/, const EngineResult& result) const {
    return std::get<engine::ReleaseDone>(result).outcome;
  }
};

}  // namespace
}  // namespace client

namespace {

Result<client::AskExtend> ask_extend(const std::shared_ptr<Lease::State>& lease,
                                     std::chrono::milliseconds length) {
  lease->mark_asked();
  const ClientOptions& options = lease->client->options();
  if (auto ok = client::check_lease(length, options.min_validity, options); !ok) {
    return tl::make_unexpected(std::move(ok.error()));
  }
  return client::AskExtend{lease, length};
}

Result<client::AskExtend> ask_confirm(const std::shared_ptr<Lease::State>& lease) {
  lease->mark_asked();
  return client::AskExtend{lease, std::nullopt};
}

Operation<BootClock::time_point> empty_operation() {
  return client::failed_operation<BootClock::time_point>(nullptr, client::empty_lease());
}

}  // namespace

Lease::Lease() noexcept = default;
Lease::Lease(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Lease::Lease(Lease&&) noexcept = default;

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  const Lease old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

Lease::~Lease() {
  if (held() != nullptr) State::post_end(std::move(state_), State::Ending::release);
}

/// Null if it is empty. An operation that releases it empties it when it starts.
const Lease::State* Lease::held() const noexcept {
  return state_ && !state_->ended() ? state_.get() : nullptr;
}

/// The same, for a question about its validity.
const Lease::State* Lease::asked() const noexcept {
  if (held() == nullptr) return nullptr;
  state_->mark_asked();
  return state_.get();
}

Lease::operator bool() const noexcept {
  return held() != nullptr;
}

const std::string& Lease::name() const noexcept {
  static const std::string none;
  return held() != nullptr ? state_->name() : none;
}

std::string Lease::owner() const {
  return held() != nullptr ? engine::to_hex(state_->key->owner) : std::string();
}

std::uint64_t Lease::token() const noexcept {
  return held() != nullptr ? state_->key->token : 0;
}

bool Lease::valid() const noexcept {
  return remaining() > std::chrono::nanoseconds::zero();
}

std::chrono::nanoseconds Lease::remaining() const noexcept {
  return asked() != nullptr ? state_->remaining() : std::chrono::nanoseconds::zero();
}

BootClock::time_point Lease::valid_until() const noexcept {
  return asked() != nullptr ? state_->valid_until() : BootClock::time_point::min();
}

std::stop_token Lease::lost() const {
  return asked() != nullptr ? State::lost(state_) : std::stop_token();
}

std::optional<LossReason> Lease::loss_reason() const noexcept {
  return asked() != nullptr ? state_->loss_reason() : std::nullopt;
}

Operation<LossReason> Lease::async_lost(std::stop_token stop) const {
  if (asked() == nullptr) {
    return client::failed_operation<LossReason>(nullptr, client::empty_lease());
  }
  return Operation<LossReason>(std::make_unique<client::LossWait>(state_, std::move(stop)));
}

Result<Released> Lease::release() {
  if (!state_) return tl::make_unexpected(client::empty_lease());
  Lease dropped(std::move(*this));  // gives it back, unless the call has begun to
  const auto& state = dropped.state_;
  return state->client->perform(Result<client::AskRelease>(client::AskRelease{state}));
}

Operation<Released> Lease::async_release() {
  if (!state_) return client::failed_operation<Released>(nullptr, client::empty_lease());
  return state_->client->prepare(Result<client::AskRelease>(client::AskRelease{state_}));
}

Result<BootClock::time_point> Lease::extend(std::chrono::milliseconds lease) {
  if (!state_) return tl::make_unexpected(client::empty_lease());
  return state_->client->perform(ask_extend(state_, lease));
}

Operation<BootClock::time_point> Lease::async_extend(std::chrono::milliseconds lease) {
  if (!state_) return empty_operation();
  return state_->client->prepare(ask_extend(state_, lease));
}

Result<BootClock::time_point> Lease::confirm() {
  if (!state_) return tl::make_unexpected(client::empty_lease());
  return state_->client->perform(ask_confirm(state_));
}

Operation<BootClock::time_point> Lease::async_confirm() {
  if (!state_) return empty_operation();
  return state_->client->prepare(ask_confirm(state_));
}

Grant Lease::detach() {
  if (held() == nullptr) return {};
  Grant grant{state_->name(), owner(), state_->key->token};
  State::post_end(std::move(state_), State::Ending::detach);
  return grant;
}

}  // namespace redlock
