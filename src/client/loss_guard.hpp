// SPDX-License-Identifier: MIT
// lost() even when the loop thread does not come to say it: starved, or held up by a callback that
// does not return. A thread of its own, started when somebody first asks a client's lease for
// lost(), sleeps until half of the margin before a lease's end is gone, and then says it itself.
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

  /// Any thread. If the system gives no thread, lost() is the loop's alone, as it mostly is.
  void watch(engine::Instant until, const std::shared_ptr<Lease::State>& lease) noexcept;
  /// One look more, for a lease that is watched and whose end was drawn nearer.
  void look_once(engine::Instant until, const std::shared_ptr<Lease::State>& lease) noexcept;
  [[nodiscard]] bool on_own_thread() const noexcept;
  /// Once; it says nothing afterwards.
  void stop() noexcept;

 private:
  /// Looked at then, and put off if it has been confirmed since: a renewal costs nothing here.
  struct Look {
    engine::Instant when;
    std::weak_ptr<Lease::State> lease;
    bool again = true;
    friend bool operator<(const Look& a, const Look& b) { return a.when > b.when; }
  };

  void start();
  void add(Look look);
  void forget_those_over();
  void run();
  void look_at(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  int alarm_ = -1;  // a timerfd: a condition variable's clocks stand still while the machine sleeps
  std::vector<Look> looks_;  // a heap, the earliest in front
  std::size_t tidy_at_ = 64;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace redlock::client
