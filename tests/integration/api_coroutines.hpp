// SPDX-License-Identifier: MIT
// Coroutines as programs have them: one that nobody waits for, a task that is awaited, and a way to
// another thread.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

namespace redlock::testing {

/// A coroutine that nobody waits for.
struct FireAndForget {
  struct promise_type {
    FireAndForget get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

/// A coroutine that starts when it is awaited and hands over to the one that awaits it by symmetric
/// transfer, as those of cppcoro, folly and Asio do.
template <typename T>
class Task {
 public:
  struct promise_type {
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct HandOver : std::suspend_always {
        std::coroutine_handle<> await_suspend(
            std::coroutine_handle<promise_type> ended) const noexcept {
          return ended.promise().awaiting;
        }
      };
      return HandOver{};
    }
    void return_value(T value) { result.emplace(std::move(value)); }
    void unhandled_exception() { std::terminate(); }

    std::coroutine_handle<> awaiting;
    std::optional<T> result;
  };

  Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (coroutine_) coroutine_.destroy();
  }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
    coroutine_.promise().awaiting = awaiting;
    return coroutine_;
  }
  T await_resume() { return std::move(*coroutine_.promise().result); }

 private:
  explicit Task(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
  std::coroutine_handle<promise_type> coroutine_;
};

/// Goes on in a thread that nothing has run in before.
struct ToAnotherThread {
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) const {
    std::thread([waiting] { waiting.resume(); }).detach();
  }
  void await_resume() const noexcept {}
};

}  // namespace redlock::testing
