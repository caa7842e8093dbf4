// SPDX-License-Identifier: MIT
// Commands that every node is asked once to execute, such as a release by force, and what each node
// replied. A broadcast is not repeated, and nothing is concluded from the replies here: that is
// done by the function that began it (force.cpp). It ends when every node has replied, or with the
// node timeout, because its caller is told of each node.
#pragma once

#include <vector>

#include "engine/electorate.hpp"
#include "engine/machine_table.hpp"
#include "engine/messages.hpp"
#include "engine/outbox.hpp"
#include "engine/quorum.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

/// One command and its replies.
class Broadcast {
 public:
  Broadcast(RequestId request, const Electorate& electorate, Instant now)
      : request_(request),
        deadline_(now + electorate.node_timeout()),
        pending_(electorate.nodes()),
        replies_(electorate.slots()) {}

  void on_reply(NodeIndex node, const Reply& reply);
  void on_deadline(Instant now);

  [[nodiscard]] Instant deadline() const { return deadline_; }
  [[nodiscard]] bool is_over() const { return pending_ == NodeSet{}; }
  [[nodiscard]] Finish take_result() { return {request_, BroadcastDone{std::move(replies_)}}; }

 private:
  RequestId request_;
  Instant deadline_;
  NodeSet pending_;
  std::vector<Reply> replies_;
};

class Broadcasts {
 public:
  Broadcasts(const Electorate& electorate, GrantIds& ids, Outbox& out)
      : electorate_(electorate), ids_(ids), out_(out) {}

  /// Sends the command, with its source: it is rare. `kind` is one of those (is_broadcast).
  void begin(Instant now, RequestId request, Tag::Kind kind, const Command& command);
  void on_reply(NodeIndex node, const Tag& tag, const Reply& reply);

  [[nodiscard]] Instant deadline() const { return under_way_.deadline(); }
  void on_deadline(Instant now);

 private:
  void after_input(GrantId id);

  const Electorate& electorate_;
  GrantIds& ids_;
  Outbox& out_;
  MachineTable<Broadcast> under_way_;  // by the grant of their tags, which is no lease's
};

}  // namespace redlock::engine
