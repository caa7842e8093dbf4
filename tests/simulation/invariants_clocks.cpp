// SPDX-License-Identifier: MIT
// Clocks that move, judged by how they moved in truth: clocks within the bound are never blamed,
// those far beyond it always, and never so many that no quorum is left.
#include <algorithm>
#include <fmt/format.h>

#include "simulation/invariants.hpp"

namespace redlock::simulation {

using std::chrono::milliseconds;

Duration Invariants::allowed(Duration between) const {
  const Duration shortest = std::min<Duration>(std::chrono::seconds(10), max_lease_);
  const Duration window = std::max(between, shortest);
  return Duration(window.count() / 1'000'000 * drift_ppm_) + milliseconds(2);
}

void Invariants::clock_read(ClientId client, std::uint32_t node, const Reading& reading) {
  Clock& clock = clients_[client].clocks[node];
  std::erase_if(clock.readings,
                [&](const Reading& old) { return reading.at - old.at > max_lease_; });
  if (!clock.readings.empty()) {
    const Reading& old = clock.readings.back();
    const Duration moved = std::chrono::abs(reading.ahead - old.ahead);
    // A clock may have run or jumped while its own reading was on its way.
    const Duration unsure = (reading.give_or_take + old.give_or_take) * 4 + milliseconds(1);
    clock.must_be_noticed = moved > allowed(reading.at - old.at) + unsure;
  }
  clock.readings.push_back(reading);
}

void Invariants::told_clock(Instant now, ClientId id, const engine::NodeClockMoved& moved) {
  Client& client = clients_[id];
  Clock& clock = client.clocks[moved.node];
  const auto what = [&] { return fmt::format("client {}, node {}", id, moved.node); };
  if (judged_.clocks) throw Violation{"clocks within the bound are not blamed", what()};

  clock.must_be_noticed = false;
  clock.moved_at = now;
  clock.moved_ahead = moved.by > Duration::zero();
  const auto together = std::ranges::count_if(client.clocks, [&](const Clock& each) {
    return each.moved_at && now - *each.moved_at <= max_lease_ &&
           each.moved_ahead == clock.moved_ahead;
  });
  const bool quorum = static_cast<std::size_t>(together) > nodes_.size() / 2;
  if (quorum != moved.ours) throw Violation{"who moved is what a quorum says", what()};
  if (!quorum) {
    clock.blamed_until = now + max_lease_;
  } else {
    for (Clock& each : client.clocks) {
      if (each.moved_ahead == clock.moved_ahead) each.blamed_until = Instant::min();
    }
  }

  // The engine may have dropped older ones, but never the one before.
  const Reading latest = clock.readings.back();
  clock.readings.pop_back();
  Duration ahead{};
  if (!clock.readings.empty()) ahead = latest.ahead - clock.readings.back().ahead;
  clock.readings = {latest};
  // The client knows what it was told, which the round trips blur.
  ahead -= latest.give_or_take * 4 + milliseconds(1);
  if (ahead <= Duration::zero()) return;
  for (auto& entry : client.grants) entry.second.belief.ran_ahead(moved.node, ahead);
}

}  // namespace redlock::simulation
