// SPDX-License-Identifier: MIT
// The rule: no server counts for two nodes within max_lease. An identity stays with the node that
// showed it, while that node is up and for max_lease after: until then grants of the server may
// count for that node, so they must not count for another node too, say while a name gets another
// address. After that no grant counts any more, and two nodes whose addresses were exchanged, so
// that each shows the other's identity, come back.
//
// A node that was found to be another's twin is let in only beside it, or when that time is over:
// after a restart both have a new identity, and the first to connect would pass for an independent
// server.
//
// A node that lies may report the run id of another. It does not know the value of a random key
// that is written through the other, and cannot bring into the other a key that is written through
// itself. So a key that is not found proves two servers, and both count. The key is written through
// the node that is up: a replica that claims to be a master has the keys of its master, but not the
// reverse. A node that is up and does not write the key would keep out the other for good. It gives
// way instead, when its own votes are over.
#include "wire/server_identities.hpp"

#include <algorithm>
#include <utility>

#include "engine/rules.hpp"
#include "wire/adoption.hpp"
#include "wire/key_layout.hpp"
#include "wire/server_facts.hpp"

namespace redlock::wire {

using engine::Instant;

namespace {

// A key that is not found proves something only while it cannot have ended, by any clock.
constexpr engine::Duration conclusive_for = ServerIdentities::key_lasts / 2;
// A connection may break in the middle of a check, and a node may be busy.
constexpr int most_unwritten = 3;
// For the node that takes the place: it connects once a second.
constexpr std::chrono::seconds time_to_take_the_place{5};

}  // namespace

std::string ServerIdentities::key_to_read(Instant now, std::size_t node) const {
  const auto& check = known_[node].check;
  const bool readable = check && check->written && now < check->begun + conclusive_for;
  return readable ? check->write.key : std::string();
}

std::optional<ServerIdentities::Suspicion> ServerIdentities::judge(Instant now, std::size_t node,
                                                                   const ServerFacts& facts) {
  const std::string& run_id = facts.run_id;
  if (run_id.empty()) return {};
  Known& self = known_[node];
  if (gives_way(now, self)) return Suspicion{*self.gives_way_to, Evidence::gave_way};
  const bool proved = is_proved(now, self, facts);
  for (std::size_t other = 0; other < known_.size(); ++other) {
    const Known& known = known_[other];
    const bool same = other != node && known.run_id == run_id && may_have_voted(now, known);
    if (same && !differs(now, self, other, run_id)) self.twin = other;
  }
  if (self.twin) {
    const Known& twin = known_[*self.twin];
    const bool two = (twin.up && twin.run_id != run_id) || differs(now, self, *self.twin, run_id);
    if (!two && may_have_voted(now, twin)) {
      const bool unread = !facts.identity_refusal.empty();
      return Suspicion{*self.twin, proved   ? Evidence::proved
                                   : unread ? Evidence::unreadable
                                            : Evidence::claimed};
    }
    self.twin.reset();
  }
  self.check.reset();
  self.differences.clear();
  self.run_id = run_id;
  return {};
}

/// Whether the node has read what was written through the other. Records a difference.
bool ServerIdentities::is_proved(Instant now, Known& node, const ServerFacts& facts) {
  if (!node.check || !node.check->written || !facts.identity) return false;
  const KeyCheck& check = *node.check;
  // After a restart the server may have lost the key.
  if (check.run_id != facts.run_id || now >= check.begun + conclusive_for) return false;
  if (*facts.identity == check.write.value) return true;
  node.differences.push_back({check.write.through, check.run_id, check.begun + conclusive_for});
  node.check.reset();
  return false;
}

bool ServerIdentities::differs(Instant now, const Known& node, std::size_t other,
                               const std::string& run_id) {
  return std::ranges::any_of(node.differences, [&](const Difference& known) {
    return known.other == other && known.run_id == run_id && now < known.until;
  });
}

bool ServerIdentities::gives_way(Instant now, Known& node) const {
  if (!node.gives_way_to) return false;
  const bool taken = known_[*node.gives_way_to].up;
  if (!taken && now < node.last_up + max_lease_ + time_to_take_the_place) return true;
  node.gives_way_to.reset();
  return false;
}

std::optional<ServerIdentities::Write> ServerIdentities::next_write(Instant now, std::size_t node,
                                                                    engine::RandomSource& random) {
  Known& self = known_[node];
  if (self.up || !self.twin || !engine::rules::run_ids_are_checked()) return {};
  const Known& twin = known_[*self.twin];
  if (!twin.up || databases_[node] != databases_[*self.twin]) return {};
  const bool under_way = self.check && self.check->write.through == *self.twin &&
                         now < self.check->begun + conclusive_for;
  if (under_way) return {};
  // A copy of this client may draw the same, but write its key through the other node: that must
  // not be found for this one.
  engine::OwnerId id = random.next_owner();
  id.bits[0] ^= *self.twin;
  const Write write{*self.twin, std::string(redlock_layout.identity_prefix) + engine::to_hex(id),
                    random_id(random)};
  self.check = KeyCheck{write, twin.run_id, now, false};
  return write;
}

bool ServerIdentities::on_written(std::size_t node, const Write& write, bool written) {
  Known& self = known_[node];
  if (!self.check || self.check->write.key != write.key) return false;
  Known& twin = known_[write.through];
  twin.unwritten = written ? 0 : twin.unwritten + 1;
  self.check->written = written;
  if (written) return false;
  self.check.reset();
  if (twin.unwritten < most_unwritten) return false;
  twin.unwritten = 0;
  twin.gives_way_to = node;
  return true;
}

void ServerIdentities::set_up(Instant now, std::size_t node, bool up) {
  // A node that is down may be reported down again, for another reason.
  if (std::exchange(known_[node].up, up) && !up) known_[node].last_up = now;
}

bool ServerIdentities::may_have_voted(Instant now, const Known& node) const {
  return node.up || now < node.last_up + max_lease_;
}

}  // namespace redlock::wire
