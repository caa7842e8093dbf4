// SPDX-License-Identifier: MIT
// What a program can observe: nodes that become available or unavailable, attempts, renewals,
// losses. For logs and metrics; nothing depends on an observer.
#pragma once

#include <redlock/cpp20.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <redlock/error.hpp>
#include <redlock/export.hpp>

namespace redlock {

/// Why a lease can no longer be trusted.
enum class LossReason : std::uint8_t {
  expired,            ///< its validity is ending, and the lease was not to be renewed
  taken,              ///< too few nodes still have the lock for this owner
  nodes_unavailable,  ///< too few nodes confirmed a renewal in time
  closed,             ///< its client ended, and released the lock unless it ended by itself
  forced,             ///< another program released the lock by force (Admin::force_release) or by
                      ///< its grant
};

/// For logs, and as label of the metrics: "expired", "taken".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(LossReason reason) noexcept;

/// What became of the leases that a client still had when it ended.
struct CloseReport {
  std::size_t released = 0;      ///< a quorum confirmed that the lock is free
  std::size_t already_gone = 0;  ///< a quorum said that this client did not hold it any more
  /// Too few nodes answered in time. The releases sent to the others may still arrive; otherwise
  /// the lock is free when the lease has ended by itself.
  std::size_t unconfirmed = 0;
};

/// The purpose of a command that was sent to a node.
enum class NodeCommand : std::uint8_t {
  acquire,  ///< to get the lock, or a place in the line
  heal,     ///< to grant the lock anew to its holder, on a node that no longer has it
  settle,   ///< to settle the token, where nodes gave different ones: a second round trip of the
            ///< attempt
  hold,     ///< to confirm or lengthen a lease: a renewal, extend, confirm or re-entry
  release,
  force,  ///< Admin::force_release
};

/// For logs, and as label of the metrics: "acquire", "hold".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(NodeCommand command) noexcept;

/// One command that a node answered with anything but an error.
struct NodeAnswer {
  std::string_view node;  ///< as it was configured, without its password
  NodeCommand command{};  ///< the command's purpose
  /// The same number for all commands of one attempt of this client, and of the lease that the
  /// attempt gets.
  std::uint64_t attempt = 0;
  /// From the decision to send the command, just before it is written, until the answer was read.
  std::chrono::nanoseconds round_trip{};
};

/// Override the functions of interest. Every call comes from the client's loop thread, or the
/// thread that runs the loop if that is the program's own (a call of on_release_failed after the
/// end of the client comes from the thread that called unlock), so an override must return soon and
/// must not wait for any operation of the same client. An exception that leaves an override ends
/// the client as a whole (see Client); the observer is told of that end, too, and an exception that
/// it throws then changes nothing.
class REDLOCK_EXPORT Observer {
 public:
  virtual ~Observer();

  /// The client begins to connect to the node: called for each node of its list, by the thread that
  /// creates the client; and for a node that takes the place of another one in the set (see
  /// Admin::replace), on the client's thread. Nothing is known of the node before its on_node_up or
  /// on_node_down.
  virtual void on_node_added(std::string_view node);
  /// The client has ended, so its last report on the node is void. Called before on_closed; and for
  /// a node that has lost its place in the set to another one.
  virtual void on_node_removed(std::string_view node);
  /// The node answers and may vote. `warning` says what is unsafe about the node, and is empty if
  /// nothing is. Called again when that has changed.
  virtual void on_node_up(std::string_view node, std::string_view warning);
  /// The node cannot vote until the next on_node_up, because it is away, or because it is
  /// quarantined, its clock moved, or it grants no lock (its memory is full, say). Called again
  /// when the cause has changed. The end of a connected node is noticed within ten seconds, or a
  /// sixth of max_lease if that is less.
  virtual void on_node_down(std::string_view node, Cause cause, std::string_view detail);
  /// The node's clock moved by `by` against this machine's (positive: ahead), which is more than
  /// clocks may differ. Earlier confirmations of the node are trusted for that much less time, and
  /// the node does not count until its clock has kept time for max_lease. With `ours` a quorum of
  /// nodes moved by as much: then it was this machine's clock that stood still or jumped (a virtual
  /// machine that was paused, say), the nodes count, and leases end that much earlier.
  virtual void on_clock_moved(std::string_view node, std::chrono::nanoseconds by, bool ours);
  /// One attempt was decided; `code` is null for a grant. `elapsed` counts from its first send.
  /// Also called, with Errc::contended, when an attempt goes on as a waiter behind other owners.
  virtual void on_attempt(std::string_view name, const Errc* code,
                          const std::vector<NodeVote>& votes, std::chrono::nanoseconds elapsed);
  /// A call waits in order for this name, behind `place` others, as a quorum of nodes counts them.
  /// Called again when that number has changed, or the call begins anew to wait there. Of several
  /// calls of one client only the first of a name is reported, and the next one when the first has
  /// the lock. Not called with Ordering::barging.
  virtual void on_waiting(std::string_view name, std::size_t place);
  /// A call for a lock has ended: acquire(), lock(), try_lock() and the like, a re-entry, attach().
  /// `code` is null if the call has the lock. Called before the caller has the result, unless the
  /// call is refused before it begins (stopped already, or too many calls are under way): then at
  /// about the same time. Not called for calls that cannot work (Errc::invalid_argument,
  /// would_deadlock) or that come after the end of the client.
  virtual void on_call(std::string_view name, const Errc* code);
  /// A lock was granted, `waited` after its call began, or came to its turn within its Owner.
  virtual void on_acquired(std::string_view name, std::uint64_t token,
                           std::chrono::nanoseconds waited);
  /// A lease was given back (the releases are being sent), `held` after its grant, or after the
  /// beginning of its attempt if that waited for nobody.
  virtual void on_released(std::string_view name, std::uint64_t token,
                           std::chrono::nanoseconds held);
  /// A quorum confirmed a renewal, or (`ok` false) did not confirm it within the node timeout.
  virtual void on_renewal(std::string_view name, bool ok, std::chrono::nanoseconds remaining);
  /// Lease::lost() of this lease was requested.
  virtual void on_lost(std::string_view name, std::uint64_t token, LossReason reason);
  /// An unlock() without a result to return could not confirm the release.
  virtual void on_release_failed(std::string_view name, const Error& error);
  /// A node answered a command. Called for each command and node, and before any event that follows
  /// from the answer, so an override must be quick. Not called for errors and for answers that
  /// never came (on_attempt has both among its votes), nor for commands that only read
  /// (Admin::inspect and the like).
  virtual void on_answer(const NodeAnswer& answer);
  /// The client has ended, by its destructor or by close(), or by itself (see Client): then it has
  /// released nothing, and all its leases are unconfirmed. Not called if the client ended in the
  /// child of a fork, or on its own loop thread when the system gave no thread for the remaining
  /// work.
  virtual void on_closed(const CloseReport& report);
};

}  // namespace redlock
