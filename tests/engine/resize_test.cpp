// SPDX-License-Identifier: MIT
// A set gets one member more, or one less, while a client runs: over which nodes a quorum is
// counted, and what of a lease stays valid.
#include "rig.hpp"

namespace redlock::engine::test {
namespace {

const std::vector<Member> three{{"0", "0"}, {"1", "1"}, {"2", "2"}};
const std::vector<Member> four{{"0", "0"}, {"1", "1"}, {"2", "2"}, {"3", "3"}};

/// So many nodes, and slots for more.
struct Resized : Rig {
  static constexpr std::uint32_t slots = 7;
  explicit Resized(const std::vector<Member>& members, std::uint32_t attempts_at_once = 128,
                   bool all_are_told = true)
      : Rig(static_cast<std::uint32_t>(members.size()),
            {.slots = slots,
             .addresses = numbers(static_cast<std::uint32_t>(members.size())),
             .max_lease = 60s,
             .quarantine = true,
             .attempts_at_once = attempts_at_once}) {
    for (NodeIndex node = 0; all_are_told && node < members.size(); ++node) tell(node, members, 1);
  }
  void tell(NodeIndex node, const std::vector<Member>& members, std::uint64_t epoch = 2) {
    const Membership marker{std::to_string(node), {"ours", epoch, members}};
    engine.on_node_facts(now, node, {.marker = marker, .durable = true});
    collect();
  }
  void hold(GrantId grant, std::initializer_list<NodeIndex> nodes, const Reply& reply) {
    take_all();
    engine.extend(now, 0, grant, 30s);
    collect();
    for (const NodeIndex node : nodes) answer(node, reply);
  }
  void take_all() {
    for (NodeIndex node = 0; node < slots; ++node) {
      while (asked(node)) take(node);
    }
  }
};

using Moves = std::map<NodeIndex, std::string>;

TEST_CASE("a new member takes a free slot when a quorum shows it, and quorums are of four then") {
  Resized rig(three);
  rig.tell(0, four);
  CHECK(rig.moves.empty());
  rig.tell(1, four);
  CHECK(rig.moves == Moves{{3, "3"}});
  RequestId request = rig.acquire();
  rig.answer({0, 1}, Granted{8});
  CHECK_FALSE(rig.ended(request));
  rig.answer(2, Granted{8});
  REQUIRE(rig.ended_with<AcquireSucceeded>(request));
  rig.take_all();
  rig.tell(3, four);
  request = rig.acquire();
  rig.answer({0, 1, 3}, Granted{9});
  CHECK(rig.ended_with<AcquireSucceeded>(request));
}

TEST_CASE("the votes of nodes of which one shows another number of members are a quorum of both") {
  Resized rig(three);
  rig.tell(0, four);
  const RequestId request = rig.acquire();
  SUBCASE("with it") {
    rig.answer({0, 1}, Granted{8});
    CHECK_FALSE(rig.ended(request));
  }
  SUBCASE("without it") {
    rig.answer({1, 2}, Granted{8});
    CHECK(rig.ended_with<AcquireSucceeded>(request));
  }
}

TEST_CASE("a lease of former members stays valid as long as it was, unless one is without it") {
  Resized rig(three);
  const GrantId grant = rig.lease_on({0, 1}).grant;
  rig.answer(2, down);
  rig.tell(0, four);
  rig.tell(1, four);
  rig.advance(5s);
  SUBCASE("") {
    CHECK(rig.lost.empty());
    rig.hold(grant, {0, 1}, Held{7});
    CHECK(rig.lost.empty());
    CHECK_FALSE(rig.valid_until.contains(grant));  // by two of four it is not lengthened
    rig.tell(3, four);
    rig.hold(grant, {0, 1, 3}, Held{7});
    CHECK(rig.valid_until[grant] > rig.now + 29s);
  }
  SUBCASE("without it") {
    rig.hold(grant, {0}, Free{});
    CHECK(rig.lost.contains(grant));
  }
}

TEST_CASE("what was kept for a lease is void if a node denies it, also one that is to wait") {
  Resized rig(three);
  const GrantId grant = rig.lease_on({0, 1}).grant;
  rig.answer(2, down);
  rig.engine.on_node_facts(rig.now, 1, wiped);
  rig.hold(grant, {0, 1}, Held{7});
  rig.tell(0, four);
  rig.tell(2, four);
  CHECK(rig.lost.empty());
  rig.hold(grant, {1}, Free{});
  CHECK(rig.lost.contains(grant));
}

TEST_CASE("what was kept for a lease is void if clocks move, also between its loss and its end") {
  Resized rig(three);
  for (NodeIndex node = 0; node < 3; ++node) rig.read_clock(node, 0s, 100us);
  const AcquireSucceeded lease = rig.lease_on({0, 1});
  SUBCASE("") {
    rig.tell(0, four);
    rig.tell(1, four);
    rig.advance(5s);
    CHECK(rig.lost.empty());
    rig.read_clock(0, 30s, 100us);
    CHECK(rig.lost.contains(lease.grant));
  }
  SUBCASE("lost") {
    rig.advance(27s);
    REQUIRE(rig.lost.contains(lease.grant));
    rig.tell(0, four);
    rig.tell(1, four);
    rig.read_clock(0, 10s, 100us);
    REQUIRE(rig.valid_until.contains(lease.grant));
    CHECK(rig.valid_until[lease.grant] < lease.valid_until);
  }
}

TEST_CASE("a lease of five nodes counts on a sixth that came later, and is released there") {
  std::vector<Member> members = four;
  members.push_back({"4", "4"});
  Resized rig(members);
  const GrantId grant = rig.lease_on({0, 1, 2}).grant;
  members.push_back({"5", "5"});
  for (NodeIndex node = 0; node < 6; ++node) rig.tell(node, members);
  rig.advance(5s);
  rig.hold(grant, {0, 1, 2}, Held{7});
  CHECK_FALSE(rig.valid_until.contains(grant));
  rig.hold(grant, {0, 1, 2, 5}, Held{7});
  CHECK(rig.valid_until[grant] > rig.now + 29s);
  rig.take_all();
  rig.engine.release(rig.now, 0, grant);
  rig.collect();
  CHECK(rig.oldest_is<ReleaseCommand>(5));
}

TEST_CASE("a member that leaves is asked no more, and its slot is free for another one") {
  Resized rig(four);
  const GrantId grant = rig.lease_on({1, 2, 3}).grant;
  rig.tell(0, three);
  rig.tell(1, three);
  CHECK(rig.moves.empty());
  rig.tell(2, three);
  CHECK(rig.moves == Moves{{3, ""}});
  rig.advance(5s);
  rig.hold(grant, {1, 2}, Held{7});
  CHECK(rig.valid_until[grant] > rig.now + 29s);  // by two of three
  CHECK_FALSE(rig.asked(3));
  const std::vector<Member> others{{"0", "0"}, {"1", "1"}, {"2", "2"}, {"new", "elsewhere"}};
  rig.tell(0, others, 3);
  rig.tell(1, others, 3);
  CHECK(rig.moves == Moves{{3, "elsewhere"}});
}

TEST_CASE("an attempt gives nothing back to a member that left while it asked") {
  Resized rig(four);
  const auto request = rig.acquire();
  rig.answer(0, Granted{8});
  rig.take(3);
  for (NodeIndex node = 0; node < 3; ++node) rig.tell(node, three);
  rig.cancel(request);
  CHECK(rig.oldest_is<ReleaseCommand>(0));
  CHECK_FALSE(rig.asked(3));
  CHECK(rig.engine.releases_under_way() == 3);
}

TEST_CASE("votes that can make no quorum as a member leaves are given back without a timeout") {
  std::vector<Member> members = four;
  members.push_back({"4", "4"});
  Resized rig(members);
  rig.acquire(Rig::waiting(60s, true));
  rig.answer({0, 1}, Granted{8});
  rig.answer({2, 3}, Refused{.expires_in = 30s, .foreign_type = false, .place = 0});
  rig.advance(2ms);
  CHECK_FALSE(rig.asked(0));  // the last one is still to answer
  for (NodeIndex node = 0; node < 4; ++node) rig.tell(node, four);
  rig.advance(0ms);
  CHECK(rig.oldest_is<ReleaseCommand>(0));
}

TEST_CASE("votes that are a quorum once a member has left win at once") {
  Resized rig(four);
  const auto request = rig.acquire(Rig::waiting(60s, true));
  rig.answer({0, 1}, Granted{8});
  rig.answer({2, 3}, Refused{.expires_in = 30s, .foreign_type = false, .place = 0});
  for (NodeIndex node = 0; node < 3; ++node) rig.tell(node, three);
  CHECK(rig.ended_with<AcquireSucceeded>(request));
}

TEST_CASE("a call that wins as a member leaves makes room for another one") {
  Resized rig(four, 1);
  const auto first = rig.acquire(Rig::waiting(60s, true));
  rig.answer({0, 1}, Granted{8});
  rig.answer({2, 3}, Refused{.expires_in = 30s, .foreign_type = false, .place = 0});
  AcquireRequest another = Rig::request();
  another.name = std::make_shared<const std::string>("another");
  rig.acquire(another);
  CHECK_FALSE(rig.asked(0));
  for (NodeIndex node = 0; node < 3; ++node) rig.tell(node, three);
  CHECK(rig.ended_with<AcquireSucceeded>(first));
  CHECK(rig.oldest_is<AcquireCommand>(0));
}

TEST_CASE("a call that waits for the only member waits on as another one comes, and asks that") {
  const std::vector<Member> one{{"0", "0"}};
  const std::vector<Member> two{{"0", "0"}, {"1", "1"}};
  Resized rig(one);
  const auto request = rig.acquire(Rig::waiting(60s, true));
  rig.answer(0, Refused{.expires_in = 30s, .foreign_type = false, .place = 0});
  rig.tell(0, two);
  CHECK_FALSE(rig.ended(request));
  rig.node_up(1);
  rig.tell(1, two);
  rig.node_up(0);
  rig.answer({0, 1}, Granted{8});
  CHECK(rig.ended_with<AcquireSucceeded>(request));
}

TEST_CASE("a client goes on with all members, whatever number its list has") {
  SUBCASE("fewer") {
    Resized rig(three);
    for (const NodeIndex node : {0U, 1U, 2U}) rig.tell(node, four, 1);
    CHECK(rig.moves == Moves{{3, "3"}});
  }
  SUBCASE("more, of which one left and is gone") {
    Resized rig(four);
    rig.engine.on_node_down(rig.now, 3);
    for (const NodeIndex node : {0U, 1U, 2U}) rig.tell(node, three, 5);
    CHECK(rig.moves == Moves{{3, ""}});
  }
}

TEST_CASE("a client with all slots in use goes on with the node that takes a member's place") {
  std::vector<Member> members;
  for (std::uint32_t node = 0; node < NodeSet::max_nodes; ++node) {
    members.push_back({std::to_string(node), std::to_string(node)});
  }
  Resized rig(members);
  members.back() = {"new", "elsewhere"};
  for (NodeIndex node = 0; node <= NodeSet::max_nodes / 2; ++node) rig.tell(node, members);
  CHECK(rig.moves == Moves{{NodeSet::max_nodes - 1, "elsewhere"}});
}

TEST_CASE("more members than slots, which one node names, cost its vote alone") {
  Resized rig(three);
  std::vector<Member> many = three;
  while (many.size() < 14) many.push_back({std::to_string(many.size()), "elsewhere"});
  rig.tell(0, many);
  const RequestId request = rig.acquire();
  rig.answer(0, Granted{Token{1} << 52});
  rig.answer({1, 2}, Granted{8});
  CHECK(rig.ended_with<AcquireSucceeded>(request));
}

TEST_CASE("a lease is taken up by a quorum of former members, of whom one is told of later ones") {
  Resized rig(three);
  rig.tell(0, four);
  const RequestId request = rig.attach({}, 7, 30s);
  rig.answer(0, Free{});
  CHECK_FALSE(rig.ended(request));
  rig.answer({1, 2}, Held{7});
  CHECK(rig.ended_with<AcquireSucceeded>(request));
}

TEST_CASE("a client with an old list of members calls no token wrong") {
  Resized rig(three, 128, false);
  const std::vector<Member> later{{"1", "1"}, {"2", "2"}, {"3", "3"}, {"4", "4"}};
  RequestId request = 0;
  SUBCASE("of which two are left, no quorum of four") {
    rig.tell(1, later, 3);
    rig.tell(2, later, 3);
    request = rig.attach({}, 7, 30s);
  }
  SUBCASE("of which one does not know the token, which others may have settled") {
    rig.tell(1, four, 1);
    rig.tell(2, four, 1);
    request = rig.attach({}, 7, 30s);
    rig.answer(1, Held{7});
    rig.answer(2, Held{6});
    rig.answer(0, Free{});
  }
  CHECK(rig.failure(request) == Errc::no_quorum);
}

}  // namespace
}  // namespace redlock::engine::test
