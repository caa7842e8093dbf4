// SPDX-License-Identifier: MIT
// Notices when two nodes of the list are one server (two names, an address written twice), which
// would vote twice.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace redlock::io {

class ServerIdentities {
 public:
  explicit ServerIdentities(std::size_t nodes) : known_(nodes) {}

  /// The node says that it is this server: none if that is fine; otherwise the node that it equals.
  /// One that was found to be another's twin is let in again only beside it: after a restart both
  /// have a new identity, and whichever came first would pass for the other's votes.
  [[nodiscard]] std::optional<std::size_t> find_twin(std::size_t node, const std::string& run_id);

  void set_up(std::size_t node, bool up) { known_[node].up = up; }

 private:
  struct Known {
    std::string run_id;
    bool up = false;
    std::optional<std::size_t> twin;
  };
  std::vector<Known> known_;
};

}  // namespace redlock::io
