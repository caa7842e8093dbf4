// SPDX-License-Identifier: MIT
// The lines of a trace that no healthy node causes. (Those of a grant, a hand-off and a loss are
// read in integration/api_trace_test.cpp.)
#include "wire/words.hpp"

#include <doctest/doctest.h>
#include <vector>

namespace redlock::wire {
namespace {

using namespace std::chrono_literals;

constexpr engine::Instant sent{10s};

TEST_CASE("nodes are named by their number and, if it is known, by their address") {
  const std::vector<NodeAddress> nodes{*parse_node_uri("redis://a:secret@h:1"),
                                       *parse_node_uri("h:2")};
  CHECK(in_words(0, "no marker", nodes) == "node 0 (redis://a@h:1) may vote: no marker");
  CHECK(in_words(1, "", nodes) == "node 1 (redis://h:2) may vote");
  CHECK(in_words(1, "") == "node 1 may vote");
  CHECK(in_words(1, Wake{.line = 3, .after = 20ms}) ==
        "node 1 -> wakes line 3, whose turn comes in 20 ms");
}

TEST_CASE("a node without a reply is traced with its cause, what is known, and the detail") {
  const engine::Tag tag{.grant = 4, .sent = sent, .kind = engine::Tag::Kind::hold};
  CHECK(in_words(sent + 250ms, 1, tag, engine::no_answer()) ==
        "node 1 -> unavailable: timed_out (perhaps executed) (hold for grant 4, 250000 us): no "
        "answer within the node timeout");
}

TEST_CASE("a message that is about no attempt names no grant") {
  const engine::Send send{.node = 2,
                          .tag = {.kind = engine::Tag::Kind::leave},
                          .command = engine::LeaveCommand{
                              .name = std::make_shared<const std::string>("a\tb"), .line = 7}};
  CHECK(in_words(send) == "node 2 <- leave: 'a\\x09b', line 7");
}

}  // namespace
}  // namespace redlock::wire
