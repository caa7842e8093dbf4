// SPDX-License-Identifier: MIT
// Whether the nodes' clocks keep time with ours. A node ends a lease by its own clock: if that
// clock jumps or drifts, the lease ends there at another time than this client expects. A clock is
// compared with its own earlier readings, so it may be wrong by any amount as long as that amount
// does not change.
//
// Which clock moved, the node's or ours? If ours did, every node moved by the same amount over the
// same time, as far as its readings can tell. So a movement is ours if a quorum of nodes may have
// made it, and more nodes certainly made it than certainly did not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/config.hpp"
#include "engine/messages.hpp"
#include "engine/nodes/set_membership.hpp"
#include "engine/rules.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

class ClockWatch {
 public:
  /// The sets must outlive it.
  ClockWatch(const Config& config, const SetMembership& sets);

  struct Movement {
    Duration by{};         ///< against our clock; positive: the node's went ahead
    bool ours = false;     ///< as far as is known now; see keeps_time()
    bool ask_all = false;  ///< the other clocks are to be read at once, to tell which clock moved
  };
  /// A node's confirmations end that much earlier, the round trips considered.
  struct Earlier {
    NodeIndex node = 0;
    Duration by{};
  };
  struct Findings {
    std::optional<Movement> movement;  ///< the movement of the clock that was read, if more than
                                       ///< clocks may differ
    std::vector<Earlier> earlier;
    /// Nodes whose clocks have certainly moved: clients that start later must be told so.
    std::vector<NodeIndex> to_note;
  };
  /// The node's clock, in microseconds since 1970, when ours read `now`, give or take half the
  /// time since it was asked.
  Findings on_reading(Instant now, NodeIndex node, std::int64_t unix_us, Duration uncertainty);

  /// Another client left a note that says for how long the node's clock is not to be trusted; zero:
  /// there is none. A note that lasts longer than any client's was moved with the clock.
  void on_note(Instant now, NodeIndex node, Duration lasts) {
    if (rules::clock_notes_count()) nodes_[node].noted_until = now + std::min(lasts, window(node));
  }

  /// The node is another server by now.
  void forget(NodeIndex node) { nodes_[node] = {}; }

  /// False for the longest lease after the node's clock was seen to move, unless it was our own.
  [[nodiscard]] bool keeps_time(Instant now, NodeIndex node) const {
    return now >= trusted_from(node);
  }
  [[nodiscard]] Instant trusted_from(NodeIndex node) const {
    return std::max(nodes_[node].trusted_from, nodes_[node].noted_until);
  }
  /// Why its votes do not count now, in words; nothing if they do.
  [[nodiscard]] std::optional<Unavailable> objection(Instant now, NodeIndex node) const;

 private:
  [[nodiscard]] Duration window(NodeIndex node) const { return sets_.longest_lease(node); }
  /// Of microseconds by which a node's clock is ahead of ours, or went ahead.
  struct Interval {
    std::int64_t least_us = 0;
    std::int64_t most_us = 0;
  };
  struct Reading {
    Instant asked{};
    Instant at{};
    Interval ahead;
  };
  /// A movement within the longest lease.
  struct Move {
    Instant from{};
    Instant at{};
    Interval by;
    bool ours = false;
    bool certain = false;  // that it was the node's: a quorum of the other nodes kept time with us
    bool noted = false;
  };
  struct Node {
    std::vector<Reading> readings;  // of three longest leases, a few
    std::vector<Move> moves;
    Instant compared_from = Instant::min();  // older ones only tell how it moved with the others
    Instant trusted_from = Instant::min();
    Instant noted_until = Instant::min();
  };
  /// If it was our clock that moved, the nodes that kept time (the truechimers) show the same
  /// movement, and the falsetickers do not. The undecided may have moved, and may have kept time.
  enum class Witness : std::uint8_t { unknown, truechimer, undecided, falseticker };

  [[nodiscard]] std::int64_t allowed_us(Duration between) const;
  std::optional<Move> compare(NodeIndex node, const Reading& reading, std::int64_t& most_us) const;
  [[nodiscard]] std::span<const Reading> comparable(NodeIndex node, Instant seen) const;
  [[nodiscard]] static Interval around(std::span<const Reading> readings, Instant when);
  [[nodiscard]] Interval displacement(const Move& move, NodeIndex node) const;
  [[nodiscard]] bool may_have_gone(const Move& move, NodeIndex node, const Interval& by) const;
  [[nodiscard]] Witness witness(const Move& move, NodeIndex of, NodeIndex node) const;
  void judge(Move& move, NodeIndex of) const;
  void judge();
  [[nodiscard]] std::vector<NodeIndex> take_to_note();
  void shorten_with_ours(std::vector<Earlier>& earlier);
  void shorten_with(const Move& move, NodeIndex of, std::vector<Earlier>& earlier);
  void thin_out(NodeIndex node);

  const SetMembership& sets_;
  double drift_factor_;
  std::vector<Node> nodes_;
  Instant ask_all_from_ = Instant::min();
};

}  // namespace redlock::engine
