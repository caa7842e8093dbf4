// SPDX-License-Identifier: MIT
// RedLock: the mutex for one name, over all nodes of a client. Use it like a std::timed_mutex
// (std::unique_lock works), or take a Lease with acquire() and read errors instead of exceptions.
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <stop_token>
#include <string>

#include <redlock/error.hpp>
#include <redlock/export.hpp>
#include <redlock/lease.hpp>
#include <redlock/operation.hpp>
#include <redlock/options.hpp>

namespace redlock {

class Client;

/// Meets the standard's Lockable and TimedLockable. An object may be shared by threads; each
/// acquisition stands for itself, so threads that share one exclude each other as well.
/// Names are 1 to 512 bytes, any but NUL, `{` and `}`; a bad one is `invalid_argument` when used.
class REDLOCK_EXPORT RedLock {
 public:
  /// The client must be alive whenever the lock is used; afterwards every call answers `closed`.
  RedLock(const Client& client, std::string name);
  /// A lock that was moved from can only be assigned to or destroyed.
  RedLock(RedLock&&) noexcept;
  RedLock& operator=(RedLock&&) noexcept;
  /// Releases, without waiting, what lock() or try_lock() still hold.
  ~RedLock();

  [[nodiscard]] const std::string& name() const noexcept;

  /// Blocks until the lock is granted by a quorum, or a reason is known why it will not be. Must
  /// not be called from the client's loop thread (it answers would_deadlock there).
  Result<Lease> acquire(const AcquireOptions& options = {});
  void acquire(const AcquireOptions& options, Callback<Lease> callback);
  [[nodiscard]] std::future<Result<Lease>> acquire_future(const AcquireOptions& options = {});
  Operation<Lease> co_acquire(const AcquireOptions& options = {});

  /// Takes up a grant made elsewhere (see Lease::detach): a quorum must confirm that it is still
  /// this owner's, and it then lasts `options.lease` from now. Never releases when it fails.
  Result<Lease> attach(const Grant& grant, const AcquireOptions& options = {});
  /// Of the options it heeds lease, renewal, max_hold and stop; it asks once and does not wait.
  void attach(const Grant& grant, const AcquireOptions& options, Callback<Lease> callback);
  [[nodiscard]] std::future<Result<Lease>> attach_future(const Grant& grant,
                                                         const AcquireOptions& options = {});
  Operation<Lease> co_attach(const Grant& grant, const AcquireOptions& options = {});

  /// Gives back a grant made elsewhere.
  Result<Released> release(const Grant& grant);
  void release(const Grant& grant, Callback<Released> callback);
  [[nodiscard]] std::future<Result<Released>> release_future(const Grant& grant);
  Operation<Released> co_release(const Grant& grant);

  /// Waits for ever, holds until unlock(), renewing. Throws std::system_error with a redlock::Errc,
  /// for example would_deadlock if this thread holds it already through this object.
  void lock();
  /// The same with a lease of this length, which is not renewed.
  void lock(std::chrono::milliseconds lease);
  /// One attempt. False if it was not granted, for whatever reason; throws only would_deadlock,
  /// invalid_argument and closed.
  bool try_lock();
  /// Keeps trying for so long; see try_lock.
  template <typename Rep, typename Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) {
    using Wide = std::chrono::duration<double, std::milli>;
    if (std::chrono::duration_cast<Wide>(wait) >= std::chrono::duration_cast<Wide>(forever)) {
      return try_lock_within(forever);
    }
    return try_lock_within(std::chrono::ceil<std::chrono::milliseconds>(wait));
  }
  template <typename Clock, typename Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& when) {
    const auto now = Clock::now();
    return when <= now ? try_lock() : try_lock_for(when - now);
  }
  /// Gives back what this thread took with lock() or try_lock(). Waits for a quorum of releases,
  /// but not on the client's loop thread. A release that did not find the lock or is not confirmed,
  /// and unlocking what this thread does not hold, is told to the observer.
  void unlock() noexcept;

  /// The token of what this thread holds through this object, 0 if nothing.
  [[nodiscard]] std::uint64_t token() const noexcept;
  /// Requested when what this thread holds can no longer be trusted; see Lease::lost.
  [[nodiscard]] std::stop_token lost() const noexcept;

 private:
  bool try_lock_within(std::chrono::milliseconds wait);

  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace redlock
