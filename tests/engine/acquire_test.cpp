// SPDX-License-Identifier: MIT
// One acquisition with one attempt: which vote decides, what is known then, and what is left on the
// nodes afterwards. An attempt under way may be ended by its caller, its client or its deadline.
// Before the client is connected an attempt fails and blames no node.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

enum class Outcome { going_on, lost, granted, contended, no_quorum };

/// Of each node: g granted, r refused, d is down and was sent nothing, - has not answered.
struct Votes {
  std::string_view of_nodes;
  Outcome outcome;
};

const Reply& reply_for(char vote) {
  static const std::map<char, Reply> replies{{'g', Granted{7}}, {'r', Refused{9s}}, {'d', down}};
  return replies.at(vote);
}

/// A ballot says what is known of the node, which of a node that was not waited for is nothing.
void check_ballot(const Ballot& ballot, char vote) {
  const std::map<char, Vote> votes{
      {'g', Vote::granted}, {'r', Vote::refused}, {'d', Vote::unavailable}, {'-', Vote::pending}};
  CHECK(ballot.vote == votes.at(vote));
  CHECK(ballot.cause == (vote == 'd' ? Cause::connection_failed : Cause::none));
}

/// A deadline counts for the attempt under way, unlike the end of the waiting time.
AcquireRequest for_100_ms() {
  AcquireRequest what = Rig::waiting(100ms);
  what.deadline = Rig::start + 100ms;
  return what;
}

void end(Rig& rig, RequestId id, Errc why) {
  rig.advance(99ms);
  CHECK_FALSE(rig.ended(id));
  if (why != Errc::timed_out) rig.cancel(id, why);
  rig.advance(1ms);
  CHECK(rig.failure(id) == why);
}

constexpr Errc ends[] = {Errc::cancelled, Errc::closed, Errc::timed_out};

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

TEST_CASE("the vote that decides ends the attempt, and only nodes that may hold it are released") {
  for (const Votes& row : {
           Votes{"ddggg", Outcome::granted},  // a minority that is down changes nothing
           Votes{"ggddd", Outcome::no_quorum},
           Votes{"ddd--", Outcome::no_quorum},
           Votes{"ddr--", Outcome::lost},  // two are down and one refused, but two more may vote
           Votes{"grr--", Outcome::going_on},
           Votes{"grrr-", Outcome::contended},
           Votes{"g", Outcome::granted},  // one node alone is a plain lock
           Votes{"g-", Outcome::going_on},
           Votes{"gr", Outcome::contended},
           Votes{"dr-", Outcome::lost},
           Votes{"gg--", Outcome::going_on},
           Votes{"ggg-", Outcome::granted},
           Votes{"rr--", Outcome::lost},
       }) {
    const auto [votes, outcome] = row;
    CAPTURE(row.of_nodes);
    Rig rig(static_cast<std::uint32_t>(votes.size()));
    const auto id = rig.acquire();
    for (NodeIndex node = 0; node < votes.size() && votes[node] != '-'; ++node) {
      CHECK_FALSE(rig.ended(id));
      rig.answer(node, reply_for(votes[node]));
    }
    CHECK(rig.ended_with<AcquireSucceeded>(id) == (outcome == Outcome::granted));
    CHECK((rig.failure(id) == Errc::contended) == (outcome == Outcome::contended));
    CHECK((rig.failure(id) == Errc::no_quorum) == (outcome == Outcome::no_quorum));
    CHECK(rig.ended(id) == (outcome != Outcome::lost && outcome != Outcome::going_on));
    const bool released = outcome != Outcome::granted && outcome != Outcome::going_on;
    for (NodeIndex node = 0; node < votes.size(); ++node) {
      const bool may_hold = votes[node] == 'g' || votes[node] == '-';
      CHECK(rig.releases(node) == (released && may_hold ? 1 : 0));
      if (rig.ended_with<Failed>(id)) check_ballot(rig.ballot(id, node), votes[node]);
    }
  }
}

