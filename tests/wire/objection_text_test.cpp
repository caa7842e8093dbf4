// SPDX-License-Identifier: MIT
// What the engine has against a node, in sentences that say what to do.
#include "wire/objection_text.hpp"

#include <doctest/doctest.h>

namespace redlock::wire {

using namespace std::chrono_literals;
using Reason = engine::InQuarantine::Reason;

TEST_CASE("a quarantine says for how long it is, why, and what ends it earlier") {
  CHECK(sentence_of(engine::InQuarantine{Reason::no_marker, 61'001ms}) ==
        "quarantined, votes in 62 s; run redlock adopt if the set is new, with --replaced NODE if "
        "this node takes a member's place");
  CHECK(sentence_of(engine::InQuarantine{Reason::promotion, 2s}) ==
        "quarantined, votes in 2 s: it was a replica, and may lack the newest locks; run "
        "redlock adopt if it has them, with --replaced NODE if it has no marker");
  CHECK(sentence_of(engine::InQuarantine{Reason::restart, 2s}) ==
        "quarantined, votes in 2 s: it was restarted and may have forgotten locks (set appendonly "
        "yes and appendfsync always to avoid this next time)");
  CHECK(sentence_of(engine::InQuarantine{Reason::no_marker, 0s}) ==
        "quarantined; its marker is about to be written");
}

TEST_CASE("a clock that moved is told with its direction") {
  CHECK(sentence_of(engine::ClockAstray{1h, 59'500ms}) ==
        "its clock went ahead by 3600000 ms against ours; it votes in 60 s if it keeps time until "
        "then: let chrony slew it, and step it only before redis-server starts");
  CHECK(sentence_of(engine::ClockAstray{-5s, 1s}).starts_with("its clock went back by 5000 ms "));
  CHECK(sentence_of(engine::ClockAstray{0s, 1s})
            .starts_with("another client saw its clock move; it votes in 1 s if "));
}

TEST_CASE("a node of another set is told with both sets, and a long name in short") {
  CHECK(sentence_of(engine::OtherSet{"0123456789", "ours"}) ==
        "its marker names set 01234567..., those of a quorum name set ours: it belongs to another "
        "set; "
        "correct the list of nodes, or DEL redlock:node there when its old leases are over, and "
        "run redlock adopt --replaced NODE");
  CHECK(sentence_of(engine::OtherSet{"", "ours"}) ==
        "its marker names no set, those of a quorum name set ours; run redlock adopt --replaced "
        "NODE");
  CHECK(sentence_of(engine::OtherSet{"theirs", std::nullopt}) ==
        "its marker names set theirs, and no quorum of the nodes names one set; check the list of "
        "nodes (redlock doctor)");
  CHECK(sentence_of(engine::SetUndecided{"theirs"}) ==
        "it names set theirs; until a quorum of nodes is reached, it is unknown which set counts");
}

TEST_CASE("a marker that is not to be there is told of the node that has it, or of another") {
  CHECK(sentence_of(engine::MarkerUnwanted{true}).starts_with("it has a marker, and this client "));
  CHECK(sentence_of(engine::MarkerUnwanted{false}).starts_with("a node of this set has a marker,"));
}

TEST_CASE("the detail stands behind the objection, or alone") {
  CHECK(sentence_of(engine::Objection(), "NOAUTH") == "NOAUTH");
  CHECK(sentence_of(engine::Objection(), "").empty());
  CHECK(sentence_of(engine::InQuarantine{Reason::no_marker, 0s}, "it warns") ==
        "quarantined; its marker is about to be written; it warns");
}

}  // namespace redlock::wire
