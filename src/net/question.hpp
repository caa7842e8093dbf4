// SPDX-License-Identifier: MIT
// A command put to a node for inspection or administration, with its own time limit.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/messages.hpp"
#include "net/loop.hpp"
#include "net/timer.hpp"
#include "wire/value.hpp"

namespace redlock::net {

class Question {
 public:
  Question(Loop& loop, std::vector<std::string> command, std::chrono::milliseconds timeout,
           std::function<void(wire::Answer)> callback)
      : command_(std::move(command)), callback_(std::move(callback)), timer_(loop, [this, timeout] {
          answer(tl::unexpected(
              engine::Unavailable{Cause::timed_out, engine::Delivery::unknown,
                                  "no answer within " + std::to_string(timeout.count()) + " ms"}));
        }) {
    timer_.start(timeout);
  }

  [[nodiscard]] const std::vector<std::string>& command() const { return command_; }
  [[nodiscard]] bool answered() const { return !callback_; }

  /// The first answer counts; it may be followed by others, or by the end of the time.
  void answer(wire::Answer answer) {
    timer_.stop();
    if (callback_) std::exchange(callback_, nullptr)(std::move(answer));
  }

 private:
  std::vector<std::string> command_;
  std::function<void(wire::Answer)> callback_;
  Timer timer_;
};

}  // namespace redlock::net
