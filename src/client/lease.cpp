// SPDX-License-Identifier: MIT
// What a holder can ask of its lease. Reading needs no lock and no loop; the rest are questions
// (see call.hpp), and dropping a lease is a task that the lease's state carries itself.
#include <utility>

#include <redlock/lease.hpp>

#include "client/client_impl.hpp"
#include "client/forms.hpp"
#include "client/lease_state.hpp"
#include "client/options_check.hpp"

namespace redlock {

namespace {

Error empty_lease() {
  return {Errc::lost, "this lease is empty: it was moved from, released or detached", {}};
}

Result<client::AskExtend> ask_extend(const std::shared_ptr<Lease::State>& lease,
                                  std::chrono::milliseconds length) {
  const ClientOptions& options = lease->client->options();
  if (auto ok = client::check_lease(length, options.min_validity, options); !ok) {
    return tl::make_unexpected(std::move(ok.error()));
  }
  return client::AskExtend{lease, length};
}

Result<client::AskExtend> ask_confirm(const std::shared_ptr<Lease::State>& lease) {
  return client::AskExtend{lease, std::nullopt};
}

}  // namespace

Lease::Lease() noexcept = default;
Lease::Lease(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Lease::Lease(Lease&&) noexcept = default;

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  if (state_) State::part(std::move(state_), State::Parting::release);
  state_ = std::move(other.state_);
  return *this;
}

Lease::~Lease() {
  if (state_) State::part(std::move(state_), State::Parting::release);
}

Lease::operator bool() const noexcept {
  return state_ != nullptr;
}

const std::string& Lease::name() const noexcept {
  static const std::string none;
  return state_ ? *state_->name : none;
}

std::string Lease::owner() const {
  return state_ ? engine::to_hex(state_->owner) : std::string();
}

std::uint64_t Lease::token() const noexcept {
  return state_ ? state_->token : 0;
}

bool Lease::valid() const noexcept {
  return remaining() > std::chrono::nanoseconds::zero();
}

std::chrono::nanoseconds Lease::remaining() const noexcept {
  return state_ ? state_->remaining() : std::chrono::nanoseconds::zero();
}

BootClock::time_point Lease::valid_until() const noexcept {
  return state_ ? state_->valid_until() : BootClock::time_point::min();
}

std::stop_token Lease::lost() const noexcept {
  return state_ ? State::lost(state_) : std::stop_token();
}

std::optional<LossReason> Lease::loss_reason() const noexcept {
  return state_ ? state_->loss_reason() : std::nullopt;
}

Result<Released> Lease::release() {
  if (!state_) return tl::make_unexpected(empty_lease());
  auto state = std::move(state_);
  state->end_guard();
  auto result = state->client->perform(Result<client::AskRelease>(client::AskRelease{state}));
  const bool could_not_wait = !result && result.error().code == Errc::would_deadlock;
  if (could_not_wait) State::part(std::move(state), State::Parting::release);
  return result;
}

void Lease::release(Callback<Released> callback) {
  if (!state_) return callback(tl::make_unexpected(empty_lease()));
  const auto state = std::move(state_);
  state->end_guard();
  state->client->submit(Result<client::AskRelease>(client::AskRelease{state}), std::move(callback));
}

std::future<Result<Released>> Lease::release_future() {
  return client::as_future<Released>([this](auto callback) { release(std::move(callback)); });
}

Operation<Released> Lease::co_release() {
  return Operation<Released>([this](auto callback) { release(std::move(callback)); });
}

Result<BootClock::time_point> Lease::extend(std::chrono::milliseconds lease) {
  if (!state_) return tl::make_unexpected(empty_lease());
  return state_->client->perform(ask_extend(state_, lease));
}

void Lease::extend(std::chrono::milliseconds lease, Callback<BootClock::time_point> callback) {
  if (!state_) return callback(tl::make_unexpected(empty_lease()));
  state_->client->submit(ask_extend(state_, lease), std::move(callback));
}

std::future<Result<BootClock::time_point>> Lease::extend_future(std::chrono::milliseconds lease) {
  return client::as_future<BootClock::time_point>(
      [this, lease](auto callback) { extend(lease, std::move(callback)); });
}

Operation<BootClock::time_point> Lease::co_extend(std::chrono::milliseconds lease) {
  return Operation<BootClock::time_point>(
      [this, lease](auto callback) { extend(lease, std::move(callback)); });
}

Result<BootClock::time_point> Lease::confirm() {
  if (!state_) return tl::make_unexpected(empty_lease());
  return state_->client->perform(ask_confirm(state_));
}

void Lease::confirm(Callback<BootClock::time_point> callback) {
  if (!state_) return callback(tl::make_unexpected(empty_lease()));
  state_->client->submit(ask_confirm(state_), std::move(callback));
}

std::future<Result<BootClock::time_point>> Lease::confirm_future() {
  return client::as_future<BootClock::time_point>(
      [this](auto callback) { confirm(std::move(callback)); });
}

Operation<BootClock::time_point> Lease::co_confirm() {
  return Operation<BootClock::time_point>([this](auto callback) { confirm(std::move(callback)); });
}

Grant Lease::detach() {
  if (!state_) return {};
  Grant grant{*state_->name, owner(), state_->token};
  State::part(std::move(state_), State::Parting::detach);
  return grant;
}

}  // namespace redlock
