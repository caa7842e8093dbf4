// SPDX-License-Identifier: MIT
// Requests lost() when the loop thread cannot: it is starved, or held up by a callback that does
// not return. A thread of its own, started by the first lost() of a client's leases, sleeps until
// half of the margin before a lease's end is gone, and then requests it.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <redlock/lease.hpp>

#include "engine/types.hpp"

namespace redlock::client {

class LossGuard {
 public:
  ~LossGuard();

  /// Called by any thread. If the system gives no thread or memory, only the loop requests lost().
  void watch(engine::Instant until, const std::shared_ptr<Lease::State>& lease) noexcept;
  /// Adds a check for a watched lease that now ends earlier.
  void check_once(engine::Instant until, const std::shared_ptr<Lease::State>& lease) noexcept;
  [[nodiscard]] bool on_own_thread() const noexcept;
  /// Stops the guard, once; it requests nothing afterwards.
  void stop() noexcept;

 private:
  /// The lease is checked at this time, and later again if it was confirmed since: a renewal costs
  /// nothing here.
  struct Check {
    engine::Instant when;
    std::weak_ptr<Lease::State> lease;
    bool again = true;
    friend bool operator<(const Check& a, const Check& b) { return a.when > b.when; }
  };

  void start();
  void add(Check check) noexcept;
  void drop_expired();
  void run();
  void run_check(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  int alarm_ = -1;  // a timerfd: a condition variable's clocks stand still while the machine sleeps
  std::vector<Check> checks_;  // a heap, the earliest in front
  std::size_t tidy_at_ = 64;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace redlock::client
