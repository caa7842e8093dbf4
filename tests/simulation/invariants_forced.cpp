// SPDX-License-Identifier: MIT
// What must never happen to a lock that was released by force: that its former owner has it again.
#include <algorithm>
#include <fmt/format.h>

#include "simulation/invariants.hpp"

namespace redlock::simulation {

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
