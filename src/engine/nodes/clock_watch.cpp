// SPDX-License-Identifier: MIT
#include "engine/nodes/clock_watch.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include "engine/rules.hpp"

namespace redlock::engine {
namespace {

using std::chrono::microseconds;

/// The smallest window: within milliseconds a small step would count as much, but it matters to no
/// lease.
constexpr Duration shortest_window = std::chrono::seconds(10);
/// Readings are this part of the window apart, so that a few are enough.
constexpr int readings_in_a_window = 8;
constexpr std::size_t moves_of_a_node = 8;
/// A clock that runs wild does not make the client read the clocks all the time.
constexpr Duration between_asking_all = std::chrono::seconds(1);
/// Clocks may show anything, and no lease lasts that long.
constexpr std::int64_t a_year_us = microseconds(std::chrono::hours(24 * 365)).count();

std::int64_t to_us(Duration duration) {
  return std::chrono::duration_cast<microseconds>(duration).count();
}

/// The limit of a year makes no visible difference.
Duration to_duration(std::int64_t us) {
  return microseconds(std::clamp(us, -a_year_us, a_year_us));
}

}  // namespace

ClockWatch::ClockWatch(const Config& config, const SetMembership& sets)
    : sets_(sets), drift_factor_(config.drift_factor), nodes_(sets.slots()) {}

std::int64_t ClockWatch::allowed_us(Duration between) const {
  const Duration span = std::max(between, std::min(shortest_window, sets_.longest_lease()));
  return to_us(rules::drift_allowance(span, drift_factor_));
}

ClockWatch::Findings ClockWatch::on_reading(Instant now, NodeIndex node, std::int64_t unix_us,
                                            Duration uncertainty) {
  Node& clock = nodes_[node];
  const std::int64_t ahead_us = unix_us - to_us(now.time_since_epoch());
  const std::int64_t unsure_us = to_us(rules::hidden_by(uncertainty));
  const Reading reading{now - 2 * uncertainty, now, {ahead_us - unsure_us, ahead_us + unsure_us}};

  // A movement is judged for one window by what was comparable when it was seen.
  std::erase_if(clock.readings,
                [&](const Reading& old) { return now - old.at > 3 * window(node); });
  for (NodeIndex each = 0; each < nodes_.size(); ++each) {
    std::erase_if(nodes_[each].moves,
                  [&](const Move& move) { return now - move.at > window(each); });
  }
  Findings findings;
  std::int64_t most_us = -a_year_us;
  const auto move = compare(node, reading, most_us);
  clock.readings.push_back(reading);
  if (move) {
    clock.compared_from = now;
    // Keeps the last few movements of a clock that runs wild: the latest says for how long the
    // clock is not trusted.
    if (clock.moves.size() >= moves_of_a_node) clock.moves.erase(clock.moves.begin());
    clock.moves.push_back(*move);
    if (most_us > 0) findings.earlier.push_back({node, to_duration(most_us)});
  }
  judge();
  findings.to_note = take_to_note();
  shorten_with_ours(findings.earlier);
  thin_out(node);
  if (!move) return findings;
  const bool ask_all = now >= ask_all_from_;
  if (ask_all) ask_all_from_ = now + between_asking_all;
  const Duration by = to_duration((move->by.least_us + move->by.most_us) / 2);
  findings.movement = {by, clock.moves.back().ours, ask_all};
  return findings;
}

/// The movement since the newest reading that shows one, and how far it may have gone since any.
std::optional<ClockWatch::Move> ClockWatch::compare(NodeIndex node, const Reading& reading,
                                                    std::int64_t& most_us) const {
  std::optional<Move> found;
  for (const Reading& old : comparable(node, reading.at)) {
    if (old.at < nodes_[node].compared_from) continue;
    const Interval by{reading.ahead.least_us - old.ahead.most_us,
                      reading.ahead.most_us - old.ahead.least_us};
    const std::int64_t allowed = allowed_us(reading.at - old.asked);
    most_us = std::max(most_us, by.most_us);
    if (by.least_us <= allowed && -by.most_us <= allowed) continue;
    found = Move{.from = old.at, .at = reading.at, .by = by};
  }
  return found;
}

/// The newest always, the others well apart, and what a clock showed before it moved.
void ClockWatch::thin_out(NodeIndex node) {
  Node& clock = nodes_[node];
  auto& readings = clock.readings;
  if (readings.size() < 3) return;
  const auto last = readings.end() - 2;
  const auto before = last - 1;
  const bool close = last->at - before->at < window(node) / readings_in_a_window;
  if (close && before->at >= clock.compared_from) readings.erase(last);
}

/// The node's readings that bear on a movement seen at that time. Twice as long as a lease: the
/// last one before a node hung is older than what it confirmed then.
std::span<const ClockWatch::Reading> ClockWatch::comparable(NodeIndex node, Instant seen) const {
  const auto& readings = nodes_[node].readings;
  return {std::ranges::lower_bound(readings, seen - 2 * window(node), {}, &Reading::at),
          readings.end()};
}

/// By how much the node's clock was ahead at some moment, from the last reading before it to the
/// first that was asked for after it: between them the clock moved by a jump or steadily, in one
/// direction.
ClockWatch::Interval ClockWatch::around(std::span<const Reading> readings, Instant when) {
  auto reading = std::ranges::upper_bound(readings, when, {}, &Reading::at);
  if (reading != readings.begin()) --reading;
  Interval ahead = reading->ahead;
  while (reading->at != when && reading->asked < when && ++reading != readings.end()) {
    ahead.least_us = std::min(ahead.least_us, reading->ahead.least_us);
    ahead.most_us = std::max(ahead.most_us, reading->ahead.most_us);
  }
  return ahead;
}

/// How far the node's clock went while the other one made this movement.
ClockWatch::Interval ClockWatch::displacement(const Move& move, NodeIndex node) const {
  const auto readings = comparable(node, move.at);
  const Interval start = around(readings, move.from);
  const Interval end = around(readings, move.at);
  return {end.least_us - start.most_us, end.most_us - start.least_us};
}

/// Whether the node's clock may have moved that far meanwhile. Two clocks that keep time drift
/// apart as well.
bool ClockWatch::may_have_gone(const Move& move, NodeIndex node, const Interval& by) const {
  const Interval gone = displacement(move, node);
  const std::int64_t drift = allowed_us(move.at - move.from);
  return gone.most_us >= by.least_us - drift && gone.least_us <= by.most_us + drift;
}

/// The verdict of the node's readings on the movement of another clock.
ClockWatch::Witness ClockWatch::witness(const Move& move, NodeIndex of, NodeIndex node) const {
  if (node == of) return Witness::truechimer;
  const auto readings = comparable(node, move.at);
  if (readings.empty() || readings.back().at <= move.from) return Witness::unknown;
  const auto moved_as_well = [&](const Move& own) {
    return own.from < move.at && move.from < own.at && may_have_gone(own, of, own.by);
  };
  const bool possible = may_have_gone(move, node, move.by);
  const bool certain =
      !may_have_gone(move, node, {}) || std::ranges::any_of(nodes_[node].moves, moved_as_well);
  if (possible && certain) return Witness::truechimer;
  // A question from before the movement was seen may have been answered before it happened.
  const bool known = readings.front().at <= move.from && readings.back().asked >= move.at;
  if (!known) return Witness::unknown;
  return possible ? Witness::undecided : Witness::falseticker;
}

void ClockWatch::judge(Move& move, NodeIndex of) const {
  std::array<std::uint32_t, 4> count{};
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    ++count[static_cast<std::size_t>(witness(move, of, node))];
  }
  const auto [unknown, truechimers, undecided, falsetickers] = count;
  const std::uint32_t quorum = sets_.majorities().quorum();
  move.ours = rules::our_clock_moved(truechimers, undecided, falsetickers, quorum);
  move.certain = !move.ours && rules::certainly_its_clock(falsetickers, quorum);
}

