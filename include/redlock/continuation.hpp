// SPDX-License-Identifier: MIT
// What an executor of the program gets to call: see ClientOptions::resume_on.
#pragma once

#include <redlock/cpp20.hpp>

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace redlock {

/// The rest of an operation that has its result: the call of its callback, the resumption of the
/// coroutine that awaits it, or the completion of its future. To be called once, on any thread;
/// another call does nothing. It is as large as a pointer, is moved and never copied. For an
/// executor that takes only what can be copied (a std::function):
///
///     auto shared = std::make_shared<redlock::Continuation>(std::move(continuation));
///     pool.submit([shared] { (*shared)(); });
///
/// One that is destroyed and was not called takes the result with it, and what has not continued by
/// then never does: ClientOptions::resume_on says what that means for each.
class Continuation {
 public:
  /// For the library's own parts: what is called.
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

  /// For the library's own parts, and for what an executor adds itself.
  template <std::invocable Function>
  requires(!std::same_as<std::remove_cvref_t<Function>, Continuation>) explicit Continuation(
      Function&& function)
      : step_(std::make_unique<StepOf<std::decay_t<Function>>>(std::forward<Function>(function))) {}

  /// What is called is destroyed afterwards, on the same thread. An exception that leaves it ends
  /// the program.
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
