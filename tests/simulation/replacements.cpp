// SPDX-License-Identifier: MIT
#include "simulation/replacements.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "engine/quorum.hpp"
#include "wire/key_layout.hpp"

namespace redlock::simulation {

Replacements::Replacements(Scene& scene, Servers& servers)
    : scene_(scene),
      servers_(servers),
      random_(scene.plan.seed ^ 0x4e9aceU),
      members_(scene.plan.engine.nodes),
      next_(scene.plan.engine.nodes) {
  std::iota(members_.begin(), members_.end(), NodeIndex{0});
  former_ = members_;
}

void Replacements::schedule_first() {
  if (scene_.plan.spares > 0) go_on_within(scene_.plan.max_lease() * 2);
}

void Replacements::go_on_within(Duration most) {
  scene_.at(scene_.now + random_.up_to(most), Event::What::replacement);
}

void Replacements::go_on() {
  if (scene_.ending) return;
  if (change_ && !change_->untold.empty()) {
    tell_next();
    // Now and then the operator's program is killed, and it is a while until it is started again.
    return go_on_within(random_.chance(100) ? scene_.plan.max_lease() * 2
                                            : scene_.plan.max_lease() / 4);
  }
  if (change_ && is_over()) {
    if (random_.chance(500)) servers_.stop(change_->leaves, random_.chance(500));
    change_.reset();
  }
  if (!change_ && next_ < scene_.nodes.size()) begin();
  go_on_within(scene_.plan.max_lease());
}

void Replacements::begin() {
  ++epoch_;
  const std::size_t place = random_.below(static_cast<std::uint32_t>(members_.size()));
  MemberChange& change = change_.emplace();
  change.members = members_;
  change.leaves = std::exchange(change.members[place], next_++);
  for (const NodeIndex member : members_) {
    if (member == change.leaves) continue;
    const auto at = random_.below(static_cast<std::uint32_t>(change.untold.size() + 1));
    change.untold.insert(change.untold.begin() + at, member);
  }
  // It may be dead.
  if (random_.chance(300)) servers_.stop(change.leaves, random_.chance(500));
}

void Replacements::tell_next() {
  MemberChange& change = *change_;
  const NodeIndex node = change.untold.back();
  change.untold.pop_back();
  if (!tell(node)) change.untold.insert(change.untold.begin(), node);
  if (change.committed || change.told < engine::quorum_of(scene_.plan.engine.nodes)) return;
  change.committed = true;
  carry_fences();
  former_ = std::exchange(members_, change.members);
}

/// The largest of each stripe, to the new member.
void Replacements::carry_fences() {
  std::map<std::string, std::int64_t, std::less<>> largest;
  for (const NodeIndex member : change_->members) {
    for (const auto& [key, entry] : scene_.nodes[member].data.keys.entries()) {
      const auto* const text = std::get_if<std::string>(&entry.value);
      if (text == nullptr || !key.starts_with(wire::redlock_layout.fence_prefix)) continue;
      largest[key] = std::max(largest[key], static_cast<std::int64_t>(std::stoll(*text)));
    }
  }
  for (const auto& [key, fence] : largest) {
    scene_.nodes[next_ - 1].data.keys.put(key, std::to_string(fence));
  }
}

bool Replacements::tell(NodeIndex node) {
  if (servers_.process(node) != Servers::Process::runs) return false;
  if (!scene_.nodes[node].data.is_marked(scene_.nodes[node].now_ms(scene_.now))) return false;
  scene_.note(14, node, epoch_, [&] {
    return fmt::format("an operator tells node {}: {} is replaced by {}", node, change_->leaves,
                       next_ - 1);
  });
  servers_.set_marker(node, own_set, epoch_, change_->members);
  ++change_->told;
  return true;
}

bool Replacements::is_over() const {
  const SimNode& fresh = scene_.nodes[next_ - 1];
  return fresh.data.is_marked(fresh.now_ms(scene_.now));
}

void Replacements::finish() {
  while (change_ && !change_->untold.empty()) tell_next();
  for (NodeIndex node = 0; node < next_; ++node) {
    if (std::ranges::count(members_, node) == 0) servers_.stop(node, false);
  }
}

}  // namespace redlock::simulation
