// SPDX-License-Identifier: MIT
// All options, with their defaults: those of a Client, and those of each acquisition.
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
/// data, or was a replica) has to wait until all earlier leases are over, about max_lease, before
/// it may vote again. `off` is for tests, on nodes that keep nothing on disk and are started for
/// each run: there the first lock would come a minute (max_lease) after the start. With `off`, two
/// programs can hold one lock after a restart. A client with `off` refuses nodes that have a marker
/// (see Admin::adopt), because other clients rely on quarantine there.
enum class Quarantine { on, off };

/// Which waiter receives the lock next.
enum class Ordering {
  /// Waiters are served in the order in which they began to wait, whatever any clock shows: each
  /// node keeps a line of the waiters and tells the first that its turn has come. A call that does
  /// not wait overtakes no waiter. docs/waiting.md says how exact the order is.
  fifo,
  /// Waiters are served in no order: the first call that asks after a release gets the lock. A call
  /// that waits asks again after random pauses (retry_min, retry_max), and is in no line. It may
  /// overtake waiters in a line. At most two calls of one client for one name ask; the others wait
  /// until they move up.
  barging,
};

/// A duration that never ends, for AcquireOptions::wait.
inline constexpr std::chrono::milliseconds forever = std::chrono::milliseconds::max();

/// Reads a list of nodes as people write it, for ClientOptions::nodes: each as `nodes` takes it,
/// with commas, spaces or line breaks between them; a `#` in place of a node begins a comment, up
/// to the end of the line. A comma or a space inside a password is written %2C or %20. Fails with
/// invalid_argument, and a sentence that names the entry and repeats no password.
[[nodiscard]] REDLOCK_EXPORT Result<std::vector<std::string>> parse_nodes(std::string_view text);

/// A function for ClientOptions::password that reads this file anew for every connection. The first
/// line is the password of all nodes, unless the first line that is not empty and does not begin
/// with # begins with redis://, rediss:// or unix://. Then each line is for one node: the node as
/// errors show it, a space, and its password up to the end of the line. Lines that are empty or
/// begin with # are ignored there, and a node without a line has the password of its URI:
///
///     redis://redlock@10.0.0.1:6379 the password of that node
///     redis://redlock@10.0.0.2:6379 that of this one
///
/// Fails with invalid_argument and a sentence that repeats nothing of the file, if the file is no
/// regular file, cannot be read, has more than 65,536 bytes, or has a line of another form. While
/// the file is in such a state later, nodes have the passwords of their URIs: change it by `mv`.
[[nodiscard]] REDLOCK_EXPORT Result<std::function<std::string(std::string_view node)>>
password_from_file(std::string path);

/// A function for ClientOptions::trace that appends each line to this file, and creates the file if
/// there is none. A line is one write(), so that the programs of a machine can share a file. A line
/// that cannot be written (the disk is full, or the reader of a pipe has gone or is late) is left
/// out. Copies of the function share one descriptor, which is closed with the last of them. Throws
/// std::system_error, whose what() is a sentence, if the file cannot be opened.
[[nodiscard]] REDLOCK_EXPORT std::function<void(std::string_view line)> trace_to_file(
    const std::string& path);

/// For nodes whose URI begins with rediss://. Client::create reads the files, and fails with a
/// sentence if one of them cannot be used. Files that have changed are read again for the next
/// connection, on the client's own thread: they should be small, and not on a file system that may
/// hang. Files that cannot be used then (a half-written file, or a key that does not belong to the
/// certificate) change nothing: what was read before stays in use, and Observer::on_node_up and the
/// errors of nodes that are refused say which file is wrong. A node's certificate is always
/// verified, with its name, and only TLS 1.2 or newer is used.
struct TlsOptions {
  /// The authorities that are trusted: a file of PEM certificates, or a directory of such files.
  /// Empty: the system's authorities.
  std::string ca{};
  /// What this client presents to nodes that ask for a certificate: a PEM file with its
  /// certificate, which those of intermediate authorities may follow. Set both this and `key`, or
  /// neither.
  std::string certificate{};
  std::string key{};  ///< the PEM file with the key of `certificate`
  /// The host name or address that every node's certificate must have, in full: no leading dot, no
  /// wildcard. Empty: the host of the node's URI, or the name that the URI gives behind ?name=.
  std::string name{};
};

