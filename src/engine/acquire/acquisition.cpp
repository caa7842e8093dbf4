// SPDX-License-Identifier: MIT
#include "engine/acquire/acquisition.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace redlock::engine {
namespace {

/// Before votes are gathered anew: what was given back is on its way to the nodes, and another
/// waiter may need it.
constexpr Duration shortest_round = std::chrono::microseconds(500);
constexpr Duration longest_round = std::chrono::milliseconds(2);

}  // namespace

Acquisition::Acquisition(const Terms& terms, RequestId request, AcquireRequest what, Instant now)
    : request_(request),
      what_(std::move(what)),
      schedule_(terms.config(), what_.wait, what_.deadline, now),
      began_(now) {}

std::optional<Failed> Acquisition::on_failure(Instant now, const Attempt& attempt,
                                              RandomSource& random) {
  attempt_ = 0;
  // What it was granted could not become a quorum: it was given back, and the place is kept.
  if (attempt.failure() == Errc::contended && still_waits() && now < schedule_.waits_until()) {
    // Without a vote for it there is nothing that another round soon could complete.
    const Duration pause = attempt.tally().yes > 0
                               ? random_between(shortest_round, longest_round, random)
                               : AskSchedule::between_polls(random);
    retry_at_ = std::min(now + pause, schedule_.waits_until());
    return std::nullopt;
  }
  auto final = schedule_.on_failure(now, {attempt.failure(), {}, attempt.ballots()},
                                    attempt.expires_in(), random);
  retry_at_ = schedule_.retry_at();
  return final;
}

Failed Acquisition::time_is_over(const Attempt* under_way) const {
  return schedule_.time_is_over(under_way != nullptr ? under_way->ballots()
                                                     : std::vector<Ballot>());
}

}  // namespace redlock::engine
