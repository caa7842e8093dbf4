// SPDX-License-Identifier: MIT
#include "engine/owners/owners.hpp"

#include <type_traits>
#include <utility>

namespace redlock::engine {

Owners::QueueId Owners::queue_of(const OwnerKey& key) {
  const auto [place, is_new] = by_key_.try_emplace(key, last_queue_ + 1);
  if (is_new) queues_.add(++last_queue_, OwnerQueue(key));
  return place->second;
}

void Owners::take(Instant now, RequestId request, TakeRequest what) {
  const QueueId id = queue_of({what.acquire.name, what.owner});
  calls_.emplace(request, id);
  queues_.find(id)->take(now, electorate_, request, std::move(what.acquire), steps_);
  perform(now, id);
}

GrantId Owners::leave(Instant now, RequestId request, const OwnerKey& key) {
  const QueueId id = queue_of(key);
  const GrantId released = queues_.find(id)->leave(request, steps_);
  perform(now, id);
  return released;
}

bool Owners::cancel(Instant now, RequestId request, Errc why) {
  const auto call = calls_.find(request);
  if (call == calls_.end()) return false;
  const QueueId id = call->second;
  queues_.find(id)->cancel(now, request, why, steps_);
  perform(now, id);
  return true;
}

bool Owners::advance(Instant now) {
  const auto finished = out_.take_inner();
  for (const Finish& finish : finished) {
    const auto inner = inner_.find(finish.request);
    const QueueId id = inner->second;
    inner_.erase(inner);
    OwnerQueue& queue = *queues_.find(id);
    if (const auto* acquired = std::get_if<AcquireSucceeded>(&finish.result)) {
      queue.on_acquired(now, *acquired, steps_);
    } else if (const auto* entered = std::get_if<EnterSucceeded>(&finish.result)) {
      queue.on_entered(now, *entered, steps_);
    } else {
      queue.on_failed(now, std::get<Failed>(finish.result), random_, steps_);
    }
    perform(now, id);
  }
  return !finished.empty();
}

void Owners::on_deadline(Instant now) {
  while (const auto id = queues_.due(now)) {
    queues_.find(*id)->on_deadline(now, steps_);
    perform(now, *id);
  }
}

RequestId Owners::begin_inner(QueueId id) {
  inner_.emplace(++last_inner_, id);
  queues_.find(id)->began(last_inner_);
  return last_inner_;
}

void Owners::perform(Instant now, QueueId id) {
  for (auto& step : steps_) {
    std::visit(
        [&]<typename Step>(Step& what) {
          if constexpr (std::is_same_v<Step, OwnerQueue::BeginAcquire>) {
            acquirer_.acquire(now, begin_inner(id), std::move(what.what));
          } else if constexpr (std::is_same_v<Step, OwnerQueue::CancelAcquire>) {
            acquirer_.cancel(now, queues_.find(id)->inner(), what.why);
          } else if constexpr (std::is_same_v<Step, OwnerQueue::BeginEntry>) {
            leases_.enter(now, begin_inner(id), what.what);
          } else if constexpr (std::is_same_v<Step, OwnerQueue::LeaveLevel>) {
            leases_.leave(now, what.grant);
            const bool held = now < leases_.valid_until(what.grant);
            const auto found = held ? Released::still_held : Released::already_gone;
            if (what.request != 0) out_.put(Finish{what.request, ReleaseDone{found}});
          } else if constexpr (std::is_same_v<Step, OwnerQueue::ReleaseLease>) {
            acquirer_.release(now, what.request, what.grant);
          } else {
            calls_.erase(what.request);
            out_.put(std::move(what));
          }
        },
        step);
  }
  steps_.clear();
  const OwnerQueue& queue = *queues_.find(id);
  if (!queue.empty()) return queues_.touched(id);
  by_key_.erase(queue.key());
  queues_.erase(id);
}

}  // namespace redlock::engine
