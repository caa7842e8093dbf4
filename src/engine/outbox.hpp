// SPDX-License-Identifier: MIT
// Where the machines of the engine put their outputs.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/outputs.hpp"
#include "engine/quorum.hpp"

namespace redlock::engine {

class Outbox {
 public:
  void send(NodeIndex node, const Tag& tag, Command command, Form form = Form::digest) {
    if (tag.kind == Tag::Kind::hold) ++holds_under_way_[node];
    outputs_.nodes.emplace_back(Send{node, tag, std::move(command), form});
  }
  template <typename T>
  void put(T output) {
    if constexpr (std::is_constructible_v<NodeOutput, T>) {
      outputs_.nodes.emplace_back(std::move(output));
    } else {
      outputs_.client.emplace_back(std::move(output));
    }
  }
  /// The result of a request that a machine made of another goes to the machine that asked.
  void put(Finish output) {
    if (output.request > first_inner_request) {
      inner_.push_back(std::move(output));
    } else {
      outputs_.client.emplace_back(std::move(output));
    }
  }
  [[nodiscard]] std::vector<Finish> take_inner() { return std::exchange(inner_, {}); }
  /// Gives the outputs away for empty ones, whose memory is used for the next.
  void take(Outputs& out) { std::swap(outputs_, out); }

  /// Rounds whose callers wait for their results.
  void round_began() { ++rounds_under_way_; }
  void round_ended() { --rounds_under_way_; }
  [[nodiscard]] std::size_t rounds_under_way() const { return rounds_under_way_; }

  /// Holds that were sent to the node and have no answer yet.
  [[nodiscard]] std::size_t holds_under_way(NodeIndex node) const { return holds_under_way_[node]; }
  void hold_ended(NodeIndex node) {
    assert(holds_under_way_[node] > 0);
    --holds_under_way_[node];
  }

 private:
  std::size_t rounds_under_way_ = 0;
  std::array<std::size_t, NodeSet::max_nodes> holds_under_way_{};
  Outputs outputs_;
  std::vector<Finish> inner_;
};

}  // namespace redlock::engine
