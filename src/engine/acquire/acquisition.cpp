// SPDX-License-Identifier: MIT
#include "engine/acquire/acquisition.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace redlock::engine {
namespace {

/// Before votes are gathered anew: what was given back is on its way to the nodes, and another
/// waiter may need it. Waiters between whom the votes are split agree within a few rounds; where a
/// holder has a quorum and not all nodes, the others give theirs in vain for as long as its lease.
Duration between_rounds(std::uint32_t in_vain, RandomSource& random) {
  constexpr Duration longest = std::chrono::milliseconds(2);
  constexpr std::uint32_t quick_rounds = 3;
  constexpr std::uint32_t most_doublings = 5;
  const std::uint32_t doublings =
      std::min(in_vain - std::min(in_vain, quick_rounds), most_doublings);
  return random_between(longest / 4, longest, random) * (1 << doublings);
}

}  // namespace

Acquisition::Acquisition(const Terms& terms, RequestId request, AcquireRequest what, Instant now)
    : request_(request),
      what_(std::move(what)),
      schedule_(terms.config(), what_.wait, what_.deadline, now),
      began_(now) {}

std::optional<Failed> Acquisition::on_failure(Instant now, const Attempt& attempt,
                                              RandomSource& random) {
  attempt_ = 0;
  gave_back_ = attempt.granted();
  // What it was granted could not become a quorum: it was given back, and the place is kept.
  if (attempt.failure() == Errc::contended && still_waits() && now < schedule_.waits_until()) {
    // Without a vote for it there is nothing that another round soon could complete.
    const Duration pause = attempt.tally().yes > 0 ? between_rounds(rounds_in_vain_++, random)
                                                   : AskSchedule::between_polls(random);
    retry_at_ = std::min(now + pause, schedule_.waits_until());
    return std::nullopt;
  }
  auto final = schedule_.on_failure(now, {attempt.failure(), {}, attempt.ballots()},
                                    attempt.expires_in(), random);
  retry_at_ = schedule_.retry_at();
  return final;
}

bool Acquisition::on_wake(Instant now, NodeIndex node) {
  if (!entered_ || !pauses() || gave_back_.contains(node) || over(now)) return false;
  rounds_in_vain_ = 0;
  retry_at_ = now;
  return true;
}

Failed Acquisition::time_is_over(const Attempt* under_way) const {
  return schedule_.time_is_over(under_way != nullptr ? under_way->ballots()
                                                     : std::vector<Ballot>());
}

}  // namespace redlock::engine
