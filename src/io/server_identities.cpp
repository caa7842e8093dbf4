// SPDX-License-Identifier: MIT
// An identity stays with the node that showed it first, also while that node is down.
#include "io/server_identities.hpp"

namespace redlock::io {

std::optional<std::size_t> ServerIdentities::find_twin(std::size_t node,
                                                       const std::string& run_id) {
  if (run_id.empty()) return {};
  Known& self = known_[node];
  for (std::size_t other = 0; other < known_.size(); ++other) {
    if (other != node && known_[other].run_id == run_id) self.twin = other;
  }
  if (self.twin) {
    const Known& twin = known_[*self.twin];
    if (!twin.up || twin.run_id == run_id) return self.twin;
    self.twin.reset();
  }
  self.run_id = run_id;
  return {};
}

}  // namespace redlock::io
