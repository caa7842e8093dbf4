// SPDX-License-Identifier: MIT
#include "cli/bench/measurements.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace redlock::cli {

const char* to_string(Timed what) {
  switch (what) {
    case Timed::acquire:
      return "acquire";
    case Timed::hold:
      return "hold";
    case Timed::release:
      return "release";
    case Timed::hand_off:
      return "hand-off";
    case Timed::late:
      return "late";
    case Timed::quorum:
      break;
  }
  return "quorum";
}

std::uint64_t Measurements::failed() const {
  return std::accumulate(failures.begin(), failures.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& entry) { return sum + entry.second; });
}

double Measurements::throughput() const {
  const double seconds = std::chrono::duration<double>(elapsed).count();
  return seconds > 0 ? static_cast<double>(cycles) / seconds : 0;
}

double Measurements::failed_part() const {
  const auto calls = cycles + of(Timed::hold).count() + of(Timed::release).count() + failed();
  return calls == 0 ? 0 : static_cast<double>(failed()) / static_cast<double>(calls);
}

double Measurements::settled_at_once() const {
  if (grants == 0) return 0;
  return static_cast<double>(grants - std::min(grants, settled_again)) /
         static_cast<double>(grants);
}

void Recorder::begin(BootClock::time_point now, std::chrono::nanoseconds duration,
                     std::size_t slots) {
  const std::scoped_lock lock(mutex_);
  all_ = {};
  all_.node_round_trips.resize(nodes_);
  all_.votes.resize(nodes_);
  all_.slots.resize(slots);
  all_.slot_length =
      std::max(duration / static_cast<std::int64_t>(slots), std::chrono::nanoseconds(1));
  began_ = now;
  on_ = true;
}

Measurements Recorder::end(BootClock::time_point now) {
  const std::scoped_lock lock(mutex_);
  on_ = false;
  all_.elapsed = now - began_;
  return std::exchange(all_, {});
}

template <typename Change>
void Recorder::change(Change&& change) {
  const std::scoped_lock lock(mutex_);
  if (on_) change();
}

TimeSlot* Recorder::slot_of(BootClock::time_point intended) {
  const auto at = (intended - began_) / all_.slot_length;
  const bool inside = at >= 0 && at < static_cast<std::int64_t>(all_.slots.size());
  return inside ? &all_.slots[static_cast<std::size_t>(at)] : nullptr;
}

void Recorder::fault_began(BootClock::time_point now) {
  change([&] { all_.fault_at = now - began_; });
}

void Recorder::time(Timed what, std::chrono::nanoseconds time) {
  change([&] { all_.times[static_cast<std::size_t>(what)].record(time); });
}

void Recorder::acquired(BootClock::time_point intended, std::chrono::nanoseconds time) {
  change([&] {
    ++all_.cycles;
    all_.times[static_cast<std::size_t>(Timed::acquire)].record(time);
    if (auto* slot = slot_of(intended)) slot->acquire.record(time);
  });
}

void Recorder::failed(BootClock::time_point intended, Errc code) {
  change([&] {
    ++all_.failures[code];
    if (auto* slot = slot_of(intended)) ++slot->failed;
  });
}

void Recorder::unstarted(BootClock::time_point intended, std::chrono::nanoseconds time) {
  change([&] {
    ++all_.unstarted;
    all_.times[static_cast<std::size_t>(Timed::acquire)].record(time);
    if (auto* slot = slot_of(intended)) slot->acquire.record(time);
  });
}

void Recorder::node_answered(std::size_t node, std::chrono::nanoseconds round_trip) {
  change([&] { all_.node_round_trips[node].record(round_trip); });
}

void Recorder::settled_again() {
  change([&] { ++all_.settled_again; });
}

void Recorder::voted(const std::vector<NodeVote>& votes, bool granted) {
  change([&] {
    if (granted) ++all_.grants;
    for (std::size_t node = 0; node < std::min(votes.size(), nodes_); ++node) {
      NodeTally& tally = all_.votes[node];
      switch (votes[node].vote) {
        case Vote::granted:
          ++tally.granted;
          break;
        case Vote::refused:
          ++tally.refused;
          break;
        case Vote::pending:
          ++tally.not_awaited;
          break;
        case Vote::unavailable:
          ++tally.unavailable[votes[node].cause];
      }
    }
  });
}

Recorder::Glance Recorder::glance() const {
  const std::scoped_lock lock(mutex_);
  const auto& acquire = all_.of(Timed::acquire);
  return {all_.cycles, all_.failed(), acquire.quantile(0.5), acquire.quantile(0.99)};
}

}  // namespace redlock::cli
