// SPDX-License-Identifier: MIT
// What the nodes have replied to one release for whose result a caller waits. It is known when a
// quorum has replied one way. The messages, and their repetition, are the ledger's.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/electorate.hpp"
#include "engine/messages.hpp"
#include "engine/outputs.hpp"
#include "engine/quorum.hpp"

namespace redlock::engine {

class ReleaseTally {
 public:
  /// Nodes that are not asked certainly had nothing, but for those `awaited`, which may have it
  /// yet. Those `confirmed` are trusted to have the lock still.
  ReleaseTally(const Electorate& electorate, RequestId request, NodeSet asked, NodeSet confirmed,
               NodeSet awaited, Instant now);

  void on_reply(Instant now, NodeIndex node, const Reply& reply);
  void on_deadline(Instant now);

  [[nodiscard]] Instant deadline() const { return deadline_; }
  /// The result, once it is certain.
  [[nodiscard]] std::optional<Finish> result() const;

 private:
  [[nodiscard]] std::optional<Released> released() const;

  const Electorate* electorate_;
  RequestId request_;
  Instant deadline_;
  bool denied_ = false;  // a node should have had it, and has not forgotten it
  NodeSet pending_;
  NodeSet confirmed_;  // before
  NodeSet removed_;
  NodeSet absent_;     // they had nothing of this owner
  NodeSet forgotten_;  // they may have had it, and gave it to nobody
};

}  // namespace redlock::engine
