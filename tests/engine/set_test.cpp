// SPDX-License-Identifier: MIT
// Which nodes belong to the client's set, by what their markers name.
#include "rig.hpp"

namespace redlock::engine::test {
namespace {

NodeFacts of_set(const std::string& set) {
  return {.marker = true, .durable = true, .set = set};
}

struct Set : CarefulRig {
  Set() : CarefulRig(3) {}
  /// That its marker names another set; none if nothing is against it.
  std::optional<OtherSet> objection(NodeIndex node) {
    const auto why = engine.objection(now, node);
    if (!why) return std::nullopt;
    return std::get<OtherSet>(why->objection);
  }
  /// The last request to write the marker of that node: what it is to name.
  std::string written(NodeIndex node) const {
    for (auto tend = tended.rbegin(); tend != tended.rend(); ++tend) {
      if (tend->node == node) return tend->write ? "set '" + tend->set + "'" : "not yet";
    }
    return "never";
  }
};

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
  rig.see(0, of_set("theirs"));
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

TEST_CASE("a name that fewer than a quorum have is given to no node") {
  Set rig;
  rig.see(0, of_set("theirs"));
  rig.see(1, wiped);
  rig.advance(62s);
  // Node 2 may name it, too.
  CHECK(rig.written(1) == "not yet");
  SUBCASE("it does") {
    rig.see(2, of_set("theirs"));
    rig.advance(1s);
    CHECK(rig.written(1) == "set 'theirs'");
  }
  SUBCASE("it does not") {
    rig.see(2, of_set("ours"));
    rig.advance(1s);
    CHECK(rig.written(1) == "set ''");
  }
}

TEST_CASE("nodes that nobody has adopted get markers without a name, and serve") {
  Set rig;
  rig.see({0, 1}, wiped);
  rig.advance(62s);
  CHECK(rig.written(0) == "set ''");
  for (const NodeIndex node : {0U, 1U}) rig.engine.on_marker(node, "");
  const RequestId request = rig.acquire();
  rig.answer({0, 1}, Granted{7});
  CHECK(rig.ended_with<AcquireSucceeded>(request));
  SUBCASE("until they are adopted, when the name of the quorum counts") {
    rig.see(0, of_set("ours"));
    REQUIRE(rig.objection(0));
    CHECK(rig.objection(0)->of_quorum == "");
    rig.see(1, of_set("ours"));
    CHECK_FALSE(rig.objection(0));
  }
}

TEST_CASE("without quarantine one marker refuses all nodes, for as long as the client lives") {
  Rig rig(3);
  for (const NodeIndex node : {0U, 1U, 2U}) rig.engine.on_node_facts(rig.now, node, {});
  RequestId request = rig.acquire();
  rig.answer({0, 1}, Granted{7});
  REQUIRE(rig.ended_with<AcquireSucceeded>(request));
  SUBCASE("shown by a connection") {
    rig.engine.on_node_facts(rig.now, 2, of_set(""));
  }
  SUBCASE("found by looking") {
    rig.engine.on_deadline(rig.now);
    rig.collect();
    REQUIRE(rig.tended.size() == 3);
    rig.engine.on_marker(2);
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
  rig.engine.on_node_facts(rig.now, 2, of_set(""));
  rig.answer({0, 1}, Granted{7});
  CHECK(rig.failure(request) == Errc::no_quorum);
}

}  // namespace
}  // namespace redlock::engine::test
