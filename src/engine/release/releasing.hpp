// SPDX-License-Identifier: MIT
// A release whose caller waits: counts what the nodes say until a quorum has answered one way. The
// messages themselves, and their repetition, are the ledger's.
#pragma once

#include <optional>

#include "engine/messages.hpp"
#include "engine/quorum.hpp"
#include "engine/terms.hpp"

namespace redlock::engine {

class Releasing {
 public:
  /// Nodes that are not asked certainly had nothing. Those `confirmed` are trusted to have it
  /// still.
  Releasing(const Terms& terms, RequestId request, NodeSet asked, NodeSet confirmed, Instant now)
      : terms_(&terms),
        request_(request),
        asked_(asked),
        confirmed_(confirmed),
        deadline_(now + terms.node_timeout()) {
    tally_.nodes = terms.nodes();
    tally_.no = terms.nodes() - asked.size();
  }

  void on_reply(Instant now, NodeIndex node, const Reply& reply);
  void on_deadline(Instant now);

  [[nodiscard]] RequestId request() const { return request_; }
  [[nodiscard]] Instant deadline() const { return deadline_; }
  /// The outcome, once it is certain.
  [[nodiscard]] std::optional<Released> outcome() const;

 private:
  const Terms* terms_;
  RequestId request_;
  NodeSet asked_;
  NodeSet confirmed_;
  Tally tally_;
  std::uint32_t forgotten_ = 0;  // among the unavailable: may have had it, and gave it to nobody
  bool denied_ = false;          // a node should have had it, and has not forgotten it
  Instant deadline_;
};

}  // namespace redlock::engine
