// SPDX-License-Identifier: MIT
#include "engine/acquire/acquisition.hpp"

#include <algorithm>
#include <utility>

namespace redlock::engine {
namespace {

/// Shorter pauses than this would only load the nodes.
constexpr Duration shortest_pause = std::chrono::milliseconds(1);

Instant end_of_waiting(const AcquireRequest& what, Instant now) {
  if (what.wait == Duration::zero() || what.wait > never - now) return what.deadline;
  return std::min(what.deadline, now + what.wait);
}

/// Waiting cannot mend these.
bool is_configuration(Cause cause) {
  return cause == Cause::authentication || cause == Cause::permission ||
         cause == Cause::incompatible || cause == Cause::moved;
}

bool waiting_cannot_help(const std::vector<Ballot>& ballots) {
  Tally tally{.nodes = static_cast<std::uint32_t>(ballots.size())};
  for (const Ballot& ballot : ballots) {
    if (ballot.vote == Vote::unavailable && is_configuration(ballot.cause)) ++tally.unavailable;
  }
  return tally.quorum_unavailable();
}

}  // namespace

Acquisition::Acquisition(const Terms& terms, RequestId request, AcquireRequest what, Instant now)
    : terms_(terms),
      request_(request),
      what_(std::move(what)),
      waits_until_(end_of_waiting(what_, now)),
      pause_min_(terms.config().retry_min),
      pause_max_(terms.config().retry_max) {}

std::optional<Failed> Acquisition::on_failure(Instant now, const Attempt& attempt,
                                              RandomSource& random) {
  attempt_ = 0;
  Failed failure{attempt.failure(), {}, attempt.ballots()};
  const bool one_attempt = what_.wait == Duration::zero();
  if (one_attempt || waiting_cannot_help(failure.ballots)) return failure;
  last_failure_ = std::move(failure);
  if (now >= waits_until_) return time_is_over(nullptr);
  // The last attempt of a waiting time should not be far from its end.
  const Duration left = waits_until_ == never ? Duration::max() : waits_until_ - now;
  Duration at_most = std::max(left / 2, shortest_pause);
  if (attempt.expires_in())
    at_most = std::min<Duration>(at_most, *attempt.expires_in() + shortest_pause);
  retry_at_ = now + std::min(pause(at_most, random), left);
  return std::nullopt;
}

Duration Acquisition::pause(Duration at_most, RandomSource& random) {
  const auto span = static_cast<std::uint64_t>((pause_max_ - pause_min_).count()) + 1;
  const auto offset = static_cast<Duration::rep>(random.next() % span);
  const Duration pause = pause_min_ + Duration(offset);
  const Duration cap = terms_.config().retry_cap;
  pause_min_ = std::min(pause_min_ * 2, cap / 2);
  pause_max_ = std::max(pause_min_, std::min(pause_max_ * 2, cap));
  return std::max(std::min(pause, at_most), shortest_pause);
}

Failed Acquisition::time_is_over(const Attempt* under_way) const {
  if (last_failure_) {
    // Who waited because no quorum could vote must be told that, not that somebody held the lock.
    const bool no_quorum = last_failure_->code == Errc::no_quorum;
    return {no_quorum ? Errc::no_quorum : Errc::timed_out, {}, last_failure_->ballots};
  }
  Failed failure{Errc::timed_out, {}, {}};
  if (under_way != nullptr) failure.ballots = under_way->ballots();
  return failure;
}

}  // namespace redlock::engine
