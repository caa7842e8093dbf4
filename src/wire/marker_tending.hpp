// SPDX-License-Identifier: MIT
// What a client does about the markers of its nodes: which command carries out the engine's wish to
// have a marker looked for or written, and what its answer means.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "wire/node_marker.hpp"
#include "wire/server_facts.hpp"
#include "wire/value.hpp"

namespace redlock::wire {

class MarkerTending {
 public:
  /// What follows from an answer.
  struct Finding {
    bool there = false;                       ///< this client has nothing to wait for, or to find
    bool written = false;                     ///< by this client, on this connection
    std::optional<std::string> pending = {};  ///< there is none: the id of the pending node
    /// Somebody else wrote the marker: a new handshake is to judge it.
    bool reconnect = false;
  };
  /// What a handshake shows of a node that was a replica.
  struct Promotion {
    bool pending = false;  ///< its marker does not vouch for it
    bool is_new = false;   ///< that was not so, or of another promotion, when it was shown last
  };

  /// All of them must outlive this.
  MarkerTending(engine::RandomSource& random, const SetTerms& set, bool quarantine);

  [[nodiscard]] Promotion on_facts(engine::NodeIndex node, const ServerFacts& facts);

  [[nodiscard]] std::vector<std::string> command(const engine::TendMarker& what);
  [[nodiscard]] Finding read(const engine::TendMarker& what, const Answer& answer) const;

 private:
  engine::RandomSource& random_;
  const SetTerms& set_;
  const bool quarantine_;
  std::vector<std::string> promotions_;  // of servers that were replicas
};

}  // namespace redlock::wire
