// SPDX-License-Identifier: MIT
// What a node has after it has run a script, and what must never happen to a lock that was released
// by force: that its former owner has it again.
#include <algorithm>
#include <fmt/format.h>

#include "simulation/invariants.hpp"

namespace redlock::simulation {

void Invariants::executed(Instant world, std::uint32_t node, const ScriptRun& run) {
  const SimNode& at = nodes_[node];
  std::string_view last;
  for (const std::string_view key : run.keys) {
    if (at.data.fence(key) >= damaged_fence && !damaged_.contains(node)) {
      throw Violation{"the damage of one fence stays on its node", fmt::format("node {}", node)};
    }
    const std::string_view name = NodeData::name_of(key);
    if (name.empty() || name == last) continue;
    last = name;
    const auto lock = at.data.lock(name, at.now_ms(world));
    check_key(world, node, lock);
    // Renewals put nobody into a queue.
    if (run.script != "hold") look_at_line(world, node, name, lock);
    check_turned_away(world, node, lock, run);
  }
  if (run.script == "hold") check_counts(world, node, run);
}

void Invariants::check_key(Instant world, std::uint32_t node, const HeldLock& lock) const {
  const auto known = lock ? owners_.find(lock->owner.bits) : owners_.end();
  if (known == owners_.end() || !judged_.clocks) return;
  const std::int64_t latest = nodes_[node].now_ms(world) + known->second->lease.count() + 1;
  if (lock->ends_ms && *lock->ends_ms <= latest) return;
  throw Violation{"a key lasts one lease from the last message at most",
                  fmt::format("node {}", node)};
}

/// Of each lock a hold has the owner, the count, and two more arguments. Of several for one lock
/// the last says what is there. Nothing is known where one was answered with an error.
void Invariants::check_counts(Instant world, std::uint32_t node, const ScriptRun& run) const {
  if (run.reply.front() == '-' || run.reply.find("\r\n-") != run.reply.npos) return;
  const SimNode& at = nodes_[node];
  for (std::size_t i = 0; 3 * i < run.keys.size() && 4 * i + 1 < run.arguments.size(); ++i) {
    const Words later = run.keys.subspan(3 * i + 1);
    if (std::ranges::count(later, run.keys[3 * i]) > 0) continue;
    const auto lock = at.data.lock(NodeData::name_of(run.keys[3 * i]), at.now_ms(world));
    if (!lock || lock->foreign_type) continue;
    const auto digits = engine::hex_digits(lock->owner);
    const bool holds = run.arguments[4 * i] == std::string_view(digits.data(), digits.size());
    if (!holds || run.arguments[4 * i + 1] == std::to_string(lock->count)) continue;
    throw Violation{
        "a hold sets the count of its message",
        fmt::format("node {}: {}, not {}", node, lock->count, run.arguments[4 * i + 1])};
  }
}

// --- locks that were released by force

/// How it is kept, on each node.
void Invariants::check_turned_away(Instant world, std::uint32_t node, const HeldLock& lock,
                                   const ScriptRun& run) {
  const SimNode& at = nodes_[node];
  const std::int64_t now_ms = at.now_ms(world);
  for (const std::string_view key : run.keys) {
    const auto forced = at.data.forced_out(key, now_ms);
    if (!forced) continue;
    std::int64_t& until = turned_away_[{node, forced->first.bits}];
    until = std::max(until, forced->second);
  }
  if (turned_away_.empty()) return;
  const auto away = lock ? turned_away_.find({node, lock->owner.bits}) : turned_away_.end();
  if (away == turned_away_.end() || now_ms > away->second) return;
  // A clock that was set back finds the duty anew that was over.
  if (!judged_.rules || !judged_.clocks) return;
  // Nor is it given what comes back with an older state of the node.
  const auto digits = engine::hex_digits(lock->owner);
  if (std::ranges::count(run.arguments, std::string_view(digits.data(), digits.size())) == 0)
    return;
  throw Violation{"a node gives nothing to whom it turns away", fmt::format("node {}", node)};
}

/// From now on no quorum can confirm that owner. What one did before may still be on its way.
void Invariants::told_forced(Instant world, const Forced& forced) {
  const auto holding = std::ranges::count_if(nodes_, [&](const SimNode& node) {
    return node.data.holds(forced.name, forced.owner, node.now_ms(world));
  });
  if (static_cast<std::size_t>(holding) > nodes_.size() / 2) {
    throw Violation{"an owner that was forced out has no quorum any more",
                    fmt::format("{} is still on {} nodes", forced.name, holding)};
  }
  if (!forced_.insert(forced.owner.bits).second) return;
  for (Client& client : clients_) {
    for (Grant* grant : client.live) {
      if (grant->owner != forced.owner) continue;
      const Instant bound = local(world, grant->client) + grant->lease;
      grant->forced_bound = std::min(grant->forced_bound, bound);
    }
  }
}

void Invariants::check_forced(const Grant& grant) const {
  if (grant.valid_until <= grant.forced_bound) return;
  throw Violation{"an owner that was forced out is not confirmed again",
                  fmt::format("grant {} of client {}", grant.id, grant.client)};
}

}  // namespace redlock::simulation
