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

/// Locks that a majority of independent Redis nodes grants. Nodes may be down, late or unreadable;
/// that none of them lies is assumed (docs/safety.md, A0).
namespace redlock {

/// Thread-safe: any member may be called from any thread at any time, except that the destructor
/// must not run beside other members. One per program is enough: all threads and all names share
/// its connections (one per node), and calls made together travel together. A thread that is alone
/// in a blocking call does the client's network work meanwhile, renewals of other leases included;
/// callbacks (but see ClientOptions::resume_on), observers and what is tied to lost() run on the
/// client's own threads in any case.
/// With a loop of the program's own the client has no thread: see create().
///
/// Without memory a call fails by std::bad_alloc before it has done anything, or the client ends as
/// a whole, as its network thread cannot leave one thing half done and go on with the others. So it
/// does when an exception leaves a function of the program that it calls there: an observer, a
/// callback, ClientOptions::password, ClientOptions::trace. No call waits for ever: each one under
/// way and each one to come has `closed`, with a sentence that says why; each lease is not valid
/// any more, and its lost() is requested with LossReason::closed; Observer::on_closed, or a line on
/// stderr, says so. What was held is not released but ends with its lease. The program goes on, and
/// may create a new client.
class REDLOCK_EXPORT Client {
 public:
  /// Checks the options, starts the loop thread and begins to connect, without waiting for any
  /// node. Fails with `invalid_argument` and a sentence that says what to change.
  [[nodiscard]] static Result<Client> create(ClientOptions options);

  /// The same on a loop that the program runs, with uv_run(): no thread is started, and all that
  /// the client does, callbacks, coroutines, observers and what is tied to lost() included, is done
  /// by whichever thread runs the loop. (A host name is looked up on a thread of its own.) It
  /// begins to connect when the loop runs. Fails with `invalid_argument` for a null pointer, too.
  ///
  /// To be called on the thread that runs the loop, or while none does. After that any thread may
  /// start operations, drop leases and destroy the client, as always. The functions that block
  /// (RedLock::acquire(), lock(), Lease::extend(), close(), Admin) are refused on every thread,
  /// with would_deadlock; Lease::release() and unlock() give the lock back all the same. A future
  /// must not be waited for on the thread that runs the loop.
  ///
  /// As long as the client is there, it keeps uv_run() from returning by itself. When it ends
  /// (async_close(), ~Client) its handles are closed by the loop, which must be run until then.
  /// After that uv_run() returns if the program has nothing there either, and uv_loop_close() gives
  /// 0. The result of async_close() comes when that is so. What the loop has of the client is not
  /// to be closed by others (uv_walk). libuv writes without suppressing SIGPIPE: ignore that
  /// signal, as for sockets of your own there.
  ///
  /// While nobody runs the loop nothing is renewed, reported or released. Lease::valid() and
  /// remaining() go by the clock, on every thread, and are right all the same; lost() is requested
  /// when the loop runs again. A loop that is held up for half the length of a lease may lose it,
  /// so work that takes long belongs elsewhere (uv_queue_work()). In the child of a fork
  /// that runs its copy of the loop, after uv_loop_fork(), the client's handles are closed there. A
  /// child that is to run it must not be made in a callback of the loop, nor while a host name is
  /// looked up, which would never end there.
  [[nodiscard]] static Result<Client> create(ClientOptions options, uv_loop_s* loop);

  /// A client that was moved from can only be assigned to or destroyed.
  Client(Client&&) noexcept;
  /// Ends the client that it was, as the destructor does, and takes over the other one.
  Client& operator=(Client&&) noexcept;
  /// Ends every operation under way with `closed` (each callback is called), releases what its
  /// leases hold, waits for a quorum to confirm that, and stops the loop. It waits for as long as
  /// releases are confirmed, until one node timeout has passed without another. Leases and locks
  /// that outlive the client answer `closed`; such a lease is not valid any more and its lost() is
  /// requested, before the release is sent. On the client's own loop thread (in a callback), and on
  /// any thread if the program runs the loop, it returns at once and all that happens behind it: in
  /// the latter case when the loop is run, and never if it is not. Then what the leases hold ends
  /// with them. In the child of a fork it does nothing.
  ~Client();

  /// The same, and says what became of the leases; every other member then answers `closed`. Waits
  /// no longer than `at_most`, which is not counted in what it sends at the end for the leases that
  /// are left. Fails with `closed` if the client has ended by itself, and, doing nothing, with
  /// `would_deadlock` on the client's own loop thread and with `closed` if the client has ended
  /// already or this is the child of a fork.
  Result<CloseReport> close(std::chrono::milliseconds at_most = forever);
  /// The same without waiting. From its start on every other member answers `closed`, and the
  /// client may be destroyed. Its result comes when nothing of the client is left, on the thread
  /// that runs the loop if the program does, otherwise on one that was started for the end, or by
  /// ClientOptions::resume_on; `closed` at once as for close(), or if the system gives no thread.
  Operation<CloseReport> async_close(std::chrono::milliseconds at_most = forever);

  /// The same as RedLock(*this, name).
  [[nodiscard]] RedLock lock(std::string name) const;
  /// The same as RedLock(*this, name, owner).
  [[nodiscard]] RedLock lock(std::string name, Owner owner) const;

  /// The options in force.
  [[nodiscard]] const ClientOptions& options() const noexcept;

  class Impl;
  /// For the library's own parts.
  [[nodiscard]] const std::shared_ptr<Impl>& impl() const noexcept;

 private:
  explicit Client(std::shared_ptr<Impl> impl) noexcept;
  std::shared_ptr<Impl> impl_;
};

}  // namespace redlock
