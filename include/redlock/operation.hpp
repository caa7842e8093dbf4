// SPDX-License-Identifier: MIT
// The forms that every operation has. There is one primitive, Client::submit(request, callback);
// the blocking, std::future and co_await forms are thin covers made here.
#pragma once

#include <redlock/cpp20.hpp>

#include <coroutine>
#include <functional>
#include <future>
#include <optional>
#include <utility>

#include <redlock/error.hpp>

namespace redlock {

/// Called exactly once, from the client's loop thread (or, if nothing could be sent, from the
/// submitting thread before submit returns). It must return soon and must not wait for another
/// operation of the same client. An exception that leaves it ends the program.
template <typename T>
using Callback = std::function<void(Result<T>)>;

/// An operation that starts when it is awaited: `Result<Lease> lease = co_await lock.co_acquire();`
/// The coroutine is resumed on the client's loop thread: move on to your own executor before work
/// that takes time (an error known at once resumes it right here). Await it at most once;
/// destroying one that was never awaited does nothing; a coroutine that awaits must not be
/// destroyed.
template <typename T>
class [[nodiscard]] Operation {
 public:
  using Start = std::function<void(Callback<T>)>;

  explicit Operation(Start start) : start_(std::move(start)) {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) {
    // The callback may run, and destroy this object, before start returns.
    auto start = std::move(start_);
    start([this, waiting](Result<T> result) {
      result_.emplace(std::move(result));
      waiting.resume();
    });
  }

  Result<T> await_resume() { return std::move(*result_); }

 private:
  Start start_;
  std::optional<Result<T>> result_;
};

}  // namespace redlock
