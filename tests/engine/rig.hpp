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
  /// Lets that much time pass. Whether this is so at the end of it, and not before.
  template <typename Happens>
  [[nodiscard]] bool only_after(Duration by, const Happens& happens, Duration before = 1ns) {
    advance(by - before);
    const bool early = happens();
    advance(before);
    return !early && happens();
  }
  [[nodiscard]] bool ends_after(Duration by, RequestId request) {
    return only_after(by, [&] { return ended(request); });
  }
  [[nodiscard]] bool lost_after(Duration by, GrantId grant) {
    return only_after(by, [&] { return lost.contains(grant); });
  }
  /// Lets time pass until the node is asked something. How long that takes.
  Duration pause_of(NodeIndex node) {
    const Instant before = now;
    while (!asked(node)) advance(1ms);
    return now - before;
  }
  /// Time passes and nobody runs: a paused process.
  void pause(Duration by) { now += by; }
  [[nodiscard]] Duration since_start() const { return now - start; }

  /// Any request: calls the engine, with a number for what comes of it.
  template <typename Input>
  RequestId request_by(const Input& input) {
    const RequestId id = ++last_request_;
    input(id);
    collect();
    return id;
  }
  RequestId acquire(AcquireRequest what = {});
  RequestId attach(OwnerId owner, Token token, std::chrono::milliseconds lease);
  RequestId attach(AttachRequest what);
  RequestId extend(GrantId grant, std::chrono::milliseconds lease) {
    return request_by([&](RequestId id) { engine.extend(now, id, grant, lease); });
  }
  RequestId enter(GrantId grant, std::chrono::milliseconds lease = 30s, bool renew = false) {
    return request_by([&](RequestId id) { engine.enter(now, id, {grant, lease, renew}); });
  }
  void leave(GrantId grant) {
    engine.leave(now, grant);
    collect();
  }
  RequestId release(GrantId grant) {
    return request_by([&](RequestId id) { engine.release(now, id, grant); });
  }
  RequestId release_elsewhere(OwnerId owner) {
    return request_by([&](RequestId id) { engine.release(now, id, request().name, owner); });
  }
  /// Releases without asking what became of it, as a lease's destructor does.
  void drop(GrantId grant) {
    engine.release(now, 0, grant);
    collect();
  }
  /// As the holder who was told of a loss that the engine has not noticed yet.
  void give_up(GrantId grant, LossReason reason) {
    engine.give_up(now, grant, reason);
    collect();
  }
  void detach(GrantId grant) {
    engine.detach(now, grant);
    collect();
  }
  void cancel(RequestId request, Errc why = Errc::cancelled) {
    engine.cancel(now, request, why);
    collect();
  }
  void node_up(NodeIndex node) {
    engine.on_node_up(now, node);
    collect();
  }
  /// The node tells this waiter that its turn has come, or will after that time.
  void wake(NodeIndex node, RequestId waiter, Duration after = {}) {
    engine.on_wake(now, node, waiter, after);
    collect();
  }
  /// Whether nodes, the first so many, can wake waiters.
  void wakes(std::uint32_t nodes) {
    for (NodeIndex node = 0; node < sent_.size(); ++node) engine.on_wakes(node, node < nodes);
  }

  /// Answers the oldest message that this node has not answered.
  void answer(NodeIndex node, const Reply& reply) { answer(take(node), reply); }
  /// The same for every node in the list, in its order.
  void answer(std::initializer_list<NodeIndex> nodes, const Reply& reply) {
    for (const NodeIndex node : nodes) answer(node, reply);
  }
  /// Answers a message kept from earlier (a straggler).
  void answer(const Send& send, const Reply& reply) {
    engine.on_reply(now, send.node, send.tag, reply);
    collect();
  }
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
  /// Takes the oldest message of each node away, or all messages.
  void take_each() {
    for (NodeIndex node = 0; node < sent_.size(); ++node) take(node);
  }
  void take_all() {
    for (auto& sent : sent_) sent.clear();
  }
  /// Answers all that waits at any node, also what comes of that.
  void answer_all(const Reply& reply);
  /// The same, by what is asked.
  struct Answers {
    Reply acquire = Granted{7};
    Reply hold = Held{7};
    Reply release = ReleasedHere{};
  };
  /// How many acquires there were.
  std::size_t serve(const Answers& answers);
  /// How many releases, of whatever kind, wait unanswered at the node.
  [[nodiscard]] std::size_t releases(NodeIndex node) const;
  /// Whether that many wait at each node.
  [[nodiscard]] bool all_have_releases(std::size_t count) const;
  /// Whether no node has anything to answer.
  [[nodiscard]] bool all_answered() const;

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

  /// Why a lease was lost, if it was.
  [[nodiscard]] std::optional<LossReason> loss_of(GrantId grant) const {
    return lost.contains(grant) ? std::optional(lost.at(grant)) : std::nullopt;
  }
  [[nodiscard]] GrantId grant_of(RequestId request) const {
    return result<AcquireSucceeded>(request).grant;
  }
  [[nodiscard]] Token token_of(RequestId request) const {
    return result<AcquireSucceeded>(request).token;
  }
  [[nodiscard]] Released outcome(RequestId release) const {
    return result<ReleaseDone>(release).outcome;
  }
  /// What a node did in an acquisition that failed.
  [[nodiscard]] const Ballot& ballot(RequestId request, NodeIndex node) const {
    return result<Failed>(request).ballots.at(node);
  }

  /// Acquires; nodes 0, 1, ... give these answers, in this order.
  RequestId attempt(std::initializer_list<Reply> answers, AcquireRequest what = {});
  /// Acquires over these nodes, each granting token 7. The others have not answered.
  AcquireSucceeded lease_on(std::initializer_list<NodeIndex> nodes, AcquireRequest what = {});
  /// Acquires over all nodes, each granting this token.
  AcquireSucceeded lease_on_all(AcquireRequest what = {}, Token token = 7);
  /// The same of so many leases that are renewed.
  std::vector<GrantId> renewed_leases(int count, std::chrono::milliseconds lease = 30s);
  /// Acquires over all nodes but the last, where somebody else has it. Token 7.
  GrantId lease_beside_rival(AcquireRequest what);

  /// Takes up what an owner {5, 6} was granted; nodes 0 and 1 confirm it with token 7.
  GrantId take_up(std::chrono::milliseconds lease = 30s);
  /// In the next renewal of three nodes this one says free, and the others confirm the lease.
  void forgets(NodeIndex node, Token token = 7);
  /// The same, and the heal of that node is taken away.
  Send heal_of(NodeIndex node, Token token = 7);

  /// The node's clock shows the time of this rig (as 2026), and so much more.
  void read_clock(NodeIndex node, Duration ahead = {},
                  Duration uncertainty = std::chrono::microseconds(100));

  [[nodiscard]] static AcquireRequest request(std::chrono::milliseconds lease = 30s);
  /// The same, to be renewed.
  [[nodiscard]] static AcquireRequest renewed(std::chrono::milliseconds lease = 30s);
  /// By a call that waits.
  [[nodiscard]] static AcquireRequest waiting(Duration wait, bool in_order = false);

  /// Takes the engine's outputs; the inputs above do.
  void collect();

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(sent_.size()); }

  static constexpr Instant start{std::chrono::hours(1)};
  Instant now = start;
  std::map<GrantId, LossReason> lost;
  std::map<GrantId, Instant> valid_until;
  std::vector<RenewalDecided> renewals;
  std::vector<AttemptDecided> attempts;
  std::vector<TendMarker> tended;
  std::vector<NodeClockMoved> clocks_moved;
  std::vector<NoteClock> clock_notes;
  std::map<NodeIndex, std::string> moves;  ///< by which nodes are other servers, at an address
  std::map<NodeIndex, Membership> shows;   ///< by the markers of nodes, and when they are asked
  int readings_asked_for = 0;              ///< of all clocks
  Counter random;
  Engine engine;

 private:
  RequestId last_request_ = 0;
  std::vector<std::deque<Send>> sent_;
  std::map<RequestId, decltype(Finish::result)> results_;
};

