// SPDX-License-Identifier: MIT
// When a call that failed tries again, and its result when its time is over. The same for a call
// that acquires and for one that re-enters what its owner holds.
#pragma once

#include <optional>
#include <vector>

#include "engine/electorate.hpp"
#include "engine/outputs.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

class RetrySchedule {
 public:
  /// `wait` ends the retries: zero allows one attempt, Duration::max() has no end. `deadline` ends
  /// the call.
  /// The electorate must outlive it.
  RetrySchedule(const Electorate& electorate, Duration wait, Instant deadline, Instant now);

  /// The consequence of a failed attempt: the final result, or nothing and another attempt at
  /// retry_at(). `expires_in`: Attempt::expires_in().
  std::optional<Failed> on_failure(Instant now, Failed failure, std::optional<Duration> expires_in,
                                   RandomSource& random);

  /// The attempt failed, and another one is made soon in the same place.
  void place_is_kept(Instant now, Failed failure);

  /// The end of waiting, at the deadline of the call at the latest.
  [[nodiscard]] Instant waits_until() const { return waits_until_; }
  [[nodiscard]] Instant retry_at() const { return retry_at_; }
  [[nodiscard]] bool has_failed() const { return last_failure_.has_value(); }
  [[nodiscard]] bool was_too_late() const {
    return last_failure_ && last_failure_->code == Errc::too_late;
  }
  /// The result of a call whose time is over; `under_way`: the ballots of its attempt, if any.
  [[nodiscard]] Failed time_is_over(std::vector<Ballot> under_way) const;

 private:
  [[nodiscard]] Duration pause(Duration at_most, RandomSource& random);

  const Electorate* electorate_;
  bool one_attempt_;
  Instant waits_until_;
  Instant retry_at_ = never;
  Duration pause_min_;
  Duration pause_max_;
  Duration pause_cap_;
  bool grows_;
  std::optional<Failed> last_failure_;
};

}  // namespace redlock::engine
