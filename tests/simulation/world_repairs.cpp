// SPDX-License-Identifier: MIT
// How what went wrong is mended, and who is well meanwhile.
#include <string>
#include <utility>

#include "simulation/world.hpp"

namespace redlock::simulation {

using Ailment = NodeModel::Ailment;

void World::repair(std::uint32_t number) {
  ActiveFault& active = active_[number];
  if (std::exchange(active.over, true)) return;
  if (happens_to_node(active.fault)) return repair_node(active);
  if (active.fault == Fault::cut_to_node) cut(active.client, active.node, -1, 0);
  if (active.fault == Fault::cut_from_node) cut(active.client, active.node, 0, -1);
  if (active.fault == Fault::cut_majority) {
    for (const std::uint32_t node : active.nodes) cut(active.client, node, -1, -1);
  }
}

void World::disturb(std::uint32_t client, std::uint32_t node) {
  clients_[client].links[node].disturbed = now_;
}

void World::disturb_node(std::uint32_t node) {
  for (std::uint32_t client = 0; client < plan_.clients; ++client) disturb(client, node);
}

bool World::well(std::uint32_t index, std::uint32_t node) const {
  const Client& client = clients_[index];
  const Link& link = client.links[node];
  const NodeState& state = states_[node];
  return !client.paused && link.up && !wires_[link.wire].dead && link.cut_to_node == 0 &&
         link.cut_from_node == 0 && !state.down && state.hung == 0 &&
         state.slow == Duration::zero() && nodes_[node].model.ailment() == Ailment::none;
}

void World::repair_node(const ActiveFault& active) {
  NodeState& state = states_[active.node];
  disturb_node(active.node);
  switch (active.fault) {
    case Fault::node_killed:
    case Fault::node_wiped:
      state.down = false;
      state.unreachable = false;
      state.started = now_;
      if (active.fault == Fault::node_wiped && plan_.other_sets && random_.chance(300)) {
        become_of_another_set(active.node);
      }
      return;
    case Fault::node_hung: {
      if (--state.hung > 0) return;
      // Which connection it looks at first is not promised.
      std::deque<std::uint32_t> waiting = std::exchange(state.waiting, {});
      for (std::size_t i = waiting.size(); i > 1; --i) {
        std::swap(waiting[i - 1], waiting[random_.below(static_cast<std::uint32_t>(i))]);
      }
      for (const std::uint32_t wire : waiting) process_at_node(wire);
      return;
    }
    case Fault::node_slow:
      state.slow = {};
      return;
    default:
      if (ailment_of(active.fault) != Ailment::none)
        nodes_[active.node].model.set_ailment(Ailment::none);
  }
}

/// The address has come to lead to a node of another set: it has a marker, and none of the locks.
void World::become_of_another_set(std::uint32_t node) {
  nodes_[node].model.adopt("other-" + std::to_string(node));
}

}  // namespace redlock::simulation
