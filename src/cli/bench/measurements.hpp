// SPDX-License-Identifier: MIT
// The measurements of a run of `redlock bench`, and the recorder that many threads add to.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <redlock/clock.hpp>
#include <redlock/error.hpp>

#include "cli/bench/histogram.hpp"

namespace redlock::cli {

/// The measured times. `late`: how long after its moment a cycle began, which is part of its
/// acquire. `quorum`: the round trip of the node whose answer makes a quorum of answers.
enum class Timed { acquire, hold, release, hand_off, late, quorum };
inline constexpr std::array all_timed{Timed::acquire,  Timed::hold, Timed::release,
                                      Timed::hand_off, Timed::late, Timed::quorum};
[[nodiscard]] const char* to_string(Timed what);

/// How one node voted in all attempts.
struct NodeTally {
  std::uint64_t granted = 0;
  std::uint64_t refused = 0;
  std::uint64_t not_awaited = 0;  ///< the attempt was decided without it
  std::map<Cause, std::uint64_t> unavailable{};
};

/// The cycles that were to begin in one part of the time.
struct TimeSlot {
  Histogram acquire;
  std::uint64_t failed = 0;
};

struct Measurements {
  std::array<Histogram, all_timed.size()> times;
  std::vector<Histogram> node_round_trips;  ///< of acquires, by node
  std::vector<NodeTally> votes;             ///< by node
  std::map<Errc, std::uint64_t> failures;   ///< calls of acquire, hold and release
  std::uint64_t cycles = 0;                 ///< that were granted the lock
  std::uint64_t unstarted = 0;              ///< cycles that were due, and all callers were busy
  std::uint64_t settled_again = 0;          ///< attempts that took a second round trip to settle
  std::uint64_t grants = 0;                 ///< attempts that were granted the lock
  std::vector<TimeSlot> slots;
  std::chrono::nanoseconds slot_length{1};
  std::chrono::nanoseconds elapsed{0};
  std::optional<std::chrono::nanoseconds> fault_at;

  [[nodiscard]] const Histogram& of(Timed what) const {
    return times[static_cast<std::size_t>(what)];
  }
  [[nodiscard]] std::uint64_t failed() const;
  /// Cycles a second.
  [[nodiscard]] double throughput() const;
  /// Of the calls, between 0 and 1.
  [[nodiscard]] double failed_part() const;
  /// Of the grants, between 0 and 1.
  [[nodiscard]] double settled_at_once() const;
};

/// Thread-safe. Between begin() and end() it adds up; otherwise it ignores all calls.
class Recorder {
 public:
  explicit Recorder(std::size_t nodes) : nodes_(nodes) {}

  void begin(BootClock::time_point now, std::chrono::nanoseconds duration, std::size_t slots);
  [[nodiscard]] Measurements end(BootClock::time_point now);
  void fault_began(BootClock::time_point now);

  void time(Timed what, std::chrono::nanoseconds time);
  /// A cycle was granted the lock, `time` after its moment.
  void acquired(BootClock::time_point intended, std::chrono::nanoseconds time);
  /// A call failed, of a cycle that was to begin then.
  void failed(BootClock::time_point intended, Errc code);
  /// No caller was free to begin the cycle, `time` after its moment.
  void unstarted(BootClock::time_point intended, std::chrono::nanoseconds time);
  void node_answered(std::size_t node, std::chrono::nanoseconds round_trip);
  void settled_again();
  void voted(const std::vector<NodeVote>& votes, bool granted);

  /// The progress to show during the run.
  struct Glance {
    std::uint64_t cycles = 0;
    std::uint64_t failed = 0;
    std::chrono::nanoseconds p50{};
    std::chrono::nanoseconds p99{};
  };
  [[nodiscard]] Glance glance() const;

 private:
  template <typename Change>
  void change(Change&& change);
  [[nodiscard]] TimeSlot* slot_of(BootClock::time_point intended);

  const std::size_t nodes_;
  mutable std::mutex mutex_;
  bool on_ = false;
  BootClock::time_point began_;
  Measurements all_;
};

}  // namespace redlock::cli
