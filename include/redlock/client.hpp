// SPDX-License-Identifier: MIT
// A Client: one set of nodes, the connections to them and the loop thread that drives everything.
// Start here: make one Client per program, then a RedLock per name.
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
#include <redlock/options.hpp>

namespace redlock {

/// Thread-safe: any member may be called from any thread at any time, except that the destructor
/// must not run beside other members. One per program is enough: all threads and all names share
/// its connections (one per node), and calls made together travel together. A thread that is alone
/// in a blocking call does the client's network work meanwhile, renewals of other leases included;
/// callbacks, observers and what is tied to lost() run on the client's own threads in any case.
class REDLOCK_EXPORT Client {
 public:
  /// Checks the options, starts the loop thread and begins to connect, without waiting for any
  /// node. Fails with `invalid_argument` and a sentence that says what to change.
  [[nodiscard]] static Result<Client> create(ClientOptions options);

  /// A client that was moved from can only be assigned to or destroyed.
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  /// Ends every operation under way with `closed` (each callback is called), releases what its
  /// leases hold, waits for a quorum to confirm that, and stops the loop. It waits for as long as
  /// releases are confirmed, until one node timeout has passed without another. Leases and locks
  /// that outlive the client answer `closed`; such a lease is not valid any more and its lost() is
  /// requested, before the release is sent. On the client's own loop thread (in a callback) it
  /// returns at once and all that happens behind it. In the child of a fork it does nothing.
  ~Client();

  /// The same, and says what became of the leases; every other member then answers `closed`. Waits
  /// no longer than `at_most`, which is not counted in what it sends at the end for the leases that
  /// are left. Fails, and does nothing, with `would_deadlock` on the client's own loop thread and
  /// with `closed` if the client has ended already or this is the child of a fork.
  Result<CloseReport> close(std::chrono::milliseconds at_most = forever);

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
