// SPDX-License-Identifier: MIT
// Which of its nodes may vote, as the client above is told: each change once, in both directions.
// That a node is connected is not enough. It may be quarantined, of another set, with a clock that
// moved, or refuse every write because its memory is full, and all that ends as quietly as it
// begins.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/messages.hpp"
#include "wire/driver_host.hpp"

namespace redlock::wire {

class NodeStandings {
 public:
  /// The host must outlive this.
  NodeStandings(std::size_t nodes, DriverHost& host) : host_(host), nodes_(nodes) {}

  /// A new connection, with what its handshake found unsafe. judge() is to follow.
  void on_link_up(engine::NodeIndex node, std::string warnings);
  void on_link_down(engine::NodeIndex node, const engine::Unavailable& why);
  /// An answer to a command: an error may say that the node takes no command of anybody.
  void on_reply(engine::NodeIndex node, const engine::Tag& tag, const engine::Reply& reply);
  /// Whether such an error was the last word of the node; then it is to be asked to write nothing,
  /// which it refuses for as long as it would refuse a lock.
  [[nodiscard]] bool refuses(engine::NodeIndex node) const {
    return nodes_[node].refusal.has_value();
  }
  void on_refusal_over(engine::NodeIndex node) { nodes_[node].refusal.reset(); }

  /// Tells what has changed, now that the engine has, or has not, this objection to the node.
  void judge(engine::Instant now, engine::NodeIndex node,
             std::optional<engine::Unavailable> objection);

 private:
  struct Node {
    bool connected = false;
    std::string warnings;
    std::optional<engine::Unavailable> refusal;
    engine::Instant clock_moved = engine::never;  // seen first, of a node whose clock moved
    // What was told last: one of them, or neither.
    std::optional<std::string> up;
    std::optional<engine::Unavailable> down;
  };

  void tell_down(engine::NodeIndex node, const engine::Unavailable& why);

  DriverHost& host_;
  std::vector<Node> nodes_;
};

}  // namespace redlock::wire
