// SPDX-License-Identifier: MIT
// Which promotions of a node are new to a client, whose quarantine then begins anew.
#include "wire/marker_tending.hpp"

#include <doctest/doctest.h>
#include <string>

#include "wire/rig.hpp"

namespace redlock::wire {
namespace {

ServerFacts promoted(const std::string& promotion, const std::string& vouched = {}) {
  ServerFacts facts;
  facts.vouched = vouched;
  facts.promotion = promotion;
  facts.was_replica = true;
  return facts;
}

TEST_CASE("a promotion is new when it is shown for the first time, and not once it is known") {
  NumberedRandom random;
  const SetTerms terms{.nodes = 3};
  MarkerTending tending(random, terms, true);
  CHECK_FALSE(tending.on_facts(0, {}).pending);
  // Also the first one: the node may wait for what it forgot before.
  CHECK(tending.on_facts(0, promoted("a")).is_new);
  CHECK_FALSE(tending.on_facts(0, promoted("a")).is_new);
  CHECK(tending.on_facts(0, promoted("a")).pending);
  CHECK(tending.on_facts(1, promoted("a")).is_new);
  CHECK(tending.on_facts(0, promoted("b")).is_new);
  // Nothing waits for what somebody vouches for.
  CHECK_FALSE(tending.on_facts(0, promoted("b", "b")).pending);
  CHECK_FALSE(tending.on_facts(0, promoted("b", "b")).is_new);
  CHECK(tending.on_facts(0, promoted("c", "b")).is_new);
}

}  // namespace
}  // namespace redlock::wire
