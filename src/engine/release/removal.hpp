// SPDX-License-Identifier: MIT
// One lock that is taken away from one owner while a caller waits for the result, and what the
// nodes have answered. A release ends when a quorum has answered one way; the messages, and their
// repetition, are the ledger's. A forced one ends when every node has answered, or with the node
// timeout, because the caller is told of each. A quorum that turns the owner away is enough for
// good, as no quorum can confirm the owner any more; so nothing is owed to the other nodes, and
// what they have ends with its lease.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/messages.hpp"
#include "engine/outputs.hpp"
#include "engine/quorum.hpp"
#include "engine/terms.hpp"

namespace redlock::engine {

class Removal {
 public:
  /// A release. Nodes that are not asked certainly had nothing. Those `confirmed` are trusted to
  /// have it still.
  Removal(const Terms& terms, RequestId request, NodeSet asked, NodeSet confirmed, Instant now);
  /// By force, on every node.
  Removal(const Terms& terms, RequestId request, Instant now);

  void on_reply(Instant now, NodeIndex node, const Reply& reply);
  void on_deadline(Instant now);

  [[nodiscard]] Instant deadline() const { return deadline_; }
  /// The result, once it is certain.
  [[nodiscard]] std::optional<Finish> result() const;

 private:
  [[nodiscard]] std::optional<Released> released() const;
  [[nodiscard]] ForceDone forced() const;

  const Terms* terms_;
  RequestId request_;
  Instant deadline_;
  bool by_force_;
  bool denied_ = false;  // a node should have had it, and has not forgotten it
  NodeSet pending_;
  NodeSet confirmed_;  // before
  NodeSet removed_;
  NodeSet absent_;     // they had nothing of this owner
  NodeSet forgotten_;  // they may have had it, and gave it to nobody
  std::vector<std::pair<NodeIndex, Unavailable>> reasons_;  // by force only
};

}  // namespace redlock::engine
