// SPDX-License-Identifier: MIT
// From an address to a connected stream: looks the name up anew each time, then tries all of its
// addresses in turn, within the deadlines for both.
#pragma once

#include <chrono>
#include <cstddef>
#include <netinet/in.h>
#include <string>
#include <vector>

#include "engine/messages.hpp"
#include "io/loop.hpp"
#include "io/node_address.hpp"
#include "io/resolver.hpp"
#include "io/stream.hpp"
#include "io/timer.hpp"

namespace redlock::io {

class ConnectorListener {
 public:
  /// Whose listener is to be replaced. `left` of the time for connecting and the handshake.
  virtual void on_stream(Stream::Owned stream, std::chrono::milliseconds left) = 0;
  virtual void on_no_stream(engine::Unavailable why) = 0;

 protected:
  ~ConnectorListener() = default;
};

class Connector final : StreamListener {
 public:
  struct Timeouts {
    std::chrono::milliseconds resolve{};
    std::chrono::milliseconds connect{};
  };

  Connector(Loop& loop, const NodeAddress& address, Timeouts timeouts, ConnectorListener& listener);

  /// Answered by one of the listener's calls, perhaps before this returns.
  void start();
  void cancel();

 private:
  void on_connected() override;
  void on_bytes(std::string_view bytes) override;
  void on_stream_failed(int uv_status) override;

  bool take_numeric_address();
  void begin_connecting();
  void try_next_address();
  void timed_out();
  void fail(std::string detail);
  [[nodiscard]] std::chrono::milliseconds left() const;

  Loop& loop_;
  const NodeAddress& address_;
  const Timeouts timeouts_;
  ConnectorListener& listener_;
  Resolver resolver_;
  Timer timer_;
  bool resolving_ = false;
  std::vector<sockaddr_storage> candidates_;
  std::size_t next_ = 0;
  engine::Instant deadline_{};
  std::string last_problem_;
  Stream::Owned stream_;
};

}  // namespace redlock::io
