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

/// Meets the standard's Lockable and TimedLockable: std::unique_lock and std::lock_guard work. For
/// several locks take them in one fixed order, each with a guard of its own. std::scoped_lock(x, y)
/// and std::lock work, too, but give up what they have and begin anew whenever another thread has
/// the next one; over a network three threads so come to a small part of what an order of the names
/// lets them do (docs/cookbook.md has figures).
/// A RedLock is re-entrant for its owner: the calling
/// thread, or the Owner that it was made with. An owner that holds the name through any RedLock of
/// the same client takes it once more by lock() and its like, and must unlock() it as often. An
/// object may be shared by threads, which exclude each other unless the owner was given.
/// For coroutines, callbacks and futures, which run on any thread, give an Owner and use
/// async_try_lock() and async_release(); blocking and other calls of one owner share one count.
/// Concurrent calls by one owner are queued; each waits up to its own timeout and then re-enters
/// the lease that the previous call obtained. A call without a waiting time fails with timed_out if
/// another one is under way.
/// A Lease is a handle of its own: acquire() never re-enters. For a name that this owner has locked
/// it is refused, or waits, as for anybody else.
/// Names are 1 to 512 bytes, any but NUL, `{` and `}`; a bad one is `invalid_argument` when used.
class REDLOCK_EXPORT RedLock {
 public:
  /// The client must be alive whenever the lock is used; afterwards every call answers `closed`.
  RedLock(const Client& client, std::string name);
  /// For this owner, whichever thread calls.
  RedLock(const Client& client, std::string name, Owner owner);
  /// A lock that was moved from can only be assigned to or destroyed.
  RedLock(RedLock&&) noexcept;
  /// Gives back what it had, as the destructor does, and takes over what the other one has.
  RedLock& operator=(RedLock&&) noexcept;
  /// Gives back, without waiting, what was taken through this object by lock() and its like and
  /// not unlocked.
  ~RedLock();

  /// What is locked.
  [[nodiscard]] const std::string& name() const noexcept;

  /// Blocks until the lock is granted by a quorum, or a reason is known why it will not be.
  /// Requesting `stop` ends the call with `cancelled`, here and in every function below. Must not
  /// be called in a callback of the client (it answers would_deadlock there). Keep the result:
  /// `lock.acquire();` alone would take the lock and release it again.
  [[nodiscard("the lease in it would be released at once")]] Result<Lease> acquire(
      const AcquireOptions& options = {}, std::stop_token stop = {});
  /// The same as an operation to await or to start with a callback: see Operation.
  Operation<Lease> async_acquire(const AcquireOptions& options = {}, std::stop_token stop = {});

  /// Takes up a grant made elsewhere (see Lease::detach): a quorum must confirm that it is still
  /// this owner's, and it then lasts `options.lease` from now. Never releases when it fails.
  /// A token that the nodes have not reached was never given for it: `invalid_argument`.
  /// Of the options it uses lease, renewal and max_hold; it asks once and does not wait.
  [[nodiscard("the lease in it would be released at once")]] Result<Lease> attach(
      const Grant& grant, const AcquireOptions& options = {}, std::stop_token stop = {});
  /// The same without waiting.
  Operation<Lease> async_attach(const Grant& grant, const AcquireOptions& options = {},
                                std::stop_token stop = {});

  /// Gives back a grant made elsewhere, for good: its owner does not get it again. The result may
  /// be ignored, as of every blocking release: the lock is given back whatever it says, and ends
  /// with its lease at the latest.
  Result<Released> release(const Grant& grant);
  /// The same without waiting.
  Operation<Released> async_release(const Grant& grant);

  /// Waits for ever, holds until unlock(), renewing. Throws std::system_error with a redlock::Errc.
  /// Held by this owner already: one level more of the same lease, with the same token, once a
  /// quorum has confirmed it; it lasts no shorter than before, and is renewed from now on. A failed
  /// re-entry gives nothing back. Once that lease is lost it throws `lost` until all is unlocked.
  void lock();
  /// The same with a lease of this length, which is not renewed unless an outer level is.
  void lock(std::chrono::milliseconds lease);
  /// One attempt. False if it was not granted: last_error() says why. Throws only would_deadlock,
  /// invalid_argument, closed and (of a re-entry) lost.
  [[nodiscard("it decides whether to unlock")]] bool try_lock();
  /// Keeps trying for so long; see try_lock. Zero, a negative time and a NaN are one attempt; more
  /// than a century is for ever.
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
  /// Keeps trying until then; see try_lock_for.
  template <typename Clock, typename Duration>
  [[nodiscard("it decides whether to unlock")]] bool try_lock_until(
      const std::chrono::time_point<Clock, Duration>& when) {
    return try_lock_for(Wide(when.time_since_epoch()) - Wide(Clock::now().time_since_epoch()));
  }
  /// Why the last lock(), try_lock(), try_lock_for() or try_lock_until() that this owner (the
  /// calling thread, or the Owner that this lock was made with) called on this object did not take
  /// it, with the votes of the nodes; nothing if it did, or there was none. So it has the reason
  /// for a false of try_lock(), a std::unique_lock that does not own, and the votes behind an
  /// exception. Of the threads that failed the last 64 are kept. Any thread; a copy.
  [[nodiscard]] std::optional<Error> last_error() const;
  /// Takes it for the Owner that this lock was made with, as lock() and try_lock_for() do: once
  /// more if that owner holds it already. Answers how often it is held now. The defaults try once;
  /// `.wait = forever` is lock(). A re-entry uses lease, renewal, wait and deadline of the
  /// options. (At its deadline or at `stop` it returns at once; a level that nodes grant later is
  /// left in the background.) Fails as acquire() does; with `lost` where lock() throws it, and then
  /// until all is released; with `timed_out` if another call of this owner was still taking it;
  /// with `invalid_argument` if no Owner was given. Keep this object until it is held no more: if
  /// it is destroyed before the answer, that is `cancelled`, and what was taken is given back.
  Operation<std::size_t> async_try_lock(const AcquireOptions& options = {},
                                        std::stop_token stop = {});
  /// Leaves one level of what this owner holds, by whichever RedLock it was taken; the last one
  /// gives the lock back and waits for a quorum of releases, but not on the client's loop thread.
  /// A release that did not find the lock or is not confirmed, and unlocking what this owner does
  /// not hold (invalid_argument), is reported to the observer, or, if there is none, on stderr,
  /// unless lost() told of the loss before (see ClientOptions::warn_on_stderr).
  void unlock() noexcept;
  /// The same, and says what it found. `still_held`: an outer level is left. Fails with
  /// invalid_argument if this owner does not hold it; nothing is sent then.
  Result<Released> release();
  /// The same for the Owner that this lock was made with (invalid_argument if none was given). The
  /// level is left when the operation starts; of the last one the answer waits for a quorum of
  /// releases.
  Operation<Released> async_release();

  /// How often this owner holds the name: how many unlock() are still to come. A loss does not
  /// change it.
  [[nodiscard]] std::size_t hold_count() const noexcept;
  /// Whether this owner holds the name and its lease is valid by the local clock, read at the call.
  [[nodiscard]] bool held_by_me() const noexcept;
  /// The token of what this owner holds, 0 if nothing. The same for every level.
  [[nodiscard]] std::uint64_t token() const noexcept;
  /// Requested when what this owner holds can no longer be trusted; see Lease::lost.
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
