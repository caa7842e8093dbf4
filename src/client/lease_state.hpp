// SPDX-License-Identifier: MIT
// The state that a Lease and the loop thread share. The loop writes the validity and the loss; any
// thread reads them without a lock. It is also the task that gives the lock back when a Lease is
// dropped, so that a destructor has nothing to allocate.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>

#include <redlock/client.hpp>
#include <redlock/lease.hpp>

#include "engine/engine.hpp"
#include "net/core.hpp"

namespace redlock {

namespace client {
class LossWait;
}

struct REDLOCK_NO_EXPORT Lease::State final : net::Task {
  enum class Ending : std::uint8_t { release, detach };

  State(std::shared_ptr<Client::Impl> client, const engine::AcquireSucceeded& granted);
  ~State();

  /// Posts the end of this lease without waiting for it.
  static void post_end(std::shared_ptr<State> state, Ending how) noexcept;

  /// The answer to an owner that leaves an inner level of it now.
  [[nodiscard]] Released found_by_leaving() const noexcept;

  [[nodiscard]] BootClock::time_point valid_until() const noexcept;
  [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept;
  [[nodiscard]] std::optional<LossReason> loss_reason() const noexcept;
  [[nodiscard]] static std::stop_token lost(const std::shared_ptr<State>& state);
  /// After lost(): from now on `wait` waits for the loss, and is taken out once, by the code that
  /// completes it: by the loss, by the end of the lease, or by stop_waiting(). Otherwise returns
  /// its result.
  [[nodiscard]] std::optional<Result<LossReason>> await_loss(client::LossWait& wait);
  /// Whether it was taken out by this call. If it does not wait yet, it never will.
  [[nodiscard]] bool stop_waiting(client::LossWait& wait) noexcept;
  /// The program has queried its validity in some way.
  void mark_asked() noexcept {
    if (!was_asked()) loss_.fetch_or(asked);
  }
  [[nodiscard]] bool was_asked() const noexcept {
    return (loss_.load(std::memory_order_relaxed) & asked) != 0;
  }
  /// Its holder releases, detaches or drops the lease: only the loop reports its loss from then on.
  /// False if that was so already.
  bool end() noexcept {
    const bool first = !ended_.exchange(true);
    if (first && (loss_.load() & awaited) != 0) end_waits();
    return first;
  }
  /// The ended lease goes on for its holder, who took a level while the last one was being left.
  static void go_on(const std::shared_ptr<State>& state) noexcept;
  [[nodiscard]] bool ended() const noexcept { return ended_.load(std::memory_order_relaxed); }

  // By the loop thread.
  void run() override;
  static void confirm(const std::shared_ptr<State>& state, BootClock::time_point valid_until,
                      const engine::LossDeadline& loss_deadline) noexcept;
  /// Requests lost(), unless that was done before: the first reason stays. False if so. A lease
  /// that the nodes no longer have, or are to delete, is not valid from now on in either case.
  bool lose(LossReason reason) noexcept;

  /// By the guard (loss_guard.hpp): requests lost() if the loop thread has neither confirmed the
  /// lease nor done so when half of the margin is gone. Returns when to look again; never: no more.
  [[nodiscard]] BootClock::time_point lose_if_unconfirmed(BootClock::time_point now) noexcept;

  [[nodiscard]] const std::string& name() const noexcept { return key->name; }

  const std::shared_ptr<Client::Impl> client;
  const engine::GrantId grant;
  const engine::SharedLeaseKey key;

 private:
  [[nodiscard]] bool is_lost() const noexcept { return (loss_.load() & reason_bits) != 0; }
  void set_loss_deadline(const engine::LossDeadline& loss_deadline) noexcept;
  [[nodiscard]] BootClock::time_point guarded_until() const noexcept;

  /// The receivers of a loss, beside the states. The waits are a list.
  struct Watch {
    void tell(LossReason reason) noexcept;
    std::stop_source lost{std::nostopstate};
    client::LossWait* waits = nullptr;
  };
  /// Those of the leases whose lost() was asked for; with the mutex held.
  [[nodiscard]] static std::unordered_map<const State*, Watch>& watches();
  /// With the mutex held, for the one who tells it: nothing, before anybody asked for lost().
  [[nodiscard]] Watch take_watch();
  void end_waits() noexcept;

  std::atomic<BootClock::rep> valid_until_;
  /// A LossReason + 1, or 0; a bit that is set if nothing is left of it, that of mark_asked(), and
  /// one that is set once somebody has waited for the loss.
  std::atomic<std::uint8_t> loss_{0};
  static constexpr std::uint8_t gone = 0x80;
  static constexpr std::uint8_t asked = 0x40;
  static constexpr std::uint8_t awaited = 0x20;
  static constexpr std::uint8_t reason_bits = 0x1f;
  Ending ending_ = Ending::release;
  std::atomic<bool> ended_{false};
  /// lost() has been asked for; with the mutex held. A program with many leases never asks for most
  /// of them, so the stop source is kept beside the states.
  bool watched_ : 1 = false;
  /// The reason of the loss if nothing is confirmed before, and half of the margin that it leaves;
  /// both with the mutex held.
  LossReason reason_at_end_ : 7 {};
  std::uint32_t half_margin_us_ = 0;
  /// Keeps the posted task alive until it has run.
  std::shared_ptr<State> self_;
};

namespace client {

/// The answer of an empty lease.
[[nodiscard]] Error empty_lease();

}  // namespace client
}  // namespace redlock
