// SPDX-License-Identifier: MIT
#include "net/transport.hpp"

#include <utility>

namespace redlock::net {

Transport::Transport(Loop& loop, const wire::NodeAddress& address, Connector::Timeouts timeouts,
                     wire::Link& link)
    : link_(link), connector_(loop, address, timeouts, *this) {}

void Transport::connect() {
  failure_.reset();
  connector_.start();
}

void Transport::disconnect(wire::Closing how) {
  failure_.reset();
  connector_.cancel();
  if (stream_ && how == wire::Closing::deliver) stream_->let_arrive();
  stream_.reset();
}

std::size_t Transport::write(std::string& bytes) {
  if (!stream_) return 0;  // it has failed in this turn
  const int status = stream_->write(bytes);
  if (status == 0) return stream_->in_flight();
  fail(uv_strerror(status));
  return 0;
}

std::optional<std::string> Transport::take_failure() {
  return std::exchange(failure_, std::nullopt);
}

void Transport::on_stream(Stream::Owned stream, std::chrono::milliseconds left) {
  stream_ = std::move(stream);
  stream_->set_listener(*this);
  const auto now = BootClock::now();
  link_.on_connected(now, now + left);
}

void Transport::on_no_stream(std::string why) {
  fail(std::move(why));
}

void Transport::on_moved() {
  fail("its name leads to another address now");
}

void Transport::on_bytes(std::string_view bytes) {
  link_.on_bytes(BootClock::now(), bytes);
}

void Transport::on_writable() {
  link_.on_writable();
}

void Transport::on_stream_failed(int uv_status) {
  fail(uv_status == UV_EOF ? "the node closed the connection" : uv_strerror(uv_status));
}

void Transport::fail(std::string why) {
  disconnect(wire::Closing::reset);
  failure_ = std::move(why);
}

}  // namespace redlock::net
