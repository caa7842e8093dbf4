// SPDX-License-Identifier: MIT
// The engine's decisions, as plain values: messages for the nodes, and results for the client.
// Within a turn the nodes come first: a client that receives a failure finds the releases under
// way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <redlock/error.hpp>
#include <redlock/lease.hpp>
#include <redlock/observer.hpp>

#include "engine/lease/lease_key.hpp"
#include "engine/messages.hpp"
#include "engine/nodes/set_configuration.hpp"
#include "engine/quorum.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

// For the nodes.

struct Send {
  NodeIndex node = 0;
  Tag tag;
  Command command;
  Form form = Form::digest;
};

/// A quarantined node's marker is to be looked for, and the node marked as pending if there is
/// none; or, its time being over and the node still pending as before, to be written. To be
/// answered with on_marker() or on_pending_marker(), if the node can be asked at all. Without
/// quarantine: any node is to be asked whether it has a marker or is pending; if so, on_marker() is
/// called.
struct TendMarker {
  NodeIndex node = 0;
  bool write = false;
  Membership marker = {};    ///< what it is to say
  std::string pending = {};  ///< the id that the node must still have
  Duration longest_lease{};  ///< of any client, which says how long what is noted there is kept
};

/// The node's marker is to be read once more: on_members(), or on_no_marker().
struct ReadMembers {
  NodeIndex node = 0;
};

/// Every node's clock is to be read at once, to tell which clock moved.
struct ReadClocks {};

/// A note is to be left on the node that its clock is not to be trusted for so long.
struct NoteClock {
  NodeIndex node = 0;
  Duration lasts{};
};

/// The node's place in the set is another server's by now, at this address, as a quorum shows. The
/// connection is to be closed, and the next one to lead there. To be answered with on_moved().
struct MoveNode {
  NodeIndex node = 0;
  std::string address;
};

using NodeOutput = std::variant<Send, TendMarker, ReadMembers, ReadClocks, NoteClock, MoveNode>;

// For the client.

/// One node's part in a decision, with the node as a number.
struct Ballot {
  Vote vote = Vote::pending;
  Cause cause = Cause::none;
  std::string detail;
  Objection objection{};
  bool counts = true;  ///< false: no member had this number
};

/// When a lease is lost unless it is confirmed before, and the reason of that loss.
struct LossDeadline {
  Instant lost_at{};
  LossReason reason{};
};

struct AcquireSucceeded {
  GrantId grant = 0;
  OwnerId owner;
  Token token = 0;
  Instant valid_until{};
  LossDeadline loss_deadline{};
  SharedLeaseKey key{};
};
struct ReleaseDone {
  Released outcome{};
};
/// What each node replied to a command that every node was asked to execute.
struct BroadcastDone {
  std::vector<Reply> replies;  ///< by node; Unavailable where there was none

  /// The nodes whose reply is one of these.
  template <typename... Some>
  [[nodiscard]] NodeSet replied() const {
    NodeSet nodes;
    for (NodeIndex node = 0; node < replies.size(); ++node) {
      if ((std::holds_alternative<Some>(replies[node]) || ...)) nodes.insert(node);
    }
    return nodes;
  }
};
struct ExtendSucceeded {
  Instant valid_until{};
};
struct EnterSucceeded {
  std::uint32_t count = 0;  ///< how many levels are held now, this one included
  Instant valid_until{};
  GrantId grant = 0;  ///< of the lease that was entered, for a call that took a name
};
struct Failed {
  Errc code{};
  std::string detail;  ///< the cause, for the message; may be empty
  std::vector<Ballot> ballots;
};

/// A request has ended. Exactly one for every request.
struct Finish {
  RequestId request = 0;
  std::variant<AcquireSucceeded, ReleaseDone, ExtendSucceeded, EnterSucceeded, BroadcastDone,
               Failed>
      result;
};
/// A lease's validity was confirmed anew, or shortened because a node took back its vote or its
/// clock went ahead. After a loss it is only shortened.
struct ValidityChanged {
  GrantId grant = 0;
  Instant valid_until{};
  LossDeadline loss_deadline{};
};
/// Nothing more will be confirmed for this lease. At most once for a lease, never after its
/// release.
struct LeaseLost {
  GrantId grant = 0;
  LossReason reason{};
};
/// For observers only.
struct AttemptDecided {
  Name name;
  std::optional<Errc> failure;
  std::vector<Ballot> ballots;
  Duration elapsed{};
};
struct RenewalDecided {
  GrantId grant = 0;
  bool ok = false;
  Instant valid_until{};
};
/// A call waits behind `place` others, by the nodes' replies. Again when that number has changed,
/// and when another attempt of the call begins to wait.
struct AttemptWaits {
  Name name;
  std::uint32_t place = 0;
  bool first = false;           ///< the attempt begins to wait
  std::vector<Ballot> ballots;  ///< then
  Duration elapsed{};
};
struct WaitEnded {
  GrantId grant = 0;
  Name name;
  Token token = 0;
  Duration waited{};  ///< since the call began
};
struct HoldEnded {
  GrantId grant = 0;
  Name name;
  Token token = 0;
  Duration held{};  ///< since the grant, or from the beginning of an attempt that did not wait
};
/// A node's clock jumped or drifts. The node does not count for max_lease from now, unless a quorum
/// of nodes moved by as much: then our own clock stood still or jumped.
struct NodeClockMoved {
  NodeIndex node = 0;
  Duration by{};      ///< against our clock; positive: the node's went ahead
  bool ours = false;  ///< as far as the nodes that were read so far can tell
};

using ClientOutput =
    std::variant<Finish, ValidityChanged, LeaseLost, AttemptDecided, RenewalDecided, AttemptWaits,
                 WaitEnded, HoldEnded, NodeClockMoved>;

struct Outputs {
  std::vector<NodeOutput> nodes;
  std::vector<ClientOutput> client;

  [[nodiscard]] bool empty() const { return nodes.empty() && client.empty(); }
  void clear() {
    nodes.clear();
    client.clear();
  }
};

}  // namespace redlock::engine
