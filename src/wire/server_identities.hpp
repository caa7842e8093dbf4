// SPDX-License-Identifier: MIT
// Notices when two nodes of the list are one server (two names, an address written twice), which
// would vote twice.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/types.hpp"

namespace redlock::wire {

class ServerIdentities {
 public:
  ServerIdentities(std::size_t nodes, engine::Duration max_lease)
      : max_lease_(max_lease), known_(nodes) {}

  /// The node reports this run id: none if no other node has it; otherwise the node that is the
  /// same server, or may be.
  [[nodiscard]] std::optional<std::size_t> find_twin(engine::Instant now, std::size_t node,
                                                     const std::string& run_id);

  void set_up(engine::Instant now, std::size_t node, bool up);

 private:
  struct Known {
    std::string run_id;
    bool up = false;
    engine::Instant last_up{};  // of one that is down
    std::optional<std::size_t> twin;
  };

  [[nodiscard]] bool may_have_voted(engine::Instant now, const Known& node) const;

  const engine::Duration max_lease_;
  std::vector<Known> known_;
};

}  // namespace redlock::wire
