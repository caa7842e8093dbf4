// SPDX-License-Identifier: MIT
// RedLock: the mutex for one name, over all nodes of a client. Use it like a std::timed_mutex
// (std::unique_lock works), or take a Lease with acquire() and read errors instead of exceptions.
#pragma once

#include <redlock/cpp20.hpp>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include <redlock/error.hpp>
#include <redlock/export.hpp>
#include <redlock/lease.hpp>
#include <redlock/operation.hpp>
#include <redlock/options.hpp>
#include <redlock/owner.hpp>

namespace redlock {

class Client;

/// Meets the standard's Lockable and TimedLockable: std::unique_lock and std::lock_guard work. To
/// hold several locks, take them in one fixed order, each with a guard of its own.
/// std::scoped_lock(x, y) and std::lock work, too, but release what they have and begin anew
/// whenever another thread has the next lock; over a network, three threads achieve only a small
/// part of what they do with a fixed order (docs/cookbook.md has figures). A RedLock is re-entrant
/// for its owner: the calling thread, or the Owner that it was made with. An owner that holds the
/// name through any RedLock of the same client takes it once more by lock() and the other locking
/// functions, and must unlock() it as often. Threads may share an object, and exclude each other
/// unless an Owner was given. For coroutines, callbacks and futures, which run on any thread, give
/// an Owner and use async_try_lock() and async_release(); blocking and other calls of one owner
/// share one count. Concurrent calls by one owner are queued; each waits up to its own timeout and
/// then re-enters the lease that the previous call obtained. A call without a waiting time fails
/// with timed_out if another call of its owner is under way. A Lease is a handle of its own:
/// acquire() never re-enters. For a name that this owner has locked, acquire() is refused, or
/// waits, as for any other owner. Names are 1 to 512 bytes, any but NUL, `{` and `}`; use of a bad
/// name fails with `invalid_argument`.
class REDLOCK_EXPORT RedLock {
 public:
  /// The client must be alive whenever the lock is used; afterwards every call answers `closed`.
  RedLock(const Client& client, std::string name);
  /// Locks for this owner, whichever thread calls.
  RedLock(const Client& client, std::string name, Owner owner);
  /// A lock that was moved from can only be assigned to or destroyed.
  RedLock(RedLock&&) noexcept;
  /// Gives back what this object holds, as the destructor does, and takes over what the other
  /// holds.
  RedLock& operator=(RedLock&&) noexcept;
  /// Gives back, without waiting, what was taken through this object by lock() and the other
  /// locking functions and not unlocked.
  ~RedLock();

  /// The name that is locked.
  [[nodiscard]] const std::string& name() const noexcept;

  /// Blocks until a quorum grants the lock, or it is certain that none will. Requesting `stop` ends
  /// the call with `cancelled`, here and in every function below. Must not be called in a callback
  /// of the client (it fails with would_deadlock there). Keep the result: `lock.acquire();` alone
  /// would take the lock and release it again.
  [[nodiscard("the lease in it would be released at once")]] Result<Lease> acquire(
      const AcquireOptions& options = {}, std::stop_token stop = {});
  /// acquire() as an operation to await or to start with a callback: see Operation.
  Operation<Lease> async_acquire(const AcquireOptions& options = {}, std::stop_token stop = {});

  /// Takes up a grant made elsewhere (see Lease::detach): a quorum must confirm that the lock is
  /// still this owner's, and it then lasts `options.lease` from now. A failure releases nothing. A
  /// token that the nodes have not reached was never issued for this name: `invalid_argument`. Of
  /// the options, lease, renewal and max_hold are used, and a deadline that has passed ends the
  /// call before it begins (`timed_out`); attach() asks once and does not wait.
  [[nodiscard("the lease in it would be released at once")]] Result<Lease> attach(
      const Grant& grant, const AcquireOptions& options = {}, std::stop_token stop = {});
  /// The same without waiting.
  Operation<Lease> async_attach(const Grant& grant, const AcquireOptions& options = {},
                                std::stop_token stop = {});

  /// Gives back a grant made elsewhere, for good: its owner does not get the lock again. The result
  /// may be ignored, as with every blocking release: the lock is given back whatever the result is,
  /// and ends with its lease at the latest.
  Result<Released> release(const Grant& grant);
  /// The same without waiting.
  Operation<Released> async_release(const Grant& grant);

