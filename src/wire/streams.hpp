// SPDX-License-Identifier: MIT
// The interface to the layer that moves the bytes: the network in production, a simulated one in
// tests. There is at most one stream to each node at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/types.hpp"
#include "wire/node_address.hpp"

namespace redlock::wire {

enum class Closing : std::uint8_t {
  reset,    ///< written bytes are not to be delivered any more, as far as possible
  deliver,  ///< written bytes may still be delivered
};

/// Why a stream is closed, or could not be made.
struct StreamEnd {
  std::string why;
  Cause cause = Cause::none;  ///< none: a cause in the network, which the link derives from its own
                              ///< state
};

/// None of these may call back. Failures are reported later, by Link::on_stream_closed().
class Streams {
 public:
  /// Begins to connect to the node. Answered by Link::on_connected() or on_stream_closed().
  virtual void connect(engine::NodeIndex node) = 0;
  /// Closes the stream, or gives up connecting. Nothing more is reported of that stream.
  virtual void disconnect(engine::NodeIndex node, Closing how) = 0;
  /// Nothing is connected to the node. From the next connect() on it is the server at this address.
  virtual void move(engine::NodeIndex node, const NodeAddress& address) = 0;
  /// Takes bytes from the front, usually all of them, and erases what it took. The rest is offered
  /// again after Link::on_writable().
  /// Returns how many of the taken bytes it still keeps in memory.
  virtual std::size_t write(engine::NodeIndex node, std::string& bytes) = 0;

 protected:
  ~Streams() = default;
};

}  // namespace redlock::wire
