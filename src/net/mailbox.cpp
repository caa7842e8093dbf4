// SPDX-License-Identifier: MIT
// A stack with one taker: it takes everything at once, so a task that comes back at the same
// address (the ABA problem of lock-free stacks) harms nothing.
#include "net/mailbox.hpp"

#include <utility>

namespace redlock::net {

Task* Mailbox::closed() noexcept {
  struct Closed final : Task {
    void run() override {}
  };
  static Closed mark;
  return &mark;
}

Mailbox::Posted Mailbox::push(Task& task) noexcept {
  Task* newest = newest_.load(std::memory_order_relaxed);
  do {
    if (newest == closed()) return Posted::refused;
    task.next_ = newest;
  } while (!newest_.compare_exchange_weak(newest, &task, std::memory_order_release,
                                          std::memory_order_relaxed));
  return newest == nullptr ? Posted::first : Posted::behind_others;
}

void Mailbox::run_all() {
  run(newest_.exchange(nullptr, std::memory_order_acquire));
}

void Mailbox::close() {
  run(newest_.exchange(closed(), std::memory_order_acquire));
}

void Mailbox::run(Task* newest) {
  Task* oldest = nullptr;
  while (newest != nullptr) {
    Task* const older = std::exchange(newest->next_, oldest);
    oldest = newest;
    newest = older;
  }
  while (oldest != nullptr) {
    // The task may be gone, or posted again, as soon as it runs.
    Task* const task = oldest;
    oldest = std::exchange(task->next_, nullptr);
    try {
      task->run();
    } catch (...) {
      failed_(std::current_exception());
    }
  }
}

}  // namespace redlock::net
