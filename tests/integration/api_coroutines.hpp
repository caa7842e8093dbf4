// SPDX-License-Identifier: MIT
// Coroutines as programs have them: one that nobody waits for, and a way to another thread.
#pragma once

#include <coroutine>
#include <exception>
#include <thread>

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

/// Goes on in a thread that nothing has run in before.
struct ToAnotherThread {
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) const {
    std::thread([waiting] { waiting.resume(); }).detach();
  }
  void await_resume() const noexcept {}
};

}  // namespace redlock::testing
