// SPDX-License-Identifier: MIT
// Where the machines of the engine put what is to be done.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "engine/engine.hpp"

namespace redlock::engine {

class Outbox {
 public:
  void send(NodeIndex node, const Tag& tag, Command command, Form form = Form::digest) {
    outputs_.emplace_back(Send{node, tag, std::move(command), form});
  }
  template <typename T>
  void put(T output) {
    outputs_.emplace_back(std::move(output));
  }
  /// Gives the outputs away for an empty vector, whose memory is used for the next ones.
  void take(std::vector<Output>& out) { outputs_.swap(out); }

  /// Rounds whose callers wait for their results.
  void round_began() { ++rounds_under_way_; }
  void round_ended() { --rounds_under_way_; }
  [[nodiscard]] std::size_t rounds_under_way() const { return rounds_under_way_; }

 private:
  std::size_t rounds_under_way_ = 0;
  std::vector<Output> outputs_;
};

}  // namespace redlock::engine
