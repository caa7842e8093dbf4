// SPDX-License-Identifier: MIT
// Re-entry: a lease that is held more than once. Each node is told an absolute count, so that one
// that missed a message is put right by the next; the count of this lease rises only when a quorum
// has confirmed it, and falls at once.
#include <algorithm>
#include <cassert>

#include "engine/holding.hpp"
#include "engine/planted_bug.hpp"

namespace redlock::engine {

using Purpose = HoldRound::Purpose;

std::uint32_t Holding::asked_count() const {
  return count_ + static_cast<std::uint32_t>(std::ranges::count_if(rounds_, &HoldRound::entering));
}

void Holding::enter(Instant now, RequestId request, const EnterRequest& what, Outbox& out) {
  assert(attaching_ == 0);
  lose_if_over(now, out);
  if (lost_) {
    out.put(Finish{request, Failed{Errc::lost, "the lease was lost before", {}}});
    return;
  }
  begin_round(now, what.renew ? Purpose::enter_and_renew : Purpose::enter, request, what.lease,
              out);
}

void Holding::entered(Instant now, const HoldRound& round, Outbox& out) {
  ++count_;
  const bool renewed = plan_.renew_until != Instant::min();
  if (round.purpose() == Purpose::enter_and_renew && !renewed) {
    plan_.renew_until = never;
    plan_.lease = std::max(plan_.lease, round.lease());
    next_renewal_ = in_step(now + renewal_interval(now));
  }
  out.put(Finish{round.request(), EnterSucceeded{count_, valid_until_}});
}

void Holding::leave(Instant now, Outbox& out) {
  lose_if_over(now, out);
  if (lost_ || count_ == 1) return;
  --count_;
  if (!planted(Bug::leave_not_told)) tell_count(now, out);
}

/// Asks for no more than there is: an explicit lease is not lengthened by the way.
void Holding::tell_count(Instant now, Outbox& out) {
  const auto left = std::chrono::floor<std::chrono::milliseconds>(valid_until_ - now);
  begin_round(now, Purpose::tell_count, 0, std::max(left, std::chrono::milliseconds(1)), out);
}

}  // namespace redlock::engine
