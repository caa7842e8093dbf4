// SPDX-License-Identifier: MIT
//
// A thread that sleeps in poll() and lets its owner do the work. The owner's state is guarded by
// one mutex, which is free while the thread sleeps; whoever waits for something to happen waits on
// the condition variable that goes with it, so that no test has to sleep and hope.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <poll.h>
#include <thread>
#include <vector>

#include "cluster/unique_fd.hpp"

namespace redlock::cluster {

class PollThread {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Both are called on the thread, under the mutex. `prepare` lists what to poll, in an order of
  /// its own, and says when to be called again at the latest; `perform` gets the same list back.
  using Prepare = std::function<std::optional<TimePoint>(std::vector<pollfd>&)>;
  using Perform = std::function<void(const std::vector<pollfd>&)>;

  PollThread(Prepare prepare, Perform perform);
  ~PollThread();
  PollThread(const PollThread&) = delete;
  PollThread& operator=(const PollThread&) = delete;

  /// Runs `change` under the mutex and makes the thread look at the result. Descriptors that the
  /// thread polls must not be closed in it.
  template <typename Change>
  void change(Change&& change) {
    const std::scoped_lock lock(mutex_);
    change();
    wake();
  }

  /// Runs `read` under the mutex and returns what it returns.
  template <typename Read>
  auto read(Read&& read) const {
    const std::scoped_lock lock(mutex_);
    return read();
  }

  /// Waits until `condition`, looked at under the mutex, holds. False: it did not for half a
  /// minute.
  template <typename Condition>
  bool await(Condition&& condition) {
    std::unique_lock lock(mutex_);
    return happened_.wait_for(lock, std::chrono::seconds(30), condition);
  }

  /// Marks each of these connections of the thread's owner as doomed, and waits until those are
  /// gone.
  template <typename Connections>
  void end_all(Connections& connections) {
    change([&] {
      for (auto& connection : connections) connection.doomed = true;
    });
    await([&] {
      return std::ranges::none_of(connections,
                                  [](const auto& connection) { return connection.doomed; });
    });
  }

 private:
  void run();
  void wake() const;

  Prepare prepare_;
  Perform perform_;
  mutable std::mutex mutex_;
  std::condition_variable happened_;
  bool stopping_ = false;
  UniqueFd wake_;
  std::thread thread_;
};

}  // namespace redlock::cluster
