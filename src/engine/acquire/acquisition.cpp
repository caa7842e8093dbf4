// SPDX-License-Identifier: MIT
#include "engine/acquire/acquisition.hpp"

#include <utility>
#include <vector>

namespace redlock::engine {

Acquisition::Acquisition(const Terms& terms, RequestId request, AcquireRequest what, Instant now)
    : request_(request),
      what_(std::move(what)),
      schedule_(terms.config(), what_.wait, what_.deadline, now) {}

std::optional<Failed> Acquisition::on_failure(Instant now, const Attempt& attempt,
                                              RandomSource& random) {
  attempt_ = 0;
  return schedule_.on_failure(now, {attempt.failure(), {}, attempt.ballots()}, attempt.expires_in(),
                              random);
}

Failed Acquisition::time_is_over(const Attempt* under_way) const {
  return schedule_.time_is_over(under_way != nullptr ? under_way->ballots()
                                                     : std::vector<Ballot>());
}

}  // namespace redlock::engine