/// How a Client finds its nodes and how it behaves unless a call says otherwise.
struct ClientOptions {
  /// Reads options from the environment, as the command `redlock` does: REDLOCK_NODES is a list for
  /// parse_nodes(), or else REDLOCK_NODES_FILE names a regular file with one. REDLOCK_MAX_LEASE
  /// (30s, 500ms, 2m, 1h) sets `max_lease`, and `lease` if that is longer. REDLOCK_PASSWORD_FILE
  /// names a file for password_from_file(), REDLOCK_TLS_CA, REDLOCK_TLS_CERT, REDLOCK_TLS_KEY and
  /// REDLOCK_TLS_NAME are those of TlsOptions, and REDLOCK_QUARANTINE=off (for tests) sets
  /// `quarantine`. REDLOCK_TRACE names a file for trace_to_file(), which is opened here; no other
  /// variable is read. A list given as `nodes`, from a program's own configuration, takes
  /// precedence over both lists of the environment. Fails with invalid_argument if no list names a
  /// node, or a variable or its file is bad. Reads the environment: no other thread may change it
  /// meanwhile.
  [[nodiscard]] REDLOCK_EXPORT static Result<ClientOptions> from_env(
      std::optional<std::string_view> nodes = {});

  /// The independent Redis masters, all of them (64 at most), in any order:
  /// `redis://[user:pass@]host[:port][/db]`, the same with `rediss://` for TLS, and there perhaps
  /// `?name=NAME` (the name in its certificate), `unix:///path?db=N`, or host:port alone (an IPv6
  /// address in brackets). A quorum is a majority of the set's members, reachable or not; until a
  /// member has told who they are, of this list. Where another node takes the place of one of these
  /// (see Admin::replace), the client goes on with it, by the user, password and ?name= of the URI
  /// here.
  std::vector<std::string> nodes{};

  /// For nodes with rediss://.
  TlsOptions tls{};

