// SPDX-License-Identifier: MIT
// Each address gets an equal share of the time that is left, so that one that swallows packets
// leaves time for the next.
#include "net/connector.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace redlock::net {

using std::chrono::milliseconds;

namespace {

/// How long a look-up may take before the addresses found last are tried beside it. A working name
/// server usually answers sooner, and a name that moved is then followed at once.
constexpr milliseconds head_start(50);

bool same(const sockaddr_storage& one, const sockaddr_storage& other) {
  return std::memcmp(&one, &other, sizeof one) == 0;
}

}  // namespace

Connector::Connector(Loop& loop, const wire::NodeAddress& address, Timeouts timeouts,
                     ConnectorListener& listener)
    : loop_(loop),
      address_(address),
      timeouts_(timeouts),
      listener_(listener),
      resolver_(loop, [this](Resolution resolution) { on_resolved(std::move(resolution)); }),
      timer_(loop, [this] { loop_.run([this] { timed_out(); }); }) {}

void Connector::start() {
  last_problem_.clear();
  if (!address_.unix_path.empty()) {
    state_ = State::connecting;
    deadline_ = BootClock::now() + timeouts_.connect;
    stream_ = Stream::connect(loop_, address_.unix_path, *this);
    timer_.start(timeouts_.connect);
  } else if (find_numeric_address()) {
    begin_connecting();
  } else {
    begin_resolving();
  }
}

void Connector::cancel() {
  // A look-up under way goes on: its result is for the next start().
  state_ = State::idle;
  timer_.stop();
  stream_.reset();
}

void Connector::abandon() {
  if (stream_) stream_->let_arrive();
  resolver_.abandon();
  cancel();
}

bool Connector::find_numeric_address() {
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
  candidates_.assign(1, candidate);
  return true;
}

void Connector::begin_resolving() {
  state_ = State::resolving;
  if (!resolver_.resolve(address_.host, address_.port) && candidates_.empty()) {
    return fail("cannot resolve its name: the system has no thread for it");
  }
  timer_.start(candidates_.empty() ? timeouts_.resolve : std::min(head_start, timeouts_.resolve));
}

void Connector::on_resolved(Resolution resolution) {
  // A failed look-up does not change the node's addresses, unless there is no such name.
  const bool answered = !resolution.addresses.empty() || resolution.unknown_name;
  if (answered) candidates_ = std::move(resolution.addresses);
  if (state_ == State::idle) return;
  if (candidates_.empty()) {
    if (state_ != State::handed_over) fail("cannot resolve its name: " + resolution.problem);
  } else if (state_ == State::resolving) {
    begin_connecting();
  } else if (!answered) {
    return;  // the addresses found last are being tried
  } else if (prefer_current()) {
    next_ = 1;
  } else if (state_ == State::connecting) {
    begin_connecting();
  } else {
    listener_.on_moved();
  }
}

/// Puts the address that is being used in front of the others; false if it is not one of them.
bool Connector::prefer_current() {
  const auto found = std::ranges::find_if(
      candidates_, [&](const auto& candidate) { return same(candidate, current_); });
  if (found == candidates_.end()) return false;
  std::iter_swap(candidates_.begin(), found);
  return true;
}

void Connector::begin_connecting() {
  state_ = State::connecting;
  next_ = 0;
  deadline_ = BootClock::now() + timeouts_.connect;
  try_next_address();
}

void Connector::try_next_address() {
  stream_.reset();
  while (next_ < candidates_.size()) {
    const auto share = left() / static_cast<int>(candidates_.size() - next_);
    int status = 0;
    current_ = candidates_[next_++];
    const auto& address = reinterpret_cast<const sockaddr&>(current_);
    stream_ = Stream::connect(loop_, address, *this, status);
    if (stream_) {
      timer_.start(share);
      return;
    }
    last_problem_ = uv_strerror(status);
  }
  fail("cannot connect: " + last_problem_);
}

void Connector::timed_out() {
  if (state_ == State::resolving) {
    if (!candidates_.empty()) return begin_connecting();
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
  state_ = State::handed_over;
  prefer_current();
  listener_.on_stream(std::move(stream_), left());
}

void Connector::on_stream_failed(int uv_status) {
  last_problem_ = uv_strerror(uv_status);
  try_next_address();
}

void Connector::fail(std::string why) {
  cancel();
  listener_.on_no_stream(std::move(why));
}

milliseconds Connector::left() const {
  const auto left = deadline_ - BootClock::now();
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(left));
}

}  // namespace redlock::net
