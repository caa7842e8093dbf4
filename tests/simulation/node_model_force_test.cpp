// SPDX-License-Identifier: MIT
// Releasing by force, the model against a real redis-server as in node_model_test.cpp.
#include <doctest/doctest.h>

#include "simulation/both_said.hpp"

using namespace redlock;
using namespace redlock::simulation;
using engine::token_limit;

namespace {

/// For a minute: until then nothing of the owner is granted, held or healed.
bool is_away(SideBySide& both, const SideBySide::Who& who) {
  return is<engine::ForcedOut>(both.acquire(who)) && is<engine::ForcedOut>(both.hold(who, 1));
}

}  // namespace

TEST_CASE("who is forced out loses the lock and does not come back; the fence rises once") {
  SideBySide both(fleet());
  both.acquire(ann, 60'000, 10);
  CHECK(is<engine::ReleasedHere>(both.force(ann)));
  CHECK(both.model().fence(engine::stripe_of(ann.name)) == 11);
  CHECK(is<engine::NotHeld>(both.force(ann)));
  CHECK(both.model().fence(engine::stripe_of(ann.name)) == 11);
  CHECK(is_away(both, ann));
  CHECK(is<engine::NotHeld>(both.release(ann)));
  CHECK(is_granted(both.acquire(bob), 12));
  CHECK(left(both.acquire(ann)) == 60'000);
  CHECK(is<engine::ForcedOut>(both.hold(ann, 10)));
  CHECK(is_held(both.hold(bob, 12), 12));
}

TEST_CASE("force takes nothing from another owner, and keeps the next owner's lock") {
  SideBySide both(fleet());
  both.acquire(bob);
  CHECK(is<engine::NotHeld>(both.force(ann)));
  CHECK(is_held(both.hold(bob, 1), 1));
  both.put_foreign(ann.name);
  CHECK(is<engine::NotHeld>(both.force(ann)));
  CHECK(is_taken(both.hold(ann, 1), true));
  CHECK(left(both.acquire(bob)) == -1);
}

TEST_CASE("several are forced out beside each other, for as long as the longest asks") {
  SideBySide both(fleet());
  both.acquire(ann);
  both.force(ann, 600'000);
  both.acquire(bob);
  both.force(bob, 60'000);
  CHECK(is_away(both, ann));
  CHECK(is_away(both, bob));
  CHECK(is_granted(both.acquire({"n", 3}), 5));
  CHECK(is_granted(both.acquire({"another", 1}), 1));
}

TEST_CASE("who was forced out is forgotten when the time is over, and with the data") {
  SideBySide both(fleet());
  both.force_and_outlive(ann, 5);
  CHECK(is_granted(both.acquire(ann), 1));
  both.force(ann);
  both.flush_all();
  CHECK(is_granted(both.acquire(ann), 1));
}

TEST_CASE("a fence of no use does not keep a lock from being forced") {
  using Damage = void (SideBySide::*)(const std::string&);
  for (const Damage damage : {&SideBySide::damage_fence, &SideBySide::put_foreign_fence}) {
    SideBySide both(fleet());
    both.acquire(ann);
    (both.*damage)(ann.name);
    CHECK(is<engine::ReleasedHere>(both.force(ann)));
    CHECK(is<engine::ForcedOut>(both.acquire(ann)));
  }
  for (const engine::Token end : {token_limit - 1, token_limit, token_limit + 7}) {
    SideBySide both(fleet());
    both.acquire(ann);
    both.put_fence(ann.name, end);
    CHECK(is<engine::ReleasedHere>(both.force(ann)));
  }
}
