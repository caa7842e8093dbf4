// SPDX-License-Identifier: MIT
// What a caller's acquire is made of: attempts, each with an owner of its own, with random pauses
// between them, until one is granted or the waiting time, the deadline or the caller ends it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

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

  /// Whether it takes part in the nodes' queues, with attempts that wait.
  [[nodiscard]] bool patient() const { return what_.in_order && what_.wait > Duration::zero(); }
  /// As nodes know it; once patient.
  [[nodiscard]] Waiter waiter() const { return waiter_; }
  /// A new place: the call begins, or lost its place because it reached no quorum.
  void take_ticket(std::int64_t ticket) { waiter_ = {request_, ticket}; }
  [[nodiscard]] bool has_ticket() const { return waiter_.number != 0; }
  void lose_ticket() {
    waiter_ = {};
    entered_ = false;
  }
  /// Others of this client, which wait for the same name, take part before it.
  void wait_locally(bool waits) { waits_locally_ = waits; }
  [[nodiscard]] bool waits_locally() const { return waits_locally_; }
  /// Its first attempt begins by then.
  void enter_by(Instant when) { retry_at_ = when; }
  [[nodiscard]] bool is_to_enter() const {
    return patient() && !entered_ && pauses() && !schedule_.has_failed();
  }
  /// It asks nobody now, but will by itself.
  [[nodiscard]] bool pauses() const { return attempt_ == 0 && !waits_for_turn_ && !waits_locally_; }
  /// It is, or will soon be, in the nodes' queues.
  void enter() { entered_ = true; }
  [[nodiscard]] bool entered() const { return entered_; }

  /// The attempt under way; 0 while pausing or waiting for its turn.
  [[nodiscard]] GrantId attempt() const { return attempt_; }
  void attempt_began(GrantId grant) {
    attempt_ = grant;
    waits_for_turn_ = false;
  }
  [[nodiscard]] Instant began() const { return began_; }
  /// Whether that is another place in the queue than was told last.
  bool moved_to(std::uint32_t place) {
    return std::exchange(place_, std::optional(place)) != place;
  }
  /// Whether the attempt under way is still to go on when the waiting time is over.
  [[nodiscard]] bool still_waits() const { return patient() && !last_attempt_; }
  void stop_waiting() { last_attempt_ = true; }
  /// The next attempt begins when others have ended.
  void wait_for_turn() { waits_for_turn_ = true; }
  /// The attempt under way was left alone, to be cleaned up by others.
  void attempt_ended() { attempt_ = 0; }

  /// What follows from a failed attempt: the final result, or nothing and another attempt at
  /// deadline().
  std::optional<Failed> on_failure(Instant now, const Attempt& attempt, RandomSource& random);

  /// A node says that its turn has come. Whether its next attempt begins now: it pauses, and the
  /// node is none of those that say so because it has just given the lock back there.
  [[nodiscard]] bool on_wake(Instant now, NodeIndex node);

  [[nodiscard]] Instant deadline() const {
    return pauses() ? std::min(retry_at_, ends_at()) : ends_at();
  }
  /// The time given is over: that for waiting, or, with an attempt under way, the call's deadline.
  [[nodiscard]] bool over(Instant now) const { return now >= ends_at(); }
  /// The result of a call whose time is over; the attempt under way is null while pausing.
  [[nodiscard]] Failed time_is_over(const Attempt* under_way) const;

 private:
  /// The first attempt, which others may delay, is made whatever the waiting time.
  [[nodiscard]] Instant ends_at() const {
    if (waits_locally_ || (attempt_ != 0 && still_waits())) return schedule_.waits_until();
    const bool first_to_come = waits_for_turn_ && !schedule_.has_failed();
    return attempt_ != 0 || first_to_come ? what_.deadline : schedule_.waits_until();
  }

  RequestId request_;
  AcquireRequest what_;
  RetrySchedule schedule_;
  Instant began_;
  Instant retry_at_ = never;
  std::optional<std::uint32_t> place_;
  GrantId attempt_ = 0;
  Waiter waiter_;
  NodeSet gave_back_;  // nodes that granted the last attempt, which failed
  std::uint32_t rounds_in_vain_ = 0;
  bool waits_for_turn_ = false;
  bool waits_locally_ = false;
  bool entered_ = false;
  bool last_attempt_ = false;
};

}  // namespace redlock::engine
