// SPDX-License-Identifier: MIT
// The bytes to and from one node: connects when its link tells it to, and carries the bytes of the
// one stream that there is then.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "net/connector.hpp"
#include "net/loop.hpp"
#include "net/stream.hpp"
#include "wire/link.hpp"
#include "wire/node_address.hpp"
#include "wire/streams.hpp"

namespace redlock::net {

class Transport final : ConnectorListener, StreamListener {
 public:
  Transport(Loop& loop, const wire::NodeAddress& address, Connector::Timeouts timeouts,
            wire::Link& link);

  // As wire::Streams has them.
  void connect();
  void disconnect(wire::Closing how);
  std::size_t write(std::string& bytes);
  /// Whether a part of what write() took waits for the socket.
  [[nodiscard]] bool waits_for_socket() const { return stream_ && stream_->in_flight() > 0; }

  /// Why the stream was closed, or could not be made; once. It is polled, because connect() and
  /// write() may fail while the link, which calls them, must not be called.
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

  wire::Link& link_;
  Connector connector_;
  Stream::Owned stream_;
  std::optional<std::string> failure_;
};

}  // namespace redlock::net
