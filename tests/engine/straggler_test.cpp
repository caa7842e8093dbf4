// SPDX-License-Identifier: MIT
// Stragglers: answers of an attempt that come after it was granted, and what was seen of other
// owners while it was voted on. They decide who is released, and who is healed later.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

/// Granted by nodes 0 and 1; node 2 has not answered.
AcquireSucceeded granted_without_node_2(Rig& rig) {
  return rig.lease_on({0, 1}, Rig::renewed());
}

/// Granted by nodes 0 and 2 with token 9; the settle message to node 1 is not answered.
AcquireSucceeded granted_while_settling_node_1(Rig& rig) {
  const auto id = rig.attempt({Granted{9}, Granted{3}, Granted{9}}, Rig::renewed());
  REQUIRE(rig.oldest_is<HoldCommand>(1));
  return rig.result<AcquireSucceeded>(id);
}

/// What a node answers after that.
struct Late {
  AcquireSucceeded (&granted)(Rig&);
  NodeIndex node;
  Reply reply;
  bool may_have_it;  ///< it may have executed the acquire, and has not denied it
};

/// The next renewal: this node says free, the others confirm. Whether it is then healed.
bool healed_when_free(Rig& rig, NodeIndex free) {
  rig.forgets(free, 9);
  CHECK(rig.lost.empty());
  return rig.oldest_is<AcquireCommand>(free);
}

}  // namespace

TEST_CASE("a straggler is released unless it has nothing, and is healed then when it says free") {
  for (const Late& late : {
           Late{granted_without_node_2, 2, NoScript{}, false},
           Late{granted_without_node_2, 2, down, false},
           Late{granted_without_node_2, 2, Refused{9s}, false},
           Late{granted_without_node_2, 2, ForcedOut{}, false},
           Late{granted_while_settling_node_1, 1, Taken{}, false},
           Late{granted_while_settling_node_1, 1, Free{}, false},
           Late{granted_without_node_2, 2, broken, true},
           Late{granted_while_settling_node_1, 1, NoScript{}, true},
           Late{granted_while_settling_node_1, 1, down, true},
           Late{granted_while_settling_node_1, 1, broken, true},
       }) {
    Rig rig(3);
    const auto lease = late.granted(rig);
    rig.answer(late.node, late.reply);
    CHECK_FALSE(rig.asked(late.node));
    rig.release(lease.grant);
    CHECK(rig.releases(late.node) == (late.may_have_it ? 1 : 0));
    if (late.may_have_it) continue;

    Rig held(3);
    late.granted(held);
    held.answer(late.node, late.reply);
    CHECK(healed_when_free(held, late.node));
  }
}

TEST_CASE("a straggler that grants after the caller was answered counts as ours") {
  for (const bool found_free_since : {false, true}) {
    Rig rig(3);
    const auto lease = granted_without_node_2(rig);
    const Send straggler = rig.take(2);
    if (!found_free_since) rig.answer(straggler, Granted{9});
    rig.advance(10s);
    if (found_free_since) {
      rig.answer(2, Free{});
      rig.answer(straggler, Granted{9});
    }
    rig.answer(0, Free{});
    CHECK(rig.lost.contains(lease.grant) == found_free_since);
    rig.release(lease.grant);
    CHECK(rig.releases(2) == (found_free_since ? 0 : 1));
  }
}

TEST_CASE("a node that refused before the win, or while settling, is healed when it says free") {
  Rig refused(3);
  const auto won = refused.acquire(Rig::renewed());
  refused.answer(2, Refused{9s});
  refused.answer({0, 1}, Granted{9});
  REQUIRE(refused.ended_with<AcquireSucceeded>(won));
  CHECK(healed_when_free(refused, 2));

  Rig rig(5);
  const auto id = rig.attempt({Granted{9}, Granted{3}, Granted{3}}, Rig::renewed());
  rig.answer(1, Taken{});
  rig.answer(2, Held{9});
  rig.answer(3, Granted{9});
  REQUIRE(rig.ended_with<AcquireSucceeded>(id));
  rig.answer(4, Granted{9});
  CHECK(healed_when_free(rig, 1));
}
