// SPDX-License-Identifier: MIT
// How a client maintains the markers of its nodes: which command carries out the engine's request
// to look for a marker or to write it, and the meaning of its answer.
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
  /// The consequence of an answer.
  struct Finding {
    bool there = false;                       ///< this client has nothing to wait for, or to find
    bool written = false;                     ///< by this client, on this connection
    std::optional<std::string> pending = {};  ///< there is none: the id of the pending node
    /// Another client wrote the marker: a new handshake has to judge it.
    bool reconnect = false;
  };
  /// The findings of a handshake on a node that was a replica.
  struct Promotion {
    bool pending = false;  ///< its marker does not vouch for it
    bool is_new = false;   ///< that was not so, or of another promotion, when it was shown last
  };

  /// All of them must outlive this.
  MarkerTending(engine::RandomSource& random, const SetTerms& set, std::size_t slots,
                bool quarantine);

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
