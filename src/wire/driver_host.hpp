// SPDX-License-Identifier: MIT
// A driver's reports to the client above it, in production on the loop thread.
#pragma once

#include <string_view>

#include "engine/messages.hpp"
#include "engine/outputs.hpp"
#include "engine/types.hpp"
#include "wire/node_address.hpp"
#include "wire/wake.hpp"

namespace redlock::wire {

class DriverHost {
 public:
  /// An output of the engine for the client. May give the engine new inputs, or ask.
  virtual void on_output(engine::ClientOutput&& output) = 0;
  /// The node is connected and may vote, as far as this client knows. Called again when the warning
  /// changes.
  virtual void on_node_up(engine::NodeIndex node, std::string_view warning) = 0;
  /// The node cannot vote until the next on_node_up(). Called again for another cause.
  virtual void on_node_down(engine::NodeIndex node, const engine::Unavailable& why) = 0;

  /// The connection stands, whether or not the node may vote; it is lost, or could not be made.
  virtual void on_link_up(engine::NodeIndex) {}
  virtual void on_link_down(engine::NodeIndex, const engine::Unavailable&) {}

  /// The node is by now the server at this address, which has its place in the set; the driver has
  /// moved on to it.
  virtual void on_node_moved(engine::NodeIndex, const NodeAddress& /*address*/) {}

  // What passes between the engine and the nodes, for a host that judges or tells it. The driver
  // says what the engine sends before it is performed, and the rest before the engine is told.
  virtual void on_send(const engine::Send&) {}
  virtual void on_reply(engine::NodeIndex, const engine::Tag&, const engine::Reply&) {}
  virtual void on_wake(engine::NodeIndex, const Wake&) {}
  /// A handshake, or an answer to a question about the marker, shows whether the node has one.
  virtual void on_marker_seen(engine::NodeIndex) {}
  /// A new connection: whether the node can wake this client's waiters.
  virtual void on_wakes(engine::NodeIndex, bool /*wakes*/) {}
  virtual void on_clock_read(engine::NodeIndex, engine::Duration /*uncertainty*/) {}

 protected:
  ~DriverHost() = default;
};

}  // namespace redlock::wire
