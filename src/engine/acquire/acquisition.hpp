// SPDX-License-Identifier: MIT
// What a caller's acquire is made of: attempts, each with an owner of its own, with random pauses
// between them, until one is granted or the waiting time, the deadline or the caller ends it.
#pragma once

#include <optional>

#include "engine/acquire/attempt.hpp"
#include "engine/outputs.hpp"
#include "engine/requests.hpp"
#include "engine/retry_schedule.hpp"
#include "engine/terms.hpp"

namespace redlock::engine {

class Acquisition {
 public:
  Acquisition(const Terms& terms, RequestId request, AcquireRequest what, Instant now);

  [[nodiscard]] RequestId request() const { return request_; }
  [[nodiscard]] const AcquireRequest& what() const { return what_; }

  /// The attempt under way; 0 while pausing or waiting for its turn.
  [[nodiscard]] GrantId attempt() const { return attempt_; }
  void attempt_began(GrantId grant) {
    attempt_ = grant;
    waits_for_turn_ = false;
  }
  /// The next attempt begins when others have ended.
  void wait_for_turn() { waits_for_turn_ = true; }
  /// The attempt under way was left alone, to be cleaned up by others.
  void attempt_ended() { attempt_ = 0; }

  /// What follows from a failed attempt: the final result, or nothing and another attempt at
  /// deadline().
  std::optional<Failed> on_failure(Instant now, const Attempt& attempt, RandomSource& random);

  [[nodiscard]] Instant deadline() const {
    return attempt_ != 0 || waits_for_turn_ ? ends_at() : schedule_.retry_at();
  }
  /// The time given is over: that for waiting, or, with an attempt under way, the call's deadline.
  [[nodiscard]] bool over(Instant now) const { return now >= ends_at(); }
  /// The result of a call whose time is over; the attempt under way is null while pausing.
  [[nodiscard]] Failed time_is_over(const Attempt* under_way) const;

 private:
  /// The first attempt, which others may delay, is made whatever the waiting time.
  [[nodiscard]] Instant ends_at() const {
    const bool first_to_come = waits_for_turn_ && !schedule_.has_failed();
    return attempt_ != 0 || first_to_come ? what_.deadline : schedule_.waits_until();
  }

  RequestId request_;
  AcquireRequest what_;
  RetrySchedule schedule_;
  GrantId attempt_ = 0;
  bool waits_for_turn_ = false;
};

}  // namespace redlock::engine
