// SPDX-License-Identifier: MIT
// How many holds a node may have to answer, and which renewals wait for room. A node that has too
// little of a processor answers so many in a second and no more: what is sent beyond that only
// makes its answers late, those to acquires too. What waits here is sent in the order in which it
// becomes urgent, and its lease counts from then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "engine/adaptive_window.hpp"
#include "engine/electorate.hpp"
#include "engine/outbox.hpp"
#include "engine/quorum.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

class RenewalPace {
 public:
  /// The outbox counts what was sent. Both must outlive the pace.
  RenewalPace(const Electorate& electorate, const Outbox& out)
      : electorate_(electorate),
        out_(out),
        windows_(electorate.slots(),
                 AdaptiveWindow(first, {fewest, most}, electorate.node_timeout())) {}

  /// A hold has its answer; `executed`: the node's own.
  void answered(Instant now, NodeIndex node, Instant sent, bool executed) {
    const bool more_wanted = !waiting_.empty() || full_.contains(node);
    windows_[node].ended(now, sent, executed, more_wanted);
    if (has_room(node)) full_.erase(node);
  }
  /// Nodes that have as many to answer as they can.
  [[nodiscard]] NodeSet full() {
    for (NodeIndex node = 0; node < windows_.size(); ++node) {
      if (!has_room(node)) full_.insert(node);
    }
    return full_;
  }
  /// Whether a quorum of the nodes has room.
  [[nodiscard]] bool open() { return electorate_.is_quorum(electorate_.nodes() - full()); }

  /// Puts a renewal off until there is room, or until then.
  void wait(Instant now, GrantId grant, Instant urgent_at) {
    forget_urgent(now);
    waiting_.emplace(urgent_at, grant);
  }
  /// What is the most urgent, if there is room and something waits. It may have ended meanwhile.
  [[nodiscard]] std::optional<GrantId> next(Instant now) {
    if (waiting_.empty() || !open()) return std::nullopt;
    forget_urgent(now);
    if (waiting_.empty()) return std::nullopt;
    const GrantId grant = waiting_.top().second;
    waiting_.pop();
    return grant;
  }

 private:
  static constexpr std::size_t fewest = 100;  // what goes in one call
  static constexpr std::size_t first = 1'000;
  static constexpr std::size_t most = 1'000'000;

  [[nodiscard]] bool has_room(NodeIndex node) const {
    return out_.holds_under_way(node) < windows_[node].size();
  }
  /// They are renewed by their own timers.
  void forget_urgent(Instant now) {
    while (!waiting_.empty() && waiting_.top().first <= now) waiting_.pop();
  }

  const Electorate& electorate_;
  const Outbox& out_;
  std::vector<AdaptiveWindow> windows_;
  NodeSet full_;
  using Waiting = std::pair<Instant, GrantId>;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
};

}  // namespace redlock::engine
