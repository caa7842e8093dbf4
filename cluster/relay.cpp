// SPDX-License-Identifier: MIT
//
// Each direction is a queue of chunks with the moment from which they may go on. The end of a
// source stands behind its last byte: only when that has been delivered does the other side learn
// of it.
#include "cluster/relay.hpp"

#include <algorithm>
#include <utility>

namespace redlock::cluster {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Relay::Relay(UniqueFd listener, Connect connect)
    : listener_(std::move(listener)),
      connect_(std::move(connect)),
      thread_([this](std::vector<pollfd>& polled) { return prepare(polled); },
              [this](const std::vector<pollfd>& polled) { perform(polled); }) {}

void Relay::pass() {
  thread_.change([&] {
    refuses_ = false;
    requests_held_ = false;
    replies_held_ = false;
    forgets_given_up_ = false;
    delay_ = jitter_ = std::chrono::microseconds(0);
    pause_ = std::chrono::milliseconds(0);
    cut_after_.reset();
    rubbish_.clear();
    for (auto& connection : connections_) {
      connection.replies.not_before = {};
      connection.replies.left.reset();
    }
  });
}

void Relay::hold() {
  thread_.change([&] { requests_held_ = replies_held_ = true; });
}

void Relay::hold_requests() {
  thread_.change([&] { requests_held_ = true; });
}

void Relay::hold_replies() {
  thread_.change([&] { replies_held_ = true; });
}

void Relay::hang() {
  thread_.change([&] { requests_held_ = replies_held_ = forgets_given_up_ = true; });
}

void Relay::strand() {
  thread_.change([&] {
    stranded_held_ = true;
    late_ = connections_.size();
    for (auto& connection : connections_) connection.stranded = true;
  });
}

void Relay::deliver_late() {
  thread_.change([&] { stranded_held_ = false; });
}

bool Relay::await_late() {
  return thread_.await([&] { return late_ == 0; });
}

void Relay::delay(std::chrono::microseconds time, std::chrono::microseconds jitter) {
  thread_.change([&] {
    delay_ = time;
    jitter_ = jitter;
  });
}

void Relay::drip(std::chrono::milliseconds pause) {
  thread_.change([&] { pause_ = pause; });
}

void Relay::cut_replies(std::size_t after) {
  thread_.change([&] {
    cut_after_ = after;
    for (auto& connection : connections_) connection.replies.left = after;
  });
}

void Relay::spoil_replies(const std::string& rubbish) {
  thread_.change([&] {
    rubbish_ = rubbish;
    for (auto& connection : connections_) {
      connection.replies.under_way.push_front({rubbish, Clock::now()});
    }
  });
}

void Relay::record() {
  thread_.change([&] { records_ = true; });
}

std::string Relay::recorded() const {
  return thread_.read([&] { return recorded_; });
}

void Relay::refuse() {
  thread_.change([&] { refuses_ = true; });
  reset_all();
}

void Relay::reset_all() {
  thread_.end_all(connections_);
}

std::size_t Relay::accepted() const {
  return thread_.read([&] { return accepted_; });
}

std::size_t Relay::request_bytes() const {
  return thread_.read([&] { return request_bytes_; });
}

std::size_t Relay::given_up() const {
  return thread_.read([&] { return given_up_; });
}

bool Relay::await_accepted(std::size_t count) {
  return thread_.await([&] { return accepted_ >= count; });
}

bool Relay::await_request_bytes(std::size_t count) {
  return thread_.await([&] { return request_bytes_ >= count; });
}

bool Relay::await_given_up(std::size_t count) {
  return thread_.await([&] { return given_up_ >= count; });
}

std::optional<PollThread::TimePoint> Relay::prepare(std::vector<pollfd>& polled) const {
  std::optional<PollThread::TimePoint> next;
  const auto now = Clock::now();
  polled.push_back({listener_.get(), POLLIN, 0});
  const auto add = [&](const UniqueFd& socket, const Direction& from, const Direction& to,
                       bool held) {
    int events = from.end == Received::End::open ? POLLIN : 0;
    if (!to.under_way.empty() && !held) {
      const auto due = to.due();
      if (due <= now) {
        events |= POLLOUT;
      } else {
        next = std::min(next.value_or(due), due);
      }
    }
    // A socket with nothing to wait for is left out: poll would report its end again and again.
    polled.push_back({events != 0 ? socket.get() : -1, static_cast<short>(events), 0});
  };
  for (const auto& connection : connections_) {
    add(connection.client, connection.requests, connection.replies, replies_held_);
    add(connection.node, connection.replies, connection.requests, holds_requests(connection));
  }
  return next;
}

void Relay::perform(const std::vector<pollfd>& polled) {
  auto entry = polled.begin() + 1;
  for (auto connection = connections_.begin(); connection != connections_.end(); entry += 2) {
    const bool alive = serve(*connection, entry[0], entry[1]);
    connection = alive ? std::next(connection) : connections_.erase(connection);
  }
  if (polled.front().revents != 0) accept_all();
}

void Relay::accept_all() {
  while (auto client = accept_from(listener_)) {
    ++accepted_;
    auto node = refuses_ ? UniqueFd() : connect_();
    if (node) {
      auto& connection =
          connections_.emplace_back(Relayed{.client = std::move(client), .node = std::move(node)});
      connection.replies.left = cut_after_;
      if (!rubbish_.empty()) connection.replies.under_way.push_back({rubbish_, Clock::now()});
    } else {
      reset(client);
    }
  }
}

// False: the connection is over, and both its sides are closed.
bool Relay::serve(Relayed& connection, const pollfd& client, const pollfd& node) {
  if (client.revents != 0 && connection.requests.end == Received::End::open) {
    request_bytes_ += take(connection.client, connection.requests);
    if (connection.requests.end != Received::End::open) ++given_up_;
  }
  if (node.revents != 0 && connection.replies.end == Received::End::open) {
    take(connection.node, connection.replies);
  }

  const bool given_up = connection.requests.end != Received::End::open;
  bool broken = connection.doomed || (forgets_given_up_ && given_up);
  bool closed = false;
  const auto forward = [&](Direction& stream, const UniqueFd& target, bool held) {
    const auto now = Clock::now();
    auto& chunks = stream.under_way;
    const auto pause = &stream == &connection.replies ? pause_ : std::chrono::milliseconds(0);
    while (!held && !chunks.empty() && stream.due() <= now) {
      if (!deliver(stream, target, pause)) break;
      chunks.pop_front();
    }
    closed = closed || stream.is_cut();
    if (held || !chunks.empty()) return;
    const bool ignored = connection.stranded && &stream == &connection.requests;
    if (ignored) return;
    broken = broken || stream.end == Received::End::broken;
    closed = closed || stream.end == Received::End::closed;
  };
  if (connection.stranded) {
    const bool answered = !connection.replies.under_way.empty();
    const bool over = answered || connection.replies.end != Received::End::open;
    if (over) --late_;
    broken = broken || over;
  }
  forward(connection.requests, connection.node, holds_requests(connection));
  forward(connection.replies, connection.client, replies_held_);

  if (broken) {
    reset(connection.client);
    reset(connection.node);
  }
  return !broken && !closed;
}

// False: some of the first chunk is left, for later.
bool Relay::deliver(Direction& stream, const UniqueFd& target,
                    std::chrono::milliseconds pause) const {
  std::string& bytes = stream.under_way.front().bytes;
  const bool drips = pause > pause.zero();
  std::size_t most = drips ? std::min<std::size_t>(1, bytes.size()) : bytes.size();
  most = std::min(most, stream.left.value_or(most));
  std::string behind = bytes.substr(most);
  bytes.resize(most);
  // A target that is gone takes nothing more; its own end is dealt with in its own stream.
  if (!send_some(target, bytes)) {
    bytes.clear();
    behind.clear();
  }
  if (stream.left) *stream.left -= most - bytes.size();
  if (drips) stream.not_before = Clock::now() + pause;
  bytes += behind;
  return bytes.empty();
}

bool Relay::holds_requests(const Relayed& connection) const {
  return requests_held_ || (connection.stranded && stranded_held_);
}

std::size_t Relay::take(const UniqueFd& source, Direction& stream) {
  auto received = receive(source);
  stream.end = received.end;
  const auto count = received.bytes.size();
  if (count == 0) return 0;
  if (records_) recorded_ += received.bytes;
  std::uniform_int_distribution<std::chrono::microseconds::rep> more(0, jitter_.count());
  const auto later = delay_ + std::chrono::microseconds(more(random_));
  stream.under_way.push_back({std::move(received.bytes), Clock::now() + later});
  return count;
}

}  // namespace redlock::cluster
