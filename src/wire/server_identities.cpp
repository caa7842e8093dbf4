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
#include "wire/server_identities.hpp"

#include <utility>

namespace redlock::wire {

std::optional<std::size_t> ServerIdentities::find_twin(engine::Instant now, std::size_t node,
                                                       const std::string& run_id) {
  if (run_id.empty()) return {};
  Known& self = known_[node];
  for (std::size_t other = 0; other < known_.size(); ++other) {
    const Known& known = known_[other];
    if (other != node && known.run_id == run_id && may_have_voted(now, known)) self.twin = other;
  }
  if (self.twin) {
    const Known& twin = known_[*self.twin];
    const bool differs = twin.up && twin.run_id != run_id;
    if (!differs && may_have_voted(now, twin)) return self.twin;
    self.twin.reset();
  }
  self.run_id = run_id;
  return {};
}

void ServerIdentities::set_up(engine::Instant now, std::size_t node, bool up) {
  // A node that is down may be reported down again, for another reason.
  if (std::exchange(known_[node].up, up) && !up) known_[node].last_up = now;
}

bool ServerIdentities::may_have_voted(engine::Instant now, const Known& node) const {
  return node.up || now < node.last_up + max_lease_;
}

}  // namespace redlock::wire
