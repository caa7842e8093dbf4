// SPDX-License-Identifier: MIT
// Clocks that move, judged by how they moved in truth, theirs and the client's: clocks within the
// bound are never blamed, those far beyond it always, and whose fault it was is found out where the
// truth is clear and the round trips hide it from nobody.
#include <algorithm>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "simulation/invariants.hpp"
#include "wire/words.hpp"

namespace redlock::simulation {
namespace {

using std::chrono::milliseconds;

/// Between which values something was.
struct Range {
  void add(Duration value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  [[nodiscard]] Duration width() const { return std::max(most - least, Duration::zero()); }

  Duration least = Duration::max() / 4;
  Duration most = Duration::min() / 4;
};

Duration strayed(const std::vector<Invariants::Reading>& readings) {
  Range range;
  for (const auto& reading : readings) range.add(reading.astray);
  return range.width();
}

}  // namespace

Duration Invariants::allowed(Duration between) const {
  const Duration shortest = std::min<Duration>(std::chrono::seconds(10), max_lease_);
  const Duration window = std::max(between, shortest);
  return Duration(window.count() / 1'000'000 * drift_ppm_) + milliseconds(2);
}

void Invariants::clock_read(ClientId id, std::uint32_t node, const Reading& reading) {
  Client& client = clients_[id];
  Clock& clock = client.clocks[node];
  clock.read = ++received_;
  // A movement is judged for one window, by readings of the two windows before it was seen.
  std::erase_if(clock.readings,
                [&](const Reading& old) { return reading.at - old.at > 3 * max_lease_; });
  std::erase_if(clock.moves, [&](const Move& old) { return reading.at - old.at > max_lease_; });
  if (!clock.readings.empty()) {
    const Reading& old = clock.readings.back();
    const Duration moved = std::chrono::abs(reading.ahead - old.ahead);
    // A clock may have run or jumped while its own reading was on its way.
    const Duration unsure = (reading.uncertainty + old.uncertainty) * 4 + milliseconds(1);
    clock.must_be_noticed =
        reading.at - old.at <= 2 * max_lease_ && moved > allowed(reading.at - old.at) + unsure;
  }
  clock.readings.push_back(reading);
  // With this the client may find, in good faith, that it was not so.
  for (std::uint32_t each = 0; each < nodes_.size(); ++each) {
    Clock& blamed = client.clocks[each];
    if (reading.at < blamed.blamed_until && !surely_theirs(client, each, blamed.blamed_for)) {
      blamed.blamed_until = Instant::min();
    }
  }
}

/// The client and so many other nodes kept time that no quorum can seem to have moved so far.
bool Invariants::surely_theirs(const Client& client, std::uint32_t node, Duration by) const {
  const Duration steady = allowed(2 * max_lease_);
  Duration unsure{};
  Range ours;
  std::size_t kept_time = 0;
  for (std::uint32_t each = 0; each < nodes_.size(); ++each) {
    const auto& readings = client.clocks[each].readings;
    if (each != node && !readings.empty() && strayed(readings) <= steady) ++kept_time;
    for (const Reading& reading : readings) {
      ours.add(reading.astray - reading.ahead);
      unsure = std::max(unsure, reading.uncertainty);
    }
  }
  const std::size_t quorum = members_ / 2 + 1;
  return ours.width() <= steady && kept_time > members_ - quorum &&
         std::chrono::abs(by) > 3 * steady + 16 * unsure;
}

/// A quorum of nodes that kept time, this one among them, were seen to move together by as much,
/// read by read: it was the client's clock, which went one way.
bool Invariants::surely_ours(const Client& client, const Clock& moved) const {
  const Move& move = moved.moves.back();
  const Duration slight = allowed(Duration::zero()) / 2;
  std::vector<std::pair<Instant, Duration>> client_astray;
  std::size_t together = 0;
  bool itself = false;
  for (const Clock& each : client.clocks) {
    const bool so = std::ranges::any_of(each.moves, [&](const Move& own) {
      return own.certain && std::chrono::abs(own.by - move.by) <= slight && own.from < move.at &&
             move.from < own.at && moved.readings.front().at <= own.from;
    });
    if (!so || each.readings.front().at > move.from) continue;
    const auto apart = [&](const Reading& a, const Reading& b) {
      return b.at - a.at > max_lease_ / 3;
    };
    const bool often = std::ranges::adjacent_find(each.readings, apart) == each.readings.end();
    if (!often || strayed(each.readings) > allowed(max_lease_)) continue;
    ++together;
    itself = itself || &each == &moved;
    for (const Reading& reading : each.readings) {
      client_astray.emplace_back(reading.world, reading.astray - reading.ahead);
    }
  }
  if (!itself || together <= members_ / 2) return false;
  std::ranges::sort(client_astray);
  Duration turned_back{};
  for (std::size_t i = 1; i < client_astray.size(); ++i) {
    const Duration went = client_astray[i].second - client_astray[i - 1].second;
    if ((went < Duration::zero()) == (move.by < Duration::zero()))
      turned_back += std::chrono::abs(went);
  }
  return turned_back <= slight / 5;
}

void Invariants::told_clock(Instant now, ClientId id, const engine::NodeClockMoved& moved) {
  Client& client = clients_[id];
  Clock& clock = client.clocks[moved.node];
  const auto what = [&] { return fmt::format("client {}: {}", id, wire::in_words(now, moved)); };
  if (judged_.clocks) throw Violation{"clocks within the bound are not blamed", what()};

  const Reading& latest = clock.readings.back();
  const Reading& before = clock.readings.size() > 1 ? *(&latest - 1) : latest;
  clock.moves.push_back(
      {before.at, now, latest.ahead - before.ahead, std::exchange(clock.must_be_noticed, false)});
  const bool theirs = surely_theirs(client, moved.node, moved.by);
  const bool wrong = moved.ours ? theirs : surely_ours(client, clock);
  if (wrong) throw Violation{"it is found out which clock moved", what()};
  clock.blamed_until = theirs ? now + max_lease_ : Instant::min();
  clock.blamed_for = moved.by;

  // The client knows what it was told, which the round trips blur.
  const Duration unsure = latest.uncertainty * 4 + milliseconds(1);
  const Duration ahead = latest.ahead - before.ahead - unsure;
  if (ahead <= Duration::zero()) return;
  for (auto& entry : client.grants) entry.second.belief.ran_ahead(moved.node, ahead, clock.read);
}

}  // namespace redlock::simulation
