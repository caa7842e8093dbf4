// SPDX-License-Identifier: MIT
// Everything that can be set, with its default: once for a Client, and per call for an acquisition.
#pragma once

#include <redlock/cpp20.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <redlock/clock.hpp>
#include <redlock/continuation.hpp>
#include <redlock/error.hpp>
#include <redlock/export.hpp>

namespace redlock {

class Observer;

/// Where tokens start. With `clock` a new token is at least the nodes' median time in microseconds
/// (as the client estimates it), which keeps tokens rising even over nodes that lost their data and
/// settles nearly every grant in one round trip. With `none` tokens are small numbers from 1.
enum class FenceFloor { clock, none };

/// Whether a node that may have forgotten a grant (it was wiped, or restarted without its newest
/// data, or was a replica) has to wait until all leases of before are over, about max_lease, before
/// it may vote again. `off` is for tests: with it, two programs can hold one lock after a restart.
/// Such a client refuses nodes that have a marker (see Admin::adopt): other clients rely on it.
enum class Quarantine { on, off };

/// Who gets a lock for which several wait.
enum class Ordering {
  /// In the order in which they began to wait, whatever any clock shows: each node keeps a line of
  /// the waiters and tells the first that its turn has come. A call that does not wait overtakes nobody
  /// who does. docs/waiting.md says how exact the order is.
  fifo,
  /// In no order: whoever asks a node first after a release. A call that waits asks again after
  /// random pauses (retry_min, retry_max), and stands in no line. It may overtake those who are. Two
  /// calls of one client for one name ask at a time; the others wait until they move up.
  barging,
};

/// A duration that never ends, for AcquireOptions::wait.
inline constexpr std::chrono::milliseconds forever = std::chrono::milliseconds::max();

/// The nodes of a list as people write it, for ClientOptions::nodes: each as `nodes` takes it, with
/// commas, spaces or line breaks between them; a `#` in place of a node begins a comment, up to the
/// end of the line. A comma or a space inside a password is written %2C or %20. Fails with
/// invalid_argument, and a sentence that names the entry and repeats no password.
[[nodiscard]] REDLOCK_EXPORT Result<std::vector<std::string>> parse_nodes(std::string_view text);

/// For ClientOptions::password: from this file, read anew for every connection. Its first line is
/// the password of all nodes; unless the first line that is not empty and does not begin with #
/// begins with redis://, rediss:// or unix://. Then each line is for one node: the node as errors
/// show it, a space, and its password up to the end of the line. Lines that are empty or begin with
/// # count for nothing there, and a node that is in no line has the password of its URI:
///
///     redis://redlock@10.0.0.1:6379 the password of that node
///     redis://redlock@10.0.0.2:6379 that of this one
///
/// Fails with invalid_argument and a sentence that repeats nothing of the file, if that is no
/// regular file, cannot be read, has more than 65,536 bytes, or a line that is not like that. While
/// it is so later, nodes have the passwords of their URIs.
[[nodiscard]] REDLOCK_EXPORT Result<std::function<std::string(std::string_view node)>>
password_from_file(std::string path);

/// For ClientOptions::trace: appends each line to this file, which is made if there is none. A line
/// is one write(), so that the programs of a machine can share a file. A line that cannot be
/// written (the disk is full, or the reader of a pipe has gone or is late) is left out. Copies of
/// the function share one descriptor, which is closed with the last of them. Throws
/// std::system_error, whose what() is a sentence, if the file cannot be opened.
[[nodiscard]] REDLOCK_EXPORT std::function<void(std::string_view line)> trace_to_file(
    const std::string& path);

/// For nodes whose URI begins with rediss://. Client::create reads the files, and fails with a
/// sentence if one of them cannot serve. They are read again for the next connection when they have
/// changed, on the client's own thread: they should be small, and not on a file system that may
/// hang. Files that cannot serve then (half of one, or a key that is not that of the certificate)
/// change nothing: what was read before stays in use, and Observer::on_node_up and the errors of
/// nodes that are refused say which is wrong. A node's certificate is always verified, with its
/// name, and no other version than TLS 1.2 or newer is spoken.
struct TlsOptions {
  /// The authorities that are trusted: a file of PEM certificates, or a directory of such files.
  /// Empty: those of the system.
  std::string ca{};
  /// What this client shows to nodes that ask for it: a PEM file with its certificate, behind which
  /// those of the authorities between may follow. With `key`, or neither.
  std::string certificate{};
  std::string key{};  ///< the PEM file with the key of `certificate`
  /// The host name or address that every node's certificate must have, whole: no dot before it, no
  /// wildcard. Empty: the host of the node's URI, or what it says behind ?name=.
  std::string name{};
};

/// How a Client finds its nodes and how it behaves unless a call says otherwise.
struct ClientOptions {
  /// The options that the environment asks for, as the command `redlock` understands it:
  /// REDLOCK_NODES is a list for parse_nodes(), or else REDLOCK_NODES_FILE names a regular file
  /// with one. REDLOCK_MAX_LEASE (30s, 500ms, 2m, 1h) sets `max_lease`, and `lease` if that is
  /// longer. REDLOCK_PASSWORD_FILE names a file for password_from_file(), REDLOCK_TLS_CA,
  /// REDLOCK_TLS_CERT, REDLOCK_TLS_KEY and REDLOCK_TLS_NAME are those of TlsOptions, and
  /// REDLOCK_QUARANTINE=off (for tests) sets `quarantine`, REDLOCK_TRACE names a file for
  /// trace_to_file(), which is opened here; there are no others. A list given here,
  /// from a program's own configuration, goes before both of the environment. Fails with
  /// invalid_argument if none names a node, or a variable or its file is bad. Reads the
  /// environment: no other thread may change it meanwhile.
  [[nodiscard]] REDLOCK_EXPORT static Result<ClientOptions> from_env(
      std::optional<std::string_view> nodes = {});

