// SPDX-License-Identifier: MIT
// What must never happen to a lock that was released by force: that its former owner has it again.
#include <algorithm>
#include <fmt/format.h>

#include "simulation/invariants.hpp"
#include "wire/key_layout.hpp"

namespace redlock::simulation {

/// How it is kept, on each node.
void Invariants::check_turned_away(Instant world, std::uint32_t node, std::string_view name,
                                   const HeldLock& lock, const ScriptRun& run) {
  const SimNode& at = nodes_[node];
  const std::int64_t now_ms = at.now_ms(world);
  const std::string_view suffix = wire::redlock_layout.forced_suffix;
  const bool forces =
      std::ranges::any_of(run.keys, [&](std::string_view key) { return key.ends_with(suffix); });
  if (!forces && turned_away_.empty()) return;
  for (const auto& [owner, ends_ms] : at.data.forced_out(name, now_ms)) {
    std::int64_t& until = turned_away_[{node, owner.bits}];
    until = std::max(until, ends_ms);
  }
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
    throw Violation{"who was forced out has no quorum any more",
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
  throw Violation{"who was forced out is not confirmed again",
                  fmt::format("grant {} of client {}", grant.id, grant.client)};
}

}  // namespace redlock::simulation
