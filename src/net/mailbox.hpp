// SPDX-License-Identifier: MIT
// How other threads reach the loop thread: a list of tasks, linked through the tasks themselves,
// that any thread may push to and the loop thread takes as a whole. No lock, no allocation.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <utility>

#include "net/task.hpp"

namespace redlock::net {

class Mailbox {
 public:
  enum class Posted { first, behind_others, refused };

  Mailbox() = default;
  /// An exception that leaves a task is given to this function, and the next task is run.
  explicit Mailbox(std::function<void(std::exception_ptr why)> failed)
      : failed_(std::move(failed)) {}

  /// Any thread. `first`: the loop thread must be woken. `refused`: the mailbox is closed.
  [[nodiscard]] Posted push(Task& task) noexcept;

  /// Any thread. Whether the mailbox is empty; a thread's own task is in it until it has run.
  [[nodiscard]] bool empty() const noexcept {
    return newest_.load(std::memory_order_acquire) == nullptr;
  }

  /// Loop thread: runs the pushed tasks, in order.
  void run_all();

  /// Loop thread: refuses tasks from now on and runs those that are left.
  void close();

 private:
  // Marks the end of all pushing; compared with, never run.
  [[nodiscard]] static Task* closed() noexcept;
  void run(Task* newest);

  std::atomic<Task*> newest_{nullptr};
  const std::function<void(std::exception_ptr why)> failed_;
};

}  // namespace redlock::net
