// SPDX-License-Identifier: MIT
// The bytes to and from one node: connects when it is told to, and carries the bytes of the one
// stream that there is then.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "engine/types.hpp"
#include "net/connector.hpp"
#include "net/loop.hpp"
#include "net/stream.hpp"
#include "wire/node_address.hpp"
#include "wire/streams.hpp"

namespace redlock::net {

class TransportListener {
 public:
  /// `left` of the time for connecting and the handshake.
  virtual void on_connected(engine::NodeIndex node, std::chrono::milliseconds left) = 0;
  virtual void on_bytes(engine::NodeIndex node, std::string_view bytes) = 0;
  virtual void on_writable(engine::NodeIndex node) = 0;

 protected:
  ~TransportListener() = default;
};

class Transport final : ConnectorListener, StreamListener {
 public:
  Transport(Loop& loop, engine::NodeIndex node, const wire::NodeAddress& address,
            Connector::Timeouts timeouts, TransportListener& listener);

  // As wire::Streams has them.
  void connect();
  void disconnect(wire::Closing how);
  void write(std::string& bytes);

  /// Why the stream was closed, or could not be made; once. It is polled, because connect() and
  /// write() may fail while the driver, which calls them, must not be called.
  [[nodiscard]] std::optional<std::string> take_failure();

 private:
  void on_stream(Stream::Owned stream, std::chrono::milliseconds left) override;
  void on_no_stream(std::string why) override;
  void on_moved() override;
  void on_connected() override {}
  void on_bytes(std::string_view bytes) override;
  void on_writable() override;
  void on_stream_failed(int uv_status) override;
  void fail(std::string why);

  const engine::NodeIndex node_;
  TransportListener& listener_;
  Connector connector_;
  Stream::Owned stream_;
  std::optional<std::string> failure_;
};

}  // namespace redlock::net
