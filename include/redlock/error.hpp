// SPDX-License-Identifier: MIT
// What can go wrong, and what is known afterwards. Every operation answers with a Result: the
// value, or an Error with a code to branch on, a sentence to show, and the vote of each node.
#pragma once

#include <redlock/cpp20.hpp>

#include <cstdint>
#include <string>
#include <system_error>
#include <tl/expected.hpp>
#include <vector>

#include <redlock/export.hpp>

namespace redlock {

/// Why an operation did not succeed. A code is also a std::error_code of the category "redlock".
enum class Errc {
  /// A quorum of nodes voted and another owner holds the lock (the message says if that is of this
  /// client). What this attempt got on other nodes is being released.
  contended = 1,
  /// Fewer than a quorum of nodes could vote in time. What the attempt may have left on a node is
  /// being released; a node that cannot be reached frees itself within one lease.
  no_quorum,
  /// A quorum granted the lock, but too late for the validity that was asked for. It is released.
  too_late,
  /// The waiting time or the deadline of the call ended first. Nothing is held.
  timed_out,
  /// The lease is over, or can no longer be trusted: somebody else may hold the lock now.
  lost,
  /// The caller's stop_token was requested. Nothing is held.
  cancelled,
  /// An argument or option cannot work; the message says which and what to do. Nothing was sent.
  invalid_argument,
  /// The client was destroyed (or could not start), has ended by itself (for want of memory, or by
  /// an exception of the program's: see Client), or this is the child of a fork. Nothing more will
  /// be sent.
  closed,
  /// Waiting here would never end: this is one of the client's own threads (a callback).
  would_deadlock,
};

/// One node's part in a decision. Of a node that is `pending` nothing is known: it had not answered
/// when the result was certain without it, or when the time of the call ended.
enum class Vote : std::uint8_t { pending, granted, refused, unavailable };

/// Why a node was unavailable. `none` for a node that voted or has not answered yet.
enum class Cause : std::uint8_t {
  none,
  timed_out,          ///< no answer within the node timeout
  connecting,         ///< the client has just begun, and its first connection is being made
  connection_failed,  ///< could not connect: refused, unreachable, name not resolved
  connection_lost,    ///< the connection broke with the answer outstanding
  authentication,     ///< NOAUTH or WRONGPASS: user or password are wrong or missing
  permission,         ///< NOPERM, DENIED, or a renamed command: the user may not do this
  incompatible,       ///< the node is unfit: marker disagrees, too old, a replica, a cluster node
  loading,            ///< LOADING: still reading its data
  busy,               ///< BUSY: it runs a script that does not end
  write_error,        ///< MISCONF: it cannot persist
  out_of_memory,      ///< OOM
  read_only,          ///< READONLY: it is a replica
  master_down,        ///< MASTERDOWN
  too_few_replicas,   ///< NOREPLICAS
  moved,              ///< MOVED or ASK: it is a cluster node
  marker_missing,     ///< the node's marker is gone
  quarantined,        ///< it may have forgotten a grant and does not vote yet
  clock_moved,        ///< its clock jumped or runs, and it does not vote for max_lease
  tls,                ///< no trust: its certificate, or ours, is refused, or one side has no TLS
  protocol_error,     ///< it answered something that is not Redis, or floods this client
  server_error,       ///< any other error reply
};

/// One node's vote. `detail` is the node's error reply, or a sentence of ours; never a password.
struct NodeVote {
  std::string node;           ///< the node as it was configured, without its password
  Vote vote = Vote::pending;  ///< what it said
  Cause cause = Cause::none;  ///< why it was unavailable
  std::string detail;         ///< in words, empty if there is nothing to add
};

/// A failed operation: what, in words, and how each node voted (empty where no node was asked).
struct Error {
  Errc code{};                  ///< to branch on
  std::string message;          ///< a sentence to show
  std::vector<NodeVote> votes;  ///< of every node, in the order of the configuration

  /// True if so many nodes are unavailable for a reason that waiting cannot mend (wrong password,
  /// missing permission, bad certificate, unfit node) that this alone keeps a quorum from voting.
  [[nodiscard]] REDLOCK_EXPORT bool is_configuration() const;
};

/// The value, or why there is none.
template <typename T>
using Result = tl::expected<T, Error>;

/// The category "redlock". Its codes compare equal to the std::errc that means the same:
/// timed_out, operation_canceled, invalid_argument, resource_deadlock_would_occur.
[[nodiscard]] REDLOCK_EXPORT const std::error_category& error_category() noexcept;

/// The code as one of the standard's, of error_category().
[[nodiscard]] REDLOCK_EXPORT std::error_code make_error_code(Errc code) noexcept;

/// Short names for logs: "contended", "refused", "out_of_memory".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(Errc code) noexcept;
/// For logs: "granted", "refused", "unavailable", "pending".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(Vote vote) noexcept;
/// For logs, and as label of the metrics: "timed_out", "quarantined".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(Cause cause) noexcept;

}  // namespace redlock

template <>
struct std::is_error_code_enum<redlock::Errc> : std::true_type {};
