// SPDX-License-Identifier: MIT
// Many leases: renewals fall on common moments, so that they travel together, and a crowd that is
// due at once is spread out without losing anybody. Slow nodes: what they have not answered is not
// asked again, what they answer late counts, and they are sent no more than they answer.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

/// Answers everything for so long: how many at most were asked for at one moment.
std::size_t most_at_once(Rig& rig, std::chrono::milliseconds time) {
  std::size_t most = 0;
  for (; time > 0ms; time -= 10ms) {
    rig.advance(10ms);
    most = std::max(most, rig.asked_count(0));
    rig.answer_all(Held{7});
  }
  return most;
}

/// Three nodes of which each answers so many holds in a millisecond, in their order.
class SlowNodes : public Rig {
 public:
  explicit SlowNodes(double answers_in_a_ms) : Rig(3), answers_in_a_ms_(answers_in_a_ms) {}

  void run(std::chrono::milliseconds time) {
    for (; time > 0ms; time -= 1ms) {
      advance(1ms);
      budget_ += answers_in_a_ms_;
      for (; budget_ >= 1; --budget_) {
        for (NodeIndex node = 0; node < 3; ++node) answer_oldest(node);
      }
      most_asked = std::max(most_asked, asked_count(0));
    }
  }

  std::size_t most_asked = 0;  ///< of a node, and not answered
  std::size_t answered = 0;

 private:
  void answer_oldest(NodeIndex node) {
    if (!asked(node)) return;
    answer(node, Held{7});
    ++answered;
  }

  double answers_in_a_ms_;
  double budget_ = 0;
};

}  // namespace

TEST_CASE("leases granted a little apart are renewed at the same moment") {
  Rig rig(3);
  rig.lease_on_all(Rig::renewed());
  rig.advance(4ms);
  rig.lease_on_all(Rig::renewed());
  rig.advance(10s - 4ms);
  CHECK(rig.asked_count(0) == 2);
}

