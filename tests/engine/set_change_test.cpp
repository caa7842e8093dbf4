// SPDX-License-Identifier: MIT
// A member is replaced while a client runs: what still counts, what counts no more, and where the
// client looks for the new member.
#include "rig.hpp"

namespace redlock::engine::test {
namespace {

const std::vector<Member> former{{"0", "0"}, {"1", "1"}, {"2", "2"}};
const std::vector<Member> later{{"0", "0"}, {"1", "1"}, {"new", "elsewhere"}};

/// Three nodes whose set replaces the last one.
struct Change : CarefulRig {
  Change() : CarefulRig(3) { see({0, 1, 2}, sound); }

  static Membership epoch(std::uint64_t number, NodeIndex node, std::vector<Member> members) {
    return {std::to_string(node), {"ours", number, std::move(members)}};
  }
  void tell(NodeIndex node, const std::vector<Member>& members = later, std::uint64_t number = 2) {
    shows[node] = epoch(number, node, members);
    engine.on_members(now, node, shows[node], now);
    collect();
  }
  /// A lease on nodes 0 and 1, the first of which names later members from then on.
  GrantId lease_beside_a_change() {
    const GrantId grant = lease_on({0, 1}).grant;
    answer(2, down);
    tell(0);
    advance(10s);
    return grant;
  }
  /// All nodes are asked to hold; these do.
  void hold(GrantId grant, std::initializer_list<NodeIndex> nodes) {
    take_all();
    engine.extend(now, 0, grant, 30s);
    collect();
    for (const NodeIndex node : nodes) answer(node, Held{7});
  }
  [[nodiscard]] Instant trusted_until(Instant sent) const {
    return rules::trusted_until(sent, 30s, 0.01);
  }
};

TEST_CASE("a client moves on to a new member when a quorum shows it, and not before") {
  Change rig;
  const GrantId grant = rig.lease_on_all().grant;
  rig.tell(0);
  CHECK(rig.moves.empty());
  rig.tell(1);
  CHECK(rig.moves == std::map<NodeIndex, std::string>{{2, "elsewhere"}});
  rig.see(2, wiped);  // the new one
  const auto hold_for = [&](int times) {
    for (; times > 0; --times) {
      rig.advance(10s);
      rig.hold(grant, {0, 1});
      CHECK(rig.valid_until[grant] == rig.trusted_until(rig.now));
    }
  };
  hold_for(6);
  CHECK(std::ranges::none_of(rig.tended, &TendMarker::write));
  hold_for(1);
  CHECK(std::ranges::any_of(rig.tended, [](const TendMarker& tend) {
    return tend.node == 2 && tend.write && tend.marker.id == "new";
  }));
}

TEST_CASE("a client does not go back to former members if a quorum comes back with older data") {
  Change rig;
  rig.tell(0);
  rig.tell(1);
  REQUIRE(rig.moves == std::map<NodeIndex, std::string>{{2, "elsewhere"}});
  rig.moves.clear();
  rig.tell(0, former, 1);
  rig.tell(1, former, 1);
  CHECK(rig.moves.empty());
}

TEST_CASE("a new member that stood there before waits from the change on") {
  CarefulRig rig(3);
  const std::vector<Member> before{{"0", "0"}, {"1", "1"}, {"old", "elsewhere"}};
  const auto shown = [&](NodeIndex node, std::uint64_t epoch, const std::vector<Member>& members) {
    return NodeFacts{.marker = Change::epoch(epoch, node, members), .durable = true};
  };
  rig.see(2, wiped);
  rig.see(0, shown(0, 1, before));
  rig.see(1, shown(1, 1, before));
  rig.advance(200s);
  rig.see(0, shown(0, 2, former));
  rig.see(1, shown(1, 2, former));
  const auto written = [&] { return std::ranges::count(rig.tended, true, &TendMarker::write); };
  rig.advance(59s);
  CHECK(written() == 0);
  rig.advance(4s);
  CHECK(written() > 0);
}

TEST_CASE("a new member of another set, which the same nodes are by now, waits as well") {
  CarefulRig rig(3);
  rig.see({0, 1}, sound);
  rig.see(2, wiped);
  rig.advance(200s);
  const auto of_set = [&](std::uint64_t epoch, const Member& last) {
    for (const NodeIndex node : {0U, 1U}) {
      auto members = former;
      members[2] = last;
      rig.see(node, {.marker = Membership{std::to_string(node), {"theirs", epoch, members}},
                     .durable = true});
    }
  };
  of_set(1, {"old", "elsewhere"});
  rig.advance(200s);
  rig.tended.clear();
  of_set(2, {"new", "2"});
  rig.advance(59s);
  CHECK(std::ranges::none_of(rig.tended, &TendMarker::write));
  rig.advance(4s);
  CHECK(std::ranges::any_of(rig.tended, &TendMarker::write));
}

TEST_CASE("a replaced node counts no longer than the lease was valid with it") {
  Change rig;
  const GrantId grant = rig.lease_on_all().grant;
  rig.advance(5s);
  rig.hold(grant, {2});  // it does not know yet that it is replaced
  SUBCASE("by two that know the same") {
    rig.tell(0);
    rig.tell(1);
  }
  SUBCASE("when it has lost its marker, and not its locks") {
    rig.see(2, wiped);
    rig.tell(0);
    rig.tell(1);
  }
  SUBCASE("by two of which one knows of still later members") {
    rig.tell(0, {{"0", "0"}, {"1", "1"}, {"newer", "farther"}}, 3);
    rig.tell(1);
  }
  rig.advance(5s);
  rig.hold(grant, {0});
  CHECK_FALSE(rig.valid_until.contains(grant));  // as it was
  rig.answer(1, Held{7});
  CHECK(rig.valid_until[grant] == rig.trusted_until(rig.now));
}

TEST_CASE("one node that names later members takes no vote but its own") {
  Change rig;
  const GrantId grant = rig.lease_on_all().grant;
  rig.tell(0, {{"0", "0"}, {"x", "x"}, {"y", "y"}}, 9);
  rig.advance(10s);
  SUBCASE("of a lease") {
    rig.hold(grant, {0, 1});
    CHECK(rig.valid_until[grant] < rig.trusted_until(rig.now));
    rig.answer(2, Held{7});
    CHECK(rig.valid_until[grant] == rig.trusted_until(rig.now));
  }
  SUBCASE("of an attempt") {
    const RequestId request = rig.acquire();
    rig.answer({0, 1}, Granted{8});
    CHECK_FALSE(rig.ended(request));
    rig.answer(2, Granted{8});
    CHECK(rig.ended_with<AcquireSucceeded>(request));
  }
  CHECK(rig.lost.empty());
  CHECK(rig.moves.empty());
}

TEST_CASE("an attempt that has the vote of a replaced node goes on with the others") {
  Change rig;
  const RequestId request = rig.acquire();
  rig.answer(2, Granted{9});  // a larger token, which the others need not settle
  SUBCASE("which names former members") {}
  SUBCASE("which has lost its marker since") {
    rig.see(2, wiped);
  }
  rig.tell(0);
  rig.tell(1);  // the vote of node 2 is worth nothing
  rig.answer(0, Granted{8});
  CHECK_FALSE(rig.ended(request));
  rig.answer(1, Granted{8});
  CHECK(rig.ended_with<AcquireSucceeded>(request));
}

TEST_CASE("of a node and the one that removes it only the first to count counts") {
  Change rig;
  const GrantId grant = rig.lease_beside_a_change();
  rig.hold(grant, {0, 1});
  CHECK(rig.valid_until[grant] == rig.trusted_until(rig.now));
  rig.hold(grant, {2});  // it is up again, and does not know that it is replaced
  rig.answer(1, Taken{});
  CHECK(rig.loss_of(grant) == LossReason::taken);
}

TEST_CASE("no lease is taken up with a node and the one that removes it") {
  CarefulRig rig(3);
  const auto see = [&](NodeIndex node, std::uint64_t number, const std::vector<Member>& members) {
    rig.see(node, {.marker = Change::epoch(number, node, members), .durable = true});
  };
  see(2, 1, former);
  RequestId request = 0;
  const auto attach = [&] {
    request = rig.attach({{5, 6}}, 7, 30s);
    rig.answer(2, Held{7});
    CHECK_FALSE(rig.ended(request));
  };
  SUBCASE("it confirms before the client knows of any set") {
    attach();
    see(0, 2, later);
    see(1, 2, later);
  }
  SUBCASE("one node has later members") {
    see(1, 1, former);
    see(0, 2, later);
    attach();
  }
  rig.answer(0, Held{7});
  CHECK_FALSE(rig.ended_with<AcquireSucceeded>(request));
  rig.answer(1, Free{});
  CHECK_FALSE(rig.ended_with<AcquireSucceeded>(request));
}

TEST_CASE("what is granted while an attempt settles counts only beside what it may count with") {
  Change rig;
  rig.tell(0);
  const RequestId request = rig.acquire();
  rig.answer(0, Granted{8});
  rig.answer(1, Granted{9});
  rig.answer(2, Granted{9});
  CHECK_FALSE(rig.ended(request));
  rig.answer(0, Held{9});
  REQUIRE(rig.ended_with<AcquireSucceeded>(request));
  const GrantId grant = rig.grant_of(request);
  rig.hold(grant, {});
  rig.answer(1, Taken{});
  CHECK(rig.loss_of(grant) == LossReason::taken);
}

TEST_CASE("what a node confirmed before it lost its marker does not count beside former members") {
  Change rig;
  const GrantId grant = rig.lease_beside_a_change();
  rig.hold(grant, {0});
  rig.see(0, wiped);
  rig.hold(grant, {2});                          // it is up again
  CHECK_FALSE(rig.valid_until.contains(grant));  // as it was
  rig.answer(1, Held{7});
  CHECK(rig.valid_until[grant] == rig.trusted_until(rig.now));
}

TEST_CASE("a node that lost its marker waits from when its client has read the members again") {
  Change rig;
  const auto is_written = [&rig] { return std::ranges::any_of(rig.tended, &TendMarker::write); };
  SUBCASE("of a quorum that shows them") {
    rig.shows.erase(1);  // it does not answer
    rig.see(0, wiped);
    rig.advance(200s);
    CHECK_FALSE(is_written());
    const auto why = rig.engine.objection(rig.now, 0);
    REQUIRE(why);
    CHECK(std::get<InQuarantine>(why->objection).votes_in > 61s);  // it does not wait yet
    rig.shows[1] = Change::epoch(1, 1, former);
  }
  SUBCASE("of all, if most have lost theirs") {
    rig.see({0, 1}, wiped);
    rig.advance(200s);
    CHECK_FALSE(is_written());
    for (const NodeIndex node : {0U, 1U}) {
      rig.engine.on_pending_marker(rig.now, node, "id", rig.now);
    }
  }
  rig.advance(61s);
  CHECK_FALSE(is_written());
  rig.advance(3s);
  CHECK(is_written());
}

TEST_CASE(
    "it reads them again when it has learnt of them, as some may have lost theirs meanwhile") {
  CarefulRig rig(3);
  const auto is_written = [&rig] { return std::ranges::any_of(rig.tended, &TendMarker::write); };
  rig.see(2, wiped);
  rig.see(0, sound);
  rig.advance(2s);  // node 0 is asked
  const Membership of_node = rig.shows[0];
  rig.shows.erase(0);
  rig.see(1, sound);
  rig.advance(200s);
  CHECK_FALSE(is_written());
  rig.shows[0] = of_node;
  rig.advance(65s);
  CHECK(is_written());
}

TEST_CASE("a client moves on from a node that it never reached, if it knows that it was replaced") {
  CarefulRig rig(3);
  auto members = later;
  bool moves = false;
  bool is_down = true;
  SUBCASE("all others are spelled as the markers have them") {
    moves = true;
  }
  SUBCASE("it is not known yet whether it can be reached") {
    is_down = false;
  }
  SUBCASE("another one is spelled otherwise, and so may this one be") {
    members[1].address = "otherwise";
  }
  SUBCASE("it answers, and has no marker: it is listed by mistake") {
    rig.see(2, wiped);
  }
  SUBCASE("it is of another set") {
    rig.see(2, {.marker = Membership{"x", {"theirs", 1, {{"x", "2"}}}}, .durable = true});
  }
  for (const NodeIndex node : {0U, 1U}) {
    rig.see(node, {.marker = Change::epoch(2, node, members), .durable = true});
  }
  if (is_down) rig.engine.on_node_down(rig.now, 2);
  rig.collect();
  CHECK(rig.moves.contains(2) == moves);
}

TEST_CASE("a replaced node that lost its marker and not its locks does not count beside another") {
  CarefulRig rig(3);
  const auto see = [&](NodeIndex node, std::uint64_t number, const std::vector<Member>& members) {
    rig.see(node, {.marker = Change::epoch(number, node, members), .durable = true});
  };
  SUBCASE("the client knew it as a member") {
    rig.see({0, 1, 2}, sound);
  }
  SUBCASE("the client knows of no members") {}
  see(0, 2, later);
  rig.see(2, wiped);
  const RequestId request = rig.attach({{5, 6}}, 7, 30s);
  rig.answer(0, Held{7});
  rig.answer(2, Held{7});
  rig.answer(1, Free{});
  CHECK_FALSE(rig.ended_with<AcquireSucceeded>(request));
}

TEST_CASE("a client stays with a member that it spells otherwise and that lost its data") {
  CarefulRig rig(3);
  auto members = former;
  members[2].address = "otherwise";
  const auto show = [&](NodeIndex node) {
    rig.see(node, {.marker = Change::epoch(1, node, members), .durable = true});
  };
  for (const NodeIndex node : {0U, 1U, 2U}) show(node);
  rig.see(2, wiped);
  CHECK(rig.moves.empty());
  show(0);
  rig.engine.on_node_down(rig.now, 2);
  rig.collect();
  CHECK(rig.moves.empty());
}

TEST_CASE("the node that lost its place goes on, and not one that is spelled otherwise") {
  CarefulRig rig(5);
  std::vector<Member> members{{"0", "otherwise"}, {"1", "1"}, {"2", "2"}, {"3", "3"}, {"4", "4"}};
  const auto show = [&](NodeIndex node, std::uint64_t epoch) {
    rig.see(node, {.marker = Change::epoch(epoch, node, members), .durable = true});
  };
  for (const NodeIndex node : {0U, 1U, 2U, 3U, 4U}) show(node, 1);
  rig.see(0, wiped);
  members[4] = {"new", "elsewhere"};
  for (const NodeIndex node : {1U, 2U, 3U}) show(node, 2);
  CHECK(rig.moves == std::map<NodeIndex, std::string>{{4, "elsewhere"}});
}

TEST_CASE("the clock of a new member is not taken for that of its predecessor") {
  Change rig;
  for (int probe = 0; probe < 3; ++probe) {
    for (const NodeIndex node : {0U, 1U, 2U}) rig.read_clock(node);
    rig.advance(1s);
  }
  rig.tell(0);
  rig.tell(1);
  rig.read_clock(2, 1h);
  CHECK(rig.clocks_moved.empty());
}

TEST_CASE("a client goes on from a new member that has no marker yet and is replaced in turn") {
  Change rig;
  rig.tell(0);
  rig.tell(1);
  rig.see(2, wiped);
  const std::vector<Member> latest{{"0", "0"}, {"1", "1"}, {"newer", "farther"}};
  rig.tell(0, latest, 3);
  rig.tell(1, latest, 3);
  CHECK(rig.moves == std::map<NodeIndex, std::string>{{2, "farther"}});
}

TEST_CASE("a client does not follow from TLS to none") {
  Rig rig(3, {.addresses = {"rediss://a", "rediss://b", "rediss://c"}, .quarantine = true});
  const auto shown = [](const char* id, std::uint64_t epoch, const std::string& last) {
    return NodeFacts{
        .marker =
            Membership{id,
                       {"ours", epoch, {{"0", "rediss://a"}, {"1", "rediss://b"}, {"2", last}}}},
        .durable = true};
  };
  const auto replace_by = [&](std::uint64_t epoch, const std::string& last) {
    rig.engine.on_node_facts(rig.now, 0, shown("0", epoch, last));
    rig.engine.on_node_facts(rig.now, 1, shown("1", epoch, last));
    rig.collect();
  };
  rig.engine.on_node_down(rig.now, 2);
  replace_by(2, "redis://d");
  CHECK(rig.moves.empty());
  replace_by(3, "rediss://d");
  CHECK(rig.moves.size() == 1);
}

}  // namespace
}  // namespace redlock::engine::test
