// SPDX-License-Identifier: MIT
// The calls of this client that wait for the same name, in the order in which they came: those that
// wait in order in one such queue, those that barge in another. Only the first few take part at the
// nodes: a crowd in one program costs the nodes no more than these. Each that waits in order is
// entered there, with the ticket of its call, before the one ahead of it is done.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>

#include "engine/types.hpp"

namespace redlock::engine {

class LocalQueues {
 public:
  static constexpr std::size_t taking_part = 2;
  /// A lock that is given back goes to the next call of this client that barges, but once in so
  /// long it does not: others, who ask after random pauses, are to find it free.
  static constexpr Duration passing_on = std::chrono::milliseconds(100);
  /// Whether it goes on, after it was held since then.
  static bool passes_on(Instant since, Instant now) {
    return now.time_since_epoch() / passing_on == since.time_since_epoch() / passing_on;
  }

  /// Whether it takes part at the nodes at once.
  bool join(const Name& name, RequestId request) {
    auto& queue = queues_[*name];
    queue.push_back(request);
    return queue.size() <= taking_part;
  }
  /// Its call has ended. Who takes part from now on in its place, if it did and somebody is next.
  std::optional<RequestId> leave(const Name& name, RequestId request) {
    const auto found = queues_.find(*name);
    auto& queue = found->second;
    const auto place = std::ranges::find(queue, request);
    const bool took_part = static_cast<std::size_t>(place - queue.begin()) < taking_part;
    queue.erase(place);
    if (took_part && queue.size() >= taking_part) return queue[taking_part - 1];
    if (queue.empty()) queues_.erase(found);
    return {};
  }
  /// Who has waited longest for this name, if anybody; or who is behind so many.
  [[nodiscard]] std::optional<RequestId> first(const Name& name, std::size_t behind = 0) const {
    if (queues_.empty()) return {};
    const auto found = queues_.find(*name);
    if (found == queues_.end() || found->second.size() <= behind) return {};
    return found->second[behind];
  }

 private:
  std::unordered_map<std::string, std::deque<RequestId>> queues_;
};

}  // namespace redlock::engine
