// SPDX-License-Identifier: MIT
#include "engine/clock_watch.hpp"

#include <algorithm>
#include <chrono>
#include <string>

#include "engine/engine.hpp"
#include "engine/planted_bug.hpp"
#include "engine/quorum.hpp"

namespace redlock::engine {
namespace {

using std::chrono::microseconds;

/// A window at the least: a small step is much within milliseconds, and nothing for any lease.
constexpr Duration shortest_window = std::chrono::seconds(10);
/// Readings are this part of the window apart, so that a few are enough.
constexpr int readings_in_a_window = 8;
/// Clocks may show anything, and nobody holds a lease for so long.
constexpr std::int64_t a_year_us = microseconds(std::chrono::hours(24 * 365)).count();

std::int64_t to_us(Duration duration) {
  return std::chrono::duration_cast<microseconds>(duration).count();
}

std::string in_seconds(Duration left) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(left).count()) + " s";
}

}  // namespace

ClockWatch::ClockWatch(const Config& config)
    : window_(config.max_lease), drift_factor_(config.drift_factor), nodes_(config.nodes) {}

std::int64_t ClockWatch::allowed_us(Duration between) const {
  const Duration window = std::max(between, std::min(shortest_window, window_));
  return static_cast<std::int64_t>(static_cast<double>(to_us(window)) * drift_factor_) + 2'000;
}

std::optional<ClockWatch::Movement> ClockWatch::on_reading(Instant now, NodeIndex node,
                                                           std::int64_t unix_us,
                                                           Duration give_or_take) {
  Node& clock = nodes_[node];
  const std::int64_t ahead_us = unix_us - to_us(now.time_since_epoch());
  const std::int64_t unsure_us = planted(Bug::round_trip_ignored) ? 0 : to_us(give_or_take) + 1;
  const Reading reading{now - 2 * give_or_take, now, ahead_us - unsure_us, ahead_us + unsure_us};

  // Twice as long as a lease: the last one before a node hung is older than what it confirmed then.
  std::erase_if(clock.readings, [&](const Reading& old) { return now - old.at > 2 * window_; });
  bool moved = false;
  std::int64_t least_us = -a_year_us;
  std::int64_t most_us = -a_year_us;
  for (const Reading& old : clock.readings) {
    const std::int64_t at_least = reading.least_us - old.most_us;
    const std::int64_t at_most = reading.most_us - old.least_us;
    const std::int64_t allowed = allowed_us(now - old.asked);
    moved = moved || at_least > allowed || -at_most > allowed;
    least_us = std::max(least_us, at_least);
    most_us = std::max(most_us, at_most);
  }
  if (!moved) {
    keep(clock.readings, reading);
    return std::nullopt;
  }
  // From here on it is compared with what it shows now.
  clock.readings = {reading};
  clock.moved_at = now;
  clock.moved_by = microseconds(std::clamp((least_us + most_us) / 2, -a_year_us, a_year_us));
  const bool ours = is_ours(now, clock.moved_by);
  for (Node& each : nodes_) {
    const bool together = (each.moved_by < Duration::zero()) == (clock.moved_by < Duration::zero());
    if (ours && together) each.trusted_from = Instant::min();
  }
  if (!ours) clock.trusted_from = now + window_;
  return Movement{clock.moved_by, microseconds(std::clamp(most_us, -a_year_us, a_year_us)), ours};
}

/// The newest always, the others well apart.
void ClockWatch::keep(std::vector<Reading>& readings, const Reading& reading) const {
  const std::size_t count = readings.size();
  const bool close =
      count > 1 && readings[count - 1].at - readings[count - 2].at < window_ / readings_in_a_window;
  if (close) readings.pop_back();
  readings.push_back(reading);
}

/// Whether a quorum of nodes moved this way within a lease: then it is we who moved.
bool ClockWatch::is_ours(Instant now, Duration by) const {
  if (planted(Bug::own_clock_never_blamed)) return false;
  const auto together = std::ranges::count_if(nodes_, [&](const Node& node) {
    const bool lately = node.moved_at != Instant::min() && now - node.moved_at <= window_;
    return lately && (node.moved_by < Duration::zero()) == (by < Duration::zero());
  });
  return static_cast<std::uint32_t>(together) >=
         quorum_of(static_cast<std::uint32_t>(nodes_.size()));
}

std::optional<Unavailable> ClockWatch::objection(Instant now, NodeIndex node) const {
  if (keeps_time(now, node)) return std::nullopt;
  const Node& clock = nodes_[node];
  const bool ahead = clock.moved_by > Duration::zero();
  const auto by = std::chrono::round<std::chrono::milliseconds>(std::chrono::abs(clock.moved_by));
  return Unavailable{Cause::clock_moved, Delivery::not_sent,
                     "its clock went " + std::string(ahead ? "ahead" : "back") + " by " +
                         std::to_string(by.count()) + " ms against ours; it votes in " +
                         in_seconds(clock.trusted_from - now) + " if it keeps time until then"};
}

}  // namespace redlock::engine
