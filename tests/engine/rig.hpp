// SPDX-License-Identifier: MIT
// One engine on a workbench: the test is the clock and every node. Inputs are made at `now`;
// whatever the engine sends waits here, in order per node, until the test answers it.
#pragma once

#include <algorithm>
#include <deque>
#include <doctest/doctest.h>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "engine/engine.hpp"

namespace redlock::engine::test {

// For the tests, which use this namespace.
using namespace redlock;
using namespace redlock::engine;
using namespace std::chrono_literals;

class Counter final : public RandomSource {
 public:
  std::uint64_t next() override { return ++last_; }

 private:
  std::uint64_t last_ = 0;
};

class Rig {
 public:
  explicit Rig(std::uint32_t nodes, Config config = {});

  /// Lets time pass, calling the engine at every deadline on the way.
  void advance(Duration by);
  /// Time passes and nobody runs: a paused process.
  void pause(Duration by) { now += by; }
  [[nodiscard]] Duration since_start() const { return now - start; }

  RequestId acquire(AcquireRequest what = {});
  RequestId attach(OwnerId owner, Token token, std::chrono::milliseconds lease);
  RequestId attach(AttachRequest what);
  RequestId extend(GrantId grant, std::chrono::milliseconds lease);
  RequestId enter(GrantId grant, std::chrono::milliseconds lease = 30s, bool renew = false);
  void leave(GrantId grant);
  RequestId release(GrantId grant);
  RequestId release_elsewhere(OwnerId owner);
  RequestId force_release(OwnerId owner);
  /// Releases without asking what became of it, as a lease's destructor does.
  void drop(GrantId grant);
  /// As the holder who was told of a loss that the engine has not noticed yet.
  void give_up(GrantId grant, LossReason reason);
  void detach(GrantId grant);
  void cancel(RequestId request, Errc why = Errc::cancelled);
  void node_up(NodeIndex node);
  /// The node tells this waiter that its turn has come, or will after that time.
  void wake(NodeIndex node, RequestId waiter, Duration after = {});
  /// Whether nodes, the first so many, can wake waiters.
  void wakes(std::uint32_t nodes);

  /// Answers the oldest message that this node has not answered.
  void answer(NodeIndex node, const Reply& reply);
  /// The same for every node in the list, in its order.
  void answer(std::initializer_list<NodeIndex> nodes, const Reply& reply);
  /// Answers a message kept from earlier (a straggler).
  void answer(const Send& send, const Reply& reply);
  [[nodiscard]] bool asked(NodeIndex node) const { return !sent_.at(node).empty(); }
  [[nodiscard]] std::size_t asked_count(NodeIndex node) const { return sent_.at(node).size(); }
  /// The oldest unanswered message, which must be of type T.
  template <typename T>
  const T& oldest(NodeIndex node) const {
    return std::get<T>(sent_.at(node).front().command);
  }
  template <typename T>
  [[nodiscard]] bool oldest_is(NodeIndex node) const {
    return asked(node) && std::holds_alternative<T>(sent_.at(node).front().command);
  }
  /// Takes the oldest message away, to be answered later or never.
  Send take(NodeIndex node);
  /// How many releases, of whatever kind, wait unanswered at the node.
  [[nodiscard]] std::size_t releases(NodeIndex node) const;

  [[nodiscard]] bool ended(RequestId request) const { return results_.contains(request); }
  template <typename T>
  [[nodiscard]] const T& result(RequestId request) const {
    return std::get<T>(results_.at(request));
  }
  template <typename T>
  [[nodiscard]] bool ended_with(RequestId request) const {
    return ended(request) && std::holds_alternative<T>(results_.at(request));
  }
  /// The code of a request that ended in failure.
  [[nodiscard]] std::optional<Errc> failure(RequestId request) const;

  /// Acquires over all nodes, each granting this token.
  AcquireSucceeded lease_on_all(AcquireRequest what = {}, Token token = 7);
  /// Acquires over all nodes but the last, where somebody else has it. Token 7.
  GrantId lease_beside_rival(AcquireRequest what);

  /// The node's clock shows the time of this rig (as 2026), and so much more.
  void read_clock(NodeIndex node, Duration ahead = {},
                  Duration uncertainty = std::chrono::microseconds(100));

  [[nodiscard]] static AcquireRequest request(std::chrono::milliseconds lease = 30s);
  /// The same, to be renewed.
  [[nodiscard]] static AcquireRequest renewed(std::chrono::milliseconds lease = 30s);

  /// Takes the engine's outputs; the inputs above do.
  void collect();

  const Instant start{std::chrono::hours(1)};
  Instant now = start;
  std::map<GrantId, LossReason> lost;
  std::map<GrantId, Instant> valid_until;
  std::vector<RenewalDecided> renewals;
  std::vector<AttemptDecided> attempts;
  std::vector<TendMarker> tended;
  std::vector<NodeClockMoved> clocks_moved;
  std::vector<NoteClock> clock_notes;
  int readings_asked_for = 0;  ///< of all clocks
  Counter random;
  Engine engine;

 private:
  RequestId next_request() { return ++last_request_; }

  RequestId last_request_ = 0;
  std::vector<std::deque<Send>> sent_;
  std::map<RequestId, decltype(Finish::result)> results_;
};

inline const Unavailable down{Cause::connection_failed, Delivery::not_sent, "connection refused"};
inline const Unavailable broken{Cause::connection_lost, Delivery::unknown, "connection reset"};

}  // namespace redlock::engine::test
