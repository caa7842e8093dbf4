// SPDX-License-Identifier: MIT
// Texts for people: what the engine has against a node and what to do, the note beside the owner of
// a lock that says which program took it, and the lines of a trace that no healthy node causes.
// (Those of a grant, a hand-off and a loss are read in integration/api_trace_test.cpp.)
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "wire/holder_text.hpp"
#include "wire/objection_text.hpp"
#include "wire/words.hpp"

namespace redlock::wire {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Reason = engine::InQuarantine::Reason;

constexpr engine::Instant sent{10s};
constexpr engine::Instant boot_1h{1h};
constexpr std::int64_t unix_us = 1'700'000'000'123'456;

TEST_CASE("a quarantine says for how long it is, why, and what ends it earlier") {
  CHECK(sentence_of(engine::InQuarantine{Reason::no_marker, 61'001ms}) ==
        "quarantined, votes in 62 s; run redlock adopt if the set is new, with --replaced NODE if "
        "this member lost its data and its old leases are over");
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
  CHECK(sentence_of(engine::NoMember{false, {"a:1", "b:2"}}) ==
        "it has no marker, and is no member of the set, whose members are a:1, b:2: correct the "
        "list of nodes, or give it the place of a member (redlock set replace OLD NEW)");
  CHECK(sentence_of(engine::NoMember{true, {"a:1", "b:2"}}) ==
        "it is no member of its set any more, whose members are a:1, b:2: correct the list of "
        "nodes");
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

TEST_CASE("a holder's text says since when, which process, on which host, and what it is") {
  HolderText text("web-1", 4711, "nightly backup");
  text.set_clock(boot_1h, unix_us);
  const auto fields = read_holder(text.since(boot_1h + milliseconds(7)));
  REQUIRE(fields);
  CHECK(fields->pid == 4711);
  CHECK(fields->host == "web-1");
  CHECK(fields->label == "nightly backup");
  CHECK(fields->since_unix_ms == 1'700'000'000'130);
}

TEST_CASE("a node that is healed is told of the same moment, unless the clock was set") {
  HolderText text("web-1", 1, "x");
  text.set_clock(boot_1h, unix_us);
  const std::string first(text.since(boot_1h));
  text.set_clock(boot_1h + milliseconds(5'000), unix_us + 5'000'000 + 90'000);  // it drifts
  const std::string other(text.since(boot_1h + milliseconds(7'000)));
  CHECK(std::string(text.since(boot_1h)) == first);
  CHECK(read_holder(other)->since_unix_ms == read_holder(first)->since_unix_ms + 7'000);
  text.set_clock(boot_1h, unix_us + 3'600'000'000);
  CHECK(read_holder(text.since(boot_1h))->since_unix_ms ==
        read_holder(first)->since_unix_ms + 3'600'000);
}

TEST_CASE("for another grant only the moment is written anew, in place") {
  HolderText text("some-host", 4711, "a label that fits into no small string");
  const char* const place = text.since(boot_1h).data();
  for (int i = 1; i < 10; ++i) CHECK(text.since(boot_1h + milliseconds(i)).data() == place);
}

TEST_CASE("what cannot be shown is replaced, and what is too long is cut between characters") {
  HolderText text("a host\n", 1, "red\x1b[31m\x7f");
  const auto fields = read_holder(text.since(boot_1h));
  REQUIRE(fields);
  CHECK(fields->host == "a?host?");
  CHECK(fields->label == "red?[31m?");

  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "\xc3\xbc";
  HolderText longer(std::string(300, 'h'), 1, "-" + umlauts);
  const auto cut = read_holder(longer.since(boot_1h));
  REQUIRE(cut);
  CHECK(cut->host == std::string(64, 'h'));
  CHECK(cut->label == "-" + umlauts.substr(0, 62));
}

TEST_CASE("a text that says nothing stays empty") {
  CHECK(HolderText().since(boot_1h).empty());
}

TEST_CASE("what is no holder's text is none") {
  for (const char* text : {"", "1", "1 2", "1 2 ", "1 2 host", "1 2  label", "x 2 host label",
                           "1 -2 host label", "-1 2 host label", "99999999999999 2 host label",
                           "1 99999999999999999999999 host label", " 1 2 host label"}) {
    CAPTURE(text);
    CHECK_FALSE(read_holder(text));
  }
  CHECK(read_holder("1 2 host ")->label.empty());
}

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
