// SPDX-License-Identifier: MIT
// From an address to a connected stream: looks the name up anew each time, then tries all of its
// addresses in turn, within the deadlines for both. While the look-up takes long, the addresses of
// the previous look-up are tried; the new result replaces them, also under a connection.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <netinet/in.h>
#include <string>
#include <vector>

#include "engine/types.hpp"
#include "net/loop.hpp"
#include "net/resolver.hpp"
#include "net/stream.hpp"
#include "net/timer.hpp"
#include "wire/node_address.hpp"

namespace redlock::net {

class ConnectorListener {
 public:
  /// Whose listener is to be replaced. `left` of the time for connecting and the handshake.
  virtual void on_stream(Stream::Owned stream, std::chrono::milliseconds left) = 0;
  virtual void on_no_stream(std::string why) = 0;
  /// The stream that was handed over leads to an address that the name no longer has. Called at
  /// most once for each stream, and not after cancel().
  virtual void on_moved() = 0;

 protected:
  ~ConnectorListener() = default;
};

class Connector final : StreamListener {
 public:
  struct Timeouts {
    std::chrono::milliseconds resolve{};
    std::chrono::milliseconds connect{};
  };

  Connector(Loop& loop, const wire::NodeAddress& address, Timeouts timeouts,
            ConnectorListener& listener);

  /// Answered by one of the listener's calls, perhaps before this returns.
  void start();
  void cancel();
  /// The same in the child of a fork, for which no socket of the parent is reset.
  void abandon();

 private:
  enum class State : std::uint8_t { idle, resolving, connecting, handed_over };

  void on_connected() override;
  void on_bytes(std::string_view /*bytes*/) override {}
  void on_writable() override {}
  void on_stream_failed(int uv_status) override;

  [[nodiscard]] bool find_numeric_address();
  void begin_resolving();
  void on_resolved(Resolution resolution);
  void begin_connecting();
  bool prefer_current();
  void try_next_address();
  void timed_out();
  void fail(std::string why);
  [[nodiscard]] std::chrono::milliseconds left() const;

  Loop& loop_;
  const wire::NodeAddress& address_;
  const Timeouts timeouts_;
  ConnectorListener& listener_;
  Resolver resolver_;
  Timer timer_;
  State state_ = State::idle;
  std::vector<sockaddr_storage> candidates_;  // as found last; kept from one start() to the next
  std::size_t next_ = 0;
  sockaddr_storage current_{};  // being tried, or handed over
  engine::Instant deadline_{};
  std::string last_problem_;
  Stream::Owned stream_;
};

}  // namespace redlock::net
