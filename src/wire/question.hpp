// SPDX-License-Identifier: MIT
// A command sent to a node for inspection or administration, with its own time limit.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/messages.hpp"
#include "wire/value.hpp"

namespace redlock::wire {

class Question {
 public:
  using OnAnswer = std::function<void(engine::Instant now, Answer)>;

  Question(engine::Instant now, std::vector<std::string> command, std::chrono::milliseconds timeout,
           OnAnswer callback)
      : command_(std::move(command)),
        timeout_(timeout),
        deadline_(later(now, timeout)),
        callback_(std::move(callback)) {}

  [[nodiscard]] const std::vector<std::string>& command() const { return command_; }
  [[nodiscard]] engine::Instant deadline() const { return deadline_; }
  [[nodiscard]] bool answered() const { return !callback_; }

  /// The first answer is passed on; later ones, such as a reply after the deadline, are dropped.
  void answer(engine::Instant now, Answer answer) {
    if (callback_) std::exchange(callback_, nullptr)(now, std::move(answer));
  }
  void time_out(engine::Instant now) {
    answer(now, tl::unexpected(engine::Unavailable{
                    Cause::timed_out, engine::Delivery::unknown,
                    "no answer within " + std::to_string(timeout_.count()) + " ms"}));
  }

 private:
  /// A timeout may be as long as its type allows.
  static engine::Instant later(engine::Instant now, std::chrono::milliseconds timeout) {
    const auto most = std::chrono::floor<std::chrono::milliseconds>(engine::never - now);
    if (timeout >= most) return engine::never;
    return now + std::max(timeout, std::chrono::milliseconds::zero());
  }

  std::vector<std::string> command_;
  std::chrono::milliseconds timeout_;
  engine::Instant deadline_;
  OnAnswer callback_;
};

}  // namespace redlock::wire
