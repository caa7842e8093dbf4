// SPDX-License-Identifier: MIT
#include "api/lease_state.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "api/client_impl.hpp"

namespace redlock {

namespace {

// Of every lease, for a moment: only the making of a stop_source needs it.
constinit std::mutex lost_mutex;

class Leaving final : public io::Task {
 public:
  Leaving(std::shared_ptr<Lease::State> lease, Callback<Released> callback)
      : lease_(std::move(lease)), callback_(std::move(callback)) {}
  void run() override {
    lease_->client->core().engine().leave(BootClock::now(), lease_->grant);
    answer(lease_->found_by_leaving());
    delete this;
  }
  void answer(Result<Released> result) {
    if (callback_) callback_(std::move(result));
  }

 private:
  std::shared_ptr<Lease::State> lease_;
  Callback<Released> callback_;
};

}  // namespace

Lease::State::State(std::shared_ptr<Client::Impl> of, engine::Name locked,
                    const engine::AcquireSucceeded& granted)
    : client(std::move(of)),
      grant(granted.grant),
      name(std::move(locked)),
      token(granted.token),
      owner(granted.owner),
      valid_until_(granted.valid_until.time_since_epoch().count()) {}

void Lease::State::part(std::shared_ptr<State> state, Parting how) noexcept {
  // Held here, because the state may be gone as soon as it is posted.
  const std::shared_ptr<Client::Impl> client = state->client;
  State& self = *state;
  self.parting_ = how;
  self.self_ = std::move(state);
  if (!client->post(self)) self.self_.reset();
}

void Lease::State::leave(std::shared_ptr<State> state, Callback<Released> callback) {
  const std::shared_ptr<Client::Impl> client = state->client;
  auto task = std::make_unique<Leaving>(std::move(state), std::move(callback));
  if (client->post(*task)) {
    static_cast<void>(task.release());  // it deletes itself, which may have happened already
  } else {
    task->answer(tl::make_unexpected(client->closed_error()));
  }
}

Released Lease::State::found_by_leaving() const noexcept {
  return remaining().count() > 0 ? Released::still_held : Released::already_gone;
}

void Lease::State::run() {
  const std::shared_ptr<State> self = std::move(self_);
  if (!client->forget(grant)) return;
  engine::Engine& engine = client->core().engine();
  if (parting_ == Parting::release) {
    engine.release(BootClock::now(), 0, grant);
  } else {
    engine.detach(grant);
  }
}

BootClock::time_point Lease::State::valid_until() const noexcept {
  return BootClock::time_point(BootClock::duration(valid_until_.load(std::memory_order_acquire)));
}

std::chrono::nanoseconds Lease::State::remaining() const noexcept {
  const auto loss = loss_reason();
  const bool gone =
      loss == LossReason::taken || loss == LossReason::forced || loss == LossReason::closed;
  if (client->forked() || gone) return {};
  return std::max(valid_until() - BootClock::now(), std::chrono::nanoseconds::zero());
}

std::optional<LossReason> Lease::State::loss_reason() const noexcept {
  const std::uint8_t loss = loss_.load(std::memory_order_acquire);
  if (loss == 0) return std::nullopt;
  return static_cast<LossReason>(loss - 1);
}

void Lease::State::confirm(BootClock::time_point valid_until) noexcept {
  valid_until_.store(valid_until.time_since_epoch().count(), std::memory_order_release);
}

void Lease::State::lose(LossReason reason) noexcept {
  loss_.store(static_cast<std::uint8_t>(static_cast<int>(reason) + 1), std::memory_order_release);
  std::stop_source told{std::nostopstate};
  {
    const std::scoped_lock lock(lost_mutex);
    told = lost_;
  }
  told.request_stop();
}

std::stop_token Lease::State::lost() noexcept {
  const std::scoped_lock lock(lost_mutex);
  if (!lost_.stop_possible()) {
    lost_ = std::stop_source();
    if (loss_.load(std::memory_order_acquire) != 0) lost_.request_stop();
  }
  return lost_.get_token();
}

}  // namespace redlock
