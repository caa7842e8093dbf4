// SPDX-License-Identifier: MIT
// A Client: one set of nodes, the connections to them and the loop that drives everything, on a
// thread of its own or where the program runs one. Start here: make one Client per program, then a
// RedLock per name.
#pragma once

#include <redlock/cpp20.hpp>

#include <chrono>
#include <memory>
#include <string>

#include <redlock/error.hpp>
#include <redlock/export.hpp>
#include <redlock/lease.hpp>
#include <redlock/lock.hpp>
#include <redlock/observer.hpp>
#include <redlock/operation.hpp>
#include <redlock/options.hpp>

struct uv_loop_s;  // libuv's uv_loop_t

/// Locks that a majority of independent Redis nodes grants. Nodes may be down, late or unreadable,
/// but the library assumes that no node lies (docs/safety.md, A0).
namespace redlock {

/// Thread-safe: any member may be called from any thread at any time, except that the destructor
/// must not run beside other members. One client per program is enough: all threads and all names
/// share its connections (one per node), and calls made together travel together. Without an
/// observer and without ClientOptions::password, a thread that is alone in a blocking call may do
/// the client's network work meanwhile, renewals of other leases included; callbacks (but see
/// ClientOptions::resume_on), observers and functions tied to lost() run on the client's own
/// threads in any case. With a loop of the program's own the client has no thread: see create().
///
/// When memory runs out, either a call throws std::bad_alloc before it has done anything, or the
/// client ends as a whole, because its network thread cannot leave one task half done and go on
/// with the others. The client also ends when an exception leaves a function of the program that
/// its network work calls: an observer, a callback, ClientOptions::password, ClientOptions::trace.
/// No call waits for ever: each call under way and each later call fails with `closed`, and a
/// sentence that says why; each lease stops being valid, and its lost() is requested with
/// LossReason::closed; Observer::on_closed, or a line on stderr, reports the end. The locks are not
/// released but end with their leases. The program goes on, and may create a new client.
class REDLOCK_EXPORT Client {
 public:
  /// Checks the options, starts the loop thread and begins to connect, without waiting for any
  /// node. Fails with `invalid_argument` and a sentence that says what to change, and with `closed`
  /// if the system gives no thread or descriptor.
  [[nodiscard]] static Result<Client> create(ClientOptions options);

  /// The same on a loop that the program runs, with uv_run(): no thread is started, and all that
  /// the client does, callbacks, coroutines, observers and functions tied to lost() included, is
  /// done by the thread that runs the loop. (A host name is looked up on a separate thread.) The
  /// client begins to connect when the loop runs. Fails with `invalid_argument` for a null pointer,
  /// too.
  ///
  /// Call it on the thread that runs the loop, or while no thread does. After that any thread may
  /// start operations, drop leases and destroy the client, as always. The functions that block
  /// (RedLock::acquire(), lock(), Lease::extend(), close(), Admin) are refused on every thread,
  /// with would_deadlock; Lease::release() and unlock() give the lock back all the same. A future
  /// must not be waited for on the thread that runs the loop.
  ///
  /// As long as the client exists, it keeps uv_run() from returning by itself. When the client ends
  /// (async_close(), ~Client), the loop closes its handles, and must be run until it has. After
  /// that uv_run() returns if the program has no handles there either, and uv_loop_close() returns
  /// 0. The result of async_close() comes at that moment. Nothing else may close the client's
  /// handles in the loop (uv_walk). libuv writes without suppressing SIGPIPE: ignore that signal,
  /// as for your own sockets on the loop.
  ///
  /// While no thread runs the loop, nothing is renewed, reported or released. Lease::valid() and
  /// remaining() go by the clock, on every thread, and are right all the same; lost() is requested
  /// when the loop runs again. A loop that is held up for half the length of a lease may lose it,
  /// so long work belongs elsewhere (uv_queue_work()). In the child of a fork that runs its copy of
  /// the loop, after uv_loop_fork(), the client's handles are closed. A child that is to run the
  /// loop must not be forked in a callback of the loop, nor while a host name is looked up: the
  /// look-up would never end in the child.
  [[nodiscard]] static Result<Client> create(ClientOptions options, uv_loop_s* loop);

  /// A client that was moved from can only be assigned to or destroyed.
  Client(Client&&) noexcept;
  /// Ends this client, as the destructor does, and takes over the other one.
  Client& operator=(Client&&) noexcept;
  /// Ends every operation under way with `closed` (each callback is called), releases the locks of
  /// its leases, waits for a quorum to confirm that, and stops the loop. The destructor waits as
  /// long as releases are confirmed, until one node timeout has passed without a further
  /// confirmation. Leases and locks that outlive the client answer `closed`; such a lease is not
  /// valid any more, and its lost() is requested before the release is sent. On the client's own
  /// loop thread (in a callback), and on any thread if the program runs the loop, the destructor
  /// returns at once, and all this happens afterwards: in the latter case when the loop is run, and
  /// never if the loop is not run. Then the locks end with their leases. In the child of a fork the
  /// destructor does nothing.
  ~Client();

  /// Does what the destructor does, and reports what became of the leases; every other member then
  /// answers `closed`. Waits no longer than `at_most`, not counting what it sends at the end for
  /// the remaining leases. Fails with `closed` if the client has ended by itself, and, doing
  /// nothing, with `would_deadlock` on the client's own loop thread and with `closed` if the client
  /// has ended already or this is the child of a fork.
  Result<CloseReport> close(std::chrono::milliseconds at_most = forever);
  /// The same without waiting. From the start of the operation every other member answers `closed`,
  /// and the client may be destroyed. The result comes when nothing of the client is left: on the
  /// thread that runs the loop if that is the program's, otherwise on a thread started for this
  /// purpose, or by ClientOptions::resume_on. It fails with `closed` at once where close() does, or
  /// if the system gives no thread.
  Operation<CloseReport> async_close(std::chrono::milliseconds at_most = forever);

  /// The same as RedLock(*this, name).
  [[nodiscard]] RedLock lock(std::string name) const;
  /// The same as RedLock(*this, name, owner).
  [[nodiscard]] RedLock lock(std::string name, Owner owner) const;

  /// The options as they were given: `nodes` stays, also when the set has another member by now.
  [[nodiscard]] const ClientOptions& options() const noexcept;

  class Impl;
  /// For the library's own parts.
  [[nodiscard]] const std::shared_ptr<Impl>& impl() const noexcept;

 private:
  explicit Client(std::shared_ptr<Impl> impl) noexcept;
  std::shared_ptr<Impl> impl_;
};

}  // namespace redlock