  /// How long a node keeps a grant that nobody renews.
  std::chrono::milliseconds lease{30'000};
  /// No lease of this client may be longer; zero: than what the nodes' markers say, which is for
  /// all clients (without quarantine, which is without markers: 60 s). Where this, or a lease that
  /// is asked for, is longer than the markers say, no lock is taken: the error says both values,
  /// and Error::is_configuration() is true. Admin::set_max_lease() raises that of the set.
  /// Admin::adopt() makes a new set with this, or with 60 s.
  std::chrono::milliseconds max_lease{};
  /// Part of the lease set aside for clocks that run at different speeds, the client's and the
  /// node's together; 2 ms are added. 0.01 as in the Redlock description (redis.io, "Distributed
  /// Locks").
  double drift_factor = 0.01;
  /// How long one node may take to answer before its vote is counted as unavailable.
  std::chrono::milliseconds node_timeout{250};
  /// A grant with no more than this validity left is given back as too_late.
  std::chrono::milliseconds min_validity{0};

  /// Which waiter receives the lock next, unless a call says otherwise.
  Ordering ordering = Ordering::fifo;
  /// The random pause before another attempt of a call that found no quorum, came too late, or
  /// barges: between retry_min and retry_max, doubling up to retry_cap if that is larger. Waiters
  /// that no quorum of nodes can wake poll every 20 to 60 ms whatever these are.
  std::chrono::milliseconds retry_min{20};
  std::chrono::milliseconds retry_max{60};  ///< the longest of these pauses, at first
  std::chrono::milliseconds retry_cap{60};  ///< the limit of the doubling

  /// Bounds of one connection: resolving the name; connecting and the whole handshake. A look-up
  /// that takes longer goes on; meanwhile the addresses of the previous look-up are used.
  std::chrono::milliseconds resolve_timeout{2'000};
  std::chrono::milliseconds connect_timeout{1'000};  ///< for connecting and the whole handshake

  /// The newest password of a node, for passwords that change while the program runs; `node` is as
  /// in `nodes`, without its password. Called for every connection; an empty answer means the
  /// password in the URI, which may be empty (`redis://user:@host`). If the node refuses the
  /// password, the last accepted one is tried once on the same connection, so that nodes and
  /// programs may be given a new password in any order. Called on the client's own thread, and,
  /// during a call of Admin, on a thread of that call as well: the function must be safe on both at
  /// once, return soon (it may read a small file), and wait for no operation of this client; an
  /// exception that leaves it ends the client (see Client). See also password_from_file().
  std::function<std::string(std::string_view node)> password{};

  FenceFloor fence_floor = FenceFloor::clock;  ///< where tokens start
  Quarantine quarantine = Quarantine::on;      ///< off for tests alone

  /// Shown by CLIENT LIST on each node.
  std::string client_name = "redlock";
  /// The name under which people see this program as a holder (Holder::label; redlock status).
  /// Empty: the name of the executable. Cut at 64 bytes, control characters replaced.
  std::string label{};

  /// Where the program continues when an operation has its result: with the callback of
  /// Operation::start, the coroutine that awaits, the future of as_future(). Empty: on the client's
  /// loop thread. Otherwise this function is given each Continuation, once, in the order of the
  /// results, and has to arrange its call: `queue.push(std::move(it))`, for a thread pool or the
  /// event loop of the program. Blocking calls may be made there, if the client runs its own loop.
  ///
  /// The function is given every result, also one that is known at once (an invalid argument, say),
  /// and the results of a client that ends, before ~Client or close() returns. Only operations of
  /// an empty Lease and an Operation that was moved from, which have no client, continue where they
  /// are started, and so does every operation in the child of a fork. Observers and functions tied
  /// to lost() stay on the client's own threads.
  ///
  /// The function is called on the client's loop thread or, for a result that is known at once, on
  /// the thread that starts the operation. So it must be safe for several threads at once, return
  /// soon, wait for no operation of this client, and not throw: an exception ends the program,
  /// because the continuation, with the waiter behind it, may be gone.
  ///
  /// A continuation that is destroyed uncalled, by a pool that has stopped, say, is not run
  /// elsewhere. Its result is destroyed, and the lease in it is released (a level that
  /// async_try_lock() took stays with its RedLock). A callback is destroyed, a future fails with
  /// std::future_errc::broken_promise, and a coroutine stays suspended; its owner may destroy it
  /// then. To avoid that, end the client first, and then the executor, when it has run all
  /// continuations. Where ~Client does not wait (after async_close(), in a callback on the client's
  /// own thread, with a loop of the program's) results come after it as well: there the executor
  /// must live until they have come, that of async_close() last.
  std::function<void(Continuation it)> resume_on{};

  /// Its functions are called for events (see observer.hpp). May be null. A lease keeps its client
  /// alive, and the client its observer: an observer that keeps leases of that client has to drop
  /// them.
  std::shared_ptr<Observer> observer{};
  /// This function is given a line, without its end, for each message to a node, each reply and
  /// wake-up, and each decision of this client: for people who want to know why a call took so
  /// long, or failed. A line is the time in UTC, the process, the client, and words, which are no
  /// interface and will change; docs/trace.md says how to read them. A line has names of locks and
  /// of nodes, and no password. The questions of Admin are not traced. Empty: nothing is traced.
  /// See trace_to_file().
  ///
  /// Called by the thread that runs the loop: the client's own, or one that is blocked in a call of
  /// this client. So it must return soon, wait for no operation of this client, and take no lock
  /// that callers of this client hold meanwhile. An exception that leaves it ends the client, as
  /// one from an observer does (see Client). The line is valid during the call.
  std::function<void(std::string_view line)> trace{};

  /// Without an observer, stderr gets a line beginning with "redlock:" when a lease is lost whose
  /// state the program never queried (by lost(), loss_reason(), valid(), valid_until(),
  /// remaining(), held_by_me(), extend() or confirm()), and when unlock() did not find its lock
  /// although the program was told of no loss, or could not confirm its release. One line in ten
  /// seconds at most for the whole program, and none if stderr has no room for it. A line also says
  /// that the client has ended by itself, and why. Set this to false where descriptor 2 is not
  /// stderr.
  bool warn_on_stderr = true;
};

/// Whether the watchdog renews a lease until it is released.
enum class Renewal {
  when_no_lease_given,  ///< renew a lease of default length; let a lease of explicit length end by
                        ///< itself
  always,
  never,
};

/// One acquisition. The defaults try once and hold, renewed, until released.
struct AcquireOptions {
  /// The length of the lease; none means the client's default.
  std::optional<std::chrono::milliseconds> lease{};
  Renewal renewal = Renewal::when_no_lease_given;  ///< whether the watchdog renews the lease
  /// How long to keep trying, while others hold the lock or no quorum can vote. Zero: one attempt.
  /// `forever`: no end. An attempt that is under way when this time ends is still decided, which
  /// takes two node timeouts at most (the votes, and the token); a first attempt that still waits
  /// for room, as many are under way, is made. Set `deadline` too where that is too long.
  std::chrono::milliseconds wait{0};
  /// The call ends by this moment, whatever the other options say.
  std::optional<BootClock::time_point> deadline{};
  /// Replaces the client's ordering.
  std::optional<Ordering> ordering{};
  /// Replaces the client's min_validity.
  std::optional<std::chrono::milliseconds> min_validity{};
  /// The watchdog stops renewing this long after the grant: a bound on a holder that hangs.
  std::optional<std::chrono::milliseconds> max_hold{};
};
// g++ 12 destroys an aggregate twice that is made inside of a co_await expression. `co_await
// lock.async_acquire({.wait = 1s})` works there all the same because nothing in these options has
// to be destroyed; what has, such as the stop_token of a call, is a parameter of its own.
static_assert(std::is_trivially_destructible_v<AcquireOptions>);

}  // namespace redlock
