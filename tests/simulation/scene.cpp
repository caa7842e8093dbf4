// SPDX-License-Identifier: MIT
#include "simulation/scene.hpp"

#include <map>
#include <string>

#include "engine/quorum.hpp"
#include "engine/stripe.hpp"

namespace redlock::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant year_2026{seconds(1'767'225'600)};

Judged judged(const Plan& plan) {
  return {.tokens = plan.judges_tokens(),
          .exclusion = plan.judges_exclusion(),
          .possession = plan.judges_possession(),
          .clocks = plan.kind != WorldKind::wild_clocks,
          .rules = plan.judges_rules && plan.spares == 0,
          .clones = plan.cloned,
          .first_counts = plan.lie != Lie::members,
          .all_fit = !plan.other_settings && !plan.false_run_id && plan.lie == Lie::none};
}

}  // namespace

Scene::Scene(Plan what, Trace& steps, Coverage& phases)
    : plan(std::move(what)),
      trace(steps),
      coverage(phases),
      random(plan.seed ^ 0x5eedU),
      now(seconds(1)),
      invariants(judged(plan), nodes, plan.fewest_members(), drift_bound_ppm,
                 std::max(plan.engine.max_lease, plan.raised)) {
  testing::KeyTerms terms = plan.key_terms();
  for (std::uint32_t client = 0; client < plan.clients; ++client) {
    // It is as long where nothing was shown.
    const bool is_given = plan.engine_of(client).max_lease.count() > 0;
    if (!is_given) terms.max_lease = std::max(terms.max_lease, engine::usual_max_lease);
  }
  invariants.set_key_terms(terms);
  for (NodeIndex node = 0; node < plan.engine.nodes + plan.spares; ++node) {
    // Nearer to each other where order is judged.
    const Duration apart = milliseconds(plan.waits ? 10 : 300);
    const Duration offset = random.between(-apart, apart);
    const std::int32_t drift = random.between(-drift_within, drift_within);
    nodes.push_back({{}, {now, year_2026 + offset, drift}});
  }
  for (ClientIndex client = 0; client < plan.clients; ++client) {
    const Instant shows{random.between(seconds(1), seconds(100'000))};
    const std::int32_t drift = random.between(-drift_within, drift_within);
    clocks.emplace_back(now, shows, drift);
  }
  if (plan.absurd_clock) nodes.back().wall.step(now, std::chrono::hours(24 * 365 * 80));
  for (std::uint32_t dead = 1; dead <= plan.dead_waiters; ++dead) {
    for (SimNode& node : nodes) node.data.put_dead_waiter(plan.names[0], dead, node.now_us(now));
  }
  if (plan.fence == FenceDamage::none) return;
  const std::map<FenceDamage, Keyspace::Value> values{
      {FenceDamage::ahead, std::to_string(Invariants::damaged_fence)},
      {FenceDamage::far, std::to_string(engine::token_limit / 4 * 3 - 2)},
      {FenceDamage::text, damaged_fences[plan.seed % damaged_fences.size()]},
      {FenceDamage::other_type, Hash()},
      {FenceDamage::of_quorum, "2000000000000000"},  // what a clock shows in 2033
      {FenceDamage::of_quorum_last, std::to_string(documented::highest_floor)}};
  const bool one = !plan.is_fence_of_quorum();
  for (NodeIndex node = 0; node < (one ? 1U : engine::quorum_of(plan.engine.nodes)); ++node) {
    for (const std::string& name : plan.names) {
      nodes[node].data.put_fence(engine::stripe_of(name), values.at(plan.fence));
    }
  }
  if (one) invariants.fence_damaged(0);
  if (plan.fence != FenceDamage::of_quorum_last) return;
  // Beyond floors what a quorum has is carried to the others, so none is damage of its node alone.
  // The first node has one grant left; with another one the quorum is there without it.
  for (NodeIndex node = 0; node < plan.engine.nodes; ++node) invariants.fence_damaged(node);
  if (plan.engine.nodes < 3) return;
  for (const std::string& name : plan.names) {
    const std::uint32_t stripe = engine::stripe_of(name);
    nodes[0].data.put_fence(stripe, std::to_string(engine::token_limit - 2));
    nodes[engine::quorum_of(plan.engine.nodes)].data.put_fence(stripe, values.at(plan.fence));
  }
}

}  // namespace redlock::simulation
