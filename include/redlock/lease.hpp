// SPDX-License-Identifier: MIT
// A lease: the lock, held from now until valid_until() and, if the lease is renewed, for as long as
// renewals succeed. Its destructor gives the lock back.
#pragma once

#include <redlock/cpp20.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <redlock/clock.hpp>
#include <redlock/error.hpp>
#include <redlock/export.hpp>
#include <redlock/observer.hpp>
#include <redlock/operation.hpp>

namespace redlock {

/// What a release found.
enum class Released {
  released,      ///< a quorum of nodes had the lock for this owner; now the lock is free
  already_gone,  ///< too few nodes still had the lock: it had expired, was taken or was deleted
  unknown,       ///< too few nodes answered; grants that are left end with the lease at the latest
  still_held,    ///< only an inner level ended (RedLock::release): the owner still holds the lock
};

/// For logs: "released", "already_gone".
[[nodiscard]] REDLOCK_EXPORT const char* to_string(Released released) noexcept;

/// Identifies a grant outside this process: enough to extend or release it from another process.
struct Grant {
  // Not an aggregate, so that a Grant may be made inside of a co_await expression: see
  // AcquireOptions.
  Grant() = default;
  /// Takes the parts as another process got them from detach().
  Grant(std::string of_lock, std::string by, std::uint64_t with_token = 0)
      : name(std::move(of_lock)), owner(std::move(by)), token(with_token) {}

  std::string name;         ///< of the lock
  std::string owner;        ///< 32 hexadecimal digits, unique for every attempt
  std::uint64_t token = 0;  ///< the fencing token; 0 if unknown
};

/// Move-only; an empty lease (default-constructed, moved from, released, detached) holds nothing.
/// Members may be called from any thread, but not two at once on one object except the observers
/// (const members).
class REDLOCK_EXPORT Lease {
 public:
  Lease() noexcept;
  /// Takes over what the other lease holds; the other lease is empty afterwards.
  Lease(Lease&&) noexcept;
  /// Releases what this lease held before.
  Lease& operator=(Lease&&) noexcept;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  /// Releases without waiting: the messages are sent by the client's loop.
  ~Lease();

  /// False for an empty lease. True does not mean that the lock is still ours: see valid().
  [[nodiscard]] explicit operator bool() const noexcept;

  /// The name of the lock; empty for an empty lease.
  [[nodiscard]] const std::string& name() const noexcept;
  /// 32 hexadecimal digits; the hash field on the nodes.
  [[nodiscard]] std::string owner() const;
  /// The fencing token: larger than every token returned for this name before this acquisition
  /// began, as long as the nodes keep their data and none lies. Hand the token to the resource,
  /// which must refuse a token that is smaller than the largest it has seen.
  [[nodiscard]] std::uint64_t token() const noexcept;

  /// Whether the lock is still ours by the local clock, read at the call. The answer may be old
  /// by the time it is used (a pause comes between any two instructions): only the resource,
  /// comparing tokens, can exclude a late holder.
  [[nodiscard]] bool valid() const noexcept;
  /// What is left of the validity, read at the call; zero if the lease is over or was taken. After
  /// lost() was requested, this is the time left to stop the work that the lock protects.
  [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept;
  /// The end of the validity as last confirmed by a quorum.
  [[nodiscard]] BootClock::time_point valid_until() const noexcept;

  /// Requested while the lock is still ours but can no longer be trusted to stay so: a tenth of
  /// the lease before valid_until, or half of what is left if that is less, whatever the network
  /// does. Not requested by a release. To be called back, tie a function to the token;
  /// loss_reason() says why by then:
  ///     std::stop_callback on_lost(lease.lost(), [&] { stop_work(lease.loss_reason()); });
  /// The function runs exactly once: on the client's loop thread or, if that is starved or in a
  /// callback that does not return, on another thread of the client's own when half of that margin
  /// is gone (unless the program runs the loop: then there is no such thread, and the function
  /// waits for the loop); right here if lost() was requested before. It must return soon and cannot
  /// wait for the client (blocking calls answer would_deadlock); an exception that leaves it ends
  /// the program, as with every std::stop_callback. lost() throws std::bad_alloc if there is no
  /// memory for the token.
  [[nodiscard]] std::stop_token lost() const;
  /// Why lost() was requested; empty before that.
  [[nodiscard]] std::optional<LossReason> loss_reason() const noexcept;
  /// An operation that ends when lost() is requested, with the reason: `closed` if the client ends.
  /// The operation continues where a function tied to lost() runs, or as ClientOptions::resume_on
  /// says. It does not keep the lease, and fails, on the client's loop thread, when there is
  /// nothing to wait for any more: with `lost` if this lease is empty, or is released, detached or
  /// dropped meanwhile; with `cancelled` when `stop` is requested. `closed` in the child of a fork.
  /// An exception that leaves a callback of the operation ends the program, as with a function tied
  /// to lost().
  Operation<LossReason> async_lost(std::stop_token stop = {}) const;

  /// Gives the lock back and waits until a quorum of nodes has confirmed (at most the node
  /// timeout). A release is sent to every node, and again for up to one lease to a node that cannot
  /// be reached now. The lease is empty afterwards in every case (in a callback, where release()
  /// cannot wait, it answers would_deadlock and gives the lock back all the same). So the result
  /// may be ignored; look at it to learn that the lock was lost before. An empty lease: `lost`.
  Result<Released> release();
  /// The same without waiting. The lease is empty from the moment that the operation starts; before
  /// that it is as it was, and may be used or dropped. The result comes when a quorum has
  /// confirmed.
  Operation<Released> async_release();

  /// Confirms the lock on a quorum of nodes and makes it last `lease` from now (never shorter than
  /// it does already). Fails with `lost` if the lock is no longer ours, with `no_quorum` if that is
  /// not known; a failure releases nothing and leaves the validity as it was. Fails with `lost`,
  /// too, if this lease is empty, or is released or detached meanwhile (after detach the lock stays
  /// taken all the same), `closed` if its client ends, `invalid_argument` for a length that cannot
  /// work (longer than ClientOptions::max_lease, say; where that is not given, `no_quorum` with
  /// Error::is_configuration() for one longer than the nodes allow).
  [[nodiscard("the lock may be lost")]] Result<BootClock::time_point> extend(
      std::chrono::milliseconds lease);
  /// The same without waiting.
  Operation<BootClock::time_point> async_extend(std::chrono::milliseconds lease);

  /// Asks the nodes whether the lock is still ours now, without making it last longer: a check
  /// before a step that cannot be undone. Returns valid_until() when a quorum confirms the lock.
  /// Fails as extend() does. Like that of valid(), the answer may be old when it is used.
  [[nodiscard("the lock may be lost")]] Result<BootClock::time_point> confirm();
  /// The same without waiting.
  Operation<BootClock::time_point> async_confirm();

  /// Lets go without releasing: no more renewal, no release by the destructor. The lock stays taken
  /// until it expires or a process with this grant extends or releases it (RedLock::attach).
  [[nodiscard("without it nobody can extend or release the lock")]] Grant detach();

  struct State;
  /// For the library's own parts.
  explicit Lease(std::shared_ptr<State> state) noexcept;
  /// For the library's own parts.
  [[nodiscard]] const std::shared_ptr<State>& state() const noexcept { return state_; }

 private:
  [[nodiscard]] const State* held() const noexcept;
  [[nodiscard]] const State* asked() const noexcept;
  std::shared_ptr<State> state_;
};

}  // namespace redlock
