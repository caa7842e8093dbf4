// SPDX-License-Identifier: MIT
#include "simulation/replacements.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "engine/planted_bug.hpp"
#include "engine/quorum.hpp"
#include "engine/rules.hpp"
#include "wire/key_layout.hpp"

namespace redlock::simulation {

using engine::Bug;
using engine::planted;

Replacements::Replacements(Scene& scene, Servers& servers)
    : scene_(scene),
      servers_(servers),
      random_(scene.plan.seed ^ 0x4e9aceU),
      losses_(scene.plan.seed ^ 0x105e5U),
      raises_(scene.plan.seed ^ 0x4a15eU),
      stops_(scene.plan.seed ^ 0x570b5U),
      members_(scene.plan.engine.nodes),
      next_(scene.plan.engine.nodes) {
  std::iota(members_.begin(), members_.end(), NodeIndex{0});
  former_ = members_;
}

void Replacements::schedule_first() {
  if (scene_.plan.spares == 0) return;
  // A token that a later change forgets must have been given before the first one.
  const Duration most = scene_.plan.max_lease() * 2;
  const bool later = scene_.plan.parted && !scene_.plan.stopped_half_way;
  const Duration least = later ? scene_.plan.max_lease() * 3 : Duration::zero();
  scene_.at(scene_.now + least + random_.up_to(most), Event::What::replacement);
}

void Replacements::go_on_within(Duration most) {
  scene_.at(scene_.now + random_.up_to(most), Event::What::replacement);
}

void Replacements::go_on() {
  if (scene_.ending) return;
  if (scene_.plan.members_forget && lose_one()) return go_on_within(scene_.plan.max_lease() * 2);
  if (!scene_.plan.durable && losses_.chance(200)) {
    servers_.take_snapshot(members_[losses_.below(static_cast<std::uint32_t>(members_.size()))]);
  }
  if (change_ && !change_->untold.empty()) {
    if (stops_half_way()) return go_on_within(scene_.plan.max_lease() * 2);
    tell_next();
    // Now and then the operator's program is killed, and it is a while until it is started again.
    return go_on_within(random_.chance(100) ? scene_.plan.max_lease() * 2
                                            : scene_.plan.max_lease() / 4);
  }
  if (change_ && is_over()) {
    if (change_->leaves && random_.chance(500))
      servers_.stop(*change_->leaves, random_.chance(500));
    change_.reset();
  }
  if (!change_) half_done_ ? go_on_from_half_way() : begin(members_);
  go_on_within(scene_.plan.max_lease());
}

/// Whether the operator's program is killed when some know of the change, and too few to make it.
/// The next one may be given another command.
bool Replacements::stops_half_way() {
  const bool may_stop = scene_.plan.stopped_half_way && change_->resizes() && !change_->committed &&
                        change_->told > 0;
  if (!may_stop || !stops_.chance(change_->leaves ? 700 : 200)) return false;
  scene_.note(14, change_->told, epoch_, [&] {
    return fmt::format("an operator stops when {} nodes were told", change_->told);
  });
  half_done_ = std::exchange(change_, std::nullopt);
  return true;
}

/// Members name different members now, so only this change is taken: it is finished, or undone by
/// one more epoch with the members of before. Those that were told come last then, as their number
/// of members changes. (Without that rule: what few know is gone on with.)
void Replacements::go_on_from_half_way() {
  const MemberChange& half_done = *half_done_;
  if (planted(Bug::resized_without_all) && half_done.leaves) {
    return begin(half_done.members);
  }
  const bool undoes = stops_.chance(500);
  std::vector<NodeIndex> answer = members_;
  if (half_done.leaves && !undoes) std::erase(answer, *half_done.leaves);
  MemberChange next = half_done;
  if (undoes) {
    next = {.members = members_};
    for (const NodeIndex member : members_) {
      const bool is_told =
          member != half_done.leaves && std::ranges::count(half_done.untold, member) == 0;
      next.untold.insert(is_told ? next.untold.begin() : next.untold.end(), member);
    }
  }
  const auto ready = [&](NodeIndex node) {
    return adopts(node, next, undoes ? epoch_ + 1 : epoch_, wire::AdoptionStep::Kind::asks);
  };
  if (!all_run(answer) || !std::ranges::all_of(next.untold, ready)) return;
  if (undoes) ++epoch_;
  change_ = std::move(next);
  half_done_.reset();
}

/// Whether the operator's program is gone with it. Most often one that is yet to be told. Before a
/// change is made it could not be finished without the one that forgot (operations.md); nor may two
/// have forgotten.
bool Replacements::lose_one() {
  if (half_done_) return false;
  const bool is_changing = change_ && !change_->untold.empty();
  if (is_changing && !change_->committed) return false;
  if (!losses_.chance(is_changing ? 300 : 100)) return false;
  const std::vector<NodeIndex>& among =
      is_changing && losses_.chance(700) ? change_->untold : members_;
  const NodeIndex node = among[losses_.below(static_cast<std::uint32_t>(among.size()))];
  if (!all_run(members_) || one_is_behind()) return false;
  // Where another is yet to be told, a quorum might know nothing of the change then.
  const bool older = !is_changing && !scene_.plan.durable && losses_.chance(500);
  scene_.note(14, node, older ? 1 : 0, [&] {
    return fmt::format("node {} {}", node, older ? "comes back with older data" : "is flushed");
  });
  if (!older) {
    servers_.forget(node);
    return false;
  }
  servers_.stop(node, false);
  servers_.restore_snapshot(node);
  servers_.start(node);
  return true;
}

/// It came back with an older marker, and was not told anew.
bool Replacements::one_is_behind() const {
  const std::string shown = fmt::format("{} {}", own_set, epoch_);
  return std::ranges::any_of(members_, [&](NodeIndex node) {
    const bool is_untold = change_ && std::ranges::count(change_->untold, node) > 0;
    return !is_untold && scene_.nodes[node].data.marker_state() != shown;
  });
}

bool Replacements::all_know_of_raised() const {
  return std::ranges::all_of(members_, [this](NodeIndex node) {
    const SimNode& member = scene_.nodes[node];
    return member.data.is_marked(member.now_ms(scene_.now)) &&
           member.data.marker().configuration().longest_lease() == scene_.plan.raised;
  });
}

/// It is announced to all members, and in force when all know it.
void Replacements::raise_leases() {
  Servers::Leases& leases = servers_.leases();
  const auto raised = scene_.plan.raised;
  const bool is_known = all_know_of_raised();
  if (is_known) leases.longest = raised;
  leases.announced = is_known ? raised.zero() : raised;
}

/// One more or one less, where the plan has room for it, or a spare server in a member's place; or
/// a longer longest lease.
MemberChange Replacements::choose(const std::vector<NodeIndex>& of) {
  const Plan& plan = scene_.plan;
  MemberChange change{.members = of};
  change.raises = plan.raised > servers_.leases().longest && raises_.chance(400);
  if (change.raises) return change;
  const auto size = static_cast<std::uint32_t>(of.size());
  const bool has_spare = next_ < scene_.nodes.size();
  const bool has_quorum_without_one = size >= 3;
  const bool grows = has_spare && size < plan.engine.nodes + 2 && random_.chance(400);
  const bool shrinks = !grows && size > plan.fewest_members() && random_.chance(500);
  const bool replaces = !grows && !shrinks && has_spare && has_quorum_without_one;
  if (grows || replaces) change.joins = next_++;
  if (grows) {
    change.members.push_back(*change.joins);
  } else if (shrinks || replaces) {
    const auto place = change.members.begin() + random_.below(size);
    change.leaves = *place;
    if (change.joins) {
      *place = *change.joins;
    } else {
      change.members.erase(place);
    }
  }
  return change;
}

void Replacements::begin(std::vector<NodeIndex> of) {
  MemberChange change = choose(of);
  if (change.members == of && !change.raises) return;
  for (const NodeIndex member : of) {
    if (member == change.leaves) continue;
    const auto at = random_.below(static_cast<std::uint32_t>(change.untold.size() + 1));
    change.untold.insert(change.untold.begin() + at, member);
  }
  // Of what this one alone is told, the first client sees nothing.
  if (scene_.plan.stopped_half_way && !scene_.parted.empty()) {
    std::stable_partition(change.untold.begin(), change.untold.end(),
                          [&](NodeIndex node) { return node != scene_.parted.front(); });
  }
  const auto ready = [&](NodeIndex node) {
    return adopts(node, change, epoch_ + 1, wire::AdoptionStep::Kind::asks);
  };
  // One might know of another change, or refuse this one for now.
  std::vector<NodeIndex> asked = change.untold;
  if (planted(Bug::resized_without_all)) {
    std::erase_if(asked, [this](NodeIndex node) { return !all_run({node}); });
  }
  const bool needs_all = change.resizes() || change.raises || scene_.plan.members_forget;
  if (needs_all && !(all_run(asked) && std::ranges::all_of(asked, ready))) {
    if (change.joins) --next_;
    return;
  }
  // It may be dead.
  if (change.leaves && random_.chance(300)) servers_.stop(*change.leaves, random_.chance(500));
  if (change.raises) raise_leases();
  ++epoch_;
  former_ = of;
  change_ = std::move(change);
  half_done_.reset();
  if (change_->resizes()) carry_fences(change_->untold);
}

bool Replacements::all_run(const std::vector<NodeIndex>& nodes) const {
  return std::ranges::all_of(nodes, [this](NodeIndex node) {
    return servers_.process(node) == Servers::Process::runs &&
           scene_.nodes[node].data.is_marked(scene_.nodes[node].now_ms(scene_.now));
  });
}

void Replacements::tell_next() {
  MemberChange& change = *change_;
  const NodeIndex node = change.untold.back();
  change.untold.pop_back();
  if (!tell(node)) change.untold.insert(change.untold.begin(), node);
  const auto quorum = engine::quorum_of(static_cast<std::uint32_t>(former_.size()));
  if (change.committed || change.told < quorum) return;
  change.committed = true;
  members_ = change.members;
  if (!change.raises) scene_.invariants.members_made(scene_.now, epoch_);
  if (!change.joins) return;
  carry_fences({*change.joins});
  if (!change.leaves && random_.chance(700)) mark_the_new_one();
}

/// Where a member has joined, and none has left, each quorum has a node that knows what was
/// confirmed before: there is nothing to wait for. If it is not done here, clients do so later.
void Replacements::mark_the_new_one() {
  if (servers_.process(*change_->joins) != Servers::Process::runs) return;
  servers_.set_marker(*change_->joins, own_set, epoch_, change_->members);
}

/// The largest of each stripe.
void Replacements::carry_fences(const std::vector<NodeIndex>& to) {
  if (planted(Bug::fences_not_carried)) return;
  std::map<std::string, std::int64_t, std::less<>> largest;
  for (const NodeIndex member : change_->members) {
    for (const auto& [key, entry] : scene_.nodes[member].data.keys.entries()) {
      const auto* const text = std::get_if<std::string>(&entry.value);
      if (text == nullptr || !key.starts_with(wire::redlock_layout.fence_prefix)) continue;
      largest[key] = std::max(largest[key], static_cast<std::int64_t>(std::stoll(*text)));
    }
  }
  for (const NodeIndex node : to) {
    for (const auto& [key, fence] : largest) {
      scene_.nodes[node].data.keys.put(key, std::to_string(fence));
    }
  }
}

bool Replacements::adopts(NodeIndex node, const MemberChange& change, std::uint64_t epoch,
                          wire::AdoptionStep::Kind kind) {
  const Servers::Leases& leases = servers_.leases();
  engine::Membership marker{std::to_string(node),
                            {own_set, epoch, {}, leases.longest, leases.announced}};
  for (const NodeIndex member : change.members) {
    marker.configuration.members.push_back({std::to_string(member), address_of(member)});
  }
  const engine::Config& engine = scene_.plan.engine;
  const wire::SetTerms terms{.max_lease = scene_.plan.max_lease(),
                             .drift_factor = engine.drift_factor};
  const wire::AdoptionStep step{scene_.nodes[node].data.marker_state(), kind,
                                std::to_string(epoch)};
  const std::string reply = servers_.ask(node, wire::adoption_command(terms, marker, step, {}));
  return reply.ends_with(kind == wire::AdoptionStep::Kind::asks ? "ready\r\n" : "written\r\n");
}

bool Replacements::tell(NodeIndex node) {
  if (!all_run({node})) return false;
  scene_.note(14, node, epoch_, [&] {
    return fmt::format("an operator tells node {} who the members are: {}", node,
                       fmt::join(change_->members, " "));
  });
  // At the end nothing is refused any more.
  if (scene_.ending) servers_.set_marker(node, own_set, epoch_, change_->members);
  for (const auto kind : {wire::AdoptionStep::Kind::asks, wire::AdoptionStep::Kind::joins}) {
    if (!scene_.ending && !adopts(node, *change_, epoch_, kind)) return false;
  }
  ++change_->told;
  change_->told_last = scene_.now;
  return true;
}

/// Two changes one after the other leave quorums that share no node: the second waits until what
/// was confirmed before the first is over. And a new member has its marker, which takes as long if
/// it has come in the place of another one.
bool Replacements::is_over() const {
  const engine::Config& engine = scene_.plan.engine;
  const auto wait = engine::rules::between_resizes(
      std::max(servers_.leases().longest, servers_.leases().announced), engine.drift_factor);
  if (change_->raises) return true;
  if (scene_.now < change_->told_last + wait) return false;
  if (!change_->joins) return true;
  const SimNode& fresh = scene_.nodes[*change_->joins];
  return fresh.data.is_marked(fresh.now_ms(scene_.now));
}

bool Replacements::are_shown() const {
  const std::string shown = fmt::format("{} {}", own_set, epoch_);
  const auto showing = std::ranges::count_if(
      former_, [&](NodeIndex node) { return scene_.nodes[node].data.marker_state() == shown; });
  const bool all_told = !change_ || change_->untold.empty();
  return all_told &&
         showing >= std::ptrdiff_t{engine::quorum_of(static_cast<std::uint32_t>(former_.size()))};
}

void Replacements::finish() {
  if (half_done_) change_ = std::exchange(half_done_, std::nullopt);
  for (std::size_t left = change_ ? change_->untold.size() : 0; left > 0; --left) tell_next();
  for (NodeIndex node = 0; node < next_; ++node) {
    if (std::ranges::count(members_, node) == 0) servers_.stop(node, false);
  }
}

}  // namespace redlock::simulation
