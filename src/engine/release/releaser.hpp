// SPDX-License-Identifier: MIT
// Releases of our own grants, and of those from elsewhere. The ledger repeats what nodes have not
// confirmed; the tallies end the calls that wait for a release.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "engine/electorate.hpp"
#include "engine/machine_table.hpp"
#include "engine/messages.hpp"
#include "engine/outbox.hpp"
#include "engine/quorum.hpp"
#include "engine/release/release_ledger.hpp"
#include "engine/release/release_tally.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

class Attempt;
class HeldLease;

class Releaser {
 public:
  Releaser(const Electorate& electorate, GrantIds& ids, Outbox& out)
      : electorate_(electorate), ids_(ids), out_(out), ledger_(electorate.slots()) {}

  /// What an attempt that failed may have left on nodes. Its client stands in their lines at this
  /// place then, or as before.
  void release(Instant now, const Attempt& attempt, const Place& place);
  /// A lease that its holder gives back; request 0 asks for no Finish.
  void release(Instant now, RequestId request, const HeldLease& lease);
  /// Somebody's grant, whose lease was as long as any may be.
  void release(Instant now, RequestId request, Name name, OwnerId owner);

  /// To a release.
  void on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply);
  /// To an acquire or heal of a grant that may be over.
  void on_acquire_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
    ledger_.on_acquire_reply(now, node, tag, reply, out_);
  }
  /// To a hold of a grant that is over.
  void on_hold_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply) {
    ledger_.on_hold_reply(now, node, tag, reply);
  }
  /// Nothing can be sent to the node any more.
  void forget(NodeIndex node) { ledger_.forget(node); }
  void on_node_up(Instant now, NodeIndex node) { ledger_.on_node_up(now, node, out_); }

  [[nodiscard]] Instant deadline() const {
    return std::min(tallies_.deadline(), ledger_.deadline());
  }
  void on_deadline(Instant now);

  [[nodiscard]] std::size_t under_way() const { return ledger_.under_way(); }
  [[nodiscard]] std::uint32_t nodes_under_way() const { return ledger_.nodes_under_way(); }
  [[nodiscard]] bool taken_elsewhere_under_way() const {
    return ledger_.taken_elsewhere_under_way();
  }

 private:
  void begin(Instant now, RequestId request, const ReleaseLedger::OwedGrant& grant, NodeSet nodes,
             NodeSet confirmed, NodeSet awaited = {});
  void after_input(GrantId grant);

  const Electorate& electorate_;
  GrantIds& ids_;
  Outbox& out_;
  ReleaseLedger ledger_;
  MachineTable<ReleaseTally> tallies_;  // by grant
};

}  // namespace redlock::engine
