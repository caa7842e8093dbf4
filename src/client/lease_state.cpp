// SPDX-License-Identifier: MIT
#include "client/lease_state.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "client/client_impl.hpp"
#include "client/loss_wait.hpp"

namespace redlock {

namespace {

// For all leases, and held for a moment: while a stop_source is made, or a lease is confirmed or
// lost.
constinit std::mutex lost_mutex;

std::stop_token already_requested() {
  std::stop_source source;
  source.request_stop();
  return source.get_token();
}

}  // namespace

Error client::empty_lease() {
  return {Errc::lost, "this lease is empty: it was moved from, released or detached", {}};
}

Lease::State::State(std::shared_ptr<Client::Impl> of, const engine::AcquireSucceeded& granted)
    : client(std::move(of)),
      grant(granted.grant),
      key(granted.key),
      valid_until_(granted.valid_until.time_since_epoch().count()) {
  set_loss_deadline(granted.loss_deadline);
}

Lease::State::~State() {
  // In the child of a fork the thread that would unlock the mutex may not exist.
  if (!watched_ || client->forked()) return;
  const std::scoped_lock lock(lost_mutex);
  watches().erase(this);
}

/// Never destroyed, as a lease may be a static object.
std::unordered_map<const Lease::State*, Lease::State::Watch>& Lease::State::watches() {
  static auto* const all = new std::unordered_map<const State*, Watch>;
  return *all;
}

Lease::State::Watch Lease::State::take_watch() {
  if (!watched_) return {};
  Watch& watch = watches().at(this);
  return {watch.lost, std::exchange(watch.waits, nullptr)};
}

/// Called with no mutex locked: users' functions run in here.
void Lease::State::Watch::tell(LossReason reason) noexcept {
  lost.request_stop();
  while (waits != nullptr) std::exchange(waits, waits->next)->lose(reason);
}

std::optional<Result<LossReason>> Lease::State::await_loss(client::LossWait& wait) {
  const std::scoped_lock lock(lost_mutex);
  loss_.fetch_or(awaited);  // before ended_ is read, as end() does the other way round
  if (ended_.load()) return tl::make_unexpected(client::empty_lease());
  if (const auto reason = loss_reason()) return *reason;
  if (wait.stopped) return tl::make_unexpected(wait.cancelled_error());
  wait.next = std::exchange(watches().at(this).waits, &wait);
  return std::nullopt;
}

bool Lease::State::stop_waiting(client::LossWait& wait) noexcept {
  if (client->forked()) return false;
  const std::scoped_lock lock(lost_mutex);
  wait.stopped = true;
  client::LossWait** at = &watches().at(this).waits;
  while (*at != nullptr && *at != &wait) at = &(*at)->next;
  if (*at == nullptr) return false;
  *at = wait.next;
  return true;
}

void Lease::State::end_waits() noexcept {
  if (client->forked()) return;  // nobody may be there to unlock the mutex
  client::LossWait* waits = nullptr;
  {
    const std::scoped_lock lock(lost_mutex);
    waits = take_watch().waits;
  }
  while (waits != nullptr) std::exchange(waits, waits->next)->fail(Errc::lost);
}

void Lease::State::post_end(std::shared_ptr<State> state, Ending how) noexcept {
  // Held here, because the state may be gone as soon as it is posted.
  const std::shared_ptr<Client::Impl> client = state->client;
  State& self = *state;
  self.end();
  self.ending_ = how;
  self.self_ = std::move(state);
  if (!client->post(self)) self.self_.reset();
}

void Lease::State::go_on(const std::shared_ptr<State>& state) noexcept {
  State& self = *state;
  if (!self.ended_.exchange(false)) return;
  BootClock::time_point until;
  {
    const std::scoped_lock lock(lost_mutex);
    if (!self.watched_ || self.is_lost()) return;
    until = self.guarded_until();
  }
  self.client->guard().watch(until, state);  // which may have stopped when it found it ended
}

Released Lease::State::found_by_leaving() const noexcept {
  return remaining().count() > 0 ? Released::still_held : Released::already_gone;
}

void Lease::State::run() {
  const std::shared_ptr<State> self = std::move(self_);
  if (!client->forget(grant)) return;
  engine::Engine& engine = client->core().engine();
  if (ending_ == Ending::release) {
    engine.release(BootClock::now(), 0, grant);
  } else {
    engine.detach(BootClock::now(), grant);
  }
}

BootClock::time_point Lease::State::valid_until() const noexcept {
  return BootClock::time_point(BootClock::duration(valid_until_.load(std::memory_order_acquire)));
}

std::chrono::nanoseconds Lease::State::remaining() const noexcept {
  if (client->forked() || (loss_.load() & gone) != 0) return {};
  return std::max(valid_until() - BootClock::now(), std::chrono::nanoseconds::zero());
}

std::optional<LossReason> Lease::State::loss_reason() const noexcept {
  const int loss = loss_.load() & reason_bits;
  if (loss == 0) return std::nullopt;
  return static_cast<LossReason>(loss - 1);
}

void Lease::State::confirm(const std::shared_ptr<State>& state, BootClock::time_point valid_until,
                           const engine::LossDeadline& loss_deadline) noexcept {
  State& self = *state;
  bool earlier = false;
  BootClock::time_point until;
  {
    const std::scoped_lock lock(lost_mutex);
    // If the guard has reported the loss already, that stands, and the end only comes nearer.
    const bool over = self.is_lost();
    if (over && valid_until >= self.valid_until()) return;
    const auto before = self.guarded_until();
    self.valid_until_.store(valid_until.time_since_epoch().count(), std::memory_order_release);
    if (over) return;
    self.set_loss_deadline(loss_deadline);
    until = self.guarded_until();
    earlier = self.watched_ && until < before;
  }
  if (earlier) self.client->guard().check_once(until, state);
}

void Lease::State::set_loss_deadline(const engine::LossDeadline& loss_deadline) noexcept {
  reason_at_end_ = loss_deadline.reason;
  const auto half =
      std::chrono::floor<std::chrono::microseconds>((valid_until() - loss_deadline.lost_at) / 2);
  half_margin_us_ = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(half.count(), 0, std::numeric_limits<std::uint32_t>::max()));
}

