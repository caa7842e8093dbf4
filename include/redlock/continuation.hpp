// SPDX-License-Identifier: MIT
// The function object that an executor of the program calls: see ClientOptions::resume_on.
#pragma once

#include <redlock/cpp20.hpp>

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace redlock {

/// The rest of an operation that has its result: the call of its callback, the resumption of the
/// coroutine that awaits it, or the completion of its future. Call it once, on any thread; another
/// call does nothing. A continuation is as large as a pointer, is moved and never copied. For an
/// executor that takes only copyable functions (a std::function):
///
///     auto shared = std::make_shared<redlock::Continuation>(std::move(continuation));
///     pool.submit([shared] { (*shared)(); });
///
/// A continuation that is destroyed uncalled takes the result with it, and the operation never
/// continues: ClientOptions::resume_on says what that means for callback, coroutine and future.
class Continuation {
 public:
  /// For the library's own parts: the function that is called.
  struct Step {
    Step() = default;
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    virtual ~Step() = default;
    /// Called at most once, on the thread that calls the continuation.
    virtual void run() = 0;
  };
  /// For the library's own parts: a continuation that calls `step`. An empty one does nothing.
  explicit Continuation(std::unique_ptr<Step> step) noexcept : step_(std::move(step)) {}

  /// For the library's own parts, and for functions that an executor adds itself.
  template <std::invocable Function>
  requires(!std::same_as<std::remove_cvref_t<Function>, Continuation>) explicit Continuation(
      Function&& function)
      : step_(std::make_unique<StepOf<std::decay_t<Function>>>(std::forward<Function>(function))) {}

  /// The called function is destroyed afterwards, on the same thread. An exception that leaves it
  /// ends the program.
  void operator()() noexcept {
    const std::unique_ptr<Step> step = std::move(step_);
    if (step) step->run();
  }

 private:
  template <typename Function>
  struct StepOf final : Step {
    template <typename Given>
    explicit StepOf(Given&& given) : function(std::forward<Given>(given)) {}
    void run() override { function(); }
    Function function;
  };

  std::unique_ptr<Step> step_;
};

}  // namespace redlock