TEST_CASE("a lost vote is contended if a quorum votes, else no_quorum at the node timeout") {
  for (const bool voted : {true, false}) {
    Rig rig(5);
    const auto id = rig.attempt({down, Granted{7}, Refused{9s}});
    if (voted) {
      rig.answer({3, 4}, Refused{9s});
    } else {
      CHECK(rig.ends_after(250ms, id));
      CHECK(rig.ballot(id, 3).cause == Cause::timed_out);
      CHECK(rig.releases(3) == 1);
    }
    CHECK(rig.failure(id) == (voted ? Errc::contended : Errc::no_quorum));
    CHECK(rig.releases(1) == 1);
  }
  // It is capped by the remaining validity.
  Rig slow(3, {.node_timeout = 10s});
  CHECK(slow.ends_after(988ms, slow.acquire(Rig::request(1s))));
  auto what = Rig::request(1s);
  what.min_validity = 400ms;
  CHECK(slow.ends_after(588ms, slow.acquire(what)));
}

TEST_CASE("a quorum that answers too late is released on every node") {
  struct Late {
    std::chrono::milliseconds lease, wanted, after;
    bool granted;
  };
  for (const Late& late : {Late{1s, 0ms, 988ms, false},          // the validity of one second
                           Late{30s, 9'698ms, 20'000ms, false},  // 30 s - 302 ms - 20 s
                           Late{30s, 9'698ms, 19'999ms, true}}) {
    Rig rig(3, {.node_timeout = 60s});
    auto what = Rig::request(late.lease);
    what.min_validity = late.wanted;
    const auto id = rig.acquire(what);
    rig.pause(late.after);
    rig.answer({0, 1}, Granted{7});
    CHECK(rig.ended_with<AcquireSucceeded>(id) == late.granted);
    if (late.granted) continue;
    CHECK(rig.failure(id) == Errc::too_late);
    CHECK(rig.all_have_releases(1));
  }
}

TEST_CASE("a key of another type counts as held by somebody else, and says so") {
  Rig rig(1);
  const auto id = rig.acquire();
  rig.answer(0, Refused{.expires_in = std::nullopt, .foreign_type = true});
  CHECK(rig.failure(id) == Errc::contended);
  CHECK(rig.ballot(id, 0).detail == "a key of another type stands where the lock would be");
}

TEST_CASE("an attempt that is ended is released once on each node that may grant it, or did") {
  struct Ended {
    const char* what;
    std::vector<Reply> answers;
    std::vector<std::size_t> releases;  // at each node
    NodeIndex late;                     // answers after all
    Reply reply;
  };
  for (const Ended& row :
       {Ended{"it votes", {Granted{7}}, {1, 1, 1}, 2, Granted{7}},
        Ended{"it settles", {Granted{2}, Granted{1}}, {1, 1, 1}, 1, Held{2}},
        // Out of reach for certain, but not known yet whether a quorum votes.
        Ended{"its vote is lost", {down, down, Refused{9s}}, {0, 0, 0, 1, 1}, 4, Granted{7}}}) {
    CAPTURE(row.what);
    for (const Errc why : ends) {
      Rig rig(static_cast<std::uint32_t>(row.releases.size()));
      const auto id = rig.acquire(for_100_ms());
      for (NodeIndex node = 0; node < row.answers.size(); ++node) {
        rig.answer(node, row.answers[node]);
      }
      end(rig, id, why);
      rig.answer(row.late, row.reply);
      CHECK(rig.failure(id) == why);
      for (NodeIndex node = 0; node < row.releases.size(); ++node) {
        CHECK(rig.releases(node) == row.releases[node]);
      }
      while (!rig.all_answered()) rig.serve({});
    }
  }
}

TEST_CASE("a node that is being connected to for the first time is not said to be silent") {
  Rig rig(3);
  rig.engine.on_connecting();
  CHECK(causes_of_silence(rig, nothing) == Causes(3, Cause::connecting));
  rig.node_up(0);
  CHECK(causes_of_silence(rig, nothing) ==
        Causes{Cause::timed_out, Cause::connecting, Cause::connecting});
  rig.engine.on_node_down(rig.now, 0);  // it has had one
  rig.engine.on_node_down(rig.now, 1);  // its first one failed
  CHECK(causes_of_silence(rig, nothing) ==
        Causes{Cause::timed_out, Cause::timed_out, Cause::connecting});
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
