// SPDX-License-Identifier: MIT
// Which nodes belong to the client's set, by what their markers name.
#include "rig.hpp"

namespace redlock::engine::test {
namespace {

NodeFacts of_set(const std::string& set) {
  return {.marker = Membership{{}, {set, 1, {}}}, .durable = true};
}

struct Set : CarefulRig {
  explicit Set(std::uint32_t nodes = 3) : CarefulRig(nodes) {}
  /// That its marker names another set; none if nothing is against it.
  std::optional<OtherSet> objection(NodeIndex node) {
    const auto why = engine.objection(now, node);
    if (!why) return std::nullopt;
    return std::get<OtherSet>(why->objection);
  }
  /// The last request to write the marker of that node: set, epoch and member.
  std::string written(NodeIndex node) const {
    for (auto tend = tended.rbegin(); tend != tended.rend(); ++tend) {
      if (tend->node != node) continue;
      const auto& [id, its] = tend->marker;
      return tend->write ? its.set + " " + std::to_string(its.epoch) + " " + id : "not yet";
    }
    return "never";
  }
  /// The members that this client says the node is none of; empty: it knows of no set.
  std::vector<std::string> no_member_of(NodeIndex node) {
    const auto why = engine.objection(now, node);
    REQUIRE(why);
    return std::get<NoMember>(why->objection).members;
  }
};

/// Three nodes, of which the last takes the place of 2, by the markers of those that know.
NodeFacts replaced(const std::string& id) {
  const std::vector<Member> members{{"0", "0"}, {"1", "1"}, {"new", "elsewhere"}};
  return {.marker = Membership{id, {"ours", 2, members}}, .durable = true};
}

TEST_CASE("a node of another set is not asked once a quorum names a set") {
  Set rig;
  rig.see(0, of_set("theirs"));
  CHECK_FALSE(rig.objection(0));
  rig.see({1, 2}, of_set("ours"));
  REQUIRE(rig.objection(0));
  CHECK(rig.objection(0)->named == "theirs");
  CHECK(rig.objection(0)->of_quorum == "ours");
  const RequestId request = rig.acquire();
  CHECK_FALSE(rig.asked(0));
  rig.answer({1, 2}, Granted{7});
  CHECK(rig.ended_with<AcquireSucceeded>(request));
}

TEST_CASE("what a node of another set granted before that was known does not count") {
  Set rig;
  const RequestId request = rig.acquire();  // before there is a connection
  const std::vector<Member> others{{"x", "0"}, {"y", "b"}, {"z", "c"}};
  rig.see(0, {.marker = Membership{"x", {"theirs", 9, others}}, .durable = true});
  rig.answer(0, Granted{7});
  rig.see(1, of_set("ours"));
  rig.answer(1, Granted{7});
  CHECK_FALSE(rig.ended(request));
  SUBCASE("a quorum of the own set grants it") {
    rig.see(2, of_set("ours"));
    rig.answer(2, Granted{7});
    CHECK(rig.ended_with<AcquireSucceeded>(request));
    // Node 0 has it too, until it is released.
    rig.release(rig.grant_of(request));
    CHECK(rig.releases(0) == 1);
  }
  SUBCASE("the third node cannot be reached") {
    rig.answer(2, down);
    REQUIRE(rig.failure(request) == Errc::no_quorum);
    CHECK(rig.ballot(request, 0).cause == Cause::quarantined);
    CHECK(rig.releases(0) == 1);
    CHECK(rig.releases(1) == 1);
  }
  SUBCASE("the third node does not answer") {
    rig.advance(1s);
    CHECK(rig.failure(request) == Errc::no_quorum);
  }
  SUBCASE("the third node has a third name") {
    rig.see(2, of_set("yet another"));
    rig.answer(2, Granted{7});
    CHECK(rig.failure(request) == Errc::no_quorum);
  }
}

TEST_CASE("a member that lost its data becomes that member again, by what a quorum shows") {
  Set rig;
  rig.see(0, wiped);
  rig.see(1, of_set("ours"));
  CHECK(rig.no_member_of(0).empty());  // not known yet
  rig.see(2, of_set("ours"));
  CHECK(std::holds_alternative<InQuarantine>(rig.engine.objection(rig.now, 0)->objection));
  rig.advance(61s);
  CHECK(rig.written(0) == "not yet");
  rig.advance(2s);
  CHECK(rig.written(0) == "ours 1 0");
}

TEST_CASE("a bare quorum gives a member its marker back, whatever another node shows") {
  Set rig(5);
  rig.see({0, 1, 2}, of_set("ours"));
  rig.see(3, of_set("theirs"));
  rig.see(4, wiped);
  rig.advance(62s);
  CHECK(rig.written(4) == "ours 1 4");
}

TEST_CASE("where a majority lost its data the rest is believed, if nothing contradicts") {
  Set rig;
  const auto look = [&](std::initializer_list<NodeIndex> nodes) {
    for (const NodeIndex node : nodes) rig.engine.on_pending_marker(rig.now, node, "id", rig.now);
  };
  rig.see({0, 1}, wiped);
  rig.advance(200s);
  CHECK(rig.written(0) == "not yet");  // node 2 may be of any set, or of none
  bool believed = false;
  SUBCASE("one member is left") {
    rig.see(2, of_set("ours"));
    look({0, 1});
    believed = true;
  }
  SUBCASE("one member is left, of later members than the first") {
    rig.see(2,
            {.marker = Membership{"2", {"ours", 2, of_set("ours").marker->configuration.members}},
             .durable = true});
    look({0, 1});
  }
  SUBCASE("two members are left, of two sets") {
    rig.see(1, of_set("theirs"));
    rig.see(2, of_set("ours"));
    look({0});
  }
  SUBCASE("nobody is left") {
    rig.see(2, wiped);
    look({0, 1, 2});
    CHECK(rig.no_member_of(0).empty());
  }
  rig.advance(61s);
  CHECK(rig.written(0) == "not yet");
  rig.advance(3s);
  CHECK(rig.written(0) == (believed ? "ours 1 0" : "not yet"));
}

TEST_CASE("a client that knew the set gives its markers back when all nodes lost theirs") {
  Set rig;
  rig.see({0, 1, 2}, of_set("ours"));
  rig.see({0, 1, 2}, wiped);
  for (const NodeIndex node : {0U, 1U, 2U}) {
    rig.engine.on_pending_marker(rig.now, node, "id", rig.now);
  }
  rig.advance(62s);
  for (const NodeIndex node : {0U, 1U, 2U}) {
    CHECK(rig.written(node) == "ours 1 " + std::to_string(node));
  }
}

TEST_CASE("a client that knew the set believes no other one that is left alone") {
  Set rig;
  rig.see({0, 1, 2}, of_set("ours"));
  rig.see({0, 1}, wiped);
  rig.see(2, of_set("theirs"));
  rig.advance(62s);
  CHECK(rig.written(0) == "not yet");
}

TEST_CASE("a member whose data is at another node of the list is not marked a second time") {
  Set rig;
  rig.see({1, 2}, sound);
  NodeFacts moved = sound;
  moved.marker = Membership{"0", {"ours", 1, {{"0", "0"}, {"1", "1"}, {"2", "2"}}}};
  rig.see(1, moved);
  rig.see(0, wiped);
  rig.advance(62s);
  CHECK(rig.written(0) == "not yet");
}

TEST_CASE("a new member counts beside members whose markers were read before it came") {
  Set rig;
  rig.see({0, 1}, sound);
  rig.see(2, replaced("new"));
  CHECK_FALSE(rig.engine.objection(rig.now, 2));
}

TEST_CASE("a blank node that is no member gets no marker, however long it waits") {
  Set rig;
  rig.see({0, 1}, replaced("0"));
  rig.see(1, replaced("1"));
  rig.see(2, wiped);  // at the old address
  rig.advance(200s);
  CHECK(rig.written(2) == "not yet");
  CHECK(rig.no_member_of(2) == std::vector<std::string>{"0", "1", "elsewhere"});
}

TEST_CASE("a member whose place was given to another node does not count when it comes back") {
  Set rig;
  rig.see(0, replaced("0"));
  rig.see(2, sound);
  CHECK_FALSE(rig.engine.objection(rig.now, 2));  // the word of one node
  rig.see(1, replaced("1"));
  CHECK(rig.moves.size() == 1);
  rig.see(2, sound);  // at the address of the new member
  REQUIRE(rig.engine.objection(rig.now, 2));
  CHECK(rig.engine.objection(rig.now, 2)->cause == Cause::incompatible);
  CHECK(rig.no_member_of(2).size() == 3);
}

TEST_CASE("no quorum is completed by a member that another one in it knows to be replaced") {
  Set rig;
  rig.see(0, replaced("0"));
  rig.see({1, 2}, sound);
  RequestId request = rig.acquire();
  rig.answer({0, 2}, Granted{7});
  CHECK_FALSE(rig.ended(request));
  rig.answer(1, Granted{7});
  CHECK(rig.ended_with<AcquireSucceeded>(request));
  request = rig.acquire();
  rig.answer({1, 2}, Granted{8});  // neither knows
  CHECK(rig.ended_with<AcquireSucceeded>(request));
}

TEST_CASE("a node with the data of another member of the list does not count beside it") {
  Set rig;
  rig.see({0, 1}, sound);
  NodeFacts copy = sound;
  copy.marker = Membership{"1", {"ours", 1, {{"0", "0"}, {"1", "1"}, {"2", "2"}}}};
  rig.see(2, copy);
  CHECK_FALSE(rig.engine.objection(rig.now, 1));
  REQUIRE(rig.engine.objection(rig.now, 2));
  CHECK(rig.no_member_of(2).size() == 3);
}

TEST_CASE("no marker of former members is given back once a node shows later ones") {
  CarefulRig rig(5);
  rig.see({0, 1, 2, 3, 4}, sound);
  rig.see(4, wiped);
  rig.see(0, {.marker = Membership{"0", {"ours", 2, {{"0", "0"}, {"new", "elsewhere"}}}},
              .durable = true});
  rig.advance(200s);
  REQUIRE_FALSE(rig.tended.empty());
  CHECK(std::ranges::none_of(rig.tended, &TendMarker::write));
}

TEST_CASE("members of two epochs count together while a change is on its way") {
  Set rig;
  rig.see(0, sound);
  rig.see(1, replaced("1"));
  rig.see(2, wiped);
  rig.advance(200s);
  CHECK(rig.written(2) == "not yet");  // it is known only when all members say the same
  const RequestId request = rig.acquire();
  rig.answer({0, 1}, Granted{7});
  CHECK(rig.ended_with<AcquireSucceeded>(request));
}

TEST_CASE("without quarantine one marker refuses all nodes, for as long as the client lives") {
  Rig rig(3);
  for (const NodeIndex node : {0U, 1U, 2U}) rig.engine.on_node_facts(rig.now, node, {});
  RequestId request = rig.acquire();
  rig.answer({0, 1}, Granted{7});
  REQUIRE(rig.ended_with<AcquireSucceeded>(request));
  SUBCASE("shown by a connection") {
    rig.engine.on_node_facts(rig.now, 2, of_set("ours"));
  }
  SUBCASE("found by looking") {
    rig.engine.on_deadline(rig.now);
    rig.collect();
    REQUIRE(rig.tended.size() == 3);
    rig.engine.on_marker(rig.now, 2);
  }
  SUBCASE("found by an acquire") {
    request = rig.acquire();
    rig.answer(rig.take(2), Unavailable{Cause::incompatible, Delivery::refused, "HASMARKER"});
  }
  rig.engine.on_node_facts(rig.now, 2, {});  // it is gone again
  request = rig.acquire();
  REQUIRE(rig.failure(request) == Errc::no_quorum);
  for (const Ballot& ballot : rig.result<Failed>(request).ballots) {
    CHECK(ballot.cause == Cause::incompatible);
  }
}

TEST_CASE("without quarantine what was asked before a marker was seen does not count") {
  Rig rig(3);
  for (const NodeIndex node : {0U, 1U}) rig.engine.on_node_facts(rig.now, node, {});
  const RequestId request = rig.acquire();
  rig.engine.on_node_facts(rig.now, 2, of_set("ours"));
  rig.answer({0, 1}, Granted{7});
  CHECK(rig.failure(request) == Errc::no_quorum);
}

}  // namespace
}  // namespace redlock::engine::test
