// SPDX-License-Identifier: MIT
// How many attempts may be under way at once. What is beyond that waits in the client, and its time
// counts from the send: a burst is slow, and not refused because nodes that are well had no time
// for it. The window follows the time that attempts take, as TCP's does the round trip: it halves
// when they take half of the node timeout, and grows while they are quick and others wait.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>

#include "engine/types.hpp"

namespace redlock::engine {

class Admission {
 public:
  Admission(std::size_t window, Duration node_timeout)
      : node_timeout_(node_timeout), window_(window), smallest_(std::min(window, fewest)) {}

  /// Whether an attempt may begin at once: there is room, and nobody waits.
  [[nodiscard]] bool open(std::size_t under_way) const {
    return waiting_.empty() && under_way < window_;
  }
  void wait(RequestId request) { waiting_.push_back(request); }
  /// Who is next, if there is room and somebody waits. It may have ended meanwhile.
  [[nodiscard]] std::optional<RequestId> next(std::size_t under_way) {
    if (waiting_.empty() || under_way >= window_) return std::nullopt;
    const RequestId request = waiting_.front();
    waiting_.pop_front();
    return request;
  }

  /// An attempt has ended; `answered`: by what a quorum of nodes said.
  void ended(Instant now, Instant started, bool answered);

  [[nodiscard]] std::size_t window() const { return window_; }

 private:
  static constexpr std::size_t fewest = 16;
  static constexpr std::size_t most = 1'024;

  Duration node_timeout_;
  std::size_t window_;
  std::size_t smallest_;
  std::size_t quick_ = 0;               // quick attempts since the window grew last
  Duration fastest_ = Duration::max();  // of recent attempts: what the nodes' distance alone takes
  Instant shrunk_at_ = Instant::min();  // attempts that began before it ran under the old window
  std::deque<RequestId> waiting_;
};

}  // namespace redlock::engine
