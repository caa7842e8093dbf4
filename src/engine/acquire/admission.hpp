// SPDX-License-Identifier: MIT
// How many attempts may be under way when another one begins; those that rest, waiting for the
// lock, do not count, and go on when they are woken. What is beyond that waits in the client, and
// its time counts from the send: a burst is slow, and not refused because nodes that are well had
// no time for it.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "engine/adaptive_window.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

class Admission {
 public:
  Admission(std::size_t window, Duration node_timeout)
      : window_(window, {.fewest = 16, .most = 1'024}, node_timeout) {}

  /// Whether an attempt may begin at once: there is room, and nobody waits.
  [[nodiscard]] bool open(std::size_t under_way) const {
    return waiting_.empty() && under_way < window_.size();
  }
  void wait(RequestId request) { waiting_.push_back(request); }
  /// Who is next, if there is room and somebody waits. It may have ended meanwhile.
  [[nodiscard]] std::optional<RequestId> next(std::size_t under_way) {
    if (waiting_.empty() || under_way >= window_.size()) return std::nullopt;
    const RequestId request = waiting_.front();
    waiting_.pop_front();
    return request;
  }

  /// An attempt has ended, or begins to wait for its turn; `answered`: by what a quorum of nodes
  /// said.
  void ended(Instant now, Instant started, bool answered) {
    window_.ended(now, started, answered, !waiting_.empty());
  }

  [[nodiscard]] std::size_t window() const { return window_.size(); }

 private:
  AdaptiveWindow window_;
  std::deque<RequestId> waiting_;
};

}  // namespace redlock::engine
