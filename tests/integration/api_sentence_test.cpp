// SPDX-License-Identifier: MIT
// The sentence of an error says how each node took part: who granted, who refused, who could not
// vote and why, and how many had not answered when it was decided. No node runs here.
#include "client/sentence.hpp"
#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

const engine::Ballot yes{Vote::granted, Cause::none, {}};
const engine::Ballot no{Vote::refused, Cause::none, {}};
const engine::Ballot open{};
const engine::Ballot dead{Vote::unavailable, Cause::connection_failed, {}};

std::string sentence(Errc code, const std::vector<engine::Ballot>& ballots) {
  std::vector<wire::NodeAddress> nodes(ballots.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].label = "n" + std::to_string(i);
  return client::describe("seat", {code, {}, ballots}, nodes, client::Rival::somebody).message;
}

TEST_CASE("a sentence says how many nodes took part, and why the others did not") {
  CHECK(sentence(Errc::no_quorum, {dead, dead, dead, open, open}) ==
        "no quorum for 'seat': 0 of 5 nodes voted (3 must), 2 not waited for; "
        "n0: could not connect; n1: could not connect; n2: could not connect");
  CHECK(sentence(Errc::no_quorum, {yes, dead, dead, no, dead}) ==
        "no quorum for 'seat': 2 of 5 nodes voted (3 must); "
        "n1: could not connect; n2: could not connect; n4: could not connect");
  CHECK(sentence(Errc::timed_out, {dead, open, open}) ==
        "'seat' was not granted in the time given: 0 of 3 nodes voted (2 must), "
        "2 had not answered; n0: could not connect");
  CHECK(sentence(Errc::timed_out, {no, no, open}) ==
        "'seat' was not granted in the time given: 2 of 3 nodes refused (2 must grant it)");
  CHECK(sentence(Errc::contended, {no, no, no, open, open}) ==
        "'seat' is held by somebody else: 3 of 5 nodes refused (3 must grant it)");
}

}  // namespace
}  // namespace redlock::testing
