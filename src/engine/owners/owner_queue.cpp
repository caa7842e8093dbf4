// SPDX-License-Identifier: MIT
#include "engine/owners/owner_queue.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>

#include "engine/rules.hpp"

namespace redlock::engine {
namespace {

Failed turn_did_not_come() {
  return {Errc::timed_out, "another call of the same owner is still taking it", {}};
}

Failed deadline_came(const RetrySchedule& schedule) {
  Failed failure = schedule.time_is_over({});
  if (failure.code == Errc::timed_out) {
    failure.detail = "the deadline came while the lease was being entered again";
  }
  return failure;
}

/// The rest of a waiting time.
Duration rest_of(Duration wait, Instant since, Instant now) {
  if (wait > never - since) return Duration::max();
  return std::max(since + wait - now, Duration::zero());
}

}  // namespace

void OwnerQueue::take(Instant now, const Electorate& electorate, RequestId request,
                      AcquireRequest what, Steps& steps) {
  if (!calls_.empty() && what.wait == Duration::zero()) {
    steps.push_back(Finish{request, turn_did_not_come()});
    return;
  }
  const RetrySchedule schedule(electorate, what.wait, what.deadline, now);
  calls_.push_back({request, std::move(what), now, schedule});
  if (calls_.size() == 1) begin(now, steps);
}

void OwnerQueue::begin(Instant now, Steps& steps) {
  const OwnerCall& call = calls_.front();
  if (grant_ != 0) {
    if (now >= call.what.deadline) return end(now, deadline_came(call.schedule), steps);
    stage_ = Stage::entering;
    steps.push_back(BeginEntry{{grant_, call.what.lease, call.what.renew}});
    return;
  }
  stage_ = Stage::acquiring;
  AcquireRequest what = call.what;
  what.wait = rest_of(what.wait, call.since, now);
  steps.push_back(BeginAcquire{std::move(what)});
}

void OwnerQueue::begin_next(Instant now, Steps& steps) {
  if (closed_) return;
  while (!calls_.empty() && now >= calls_.front().schedule.waits_until()) {
    steps.push_back(Finish{calls_.front().request, turn_did_not_come()});
    calls_.erase(calls_.begin());
  }
  if (!calls_.empty()) begin(now, steps);
}

void OwnerQueue::end(Instant now, decltype(Finish::result) result, Steps& steps) {
  const RequestId request = calls_.front().request;
  calls_.erase(calls_.begin());
  const bool ended_well = !std::holds_alternative<Failed>(result);
  if (request != 0) steps.push_back(Finish{request, std::move(result)});
  stage_ = Stage::none;
  if (rules::next_call_begins(ended_well)) begin_next(now, steps);
}

void OwnerQueue::give_up(Failed failure, Steps& steps) {
  const RequestId request = std::exchange(calls_.front().request, 0);
  steps.push_back(Finish{request, std::move(failure)});
}

GrantId OwnerQueue::leave(RequestId request, Steps& steps) {
  if (levels_ > 1) {
    --levels_;
    steps.push_back(LeaveLevel{grant_, request});
    return 0;
  }
  if (grant_ == 0) {
    if (request != 0) steps.push_back(Finish{request, ReleaseDone{Released::already_gone}});
    return 0;
  }
  levels_ = 0;
  const GrantId released = std::exchange(grant_, 0);
  steps.push_back(ReleaseLease{released, request});
  return released;
}

void OwnerQueue::cancel(Instant now, RequestId request, Errc why, Steps& steps) {
  closed_ = closed_ || why == Errc::closed;
  const auto call = std::ranges::find(calls_, request, &OwnerCall::request);
  if (call == calls_.end()) return;
  if (call != calls_.begin()) {
    calls_.erase(call);
    steps.push_back(Finish{request, Failed{why, {}, {}}});
  } else if (stage_ == Stage::acquiring) {
    steps.push_back(CancelAcquire{why});
  } else if (stage_ == Stage::entering) {
    give_up({why, {}, {}}, steps);
  } else {
    end(now, Failed{why, {}, {}}, steps);
  }
}

void OwnerQueue::on_acquired(Instant now, const AcquireSucceeded& granted, Steps& steps) {
  assert(stage_ == Stage::acquiring && grant_ == 0);
  grant_ = granted.grant;
  levels_ = 1;
  end(now, granted, steps);
}

void OwnerQueue::on_entered(Instant now, const EnterSucceeded& entered, Steps& steps) {
  assert(stage_ == Stage::entering && grant_ != 0);
  if (calls_.front().request == 0 && rules::answered_entry_is_left()) {
    steps.push_back(LeaveLevel{grant_, 0});
  } else {
    ++levels_;
  }
  end(now, EnterSucceeded{levels_, entered.valid_until, grant_}, steps);
}

void OwnerQueue::on_failed(Instant now, Failed failure, RandomSource& random, Steps& steps) {
  OwnerCall& call = calls_.front();
  const bool entered = stage_ == Stage::entering && call.request != 0;
  // The owner gave the lock back meanwhile while it was being entered: then it is acquired anew.
  if (entered && rules::is_acquired_anew(grant_ == 0) && !closed_) return begin(now, steps);
  if (!entered || failure.code != Errc::no_quorum) return end(now, std::move(failure), steps);
  if (auto final = call.schedule.on_failure(now, std::move(failure), std::nullopt, random)) {
    return end(now, std::move(*final), steps);
  }
  stage_ = Stage::pausing;
}

Instant OwnerQueue::deadline() const {
  Instant first = never;
  for (std::size_t i = 1; i < calls_.size(); ++i) {
    first = std::min(first, calls_[i].schedule.waits_until());
  }
  if (stage_ == Stage::pausing) return std::min(first, calls_.front().schedule.retry_at());
  const bool may_give_up = stage_ == Stage::entering && calls_.front().request != 0;
  return may_give_up ? std::min(first, calls_.front().what.deadline) : first;
}

void OwnerQueue::on_deadline(Instant now, Steps& steps) {
  std::erase_if(calls_, [&](const OwnerCall& call) {
    const bool over = &call != &calls_.front() && now >= call.schedule.waits_until();
    if (over) steps.push_back(Finish{call.request, turn_did_not_come()});
    return over;
  });
  if (calls_.empty()) return;
  const OwnerCall& call = calls_.front();
  if (stage_ == Stage::entering && call.request != 0 && now >= call.what.deadline) {
    give_up(deadline_came(call.schedule), steps);
  } else if (stage_ == Stage::pausing && now >= call.schedule.waits_until()) {
    end(now, call.schedule.time_is_over({}), steps);
  } else if (stage_ == Stage::pausing && now >= call.schedule.retry_at()) {
    begin(now, steps);
  }
}

}  // namespace redlock::engine