  /// Waits for ever, and holds the lock, renewed, until unlock(). Throws std::system_error with a
  /// redlock::Errc. If this owner holds the lock already, this adds one level to the same lease,
  /// with the same token, once a quorum has confirmed it; the lease lasts no shorter than before,
  /// and is renewed from now on. A failed re-entry gives nothing back. Once that lease is lost,
  /// lock() throws `lost` until all levels are unlocked.
  void lock();
  /// The same with a lease of this length, which is not renewed unless an outer level is.
  void lock(std::chrono::milliseconds lease);
  /// One attempt. False if the lock was not granted: last_error() says why. Throws only
  /// would_deadlock, invalid_argument, closed and (on re-entry) lost.
  [[nodiscard("it decides whether to unlock")]] bool try_lock();
  /// Keeps trying for `wait`; see try_lock. Zero, a negative time and a NaN mean one attempt; more
  /// than a century means for ever.
  template <typename Rep, typename Period>
  [[nodiscard("it decides whether to unlock")]] bool try_lock_for(
      const std::chrono::duration<Rep, Period>& wait) {
    return try_lock_within(whole(wait), std::nullopt);
  }
  /// The same with a lease of this length, which is not renewed unless an outer level is.
  template <typename Rep, typename Period>
  [[nodiscard("it decides whether to unlock")]] bool try_lock_for(
      const std::chrono::duration<Rep, Period>& wait, std::chrono::milliseconds lease) {
    return try_lock_within(whole(wait), lease);
  }
  /// Keeps trying until `when`; see try_lock_for.
  template <typename Clock, typename Duration>
  [[nodiscard("it decides whether to unlock")]] bool try_lock_until(
      const std::chrono::time_point<Clock, Duration>& when) {
    return try_lock_for(Wide(when.time_since_epoch()) - Wide(Clock::now().time_since_epoch()));
  }
  /// Why the last lock(), try_lock(), try_lock_for() or try_lock_until() that this owner (the
  /// calling thread, or the Owner that this lock was made with) called on this object did not take
  /// the lock, with the votes of the nodes; empty if that call took it, or there was no call. So a
  /// program finds here why try_lock() returned false or a std::unique_lock does not own, and the
  /// votes behind an exception. The errors of the last 64 threads that failed are kept. May be
  /// called from any thread; returns a copy.
  [[nodiscard]] std::optional<Error> last_error() const;
  /// Takes the lock for the Owner that this object was made with, as lock() and try_lock_for() do:
  /// once more if that owner holds it already. The result is how often the owner holds the lock
  /// now. The defaults try once; `.wait = forever` is lock(). A re-entry uses lease, renewal, wait
  /// and deadline of the options. (At its deadline or at `stop` the call returns at once; a level
  /// that nodes grant later is released in the background.) Fails as acquire() does; with `lost`
  /// where lock() throws it, and then until all levels are released; with `timed_out` if another
  /// call of this owner was still taking the lock; with `invalid_argument` if no Owner was given.
  /// Keep this object until the lock is held no more: if the object is destroyed before the result
  /// comes, the result is `cancelled`, and the lock is given back.
  Operation<std::size_t> async_try_lock(const AcquireOptions& options = {},
                                        std::stop_token stop = {});
  /// Leaves one level of what this owner holds, through whichever RedLock it was taken; leaving the
  /// last level gives the lock back and waits for a quorum of releases, but not on the client's
  /// loop thread. A release that did not find the lock or is not confirmed, and unlocking what this
  /// owner does not hold (invalid_argument), is reported to the observer, or, if there is none, on
  /// stderr, unless lost() reported the loss before (see ClientOptions::warn_on_stderr).
  void unlock() noexcept;
  /// The same as unlock(), but returns what the release found. `still_held`: an outer level
  /// remains. Fails with invalid_argument if this owner does not hold the lock; nothing is sent
  /// then. Where it cannot wait (in a callback), the last level answers would_deadlock and is left
  /// all the same.
  Result<Released> release();
  /// The same for the Owner that this lock was made with (invalid_argument if none was given). The
  /// level is left when the operation starts; for the last level the result comes after a quorum of
  /// releases.
  Operation<Released> async_release();

  /// How often this owner holds the name: how many unlock() are still to come. A loss does not
  /// change it.
  [[nodiscard]] std::size_t hold_count() const noexcept;
  /// Whether this owner holds the name and its lease is valid by the local clock, read at the call.
  [[nodiscard]] bool held_by_me() const noexcept;
  /// The token of the lease that this owner holds, 0 if it holds none. The same for every level.
  [[nodiscard]] std::uint64_t token() const noexcept;
  /// Requested when the lease that this owner holds can no longer be trusted; see Lease::lost.
  [[nodiscard]] std::stop_token lost() const;

 private:
  // In floating point: the ends of integer durations overflow as soon as units are converted.
  using Wide = std::chrono::duration<double, std::milli>;
  template <typename Rep, typename Period>
  static std::chrono::milliseconds whole(const std::chrono::duration<Rep, Period>& wait) {
    constexpr std::chrono::hours century(24 * 36'525);
    const Wide wide(wait);
    if (!(wide > Wide::zero())) return std::chrono::milliseconds::zero();
    if (wide > century) return forever;
    return std::chrono::milliseconds(
        static_cast<std::chrono::milliseconds::rep>(std::ceil(wide.count())));
  }
  [[nodiscard]] bool try_lock_within(std::chrono::milliseconds wait,
                                     std::optional<std::chrono::milliseconds> lease);

  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace redlock
