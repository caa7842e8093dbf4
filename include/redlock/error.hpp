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
  /// A quorum of nodes voted and another owner holds the lock (the message says if that owner
  /// belongs to this client), or, for a call that does not wait, comes next by its turn. The grants
  /// of this attempt on other nodes are being released.
  contended = 1,
  /// Fewer than a quorum of nodes could vote in time. Grants that the attempt may have left on
  /// nodes are being released; a node that cannot be reached frees the lock within one lease.
  no_quorum,
  /// A quorum granted the lock, but too late for the validity that was asked for. The lock is
  /// released.
  too_late,
  /// The waiting time or the deadline of the call ended first. Nothing is held.
  timed_out,
  /// The lease is over, or can no longer be trusted: another owner may hold the lock now.
  lost,
  /// The caller's stop_token was requested. Nothing is held.
  cancelled,
  /// An argument or option cannot work; the message says which one and what to do. Nothing was
  /// sent, except by RedLock::attach(), which asks the nodes about the token, and by Admin.
  invalid_argument,
  /// The client was destroyed (or could not start), has ended by itself (out of memory, or by an
  /// exception of the program's: see Client), or this is the child of a fork. Nothing more will be
  /// sent.
  closed,
  /// Waiting here would never end: this is one of the client's own threads (a callback), or the
  /// program runs the client's loop.
  would_deadlock,
};

/// One node's part in a decision. Nothing is known of a `pending` node: it had not answered when
/// the result was certain without it, or when the time of the call ended.
enum class Vote : std::uint8_t { pending, granted, refused, unavailable };

/// Why a node was unavailable. `none` for a node that voted or has not answered yet.
enum class Cause : std::uint8_t {
  none,
  timed_out,          ///< no answer within the node timeout
  connecting,         ///< the client has just started, and is making its first connection to the
                      ///< node
  connection_failed,  ///< could not connect: refused, unreachable, name not resolved
  connection_lost,    ///< the connection broke with the answer outstanding
  authentication,     ///< NOAUTH or WRONGPASS: user or password are wrong or missing
  permission,         ///< NOPERM, DENIED, or a renamed command: the user may not do this
  incompatible,       ///< the node is unfit: marker disagrees, another set, no member any more,
                      ///< too old, a replica, a cluster node, or the same server as another
  loading,            ///< LOADING: the node is still reading its data
  busy,               ///< BUSY: the node is running a script that does not end
  write_error,        ///< MISCONF: the node cannot persist its data
  out_of_memory,      ///< OOM
  read_only,          ///< READONLY: the node is a replica
  master_down,        ///< MASTERDOWN
  too_few_replicas,   ///< NOREPLICAS
  moved,              ///< MOVED or ASK: the node belongs to a cluster
  marker_missing,     ///< the node's marker is gone
  quarantined,        ///< the node does not vote yet: it may have forgotten a grant, has no marker
                      ///< and no place in the set, or it is not known which set or members count
  clock_moved,        ///< the node's clock jumped or drifts, and the node does not vote for
                      ///< max_lease
  tls,                ///< a certificate, the node's or the client's, is refused, or one side has
                      ///< no TLS
  protocol_error,     ///< the node's answer is not that of Redis, or it floods this client
  server_error,       ///< any other error reply
};

/// One node's vote. `detail` is the node's error reply, or the library's own sentence; it never has
/// a password.
struct NodeVote {
  std::string node;           ///< the node as it was configured, without its password; or the one
                              ///< that has taken its place
  Vote vote = Vote::pending;  ///< how the node voted
  Cause cause = Cause::none;  ///< why the node was unavailable
  std::string detail;         ///< in words, empty if there is nothing to add
};

/// A failed operation: what failed, in words, and how each node voted (empty where no node was
/// asked, or a call that waits ended between two attempts).
struct Error {
  Errc code{};                  ///< to branch on
  std::string message;          ///< a sentence to show
  std::vector<NodeVote> votes;  ///< of every node, in the order of the configuration

  /// True if so many nodes are unavailable for a reason that waiting cannot cure (wrong password,
  /// missing permission, bad certificate, unfit node) that these alone keep a quorum from voting.
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
