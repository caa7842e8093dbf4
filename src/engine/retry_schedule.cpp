// SPDX-License-Identifier: MIT
#include "engine/retry_schedule.hpp"

#include <algorithm>
#include <utility>

#include "engine/quorum.hpp"

namespace redlock::engine {
namespace {

/// Shorter pauses than this would only load the nodes.
constexpr Duration shortest_pause = std::chrono::milliseconds(1);

Instant end_of_waiting(Duration wait, Instant deadline, Instant now) {
  if (wait == Duration::zero() || wait > never - now) return deadline;
  return std::min(deadline, now + wait);
}

/// Waiting does not cure these causes.
bool is_configuration(Cause cause) {
  return cause == Cause::authentication || cause == Cause::permission ||
         cause == Cause::incompatible || cause == Cause::moved || cause == Cause::tls;
}

bool waiting_cannot_help(const Electorate& electorate, const std::vector<Ballot>& ballots) {
  NodeSet others = electorate.nodes();
  for (NodeIndex node = 0; node < ballots.size(); ++node) {
    const Ballot& ballot = ballots[node];
    if (ballot.vote == Vote::unavailable && is_configuration(ballot.cause)) others.erase(node);
  }
  return !electorate.is_quorum(others);
}

}  // namespace

RetrySchedule::RetrySchedule(const Electorate& electorate, Duration wait, Instant deadline,
                             Instant now)
    : electorate_(&electorate),
      one_attempt_(wait == Duration::zero()),
      waits_until_(end_of_waiting(wait, deadline, now)),
      pause_min_(electorate.config().retry_min),
      pause_max_(electorate.config().retry_max),
      pause_cap_(electorate.config().retry_cap),
      grows_(electorate.config().retry_cap > electorate.config().retry_max) {}

std::optional<Failed> RetrySchedule::on_failure(Instant now, Failed failure,
                                                std::optional<Duration> expires_in,
                                                RandomSource& random) {
  if (one_attempt_ || waiting_cannot_help(*electorate_, failure.ballots)) return failure;
  last_failure_ = std::move(failure);
  if (now >= waits_until_) return time_is_over({});
  // The last attempt of a waiting time should not be far from its end.
  const Duration left = waits_until_ == never ? Duration::max() : waits_until_ - now;
  Duration at_most = std::max(left / 2, shortest_pause);
  if (expires_in) at_most = std::min(at_most, *expires_in + shortest_pause);
  retry_at_ = now + std::min(pause(at_most, random), left);
  return std::nullopt;
}

void RetrySchedule::place_is_kept(Instant now, Failed failure) {
  last_failure_ = std::move(failure);
  retry_at_ = now;
}

Duration RetrySchedule::pause(Duration at_most, RandomSource& random) {
  const Duration pause = random_between(pause_min_, pause_max_, random);
  if (grows_) {
    pause_min_ = std::min(pause_min_ * 2, pause_cap_ / 2);
    pause_max_ = std::max(pause_min_, std::min(pause_max_ * 2, pause_cap_));
  }
  return std::max(std::min(pause, at_most), shortest_pause);
}

Failed RetrySchedule::time_is_over(std::vector<Ballot> under_way) const {
  if (!last_failure_) return {Errc::timed_out, {}, std::move(under_way)};
  // A call that waited because no quorum could vote must report that, not that another owner held
  // the lock.
  const bool no_quorum = last_failure_->code == Errc::no_quorum;
  return {no_quorum ? Errc::no_quorum : Errc::timed_out, {}, last_failure_->ballots};
}

}  // namespace redlock::engine
