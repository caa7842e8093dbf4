// SPDX-License-Identifier: MIT
// Takes a lock away from one owner: every node is told to delete it and to turn that owner away
// from now on. A quorum that has done so is enough for good: the owner can be confirmed by no
// quorum any more. So nothing is owed to nodes that could not be told; what they have ends with its
// lease. But whoever forces a lock is told of every node: it ends when all have answered, or with
// the node timeout.
#pragma once

#include <optional>
#include <vector>

#include "engine/outbox.hpp"
#include "engine/quorum.hpp"
#include "engine/terms.hpp"

namespace redlock::engine {

class Forcing {
 public:
  struct Plan {
    GrantId id = 0;  ///< of the messages; there is no grant of ours
    RequestId request = 0;
    Name name;
    OwnerId owner;
    std::chrono::milliseconds lease{};  ///< the longest that the owner's messages can ask for
  };

  Forcing(const Terms& terms, const Plan& plan, Instant now, Outbox& out);

  void on_reply(NodeIndex node, const Reply& reply);
  void on_deadline(Instant now);

  [[nodiscard]] RequestId request() const { return request_; }
  [[nodiscard]] Instant deadline() const { return deadline_; }
  /// What came of it, once every node has answered or was given up.
  [[nodiscard]] std::optional<ForceDone> outcome() const;

 private:
  RequestId request_;
  Instant deadline_;
  NodeSet removed_;
  std::vector<Ballot> ballots_;
};

}  // namespace redlock::engine
