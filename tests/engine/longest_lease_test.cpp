// SPDX-License-Identifier: MIT
// The longest lease of the set, which is raised while a client runs: for how long nodes wait that
// may have forgotten, which of them count together, and who is granted nothing.
#include "rig.hpp"

namespace redlock::engine::test {
namespace {

/// Three nodes that keep their data in memory alone, and have run for an hour.
struct Raising : CarefulRig {
  explicit Raising(std::chrono::milliseconds own = 60s) : CarefulRig(3, own) {
    for (const NodeIndex node : {0U, 1U, 2U}) show(node, 1, 60s);
  }

  [[nodiscard]] static Membership marker(NodeIndex node, std::uint64_t epoch,
                                         std::chrono::milliseconds max_lease,
                                         std::chrono::milliseconds announced = {}) {
    return {std::to_string(node),
            {"ours", epoch, {{"0", "0"}, {"1", "1"}, {"2", "2"}}, max_lease, announced}};
  }
  void show(NodeIndex node, std::uint64_t epoch, std::chrono::milliseconds max_lease,
            std::chrono::milliseconds announced = {}, Duration uptime = std::chrono::hours(1)) {
    see(node, {.marker = marker(node, epoch, max_lease, announced),
               .uptime = uptime,
               .run = uptime < 1h ? "another" : "first"});
  }
  /// On a connection that stays.
  void tell(NodeIndex node, std::uint64_t epoch, std::chrono::milliseconds max_lease,
            std::chrono::milliseconds announced = {}) {
    shows[node] = marker(node, epoch, max_lease, announced);
    engine.on_members(now, node, shows[node], now);
    collect();
  }
  [[nodiscard]] bool votes(NodeIndex node) const { return !engine.objection(now, node); }
  [[nodiscard]] Cause cause(NodeIndex node) const { return engine.objection(now, node)->cause; }
};

TEST_CASE("a node that was restarted waits for longer leases when a quorum shows them") {
  Raising rig;
  rig.show(2, 1, 60s, {}, 1s);
  rig.advance(62s);
  CHECK(rig.votes(2));
  rig.tell(0, 2, 60s, 180s);
  CHECK(rig.votes(2));  // one may be wrong
  rig.tell(1, 2, 60s, 180s);
  rig.tell(2, 2, 60s, 180s);
  CHECK(rig.cause(2) == Cause::quarantined);
  CHECK(rig.votes(0));
  rig.advance(122s);
  CHECK(rig.votes(2));
}

TEST_CASE("a node waits for what it shows itself, and nobody else does by its word") {
  Raising rig;
  rig.show(2, 2, 60s, 180s, 1s);
  rig.show(1, 1, 60s, {}, 1s);
  rig.advance(62s);
  CHECK(rig.votes(1));
  CHECK_FALSE(rig.votes(2));
  rig.advance(122s);
  CHECK(rig.votes(2));
}

TEST_CASE("before a quorum was seen one node's word is enough to wait") {
  CarefulRig rig(5);
  rig.see(0, {.marker = Membership{{}, {"ours", 1, {}, 60s, 180s}}, .durable = true});
  rig.see(1, {.marker = Membership{{}, {"ours", 1, {}, 60s}}, .uptime = 1s});
  rig.advance(62s);
  CHECK(rig.engine.objection(rig.now, 1)->cause == Cause::quarantined);
  rig.see(2, {.marker = Membership{{}, {"ours", 1, {}, 60s}}, .durable = true});
  CHECK_FALSE(rig.engine.objection(rig.now, 1));
}

TEST_CASE("a node that does not know of longer leases does not count beside one that does") {
  Raising rig;
  rig.tell(0, 2, 60s, 180s);
  const RequestId request = rig.acquire();
  rig.answer(0, Granted{7});
  rig.answer(1, Granted{7});
  CHECK_FALSE(rig.ended(request));
  rig.answer(2, Granted{7});
  // The two that know nothing are a quorum of what was in force.
  CHECK(rig.ended(request));
}

TEST_CASE("a node that came back with older data is left out until it is told") {
  Raising rig;
  for (const NodeIndex node : {0U, 1U, 2U}) rig.tell(node, 3, 180s);
  rig.show(2, 1, 60s, {}, 1s);
  rig.advance(200s);
  CHECK(rig.cause(2) == Cause::incompatible);
  const auto why = rig.engine.objection(rig.now, 2);
  CHECK(std::get<IsBehind>(why->objection).of_quorum == 180s);
  rig.tell(2, 3, 180s);
  CHECK(rig.votes(2));
}

TEST_CASE("a client with longer leases is granted nothing until they are in force") {
  Raising rig(180s);
  CHECK(rig.cause(0) == Cause::incompatible);
  const auto refused = [&](NodeIndex node) {
    return std::get<OtherMaxLease>(rig.engine.objection(rig.now, node)->objection);
  };
  CHECK(refused(0).there == 60s);
  CHECK(refused(0).here == 180s);
  for (const NodeIndex node : {0U, 1U, 2U}) rig.tell(node, 2, 60s, 180s);
  CHECK(refused(1).announced == 180s);
  for (const NodeIndex node : {0U, 1U, 2U}) rig.tell(node, 3, 180s);
  for (const NodeIndex node : {0U, 1U, 2U}) CHECK(rig.votes(node));
}

/// A client that goes by what the nodes say.
struct NothingGiven : Raising {
  NothingGiven() : Raising(0s) {}
};

TEST_CASE_FIXTURE(NothingGiven, "a client that is given no longest lease goes by the markers") {
  const RequestId longer = acquire(request(180s));
  CHECK(failure(longer) == Errc::no_quorum);
  CHECK(ballot(longer, 0).cause == Cause::incompatible);
  const GrantId grant = lease_on_all(request(60s)).grant;
  // No node is told of an end that nobody else would wait for; the lease is as it was.
  const RequestId extension = extend(grant, 180s);
  CHECK(failure(extension) == Errc::no_quorum);
  CHECK(all_answered());
  CHECK_FALSE(loss_of(grant));
  CHECK(failure(attach(OwnerId{{5, 6}}, 7, 180s)) == Errc::no_quorum);
  CHECK(all_answered());
  // As soon as they allow it.
  for (const NodeIndex node : {0U, 1U}) tell(node, 3, 180s);
  const RequestId once_more = extend(grant, 180s);
  answer({0, 1}, Held{7});
  CHECK(ended_with<ExtendSucceeded>(once_more));
}

TEST_CASE("a clock that moved is astray until the longest leases of the set are over") {
  Raising rig;
  for (const NodeIndex node : {0U, 1U, 2U}) rig.tell(node, 3, 180s);
  const auto read = [&](Duration of_first) {
    rig.advance(1s);
    for (const NodeIndex node : {0U, 1U, 2U}) {
      rig.read_clock(node, node == 0 ? of_first : Duration::zero());
    }
  };
  read({});
  read(1h);
  REQUIRE(rig.cause(0) == Cause::clock_moved);
  rig.advance(170s);
  CHECK(rig.cause(0) == Cause::clock_moved);
  rig.advance(11s);
  CHECK(rig.votes(0));
}

TEST_CASE("an owner elsewhere that gave its grant back is kept out for the longest lease") {
  Raising rig;
  for (const NodeIndex node : {0U, 1U, 2U}) rig.tell(node, 3, 180s);
  rig.request_by(
      [&](RequestId id) { rig.engine.release(rig.now, id, Rig::request().name, OwnerId{}); });
  CHECK(rig.oldest<ForceCommand>(0).keep_out == 180s);
}

TEST_CASE("who is forced out is kept out for the longest lease of the set") {
  Raising rig;
  for (const NodeIndex node : {0U, 1U, 2U}) rig.tell(node, 3, 180s);
  rig.request_by(
      [&](RequestId id) { rig.engine.force_release(rig.now, id, Rig::request().name, OwnerId{}); });
  CHECK(rig.oldest<ForceCommand>(0).keep_out > 180s);
  CHECK(rig.oldest<ForceCommand>(0).longest_lease == 180s);
}

}  // namespace
}  // namespace redlock::engine::test
