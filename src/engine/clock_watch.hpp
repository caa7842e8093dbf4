// SPDX-License-Identifier: MIT
// Whether the nodes' clocks keep time with ours. A node ends a lease by its own clock: if that
// jumps or runs, the lease ends there at another time than this client thinks. A clock is compared
// with what it showed before, so it may be wrong by any amount as long as it stays so.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/messages.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

struct Config;

class ClockWatch {
 public:
  explicit ClockWatch(const Config& config);

  struct Movement {
    Duration by{};       ///< against our clock; positive: the node's went ahead
    Duration at_most{};  ///< how far it may have gone ahead, the round trips considered
    bool ours = false;   ///< a quorum of nodes moved the same way: it is our clock
  };
  /// The node's clock, in microseconds since 1970, when ours read `now`, give or take half the
  /// round trip that brought it. Its movement, if it was more than clocks may differ by.
  std::optional<Movement> on_reading(Instant now, NodeIndex node, std::int64_t unix_us,
                                     Duration give_or_take);

  /// False for max_lease after the node's clock was seen to move.
  [[nodiscard]] bool keeps_time(Instant now, NodeIndex node) const {
    return now >= nodes_[node].trusted_from;
  }
  /// Why its votes do not count now, in words; nothing if they do.
  [[nodiscard]] std::optional<Unavailable> objection(Instant now, NodeIndex node) const;

 private:
  struct Reading {
    Instant asked{};
    Instant at{};
    std::int64_t least_us = 0;  // by which the node's clock was ahead of ours
    std::int64_t most_us = 0;
  };
  struct Node {
    std::vector<Reading> readings;  // of the last max_lease, a few
    Instant trusted_from = Instant::min();
    Instant moved_at = Instant::min();
    Duration moved_by{};
  };

  [[nodiscard]] std::int64_t allowed_us(Duration between) const;
  void keep(std::vector<Reading>& readings, const Reading& reading) const;
  [[nodiscard]] bool is_ours(Instant now, Duration by) const;

  Duration window_;
  double drift_factor_;
  std::vector<Node> nodes_;
};

}  // namespace redlock::engine
