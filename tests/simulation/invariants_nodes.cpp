// SPDX-License-Identifier: MIT
// What a node has after it has run a command.
#include <fmt/format.h>

#include "engine/stripe.hpp"
#include "simulation/invariants.hpp"

namespace redlock::simulation {

void Invariants::executed(Instant world, std::uint32_t node, const engine::Command& command,
                          const engine::Reply& reply) {
  const auto require = [](bool kept, const char* rule, auto&& what) {
    if (!kept) throw Violation{rule, what()};
  };
  const auto check = [&](const engine::Name& name, const engine::OwnerId& owner) {
    const SimNode& at = nodes_[node];
    const std::int64_t now_ms = at.now_ms(world);
    const auto known = owners_.find(owner.bits);
    if (known == owners_.end() || !at.model.holds(*name, owner, now_ms)) return;
    const auto ends = at.model.find(*name, now_ms)->ends_ms;
    if (!judged_.clocks) return;
    require(ends && *ends <= now_ms + known->second->lease.count() + 1,
            "a key lasts one lease from the last message at most",
            [&] { return fmt::format("node {}", node); });
  };
  const auto* hold = std::get_if<engine::HoldCommand>(&command);
  if (hold != nullptr && std::holds_alternative<engine::Held>(reply)) {
    const auto* lock = nodes_[node].model.find(*hold->name, nodes_[node].now_ms(world));
    require(lock == nullptr || lock->owner != hold->owner || lock->count == hold->count,
            "a hold sets the count of its message",
            [&] { return fmt::format("node {}: {}, not {}", node, lock->count, hold->count); });
  }
  std::visit([&](const auto& what) { check(what.name, what.owner); }, command);
  if (const auto* acquire = std::get_if<engine::AcquireCommand>(&command)) {
    waiter_asked(world, node, *acquire, reply);
  }
  // Also a release puts callers into the queue.
  if (std::holds_alternative<engine::ReleaseCommand>(command)) entered_by(world, node);
  const auto& name = std::visit(
      [](const auto& what) -> const auto& { return *what.name; }, command);
  require(damaged_.contains(node) ||
              nodes_[node].model.fence(engine::stripe_of(name)) <= engine::floor_limit,
          "the damage of one fence stays on its node",
          [&] { return fmt::format("node {}", node); });
  if (!std::holds_alternative<engine::NoScript>(reply)) check_turned_away(world, node, command);
}

}  // namespace redlock::simulation