TEST_CASE("of a crowd that is due at once a hundred are renewed, the rest is spread") {
  for (const int leases : {350, 4'000}) {
    Rig rig(3);
    rig.renewed_leases(leases);
    rig.advance(10s);
    CHECK(rig.asked_count(0) == 100);
    rig.answer_all(Held{7});
    const int moments = 32;  // in a thirtieth of the lease
    CHECK(most_at_once(rig, 1s) == (leases - 100 + moments - 1) / moments);
    CHECK(rig.renewals.size() == leases);
    // The next time they come as they were spread.
    rig.advance(9s);
    CHECK(rig.asked_count(0) >= 100);
    CHECK(rig.asked_count(0) <= 122);
  }
}

TEST_CASE("among very many leases three thousandths at once are no crowd") {
  Rig rig(1);
  for (int i = 0; i < 34'000; ++i) rig.lease_on_all(Rig::request());
  rig.renewed_leases(200);
  rig.advance(10s);
  CHECK(rig.asked_count(0) == 102);
}

TEST_CASE("a lease that cannot wait is not postponed") {
  Rig rig(3);
  const auto grants = rig.renewed_leases(250);
  // The loop did not run for so long that little is left.
  rig.pause(20s);
  rig.advance(0ns);
  CHECK(rig.asked_count(0) == 250);
  CHECK(rig.lost.empty());
}

TEST_CASE("of a crowd that is due at once none is lost while the nodes answer") {
  for (const auto lease : {300ms, 1'000ms, 30'000ms}) {
    CAPTURE(lease.count());
    Rig rig(3);
    rig.renewed_leases(1'000, lease);
    CHECK(most_at_once(rig, 2 * lease) >= 100);
    CHECK(rig.lost.empty());
  }
}

TEST_CASE("a renewal that is confirmed late is not repeated, and the next one is due as ever") {
  RenewedRig rig;
  rig.advance(10s);
  rig.advance(1s);
  REQUIRE_FALSE(rig.renewals.empty());
  CHECK_FALSE(rig.renewals.front().ok);
  rig.answer({0, 1, 2}, Held{7});
  CHECK(rig.valid_until[rig.grant] == rig.start + 40s - 302ms);
  rig.advance(8'600ms);
  CHECK_FALSE(rig.asked(0));
  rig.advance(400ms);
  for (const NodeIndex node : {0U, 1U, 2U}) CHECK(rig.asked_count(node) == 1);
}

TEST_CASE("what answers later than a third of the lease is asked again as it answers") {
  RenewedRig rig;
  rig.advance(10s);
  rig.advance(12s);
  CHECK(rig.asked_count(0) == 1);
  rig.answer({0, 1}, Held{7});
  rig.advance(0ns);
  CHECK(rig.asked_count(0) == 1);
  CHECK(rig.asked_count(2) == 1);
  CHECK(rig.valid_until[rig.grant] == rig.start + 40s - 302ms);
  rig.advance(2'750ms);  // the round fails, as node 2 cannot be asked
  rig.answer({0, 1}, Held{7});
  CHECK(rig.valid_until[rig.grant] > rig.start + 51s);
}

TEST_CASE("so many extensions that they are not counted keep the silence until the last of them") {
  RenewedRig rig;
  rig.advance(11s);
  for (int i = 0; i < 40; ++i) rig.extend(rig.grant, 30s);
  rig.advance(1s);
  while (rig.asked_count(0) > 1) rig.answer({0, 1, 2}, Held{7});
  SUBCASE("which is not answered") {
    rig.advance(10s);
    for (const NodeIndex node : {0U, 1U, 2U}) {
      CHECK(rig.asked_count(node) == 1);
      CHECK(rig.take(node).tag.sent == rig.start + 11s);  // the last extension still
    }
    rig.advance(1s);
    CHECK(rig.all_answered());
  }
  SUBCASE("which is answered") {
    rig.answer({0, 1, 2}, Held{7});
    rig.advance(10s);
    for (const NodeIndex node : {0U, 1U, 2U}) CHECK(rig.asked_count(node) == 1);
    CHECK(rig.lost.empty());
  }
}

TEST_CASE("nodes that answer less often than leases are due lose none, while once each is enough") {
  // 3,000 leases of 6 s are due 1,500 times a second.
  for (const double answers_in_a_ms : {1.25, 0.95}) {
    CAPTURE(answers_in_a_ms);
    SlowNodes rig(answers_in_a_ms);
    rig.renewed_leases(3'000, 6s);
    rig.run(10s);
    rig.most_asked = 0;
    rig.run(20s);
    CHECK(rig.lost.empty());
    CHECK(static_cast<double>(rig.answered) > 3 * 0.8 * 30'000 * answers_in_a_ms);
    // No more is sent than they answer in the node timeout, while no lease is urgent.
    if (answers_in_a_ms > 1) CHECK(rig.most_asked <= 312);
  }
}

TEST_CASE("a short lease is renewed beside very many long ones that wait") {
  SlowNodes rig(1.25);
  rig.renewed_leases(3'000, 6s);
  rig.run(6s);
  const auto lease = rig.lease_on_all(Rig::renewed(1s));
  rig.run(20s);
  CHECK_FALSE(rig.lost.contains(lease.grant));
}

TEST_CASE("a renewal waits for room only until it is urgent") {
  SlowNodes rig(0);
  rig.renewed_leases(3'000, 6s);
  rig.run(2s);
  CHECK(rig.asked_count(0) < 3'000);
  rig.run(1'400ms);  // a third of the lease before the loss
  CHECK(rig.asked_count(0) == 3'000);
  rig.run(3s);
  CHECK(rig.lost.size() == 3'000);
  CHECK(rig.asked_count(0) == 3'000);
}

TEST_CASE("a node that is sent no more is asked all the same for what it confirmed long ago") {
  Rig rig(3);
  rig.renewed_leases(3'000);
  const auto run = [&](Duration time) {
    for (const Instant end = rig.now + time; rig.now < end;) {
      rig.advance(10ms);
      for (const NodeIndex node : {0U, 1U}) {
        while (rig.asked(node)) rig.answer(node, Held{7});
      }
    }
  };
  run(12s);
  CHECK(rig.asked_count(2) < 2'000);
  run(10s);
  CHECK(rig.asked_count(2) == 3'000);
}

TEST_CASE("a lease that is given back while it waits for room is not renewed") {
  SlowNodes rig(0);
  const auto grants = rig.renewed_leases(3'000, 6s);
  rig.run(2'300ms);
  const std::size_t asked = rig.asked_count(0);
  REQUIRE(asked < 3'000);
  for (const GrantId grant : grants) rig.drop(grant);
  while (rig.asked(0)) rig.answer({0, 1, 2}, Held{7});
  rig.run(5s);
  CHECK(rig.lost.empty());
}
