// SPDX-License-Identifier: MIT
// What a node has after it has run a script, and what must never happen to a lock that was released
// by force: that its former owner has it again.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <string>

#include "simulation/invariants.hpp"
#include "simulation/script_judge.hpp"

namespace redlock::simulation {

void Invariants::executed(Instant world, std::uint32_t node, const ScriptRun& run) {
  const SimNode& at = nodes_[node];
  judge_script(run, at.data, at.now_ms(world), judged_.rules);
  if (run.script == "adopt") check_marker(node, run);
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
}

/// Who gives a marker back has read the members since the node lost it.
void Invariants::check_marker(std::uint32_t node, const ScriptRun& run) const {
  const SimNode& at = nodes_[node];
  const std::string state = at.data.marker_state();
  if (!run.before->marker_state().empty() || state.empty()) return;
  const std::uint64_t epoch = std::stoull(state.substr(state.find(' ') + 1));
  for (const auto& [later, made] : members_made_) {
    if (later <= epoch || made >= at.unmarked) continue;
    throw Violation{"a marker that is given back names no former members",
                    fmt::format("node {}: epoch {}, not {}", node, epoch, later)};
  }
}

void Invariants::check_key(Instant world, std::uint32_t node, const HeldLock& lock) const {
  const auto known = lock ? owners_.find(lock->owner.bits) : owners_.end();
  if (known == owners_.end() || !judged_.clocks) return;
  const std::int64_t latest = nodes_[node].now_ms(world) + known->second->lease.count() + 1;
  if (lock->ends_ms && *lock->ends_ms <= latest) return;
  throw Violation{"a key lasts one lease from the last message at most",
                  fmt::format("node {}", node)};
}

// --- all keys of a node

void Invariants::keys_must_be_documented(Instant world) const {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    const std::int64_t now_ms = nodes_[node].now_ms(world);
    for (const auto& [key, entry] : nodes_[node].data.keys.entries()) {
      if (entry.ends_ms && *entry.ends_ms <= now_ms) continue;
      check_end(world, node, key, entry);
      check_size(world, node, key, entry);
    }
  }
}

void Invariants::check_end(Instant world, std::uint32_t node, const std::string& key,
                           const Keyspace::Entry& entry) const {
  const auto what = [&] {
    return fmt::format("node {}: {} ends in {} ms", node, key,
                       entry.ends_ms.value_or(0) - nodes_[node].now_ms(world));
  };
  const auto* const row = testing::documented_key(key);
  if (row == nullptr) throw Violation{"every key on a node is in the documents", what()};
  if (row->longest == nullptr) return;
  if (!entry.ends_ms) throw Violation{"a key that is no fence and no marker has an end", what()};
  // A clock may be set back by less than a millisecond, and shows whole ones.
  const std::int64_t latest = nodes_[node].now_ms(world) + row->longest(key_terms_).count() + 2;
  if (!judged_.clocks || *entry.ends_ms <= latest) return;
  throw Violation{"a key ends when documents say", what()};
}

void Invariants::check_size(Instant world, std::uint32_t node, const std::string& key,
                            const Keyspace::Entry& entry) const {
  const auto* const row = testing::documented_key(key);
  if (row->most == testing::DocumentedKey::unlimited) return check_line_size(world, node, key);
  const auto* const text = std::get_if<std::string>(&entry.value);
  const auto* const hash = std::get_if<Hash>(&entry.value);
  const std::size_t size = text != nullptr   ? text->size()
                           : hash != nullptr ? hash->fields().size()
                                             : testing::DocumentedKey::unlimited;
  if (size <= row->most) return;
  throw Violation{"a key holds no more than documents say",
                  fmt::format("node {}: {} holds {}", node, key, size)};
}

/// Beside the lines themselves there are two fields for each waiter at most, and the turn. A waiter
/// that does not ask again, and a turn that is not used, are soon over.
void Invariants::check_line_size(Instant world, std::uint32_t node, std::string_view key) const {
  const SimNode& at = nodes_[node];
  const std::int64_t now_ms = at.now_ms(world);
  const std::string_view name = key.substr(key.find('{') + 1, key.size() - key.find('{') - 2);
  const std::size_t there = at.data.waiters(name, now_ms).size();
  const NodeData::LineRecords records = at.data.line_records(name, now_ms);
  const auto require = [&](bool kept, const char* rule) {
    if (kept) return;
    throw Violation{rule,
                    fmt::format("node {}: {} has {} waiters, {} fields; at {} they live until "
                                "{} or {}, the turn until {}",
                                node, key, there, records.fields, now_ms, records.subscribed_until,
                                records.polling_until, records.turn_until)};
  };
  // A clock that is set back may revive one of the two keys alone.
  if (!judged_.clocks) return;
  require(records.fields <= 2 * there + 1, "a key holds no more than documents say");
  using documented::longest_turn;
  using documented::waiter_forgotten_within;
  const auto soon = [&](std::int64_t until, std::chrono::milliseconds length) {
    return until <= now_ms + length.count() + 2;
  };
  require(soon(records.subscribed_until, waiter_forgotten_within) &&
              soon(records.polling_until, waiter_forgotten_within / 10) &&
              soon(records.turn_until, longest_turn),
          "a waiter and a turn end when documents say");
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
  // Twins may use one owner for two names.
  const auto twins = drawn_twice_.find(lock->owner.bits);
  if (twins != drawn_twice_.end() && twins->second) return;
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
  if (static_cast<std::size_t>(holding) > members_ / 2) {
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