  /// The independent Redis masters, all of them, in any order:
  /// `redis://[user:pass@]host[:port][/db]`, the same with `rediss://` for TLS, and there perhaps
  /// `?name=NAME` (that of its certificate), `unix:///path?db=N`, or host:port alone (an IPv6
  /// address in brackets). A quorum is a majority of this list, reachable or not, so every program
  /// must be given the same list.
  std::vector<std::string> nodes{};

  /// For nodes with rediss://.
  TlsOptions tls{};

  /// How long a node keeps a grant that nobody renews.
  std::chrono::milliseconds lease{30'000};
  /// No lease may be longer. Kept in each node's marker: all clients of a set must agree on it.
  /// With another one, or with a list of another length, no lock can be taken: the error says both
  /// values, and Error::is_configuration().
  std::chrono::milliseconds max_lease{60'000};
  /// Part of the lease set aside for clocks that run at different speeds, client's and node's
  /// together; 2 ms are added. 0.01 as in the Redlock description (redis.io, "Distributed Locks").
  double drift_factor = 0.01;
  /// How long one node may take to answer before its vote is counted as unavailable.
  std::chrono::milliseconds node_timeout{250};
  /// A grant with no more than this validity left is given back as too_late.
  std::chrono::milliseconds min_validity{0};

  /// Who gets a lock for which several wait, unless a call says otherwise.
  Ordering ordering = Ordering::fifo;
  /// The random pause before another attempt, where no node can tell that it is time for one (no
  /// quorum answers, or `ordering` is barging): between the two, doubling up to the cap if that is
  /// larger.
  std::chrono::milliseconds retry_min{20};
  std::chrono::milliseconds retry_max{60};  ///< the longest of these pauses, at first
  std::chrono::milliseconds retry_cap{60};  ///< what they may double up to

  /// Bounds of one connection: resolving the name; connecting and the whole handshake. A look-up
  /// that takes longer goes on; meanwhile the addresses that the last one found are used.
  std::chrono::milliseconds resolve_timeout{2'000};
  std::chrono::milliseconds connect_timeout{1'000};  ///< for connecting and the whole handshake

  /// The newest password of a node, for passwords that change while the program runs; `node` is as
  /// in `nodes`, without its password. Called for every connection; an empty answer means the
  /// password in the URI, which may be empty (`redis://user:@host`). If the node says that it is
  /// wrong, the one that it took last is tried once on the same connection, so that nodes and
  /// programs may be given a new one in any order. Called on the client's own thread, and, during a
  /// call of Admin, on one of that call as well: it must be safe for both at once, return soon (a
  /// small file may be read), and wait for no operation of this client; an exception that leaves it
  /// ends the client (see Client). See also password_from_file().
  std::function<std::string(std::string_view node)> password{};

  FenceFloor fence_floor = FenceFloor::clock;  ///< where tokens start
  Quarantine quarantine = Quarantine::on;      ///< off for tests alone

  /// Shown by CLIENT LIST on each node.
  std::string client_name = "redlock";
  /// The name of this program where people see who holds a lock (Holder::label; redlock status).
  /// Empty: the name of the program. Cut at 64 bytes, control characters replaced.
  std::string label{};

  /// Where the program continues when an operation has its result: with the callback of
  /// Operation::start, the coroutine that awaits, the future of as_future(). Empty: on the client's
  /// loop thread. Otherwise this function is given each Continuation, once, in the order of the
  /// results, and has to see to it that it is called: `queue.push(std::move(it))`, for a thread
  /// pool or the event loop of the program. Blocking calls may be made there, if the client runs
  /// its own loop.
  ///
  /// It is given every result, also one that is known at once (an invalid argument, say), and those
  /// of a client that ends, before ~Client or close() returns. Only an empty Lease and an Operation
  /// that was moved from, which have no client, continue where they are started, and so does
  /// everything in the child of a fork. Observers and what is tied to lost() stay on the client's
  /// own threads.
  ///
  /// The function is called on the client's loop thread or, for a result that is known at once, on
  /// the thread that starts the operation. So it must be safe for several threads at once, return
  /// soon, wait for no operation of this client, and not throw: an exception ends the program, as
  /// the continuation that it was given, with whoever waits for it, may be gone.
  ///
  /// A continuation that is destroyed uncalled, by a pool that has stopped, say, is run nowhere
  /// else, because it belongs nowhere else. Its result is destroyed, and the lease in it is
  /// released (what async_try_lock() took stays with its RedLock). A callback is destroyed, a
  /// future fails with std::future_errc::broken_promise, and a coroutine stays suspended, which its
  /// owner may destroy then. To avoid that, end the client first, and then the executor, when it
  /// has run what it was given. Where ~Client does not wait (after async_close(), in a callback on
  /// the client's own thread, with a loop of the program's) results come after it as well: there
  /// the executor must live on until they have come, that of async_close() last.
  std::function<void(Continuation it)> resume_on{};

  /// Is called for what happens (see observer.hpp). May be null. A lease keeps its client alive,
  /// and the client its observer: one that keeps leases of that client has to let go of them.
  std::shared_ptr<Observer> observer{};
  /// Is given a line, without its end, for each message to a node, each reply and wake-up, and each
  /// decision of this client: for people who want to know why a call took so long, or failed. A
  /// line is the time in UTC, the process, the client, and words, which are no interface and will
  /// change; docs/trace.md says how to read them. It has names of locks and of nodes, and no
  /// password. What Admin asks is not traced. Empty: nothing is put in words. See trace_to_file().
  ///
  /// Called by the thread that runs the loop: the client's own, or one that is blocked in a call of
  /// this client. So it must return soon, wait for no operation of this client, and take no lock
  /// that callers of this client hold meanwhile. An exception that leaves it ends the client, as
  /// one of an observer does (see Client). The line is valid during the call.
  std::function<void(std::string_view line)> trace{};

  /// Without an observer, stderr gets a line beginning with "redlock:" when a lease is lost about
  /// which the program has asked nothing (lost(), loss_reason(), valid(), valid_until(),
  /// remaining(), held_by_me(), extend() and confirm() ask), and when unlock() did not find its
  /// lock, of whose loss the program was not told, or could not confirm its release. One line in
  /// ten seconds at most for the whole program, and none if stderr has no room for it. False where
  /// descriptor 2 is not stderr.
  bool warn_on_stderr = true;
};

/// Whether the watchdog renews a lease until it is released.
enum class Renewal {
  when_no_lease_given,  ///< renew a lease of default length; let an explicit one end by itself
  always,
  never,
};

/// One acquisition. The defaults try once and hold, renewed, until released.
struct AcquireOptions {
  /// The length of the lease; none means the client's default.
  std::optional<std::chrono::milliseconds> lease{};
  Renewal renewal = Renewal::when_no_lease_given;  ///< whether the watchdog renews the lease
  /// How long to keep trying while others hold the lock. Zero: one attempt. `forever`: no end. An
  /// attempt under way at the end is still decided, which takes one node timeout at most; set
  /// `deadline` too where that is too long.
  std::chrono::milliseconds wait{0};
  /// The call ends by this moment, whatever the other options say.
  std::optional<BootClock::time_point> deadline{};
  /// In place of the client's ordering.
  std::optional<Ordering> ordering{};
  /// In place of the client's min_validity.
  std::optional<std::chrono::milliseconds> min_validity{};
  /// The watchdog stops renewing this long after the grant: a bound on a holder that hangs.
  std::optional<std::chrono::milliseconds> max_hold{};
};
// `co_await lock.async_acquire({.wait = 1s})` is right with g++ 12, too, which destroys an
// aggregate twice that is made inside of a co_await expression. What has to be destroyed, as the
// stop_token of a call, is a parameter of its own.
static_assert(std::is_trivially_destructible_v<AcquireOptions>);

}  // namespace redlock
