// SPDX-License-Identifier: MIT
#include "net/transport.hpp"

#include <cassert>
#include <utility>

namespace redlock::net {

using State = tls::TlsFilter::State;

namespace {

constexpr const char* closed_by_node = "the node closed the connection";
/// The first byte of an alert, with which a TLS server may answer bytes that are not TLS.
constexpr char tls_alert = 21;

/// The name that the node's certificate must have.
const std::string& name_of(const wire::NodeAddress& address) {
  return address.tls_name.empty() ? address.host : address.tls_name;
}

bool ended_by_peer(int uv_status) {
  return uv_status == UV_ECONNRESET || uv_status == UV_EPIPE;
}

}  // namespace

Transport::Transport(Loop& loop, const wire::NodeAddress& address, Connector::Timeouts timeouts,
                     tls::TlsContext* tls, wire::Link& link, const PasswordSource& password)
    : loop_(loop),
      address_(address),
      link_(link),
      password_(password),
      on_network_(address.unix_path.empty()),
      connect_timeout_(timeouts.connect),
      connector_(loop, address, timeouts, *this) {
  if (!address.tls) return;
  assert(tls != nullptr);
  peer_ = tls->peer(name_of(address));
  handshake_limit_ =
      std::make_unique<Timer>(loop, [this] { loop_.run([this] { time_out_handshake(); }); });
}

std::optional<tls::CertificatePeriod> Transport::trusted_by() const {
  return filter_ ? filter_->trusted_by() : std::nullopt;
}

void Transport::connect() {
  failure_.reset();
  connector_.start();
}

void Transport::disconnect(wire::Closing how) {
  failure_.reset();
  connector_.cancel();
  if (handshake_limit_) handshake_limit_->stop();
  if (stream_ && how == wire::Closing::deliver) {
    stream_->let_arrive();
    if (filter_) {
      filter_->close();
      static_cast<void>(stream_->write(filter_->output()));
    }
  }
  stream_.reset();
  filter_.reset();
}

void Transport::abandon() {
  filter_.reset();
  if (stream_) stream_->let_arrive();
  connector_.abandon();
  disconnect(wire::Closing::reset);
}

std::size_t Transport::write(std::string& bytes) {
  if (!stream_) return 0;  // it has failed in this turn
  if (!filter_) return send(bytes);
  if (stream_->in_flight() == 0) {
    filter_->write(bytes);
    bytes.clear();
  }
  if (filter_->state() != State::failed) return send(filter_->output());
  fail(filter_->problem(), filter_->cause());
  return 0;
}

/// How many bytes are kept in memory then. May close the stream.
std::size_t Transport::send(std::string& bytes) {
  const int status = stream_->write(bytes);
  if (status == 0) return stream_->in_flight() + (filter_ ? bytes.size() : 0);
  if (filter_ && ended_by_peer(status)) {
    // Bytes that the node sent before, perhaps an alert that says why, are still to be read; then
    // comes the end.
    bytes.clear();
    return 0;
  }
  fail(uv_strerror(status));
  return 0;
}

std::optional<wire::StreamEnd> Transport::take_failure() {
  return std::exchange(failure_, std::nullopt);
}

void Transport::on_stream(Stream::Owned stream, std::chrono::milliseconds left) {
  stream_ = std::move(stream);
  stream_->set_listener(*this);
  received_ = false;
  const auto now = BootClock::now();
  give_up_at_ = now + left;
  if (peer_) return begin_tls(left);
  open_link(now);
}

void Transport::open_link(engine::Instant now) {
  link_.on_connected(now, give_up_at_, password_ ? password_(address_.label) : std::string(),
                     filter_ ? filter_->warning() : std::string());
}

void Transport::begin_tls(std::chrono::milliseconds left) {
  using std::chrono::floor, std::chrono::seconds, std::chrono::system_clock;
  filter_ = peer_->connect(floor<seconds>(system_clock::now()));
  handshake_limit_->start(left);
  if (filter_->state() == State::failed) return fail(filter_->problem(), filter_->cause());
  send(filter_->output());
}

void Transport::on_no_stream(std::string why) {
  fail(std::move(why));
}

void Transport::on_moved() {
  fail("its name leads to another address now");
}

void Transport::on_bytes(std::string_view bytes) {
  const bool first = !std::exchange(received_, true);
  if (filter_) {
    filter_->take(bytes);
    return decrypt();
  }
  if (first && on_network_ && bytes.front() == tls_alert) {
    return fail("it answers with TLS; write rediss:// for this port, or name the port without TLS",
                Cause::tls);
  }
  link_.on_bytes(BootClock::now(), bytes);
}

/// The link may close the stream whenever it is given something.
void Transport::decrypt() {
  if (filter_->shake_hands()) end_handshake();
  // The filter has the bytes that were read into it.
  auto& room = loop_.input;
  while (filter_) {
    const std::size_t count = filter_->read(room.data(), room.size());
    if (count == 0) break;
    link_.on_bytes(BootClock::now(), {room.data(), count});
  }
  if (!filter_) return;
  const State state = filter_->state();
  // An alert that says why is to arrive.
  if (state == State::failed) stream_->let_arrive();
  send(filter_->output());
  if (!filter_ || state == State::open || state == State::handshake) return;
  if (state == State::closed) return fail(closed_by_node);
  fail(filter_->problem(), filter_->cause());
}

/// A Redis without TLS waits for the end of a line, which the first message of a handshake does not
/// contain.
void Transport::time_out_handshake() {
  const std::string limit = " within " + std::to_string(connect_timeout_.count()) + " ms";
  fail(received_ ? "the TLS handshake was not complete" + limit
                 : "no answer to the TLS handshake" + limit +
                       "; a port without TLS stays silent like this: if it is one, write redis://",
       Cause::timed_out);
}

void Transport::end_handshake() {
  handshake_limit_->stop();
  open_link(BootClock::now());
}

void Transport::on_writable() {
  if (filter_ && !filter_->output().empty()) {
    send(filter_->output());
    if (waits_for_socket()) return;
  }
  if (stream_) link_.on_writable();
}

void Transport::on_stream_failed(int uv_status) {
  fail(describe_end(uv_status));
}

std::string Transport::describe_end(int uv_status) const {
  std::string why = uv_status == UV_EOF ? closed_by_node : uv_strerror(uv_status);
  if (filter_ && filter_->state() == State::handshake) return why + ", amid the TLS handshake";
  const bool at_once = !filter_ && stream_ && !received_;
  if (!at_once || !on_network_ || (uv_status != UV_EOF && uv_status != UV_ECONNRESET)) return why;
  return why + " before it answered; if its port is one for TLS, write rediss://";
}

void Transport::fail(std::string why, Cause cause) {
  disconnect(wire::Closing::reset);
  failure_ = wire::StreamEnd{std::move(why), cause};
}

}  // namespace redlock::net
