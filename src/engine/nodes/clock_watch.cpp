// SPDX-License-Identifier: MIT
#include "engine/nodes/clock_watch.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <string>

#include "engine/nodes/seconds.hpp"
#include "engine/quorum.hpp"
#include "engine/rules.hpp"

namespace redlock::engine {
namespace {

using std::chrono::microseconds;

/// A window at the least: a small step is much within milliseconds, and nothing for any lease.
constexpr Duration shortest_window = std::chrono::seconds(10);
/// Readings are this part of the window apart, so that a few are enough.
constexpr int readings_in_a_window = 8;
constexpr std::ptrdiff_t moves_of_a_node = 8;
/// A clock that runs wild does not make us read them all the time.
constexpr Duration between_asking_all = std::chrono::seconds(1);
/// Clocks may show anything, and nobody holds a lease for so long.
constexpr std::int64_t a_year_us = microseconds(std::chrono::hours(24 * 365)).count();

std::int64_t to_us(Duration duration) {
  return std::chrono::duration_cast<microseconds>(duration).count();
}

/// Nobody sees that it is no more than a year.
Duration to_duration(std::int64_t us) {
  return microseconds(std::clamp(us, -a_year_us, a_year_us));
}

}  // namespace

ClockWatch::ClockWatch(const Config& config)
    : window_(config.max_lease), drift_factor_(config.drift_factor), nodes_(config.nodes) {}

std::int64_t ClockWatch::allowed_us(Duration between) const {
  const Duration window = std::max(between, std::min(shortest_window, window_));
  return to_us(rules::drift_allowance(window, drift_factor_));
}

ClockWatch::Findings ClockWatch::on_reading(Instant now, NodeIndex node, std::int64_t unix_us,
                                            Duration uncertainty) {
  Node& clock = nodes_[node];
  const std::int64_t ahead_us = unix_us - to_us(now.time_since_epoch());
  const std::int64_t unsure_us = to_us(rules::hidden_by(uncertainty));
  const Reading reading{now - 2 * uncertainty, now, {ahead_us - unsure_us, ahead_us + unsure_us}};

  // Twice as long as a lease: the last one before a node hung is older than what it confirmed then.
  std::erase_if(clock.readings, [&](const Reading& old) { return now - old.at > 2 * window_; });
  std::erase_if(moves_, [&](const Move& move) { return now - move.at > window_; });
  Findings findings;
  std::int64_t most_us = -a_year_us;
  const auto move = compare(node, reading, most_us);
  clock.readings.push_back(reading);
  if (move) {
    clock.compared_from = now;
    remember(*move);
    if (most_us > 0) findings.earlier.push_back({node, to_duration(most_us)});
  }
  judge();
  shorten_with_ours(findings.earlier);
  thin_out(clock);
  if (!move) return findings;
  const bool ask_all = now >= ask_all_from_;
  if (ask_all) ask_all_from_ = now + between_asking_all;
  const Duration by = to_duration((move->by.least_us + move->by.most_us) / 2);
  findings.movement = {by, moves_.back().ours, ask_all};
  return findings;
}

/// The movement since the newest reading that shows one, and how far it may have gone since any.
std::optional<ClockWatch::Move> ClockWatch::compare(NodeIndex node, const Reading& reading,
                                                    std::int64_t& most_us) const {
  std::optional<Move> found;
  for (const Reading& old : nodes_[node].readings) {
    if (old.at < nodes_[node].compared_from) continue;
    const Interval by{reading.ahead.least_us - old.ahead.most_us,
                      reading.ahead.most_us - old.ahead.least_us};
    const std::int64_t allowed = allowed_us(reading.at - old.asked);
    most_us = std::max(most_us, by.most_us);
    if (by.least_us <= allowed && -by.most_us <= allowed) continue;
    found.emplace();
    found->node = node;
    found->from = old.at;
    found->at = reading.at;
    found->by = by;
    found->truechimers.insert(node);
  }
  return found;
}

/// Of a clock that runs wild the last few: the latest says for how long it is not trusted.
void ClockWatch::remember(const Move& move) {
  const auto of_node = [&](const Move& old) { return old.node == move.node; };
  if (std::ranges::count_if(moves_, of_node) >= moves_of_a_node) {
    moves_.erase(std::ranges::find_if(moves_, of_node));
  }
  moves_.push_back(move);
}

/// The newest always, the others well apart, and what a clock showed before it moved.
void ClockWatch::thin_out(Node& clock) const {
  auto& readings = clock.readings;
  if (readings.size() < 3) return;
  const auto last = readings.end() - 2;
  const auto before = last - 1;
  const bool close = last->at - before->at < window_ / readings_in_a_window;
  if (close && before->at >= clock.compared_from) readings.erase(last);
}

/// By how much the node's clock was ahead at some moment, from the readings before and after it: it
/// went there by a jump or steadily, and in one direction.
ClockWatch::Interval ClockWatch::around(const std::vector<Reading>& readings, Instant when) {
  auto after = std::ranges::upper_bound(readings, when, {}, &Reading::at);
  if (after == readings.begin()) return after->ahead;
  const Reading& before = *std::prev(after);
  if (before.at == when || after == readings.end()) return before.ahead;
  return {std::min(before.ahead.least_us, after->ahead.least_us),
          std::max(before.ahead.most_us, after->ahead.most_us)};
}

/// How far the node's clock went while the other one made this movement. It must have been read
/// since.
ClockWatch::Displacement ClockWatch::displacement(const Move& move, NodeIndex node) const {
  const auto& readings = nodes_[node].readings;
  const Interval start = around(readings, move.from);
  const Interval end = around(readings, move.at);
  return {.by = {end.least_us - start.most_us, end.most_us - start.least_us},
          .all_known = readings.front().at <= move.from && readings.back().at >= move.at};
}

ClockWatch::Agreement ClockWatch::agreement(const Move& move, NodeIndex node) const {
  const Displacement moved = displacement(move, node);
  // Two clocks that keep time drift apart as well.
  const std::int64_t drift = allowed_us(move.at - move.from);
  const bool possible =
      moved.by.most_us >= move.by.least_us - drift && moved.by.least_us <= move.by.most_us + drift;
  if (possible) return Agreement::yes;
  return moved.all_known ? Agreement::no : Agreement::unknown;
}

/// Its own movement at that time, if it was seen to make one: of several the one that had most of
/// the time in common, since readings that are made together are milliseconds apart.
const ClockWatch::Move* ClockWatch::meanwhile(const Move& move, NodeIndex node) const {
  const Move* found = nullptr;
  Duration longest = Duration::zero();
  for (const Move& own : moves_) {
    const Duration common = std::min(own.at, move.at) - std::max(own.from, move.from);
    if (own.node != node || common <= longest) continue;
    longest = common;
    found = &own;
  }
  return found;
}

/// Whether the node's readings show the movement of another. The first that decide it count,
/// because later ones may show a movement of another time.
void ClockWatch::classify(Move& move, NodeIndex node) const {
  if (move.truechimers.contains(node) || move.falsetickers.contains(node)) return;
  const auto& readings = nodes_[node].readings;
  if (readings.empty() || readings.back().at <= move.from) return;
  if (const Move* const own = meanwhile(move, node)) {
    const Agreement so = agreement(move, node);
    const Agreement other = agreement(*own, move.node);
    const bool no = so == Agreement::no || other == Agreement::no;
    if (!no && (so == Agreement::unknown || other == Agreement::unknown)) return;
    // An earlier movement: the next reading may show another one, at the time of this.
    if (no && own->at < move.at && readings.back().asked < move.at) return;
    move.undecided.erase(node);
    return (no ? move.falsetickers : move.truechimers).insert(node);
  }
  // What was asked before the movement was seen may have been answered before it happened.
  if (move.undecided.contains(node) || readings.back().asked < move.at) return;
  const Agreement so = agreement(move, node);
  if (so == Agreement::no) move.falsetickers.insert(node);
  if (so == Agreement::yes && readings.front().at <= move.from) move.undecided.insert(node);
}

bool ClockWatch::is_ours(const Move& move) const {
  return rules::our_clock_moved(move.truechimers.size(), move.undecided.size(),
                                move.falsetickers.size(),
                                static_cast<std::uint32_t>(nodes_.size()));
}

void ClockWatch::judge() {
  if (moves_.empty()) return;
  for (Node& clock : nodes_) clock.trusted_from = Instant::min();
  for (Move& move : moves_) {
    for (NodeIndex node = 0; node < nodes_.size(); ++node) classify(move, node);
    move.ours = is_ours(move);
    Instant& trusted_from = nodes_[move.node].trusted_from;
    if (!move.ours) trusted_from = std::max(trusted_from, move.at + window_);
  }
}

/// If it was us, it was so for the nodes too whose readings do not show it.
void ClockWatch::shorten_with_ours(std::vector<Earlier>& earlier) {
  for (const Move& move : moves_) {
    if (!move.ours) continue;
    for (NodeIndex node = 0; node < nodes_.size(); ++node) {
      Node& clock = nodes_[node];
      const bool known = clock.compared_from > move.from;
      if (known || !move.undecided.contains(node)) continue;
      clock.compared_from = clock.readings.back().at;
      const std::int64_t most_us = std::min(displacement(move, node).by.most_us,
                                            move.by.most_us + allowed_us(move.at - move.from));
      if (most_us > 0) earlier.push_back({node, to_duration(most_us)});
    }
  }
}

std::optional<Unavailable> ClockWatch::objection(Instant now, NodeIndex node) const {
  if (keeps_time(now, node)) return std::nullopt;
  const Node& clock = nodes_[node];
  const auto blamed = [&](const Move& move) { return move.node == node && !move.ours; };
  const auto found = std::find_if(moves_.rbegin(), moves_.rend(), blamed);
  assert(found != moves_.rend());
  const Move& move = *found;
  const Duration moved = to_duration((move.by.least_us + move.by.most_us) / 2);
  const auto by = std::chrono::round<std::chrono::milliseconds>(std::chrono::abs(moved));
  return Unavailable{Cause::clock_moved, Delivery::not_sent,
                     "its clock went " + std::string(moved > Duration::zero() ? "ahead" : "back") +
                         " by " + std::to_string(by.count()) + " ms against ours; it votes in " +
                         in_seconds(clock.trusted_from - now) +
                         " if it keeps time until then: let chrony slew it, and step it only "
                         "before redis-server starts"};
}

}  // namespace redlock::engine
