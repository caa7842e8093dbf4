// SPDX-License-Identifier: MIT
#include "simulation/node_queues.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>

#include "engine/planted_bug.hpp"

namespace redlock::simulation {

using engine::Bug;
using engine::planted;

namespace {

constexpr std::int64_t kept_ms = 3'000;
constexpr std::int64_t alive_subscribed_ms = 2'500;
constexpr std::int64_t alive_polling_ms = 250;
constexpr std::int64_t turn_subscribed_ms = 20;
constexpr std::int64_t turn_polling_ms = 60;

}  // namespace

const NodeQueues::Queue* NodeQueues::find(const std::string& name, std::int64_t now_ms) const {
  const auto found = queues_.find(name);
  return found == queues_.end() || now_ms > found->second.ends_ms ? nullptr : &found->second;
}

void NodeQueues::expire(const std::string& name, std::int64_t now_ms) {
  if (find(name, now_ms) == nullptr) queues_.erase(name);
}

void NodeQueues::forget_if_empty(const std::string& name) {
  const auto found = queues_.find(name);
  if (found != queues_.end() && found->second.entries.empty()) queues_.erase(found);
}

void NodeQueues::remove(Queue& queue, const std::string& waiter) {
  std::erase_if(queue.entries, [&](const Entry& entry) { return entry.waiter == waiter; });
  if (waiter == queue.turn) queue.turn.clear();
}

std::uint32_t NodeQueues::place(const Queue& queue, const std::string& waiter) {
  const auto at = std::ranges::find(queue.entries, waiter, &Entry::waiter);
  return static_cast<std::uint32_t>(at - queue.entries.begin());
}

std::optional<std::uint32_t> NodeQueues::enter(const Call& call) {
  if (call.writes != Writes::all) return std::nullopt;
  Queue& queue = queues_[call.name];
  const Order& who = call.order;
  std::erase_if(queue.entries, [&](const Entry& entry) { return entry.waiter == who.waiter; });
  const Entry entry{
      .waiter = who.waiter,
      .ticket = who.ticket,
      .alive_until_ms = call.now_ms + (who.manner == 'w' ? alive_subscribed_ms : alive_polling_ms),
      .manner = who.manner};
  const auto before = [](const Entry& left, const Entry& right) {
    return std::tie(left.ticket, left.waiter) < std::tie(right.ticket, right.waiter);
  };
  queue.entries.insert(std::ranges::upper_bound(queue.entries, entry, before), entry);
  queue.ends_ms = call.now_ms + kept_ms;
  return place(queue, who.waiter);
}

std::optional<bool> NodeQueues::tell(const Call& call, Queue& queue, std::size_t at,
                                     std::int64_t after) {
  const Entry entry = queue.entries[at];
  bool there = entry.alive_until_ms > call.now_ms &&
               (entry.waiter != queue.turn || queue.turn_ends_ms > call.now_ms);
  if (there && entry.manner == 'w' && !planted(Bug::turn_given_silently)) {
    const std::size_t colon = entry.waiter.find(':');
    const std::string text = entry.waiter.substr(colon + 1) + ' ' + std::to_string(after);
    const auto reached = call.publisher == nullptr
                             ? std::optional<std::size_t>(0)
                             : call.publisher->publish(entry.waiter.substr(0, colon), text);
    if (!reached) return std::nullopt;
    there = *reached > 0;
  }
  if (there || planted(Bug::dead_head_kept)) return true;
  if (call.writes == Writes::none) return std::nullopt;
  remove(queue, entry.waiter);
  return false;
}

NodeQueues::Given NodeQueues::give_turn(const Call& call, const std::string& asker) {
  Queue& queue = queues_[call.name];
  std::size_t rank = 0;
  std::int64_t length = 0;
  for (;;) {
    const bool given = rank > 0;
    const bool over =
        rank >= queue.entries.size() || (!asker.empty() && queue.entries[rank].waiter == asker);
    if (over) return given ? Given::to_another : Given::to_nobody;
    const bool all_at_once =
        planted(Bug::release_wakes_everybody) || planted(Bug::runner_up_let_in);
    const auto there = tell(call, queue, rank, all_at_once ? 0 : length);
    if (!there) return Given::refused;
    if (*there && given && planted(Bug::release_wakes_everybody)) {
      ++rank;
      continue;
    }
    if (*there && given) return Given::to_another;
    if (!*there) continue;
    if (call.writes != Writes::all) return Given::refused;
    const Entry& first = queue.entries.front();
    length = first.manner == 'w' ? turn_subscribed_ms : turn_polling_ms;
    queue.turn = first.waiter;
    queue.turn_ends_ms = call.now_ms + length;
    if (call.order.first_only) return Given::to_another;
    rank = 1;
  }
}

std::optional<NodeQueues::Kept> NodeQueues::kept_for_another(const Call& call) {
  const std::string& self = call.order.waiter;
  Queue& queue = queues_[call.name];
  const bool running = !queue.turn.empty() && queue.turn_ends_ms > call.now_ms;
  if (!self.empty() && queue.turn == self) return std::nullopt;
  if (!self.empty() && !enter(call)) return std::nullopt;
  if (running && planted(Bug::runner_up_let_in) && place(queue, self) == 1) return std::nullopt;
  const bool kept = running || give_turn(call, self) == Given::to_another;
  std::optional<Kept> result;
  if (kept) result = {.for_ms = queue.turn_ends_ms - call.now_ms, .place = 0};
  if (kept && !self.empty()) result->place = place(queue, self);
  forget_if_empty(call.name);
  return result;
}

void NodeQueues::after_grant(const Call& call) {
  const auto found = queues_.find(call.name);
  if (found == queues_.end()) return;
  remove(found->second, call.order.waiter);
  found->second.turn.clear();
  forget_if_empty(call.name);
}

void NodeQueues::after_release(const Call& call, bool freed, bool is_free) {
  const std::string& self = call.order.waiter;
  Queue& queue = queues_[call.name];
  const bool had_turn = !self.empty() && queue.turn == self;
  if (!self.empty() && call.order.manner != 0) {
    static_cast<void>(enter(call));
  } else if (!self.empty()) {
    remove(queue, self);
    freed = freed || (had_turn && is_free && !planted(Bug::turn_not_passed_on));
  }
  if (freed) static_cast<void>(give_turn(call, {}));
  forget_if_empty(call.name);
}

}  // namespace redlock::simulation
