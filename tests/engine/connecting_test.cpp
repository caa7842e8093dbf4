// SPDX-License-Identifier: MIT
// An attempt that is made before the client is connected: its failure says so, and blames no node.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

constexpr Duration node_timeout = Config{}.node_timeout;

/// Of an attempt that begins now and gets no answer, unless `meanwhile` gives some.
template <typename Meanwhile>
std::vector<Cause> causes_of_silence(Rig& rig, const Meanwhile& meanwhile) {
  const RequestId request = rig.acquire();
  meanwhile();
  rig.advance(node_timeout);
  REQUIRE(rig.failure(request) == Errc::no_quorum);
  std::vector<Cause> causes;
  for (const Ballot& ballot : rig.result<Failed>(request).ballots) causes.push_back(ballot.cause);
  return causes;
}

using Causes = std::vector<Cause>;
constexpr auto nothing = [] {};

}  // namespace

TEST_CASE("a node that is being connected to for the first time is not said to be silent") {
  Rig rig(3);
  rig.engine.on_connecting();
  CHECK(causes_of_silence(rig, nothing) == Causes(3, Cause::connecting));
  rig.node_up(0);
  CHECK(causes_of_silence(rig, nothing) ==
        Causes{Cause::timed_out, Cause::connecting, Cause::connecting});
}

TEST_CASE("what was asked before the first connection had no time to be answered") {
  Rig rig(3);
  rig.engine.on_connecting();
  CHECK(causes_of_silence(rig, [&] {
          rig.advance(node_timeout - 1ms);
          for (const NodeIndex node : {0U, 1U, 2U}) rig.node_up(node);
        }) == Causes(3, Cause::connecting));
  CHECK(causes_of_silence(rig, nothing) == Causes(3, Cause::timed_out));
}

TEST_CASE("a node whose first connection failed, or that lost it, is not being connected to") {
  Rig rig(3);
  rig.engine.on_connecting();
  rig.engine.on_node_down(0);
  rig.node_up(1);
  rig.engine.on_node_down(1);
  CHECK(causes_of_silence(rig, nothing) ==
        Causes{Cause::timed_out, Cause::timed_out, Cause::connecting});
}
