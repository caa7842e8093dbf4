// SPDX-License-Identifier: MIT
// The bytes to and from one node: connects when its link tells it to, and carries the bytes of the
// one stream that there is then, through TLS if the node has that. The link sees no difference: for
// it the connection begins when the TLS handshake is complete.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/connector.hpp"
#include "net/loop.hpp"
#include "net/stream.hpp"
#include "net/timer.hpp"
#include "tls/tls_context.hpp"
#include "wire/link.hpp"
#include "wire/node_address.hpp"
#include "wire/streams.hpp"

namespace redlock::net {

class Transport final : ConnectorListener, StreamListener {
 public:
  /// The newest password of the node, of which it is given the label; see ClientOptions.
  using PasswordSource = std::function<std::string(std::string_view node)>;

  /// `tls` is needed by a node that has it. All of them must outlive it; the source may be empty.
  Transport(Loop& loop, const wire::NodeAddress& address, Connector::Timeouts timeouts,
            tls::TlsContext* tls, wire::Link& link, const PasswordSource& password);

  // As wire::Streams has them.
  void connect();
  void disconnect(wire::Closing how);
  std::size_t write(std::string& bytes);
  /// In the child of a fork: closes this process' copy of the socket. Nothing is sent, and the
  /// connection of the parent stays as it is.
  void abandon();
  /// Whether some of the bytes that write() took wait for the socket.
  [[nodiscard]] bool waits_for_socket() const { return stream_ && stream_->in_flight() > 0; }
  /// Whether there is a TLS connection that goes on with an earlier session.
  [[nodiscard]] bool resumed_session() const { return filter_ && filter_->resumed(); }
  /// The certificate that ends first of those by which the node is trusted, while it is connected
  /// through TLS.
  [[nodiscard]] std::optional<tls::CertificatePeriod> trusted_by() const;

  /// Why the stream was closed, or could not be made; once. It is polled, because connect() and
  /// write() may fail while the link, which calls them, must not be called.
  [[nodiscard]] std::optional<wire::StreamEnd> take_failure();

 private:
  void on_stream(Stream::Owned stream, std::chrono::milliseconds left) override;
  void on_no_stream(std::string why) override;
  void on_moved() override;
  void on_connected() override {}
  void on_bytes(std::string_view bytes) override;
  void on_writable() override;
  void on_stream_failed(int uv_status) override;

  void open_link(engine::Instant now);
  void begin_tls(std::chrono::milliseconds left);
  void decrypt();
  void time_out_handshake();
  void end_handshake();
  std::size_t send(std::string& bytes);
  [[nodiscard]] std::string describe_end(int uv_status) const;
  void fail(std::string why, Cause cause = Cause::none);

  Loop& loop_;
  const wire::NodeAddress& address_;
  wire::Link& link_;
  const PasswordSource& password_;
  const bool on_network_;  // not a Unix socket
  const std::chrono::milliseconds connect_timeout_;
  Connector connector_;
  Stream::Owned stream_;
  bool received_ = false;  // bytes have come on this stream
  std::unique_ptr<tls::TlsPeer> peer_;
  std::unique_ptr<tls::TlsFilter> filter_;  // with the stream
  std::unique_ptr<Timer> handshake_limit_;
  engine::Instant give_up_at_{};
  std::optional<wire::StreamEnd> failure_;
};

}  // namespace redlock::net