/// The loop has until then.
BootClock::time_point Lease::State::guarded_until() const noexcept {
  return valid_until() - std::chrono::microseconds(half_margin_us_);
}

bool Lease::State::lose(LossReason reason) noexcept {
  Watch told;
  {
    const std::scoped_lock lock(lost_mutex);
    const bool nothing_left =
        reason == LossReason::taken || reason == LossReason::forced || reason == LossReason::closed;
    if (nothing_left) loss_.fetch_or(gone);
    if (is_lost()) return false;
    loss_.fetch_or(static_cast<std::uint8_t>(static_cast<int>(reason) + 1));
    told = take_watch();
  }
  told.tell(reason);
  return true;
}

BootClock::time_point Lease::State::lose_if_unconfirmed(BootClock::time_point now) noexcept {
  Watch told;
  LossReason reason{};
  {
    const std::scoped_lock lock(lost_mutex);
    if (is_lost() || ended()) return BootClock::time_point::max();
    if (now < guarded_until()) return guarded_until();
    reason = reason_at_end_;
    loss_.fetch_or(static_cast<std::uint8_t>(static_cast<int>(reason) + 1));
    told = take_watch();
  }
  told.tell(reason);
  return BootClock::time_point::max();
}

std::stop_token Lease::State::lost(const std::shared_ptr<State>& state) {
  State& self = *state;
  std::stop_token token;
  bool watch = false;
  BootClock::time_point until;
  // In the child of a fork nothing is held, and the thread that would unlock the mutex may not
  // exist.
  if (self.client->forked()) return already_requested();
  {
    const std::scoped_lock lock(lost_mutex);
    const bool over = self.is_lost();
    if (!self.watched_) {
      // Not the remains of an earlier state at this address, in the child of a fork.
      const auto made = watches().insert_or_assign(&self, Watch{std::stop_source()}).first;
      self.watched_ = true;
      if (over) made->second.lost.request_stop();
      watch = !over;
    }
    token = watches().at(&self).lost.get_token();
    until = self.guarded_until();
  }
  if (watch) self.client->guard().watch(until, state);
  return token;
}

}  // namespace redlock