void ClockWatch::judge() {
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    Node& clock = nodes_[node];
    if (clock.moves.empty()) continue;
    clock.trusted_from = Instant::min();
    for (Move& move : clock.moves) {
      judge(move, node);
      if (!move.ours) clock.trusted_from = move.at + window(node);
    }
  }
}

std::vector<NodeIndex> ClockWatch::take_to_note() {
  std::vector<NodeIndex> nodes;
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    // A client that was given longer leases than the set has would make others wait for so long.
    if (sets_.other_max_lease(node, {})) continue;
    for (Move& move : nodes_[node].moves) {
      if (!move.certain || std::exchange(move.noted, true)) continue;
      if (nodes.empty() || nodes.back() != node) nodes.push_back(node);
    }
  }
  return nodes;
}

/// If our clock moved, that holds for the nodes whose readings do not show it, too.
void ClockWatch::shorten_with_ours(std::vector<Earlier>& earlier) {
  for (NodeIndex of = 0; of < nodes_.size(); ++of) {
    for (const Move& move : nodes_[of].moves) {
      if (move.ours) shorten_with(move, of, earlier);
    }
  }
}

void ClockWatch::shorten_with(const Move& move, NodeIndex of, std::vector<Earlier>& earlier) {
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    Node& clock = nodes_[node];
    const bool known = clock.compared_from > move.from;
    if (known || witness(move, of, node) != Witness::undecided) continue;
    clock.compared_from = clock.readings.back().at;
    const std::int64_t most_us = std::min(displacement(move, node).most_us,
                                          move.by.most_us + allowed_us(move.at - move.from));
    if (most_us > 0) earlier.push_back({node, to_duration(most_us)});
  }
}

std::optional<Unavailable> ClockWatch::objection(Instant now, NodeIndex node) const {
  if (keeps_time(now, node)) return std::nullopt;
  const Node& clock = nodes_[node];
  if (now >= clock.trusted_from) {
    return Unavailable{
        Cause::clock_moved, Delivery::not_sent, {}, ClockAstray{{}, clock.noted_until - now}};
  }
  const auto found = std::find_if(clock.moves.rbegin(), clock.moves.rend(),
                                  [](const Move& move) { return !move.ours; });
  assert(found != clock.moves.rend());
  const Move& move = *found;
  const Duration moved = to_duration((move.by.least_us + move.by.most_us) / 2);
  return Unavailable{
      Cause::clock_moved, Delivery::not_sent, {}, ClockAstray{moved, trusted_from(node) - now}};
}

}  // namespace redlock::engine
