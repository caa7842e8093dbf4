// SPDX-License-Identifier: MIT
// The calls of one owner for one name. Two that acquired at once would contend with each other, so
// they are queued: the first takes the lock, or enters it once more if the owner holds it; each of
// the others waits up to its own timeout and then enters the lease that the previous call obtained.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "engine/electorate.hpp"
#include "engine/outputs.hpp"
#include "engine/requests.hpp"
#include "engine/retry_schedule.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

class OwnerQueue {
 public:
  // The next steps, in this order. For BeginAcquire and BeginEntry there is one result, which comes
  // back by on_acquired, on_entered or on_failed; only one of them is under way.
  struct BeginAcquire {
    AcquireRequest what;
  };
  struct CancelAcquire {
    Errc why{};
  };
  struct BeginEntry {
    EnterRequest what;
  };
  /// One level less; `request`, if not 0, is answered.
  struct LeaveLevel {
    GrantId grant = 0;
    RequestId request = 0;
  };
  struct ReleaseLease {
    GrantId grant = 0;
    RequestId request = 0;
  };
  using Step =
      std::variant<BeginAcquire, CancelAcquire, BeginEntry, LeaveLevel, ReleaseLease, Finish>;
  using Steps = std::vector<Step>;

  explicit OwnerQueue(OwnerKey key) : key_(std::move(key)) {}

  void take(Instant now, const Electorate& electorate, RequestId request, AcquireRequest what,
            Steps& steps);
  /// Leaves one level that the owner holds; with the last one the lease is released. Returns its
  /// grant then; 0 if there are levels left.
  GrantId leave(RequestId request, Steps& steps);
  /// Ends a call. A call whose entry is under way is answered at once, and a level that nodes grant
  /// later is left.
  void cancel(Instant now, RequestId request, Errc why, Steps& steps);

  void on_acquired(Instant now, const AcquireSucceeded& granted, Steps& steps);
  void on_entered(Instant now, const EnterSucceeded& entered, Steps& steps);
  void on_failed(Instant now, Failed failure, RandomSource& random, Steps& steps);

  [[nodiscard]] Instant deadline() const;
  void on_deadline(Instant now, Steps& steps);

  /// The request that is under way for the first call has this number.
  void began(RequestId inner) { inner_ = inner; }
  [[nodiscard]] RequestId inner() const { return inner_; }

  [[nodiscard]] const OwnerKey& key() const { return key_; }
  /// Nothing is held and no call waits.
  [[nodiscard]] bool empty() const { return grant_ == 0 && calls_.empty(); }

 private:
  /// What the first call is doing.
  enum class Stage : std::uint8_t { none, acquiring, entering, pausing };

  struct OwnerCall {
    RequestId request = 0;  // 0: answered, while its entry is under way
    AcquireRequest what;
    Instant since;
    RetrySchedule schedule;
  };

  void begin(Instant now, Steps& steps);
  void begin_next(Instant now, Steps& steps);
  void end(Instant now, decltype(Finish::result) result, Steps& steps);
  void give_up(Failed failure, Steps& steps);

  OwnerKey key_;
  std::vector<OwnerCall> calls_;  // the first in front
  RequestId inner_ = 0;
  GrantId grant_ = 0;  // the lease that the owner holds
  std::uint32_t levels_ = 0;
  Stage stage_ = Stage::none;
  bool closed_ = false;  // no call is begun any more
};

}  // namespace redlock::engine
