// SPDX-License-Identifier: MIT
// Which nodes may vote, as reported to the client above: each change once, in both directions. A
// connection alone is not enough. The node may be quarantined, in another set, with a clock that
// moved, or refuse every write because its memory is full, and all these states end as quietly as
// they begin.
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
  /// An answer to a command: an error may mean that the node refuses every client's commands.
  void on_reply(engine::NodeIndex node, const engine::Tag& tag, const engine::Reply& reply);
  /// Whether such an error was the node's last reply; then it is sent an empty write, which it
  /// refuses for as long as it would refuse a lock.
  [[nodiscard]] bool refuses(engine::NodeIndex node) const {
    return nodes_[node].refusal.has_value();
  }
  void on_refusal_over(engine::NodeIndex node) { nodes_[node].refusal.reset(); }

  /// Reports the change, now that the engine has, or has not, this objection to the node.
  void judge(engine::Instant now, engine::NodeIndex node,
             std::optional<engine::Unavailable> objection);

 private:
  struct Node {
    bool connected = false;
    std::string warnings;
    std::optional<engine::Unavailable> refusal;
    engine::Instant clock_moved = engine::never;  // seen first, of a node whose clock moved
    // The last report: one of the two, or neither.
    std::optional<std::string> up;
    std::optional<engine::Unavailable> down;
  };

  void tell_down(engine::NodeIndex node, const engine::Unavailable& why);

  DriverHost& host_;
  std::vector<Node> nodes_;
};

}  // namespace redlock::wire
