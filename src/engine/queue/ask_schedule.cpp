// SPDX-License-Identifier: MIT
#include "engine/queue/ask_schedule.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace redlock::engine {
namespace {

constexpr std::uint32_t most_places = 1'000;  // more make no difference before the next refresh
/// Spread of what many waiters would do at one moment.
constexpr Duration spread = std::chrono::milliseconds(1);
constexpr Duration soonest = std::chrono::milliseconds(1);

}  // namespace

void AskSchedule::sent(Instant now, NodeIndex node) {
  nodes_[node] = {.sent = now, .under_way = true};
  poll_at_ = never;
}

void AskSchedule::entering(Instant now, NodeIndex node) {
  sent(now, node);
  nodes_[node].enters = true;
}

void AskSchedule::await_no_entries() {
  for (Node& node : nodes_) {
    if (std::exchange(node.enters, false)) node.under_way = false;
  }
}

bool AskSchedule::replied(Instant now, NodeIndex node) {
  Node& what = nodes_[node];
  if (what.sent != never) round_trip_ = std::min(round_trip_, now - what.sent);
  what.under_way = what.enters = false;
  silent_.erase(node);
  return std::exchange(what.woken, false);
}

void AskSchedule::refused(Instant now, NodeIndex node, std::optional<Duration> expires_in,
                          std::uint32_t place) {
  Node& what = nodes_[node];
  what.refused = true;
  what.free_at = expires_in && *expires_in < never - now ? now + *expires_in : never;
  what.place = place;
}

bool AskSchedule::wake(Instant now, NodeIndex node, Duration after, RandomSource& random) {
  Node& what = nodes_[node];
  if (after > Duration::zero()) {
    what.wake_at = now + after + random_between({}, 2 * spread, random);
    what.place = 1;  // behind the one whose turn it is
    return false;
  }
  what.wake_at = never;
  if (what.under_way) what.woken = true;
  return !what.under_way;
}

NodeSet AskSchedule::asked() const {
  NodeSet set;
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].under_way) set.insert(node);
  }
  return set;
}

void AskSchedule::idle(Instant now, std::uint32_t quorum, Duration polled, RandomSource& random) {
  std::array<Instant, NodeSet::max_nodes> ends;
  std::uint32_t count = 0;
  std::uint32_t place = most_places;
  for (const Node& node : nodes_) {
    if (!node.refused) continue;
    ends[count++] = node.free_at;
    place = std::min(place, node.place);
  }
  Instant when = now + polled;
  if (count > 0) {
    // By the quorum-th of them enough nodes may be free.
    const auto nth = std::min(quorum, count) - 1;
    std::nth_element(ends.begin(), ends.begin() + nth, ends.begin() + count);
    const Instant end = ends[nth];
    // Who is behind comes when each of those before could have taken it.
    if (end < never - std::chrono::hours(1)) when = std::min(when, end + place * window);
  }
  poll_at_ = std::max(when, now + soonest) + random_between({}, spread, random);
}

std::uint32_t AskSchedule::place(std::uint32_t quorum) const {
  std::array<std::uint32_t, NodeSet::max_nodes> places{};
  std::uint32_t count = 0;
  for (const Node& node : nodes_) {
    if (node.refused) places[count++] = node.place;
  }
  if (count == 0) return 0;
  const auto nth = std::min(quorum, count) - 1;
  std::nth_element(places.begin(), places.begin() + nth, places.begin() + count);
  return places[nth];
}

bool AskSchedule::is_next(std::uint32_t quorum) const {
  const auto next = std::ranges::count_if(
      nodes_, [](const Node& node) { return node.refused && node.place == 0; });
  return next >= static_cast<std::ptrdiff_t>(quorum);
}

void AskSchedule::moved_up() {
  for (Node& node : nodes_) {
    if (node.place > 0) --node.place;
  }
}

bool AskSchedule::silent_by(Instant now, NodeIndex node, Duration node_timeout) {
  const Node& what = nodes_[node];
  if (!what.under_way || silent_.contains(node) || now < what.sent + node_timeout) return false;
  silent_.insert(node);
  return true;
}

bool AskSchedule::wake_due(Instant now, NodeIndex node) {
  Node& what = nodes_[node];
  if (now < what.wake_at) return false;
  what.wake_at = never;
  return !what.under_way;
}

bool AskSchedule::poll_due(Instant now) {
  if (now < poll_at_) return false;
  poll_at_ = never;
  return true;
}

Instant AskSchedule::deadline(Duration node_timeout) const {
  Instant first = poll_at_;
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    const Node& what = nodes_[node];
    first = std::min(first, what.wake_at);
    if (what.under_way && !silent_.contains(node))
      first = std::min(first, what.sent + node_timeout);
  }
  return first;
}

}  // namespace redlock::engine
