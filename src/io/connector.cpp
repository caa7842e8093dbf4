// SPDX-License-Identifier: MIT
// Each address gets an equal share of the time that is left, so that one that swallows packets
// leaves time for the next.
#include "io/connector.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace redlock::io {

using std::chrono::milliseconds;

Connector::Connector(Loop& loop, const NodeAddress& address, Timeouts timeouts,
                     ConnectorListener& listener)
    : loop_(loop),
      address_(address),
      timeouts_(timeouts),
      listener_(listener),
      resolver_(loop),
      timer_(loop, [this] { timed_out(); }) {}

void Connector::start() {
  candidates_.clear();
  next_ = 0;
  last_problem_.clear();
  resolving_ = false;
  if (!address_.unix_path.empty()) {
    deadline_ = BootClock::now() + timeouts_.connect;
    stream_ = Stream::connect(loop_, address_.unix_path, *this);
    timer_.start(timeouts_.connect);
  } else if (take_numeric_address()) {
    begin_connecting();
  } else {
    resolving_ = true;
    timer_.start(timeouts_.resolve);
    resolver_.resolve(address_.host, address_.port,
                      [this](std::vector<sockaddr_storage> addresses, int uv_status) {
                        resolving_ = false;
                        if (uv_status != 0 || addresses.empty()) {
                          fail("cannot resolve its name: " + std::string(uv_strerror(uv_status)));
                          return;
                        }
                        candidates_ = std::move(addresses);
                        begin_connecting();
                      });
  }
}

void Connector::cancel() {
  resolver_.cancel();
  timer_.stop();
  stream_.reset();
}

bool Connector::take_numeric_address() {
  sockaddr_in ipv4{};
  sockaddr_in6 ipv6{};
  sockaddr_storage candidate{};
  if (uv_ip4_addr(address_.host.c_str(), address_.port, &ipv4) == 0) {
    std::memcpy(&candidate, &ipv4, sizeof ipv4);
  } else if (address_.host.find(':') != std::string::npos &&
             uv_ip6_addr(address_.host.c_str(), address_.port, &ipv6) == 0) {
    std::memcpy(&candidate, &ipv6, sizeof ipv6);
  } else {
    return false;
  }
  candidates_.push_back(candidate);
  return true;
}

void Connector::begin_connecting() {
  deadline_ = BootClock::now() + timeouts_.connect;
  try_next_address();
}

void Connector::try_next_address() {
  stream_.reset();
  while (next_ < candidates_.size()) {
    const auto share = left() / static_cast<int>(candidates_.size() - next_);
    int status = 0;
    const auto* address = reinterpret_cast<const sockaddr*>(&candidates_[next_++]);
    stream_ = Stream::connect(loop_, *address, *this, status);
    if (stream_) {
      timer_.start(share);
      return;
    }
    last_problem_ = uv_strerror(status);
  }
  fail("cannot connect: " + last_problem_);
}

void Connector::timed_out() {
  if (resolving_) {
    resolver_.cancel();
    fail("cannot resolve its name within " + std::to_string(timeouts_.resolve.count()) + " ms");
    return;
  }
  if (stream_) {
    last_problem_ = "no connection within " + std::to_string(timeouts_.connect.count()) + " ms";
  }
  try_next_address();
}

void Connector::on_connected() {
  timer_.stop();
  listener_.on_stream(std::move(stream_), left());
}

void Connector::on_bytes(std::string_view /*bytes*/) {}

void Connector::on_stream_failed(int uv_status) {
  last_problem_ = uv_strerror(uv_status);
  try_next_address();
}

void Connector::fail(std::string detail) {
  cancel();
  listener_.on_no_stream({Cause::connection_failed, engine::Delivery::not_sent, std::move(detail)});
}

milliseconds Connector::left() const {
  const auto left = deadline_ - BootClock::now();
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(left));
}

}  // namespace redlock::io