/// A client of three nodes that has a lease on all of them.
struct LeaseRig : Rig {
  explicit LeaseRig(AcquireRequest what = {}, Token token = 7)
      : Rig(3), lease(lease_on_all(std::move(what), token)) {}

  const AcquireSucceeded lease;
  const GrantId grant = lease.grant;
};

/// The same with a lease that is renewed.
struct RenewedRig : LeaseRig {
  RenewedRig() : LeaseRig(renewed()) {}
};

/// The set of the rig; its members are filled in when a node is seen.
inline const Membership ours{{}, {"ours", 1, {}}};
inline const NodeFacts sound{.marker = ours, .durable = true};
inline const NodeFacts wiped{.durable = true};

/// "0", "1", and so on: the nodes as members, id and address.
inline std::vector<std::string> numbers(std::uint32_t nodes) {
  std::vector<std::string> all;
  for (NodeIndex node = 0; node < nodes; ++node) all.push_back(std::to_string(node));
  return all;
}

/// A client that lets nodes wait which may have forgotten. It has seen none of them yet.
struct CarefulRig : Rig {
  explicit CarefulRig(std::uint32_t nodes, std::chrono::milliseconds max_lease = 60s)
      : Rig(nodes, {.addresses = numbers(nodes), .max_lease = max_lease, .quarantine = true}) {}

  /// A marker without members names the nodes of the rig.
  void see(NodeIndex node, NodeFacts facts) {
    if (facts.marker && facts.marker->configuration.members.empty()) {
      facts.marker->id = std::to_string(node);
      for (const std::string& number : numbers(count())) {
        facts.marker->configuration.members.push_back({number, number});
      }
    }
    facts.marker ? void(shows[node] = *facts.marker) : void(shows.erase(node));
    engine.on_node_facts(now, node, facts);
    collect();
  }
  void see(std::initializer_list<NodeIndex> nodes, const NodeFacts& facts) {
    for (const NodeIndex node : nodes) see(node, facts);
  }
};

inline const Unavailable down{Cause::connection_failed, Delivery::not_sent, "connection refused"};
inline const Unavailable broken{Cause::connection_lost, Delivery::unknown, "connection reset"};

}  // namespace redlock::engine::test
