// SPDX-License-Identifier: MIT
// The return type of every async_ function: an operation that is ready to start. Await it, start it
// with a callback, or get its result in a std::future.
#pragma once

#include <redlock/cpp20.hpp>

#include <coroutine>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include <redlock/callback.hpp>
#include <redlock/error.hpp>

namespace redlock {

/// For the library's own parts: an operation that has not started.
template <typename T>
class PreparedOperation {
 public:
  virtual ~PreparedOperation() = default;

  /// Starts the operation. Returns nothing if the operation is under way: it has then taken the
  /// callback and calls it once, where Operation::start says, perhaps before this returns.
  /// Otherwise returns the result, which was known at once; then the callback stays where it is. An
  /// exception (no memory) means that nothing was started.
  [[nodiscard]] virtual std::optional<Result<T>> start(std::unique_ptr<PreparedOperation> self,
                                                       Callback<T>& callback) = 0;
};

/// An operation to start once, in one of three ways:
///
///     Result<Lease> lease = co_await lock.async_acquire();
///     lock.async_acquire().start([](Result<Lease> lease) { ... });
///     std::future<Result<Lease>> lease = lock.async_acquire().as_future();
///
/// Until it is started nothing is sent and nothing changes, and destroying it does nothing. An
/// operation may be moved, and be started on any thread and after the RedLock or Lease that
/// returned it was moved or destroyed. To start an operation that has a name, move it: `co_await
/// std::move(operation)`. An operation that was started or moved from before has the result
/// `invalid_argument`.
///
/// Only the stop_token that an operation was given can cancel it once it is under way. It gets a
/// result in any case, at the latest when its client ends.
template <typename T>
class [[nodiscard("nothing happens until it is started or awaited")]] Operation {
 public:
  /// The other one has nothing to start afterwards.
  Operation(Operation &&) noexcept = default;
  /// Drops its own operation unstarted, and takes over the other one.
  Operation& operator=(Operation&&) noexcept = default;

  /// Starts the operation, which calls `callback` exactly once: on the client's loop thread or, if
  /// the result is known at once (an invalid argument, a client that has ended), right here before
  /// this returns. On the loop thread the callback must return soon and must not wait for another
  /// operation of the same client (blocking calls answer would_deadlock). With
  /// ClientOptions::resume_on that function's executor calls it, in both cases. The callback is
  /// destroyed after its call, on the same thread. An exception that leaves the callback on the
  /// client's loop thread closes the client (see Client); from a callback that is called right
  /// here, the exception leaves this function. If there is no memory for the start, this function
  /// throws std::bad_alloc, and nothing is started or called.
  void start(Callback<T> callback)&& {
    if (auto known = begin(std::move(prepared_), callback)) callback(std::move(*known));
  }

  /// Starts the operation. The future gets the result; if the future is destroyed before, the
  /// result is dropped when it comes, and with it the lease in it.
  [[nodiscard("the result is in the future alone")]] std::future<Result<T>> as_future()&& {
    std::promise<Result<T>> promise;
    auto future = promise.get_future();
    std::move(*this).start([promise = std::move(promise)](Result<T> result) mutable {
      promise.set_value(std::move(result));
    });
    return future;
  }

  class Awaiter;
  /// Starts the operation and suspends the coroutine until the result is there. The coroutine is
  /// resumed on the client's loop thread, where it must do no work that takes time, or goes on
  /// where it is if the result is known at once. With ClientOptions::resume_on that function's
  /// executor resumes it, in both cases. The coroutine must not be destroyed while it awaits.
  Awaiter operator co_await()&& noexcept {
    return Awaiter(std::move(prepared_));
  }

  /// For the library's own parts.
  explicit Operation(std::unique_ptr<PreparedOperation<T>> prepared) noexcept
      : prepared_(std::move(prepared)) {}

 private:
  static std::optional<Result<T>> begin(std::unique_ptr<PreparedOperation<T>> prepared,
                                        Callback<T> & callback) {
    if (prepared) {
      PreparedOperation<T>& self = *prepared;
      return self.start(std::move(prepared), callback);
    }
    return tl::make_unexpected(
        Error{Errc::invalid_argument, "the operation was started or moved from before", {}});
  }

  std::unique_ptr<PreparedOperation<T>> prepared_;
};

template <typename T>
class Operation<T>::Awaiter {
 public:
  explicit Awaiter(std::unique_ptr<PreparedOperation<T>> prepared) noexcept
      : prepared_(std::move(prepared)) {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }

  // Once the operation is under way the coroutine, and this object in it, may be gone. Not inlined,
  // because clang before 17 would move the local variables into the coroutine.
  [[nodiscard]] [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> waiting) {
    Callback<T> resume = [this, waiting](Result<T> result) {
      result_.emplace(std::move(result));
      waiting.resume();
    };
    auto known = Operation::begin(std::move(prepared_), resume);
    if (!known) return true;
    // Not resumed in here, where a coroutine that goes on in a loop would use up the stack.
    result_.emplace(std::move(*known));
    return false;
  }

  Result<T> await_resume() { return std::move(*result_); }

 private:
  std::unique_ptr<PreparedOperation<T>> prepared_;
  std::optional<Result<T>> result_;
};

}  // namespace redlock
