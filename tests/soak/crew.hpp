// SPDX-License-Identifier: MIT
// Processes that take the same locks, and what they write into memory that they share: who held
// which lock, and when, as they see it. That is judged afterwards, without asking the library.
#pragma once

#include <array>
#include <sys/types.h>

#include "soak/soak.hpp"

namespace redlock::soak {

inline constexpr std::size_t most_workers = 16;
inline constexpr std::size_t most_holds = 1'000'000;

/// A lease was valid at both moments, and so between them.
struct Hold {
  std::size_t name = 0;
  BootClock::time_point from;
  BootClock::time_point to;
  std::uint64_t token = 0;
};

struct Judgement {
  std::size_t overlaps = 0;        // of two holds of one name
  std::size_t falling_tokens = 0;  // a later hold with a token that is not larger
  std::size_t longer_than_a_second = 0;

  [[nodiscard]] bool is_sound() const { return overlaps == 0 && falling_tokens == 0; }
  [[nodiscard]] std::string in_words() const {
    return fmt::format("two holders at once: {}; tokens that do not rise: {}", overlaps,
                       falling_tokens);
  }
};

/// How long calls took that were granted, in microseconds; those behind the last place are left
/// out.
struct Times {
  std::atomic<std::size_t> count;
  std::array<std::atomic<std::int32_t>, 1'000'000> all;

  void note(BootClock::duration time);
  [[nodiscard]] std::size_t noted() const { return std::min<std::size_t>(count, all.size()); }
  /// In milliseconds; 0 if there is none.
  [[nodiscard]] double percentile(double percent) const;
};

struct Board {
  std::atomic<bool> ended;
  std::atomic<std::size_t> ready;    // processes
  std::atomic<std::uint64_t> lives;  // clients that began
  std::atomic<std::uint64_t> grants;
  std::atomic<std::uint64_t> given_up;  // calls that waited in vain
  std::atomic<std::uint64_t> failed;    // calls that failed for another reason
  std::atomic<std::uint64_t> late;      // calls that ended later than the bound
  std::atomic<std::uint64_t> stuck;     // calls that had not ended long after their client had
  std::atomic<std::uint64_t> leaks;     // processes with more in the end than in the beginning
  std::atomic<std::uint64_t> renewals;
  std::atomic<std::uint64_t> failed_renewals;
  std::atomic<std::uint64_t> lost;
  std::atomic<std::uint64_t> most_before;     // others that were served while one waited
  std::atomic<std::int64_t> longest_wait_ms;  // of a call that was granted
  std::atomic<std::int64_t> latest_ms;        // after a deadline
  std::atomic<std::int64_t> stalled_ms;       // for which the machine did not let a process run
  std::array<std::atomic<std::uint64_t>, most_workers> grants_of;  // by name
  std::array<std::atomic<int>, most_workers> holding;
  std::array<std::atomic<BootClock::rep>, most_workers> resumed;  // when it went on after a stop
  /// When the last attempt began in which this worker counted the vote of this node.
  std::array<std::array<std::atomic<BootClock::rep>, nodes>, most_workers> voted;
  std::atomic<bool> changing;  // a member is being replaced
  Times usual;                 // of locks that nobody else wants
  Times in_changes;
  std::atomic<std::size_t> hold_count;
  std::array<Hold, most_holds> holds;

  /// One of this process and all that it forks. Zero in every byte.
  static Board& make_shared();

  /// For as long as the lease is valid: `to` may be put off, until the lease is given back or its
  /// process is killed. Null if there is no room.
  Hold* open(const Hold& hold);

  /// A call that was not granted.
  void count(const Error& error);

  /// Whether each of the first workers has counted this node's vote in an attempt that began since.
  [[nodiscard]] bool is_counted(std::size_t node, std::size_t workers,
                                BootClock::time_point since) const;

  /// Throws if there were more holds than could be written.
  [[nodiscard]] Judgement judge() const;
};

/// A call that is to end by a moment.
class Call {
 public:
  Call(Board& board, const Stalls& stalls, BootClock::time_point deadline, milliseconds bound)
      : board_(board), stalls_(stalls), deadline_(deadline), bound_(bound) {}

  /// Now that it has ended. What the machine took from this process does not count.
  void judge() const {
    const auto late = BootClock::now() - deadline_ - (stalls_.sum() - stalled_);
    raise(board_.latest_ms, std::int64_t{std::chrono::ceil<milliseconds>(late).count()});
    if (late > bound_) ++board_.late;
  }

 private:
  Board& board_;
  const Stalls& stalls_;
  BootClock::time_point deadline_;
  milliseconds bound_;
  milliseconds stalled_ = stalls_.sum();
};

/// A process that is forked from this one, and does not outlive it.
pid_t start_process(const std::function<void()>& work);

/// Whether all ended, and well. The board tells them to.
bool end_processes(const std::vector<pid_t>& processes, Board& board, milliseconds patience);

/// What a process has of the machine.
struct Footprint {
  double descriptors = 0;
  double threads = 0;
  double memory = 0;  // MiB that are its own
};

Footprint footprint_of(pid_t process);

/// Whether that grows, second by second: the first minute of a run against the last one.
class Footprints {
 public:
  /// The mean of these processes. To be called once a second.
  void note(const std::vector<pid_t>& processes);

  [[nodiscard]] const Footprint& latest() const { return all_.back(); }

  /// Says both, and whether they are alike. Of a run of less than four minutes nothing can be said:
  /// it is still warming up. Descriptors and threads may be so many more; memory by a tenth, and
  /// `slack` MiB.
  [[nodiscard]] bool are_flat(double more, double slack) const;

 private:
  [[nodiscard]] Footprint mean_from(std::size_t index) const;

  std::vector<Footprint> all_;
};

}  // namespace redlock::soak
