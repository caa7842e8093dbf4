// SPDX-License-Identifier: MIT
// The model against a real redis-server: every step of every trace here runs on both, and whatever
// they say or hold differently fails it (see SideBySide). The checks in the text only make sure
// that a trace goes where its sentence says.
#include <array>
#include <doctest/doctest.h>
#include <optional>
#include <string>
#include <vector>

#include "simulation/both_said.hpp"
#include "simulation/random.hpp"

using namespace redlock;
using namespace redlock::simulation;
using engine::floor_limit;
using engine::Form;
using engine::token_limit;

TEST_CASE("a free lock is granted, refused to others with its time, released by its owner") {
  SideBySide both(fleet());
  CHECK(is_granted(both.acquire(ann, 60'000), 1));
  CHECK(left(both.acquire(bob)) == 60'000);
  CHECK(is<engine::NotHeld>(both.release(bob)));
  CHECK(is<engine::ReleasedHere>(both.release(ann)));
  CHECK(is<engine::NotHeld>(both.release(ann)));
  CHECK(is_granted(both.acquire(bob), 2));
}

TEST_CASE("the owner who acquires again gets no token, and no shorter lease") {
  SideBySide both(fleet());
  CHECK(is_granted(both.acquire(ann, 60'000), 1));
  CHECK(is<engine::AlreadyOurs>(both.acquire(ann, 600'000, 100)));
  CHECK(left(both.acquire(bob)) == 600'000);
  CHECK(is<engine::AlreadyOurs>(both.acquire(ann, 60'000)));
  CHECK(left(both.acquire(bob)) == 600'000);
  both.release(ann);
  CHECK(is_granted(both.acquire(ann), 2));
}

TEST_CASE("the floor lifts a new token, and never lowers one, and ends at 2^52") {
  SideBySide both(fleet());
  CHECK(is_granted(both.acquire(ann, 60'000, 1'795'227'228'964'050), 1'795'227'228'964'050));
  both.release(ann);
  CHECK(is_granted(both.acquire(ann, 60'000, 5), 1'795'227'228'964'051));
  both.release(ann);
  CHECK(is_error(both.acquire(ann, 60'000, floor_limit + 1), Cause::server_error));
  CHECK(is_granted(both.acquire(ann, 60'000, floor_limit), floor_limit));
  both.release(ann);
  CHECK(is_granted(both.acquire(ann), floor_limit + 1));
}

TEST_CASE("hold carries no fence over 2^52, but those that are beyond it further") {
  SideBySide both(fleet());
  both.acquire(ann);
  CHECK(is_held(both.hold(ann, floor_limit + 1), 1));
  CHECK(is_held(both.hold(ann, floor_limit), floor_limit));
  both.put_fence(ann.name, floor_limit + 1);
  CHECK(is_held(both.hold(ann, token_limit - 1), token_limit - 1));
  CHECK(is_held(both.hold(ann, token_limit + 7), token_limit - 1));
  CHECK(is_held(both.hold(ann, 0), token_limit - 1));
}

TEST_CASE("names of one stripe draw their tokens from one counter") {
  SideBySide both(fleet());
  const SideBySide::Who other{neighbour_of(ann.name), 3};
  CHECK(is_granted(both.acquire(ann), 1));
  CHECK(is_granted(both.acquire(other), 2));
  CHECK(is_held(both.hold(other, 40), 40));
  CHECK(is_held(both.hold(ann, 1), 40));
  CHECK(is_held(both.hold(ann, 0), 40));
}

TEST_CASE("hold lengthens a lease, never shortens it, and sets the count") {
  SideBySide both(fleet());
  both.acquire(ann, 60'000);
  CHECK(is_held(both.hold(ann, 1, 600'000, 2), 1));
  CHECK(left(both.acquire(bob)) == 600'000);
  CHECK(is_held(both.hold(ann, 1, 30'000, 3), 1));
  CHECK(left(both.acquire(bob)) == 600'000);
  CHECK(is_held(both.hold(ann, 1, 30'000, 1), 1));
}

TEST_CASE("hold gives a lock without an end one") {
  SideBySide both(fleet());
  both.acquire(ann);
  both.persist(ann.name);
  CHECK(left(both.acquire(bob)) == -1);
  CHECK(is_held(both.hold(ann, 1, 30'000), 1));
  CHECK(left(both.acquire(bob)) == 30'000);
  both.persist(ann.name);
  CHECK(is<engine::AlreadyOurs>(both.acquire(ann, 30'000)));
  CHECK(left(both.acquire(bob)) == 30'000);
}

TEST_CASE("hold tells free, another's and foreign apart, and changes nothing there") {
  SideBySide both(fleet());
  CHECK(is<engine::Free>(both.hold(ann, 50)));
  both.acquire(bob);
  CHECK(is_taken(both.hold(ann, 50, 600'000), false));
  CHECK(left(both.acquire(ann)) == 60'000);
  both.put_foreign(ann.name);
  CHECK(is_taken(both.hold(ann, 50), true));
}

TEST_CASE("a string where the lock would be refuses everybody and is left alone") {
  SideBySide both(fleet());
  both.put_foreign(ann.name);
  CHECK(left(both.acquire(ann)) == -1);
  CHECK(is_taken(both.hold(ann, 1), true));
  CHECK(is<engine::NotHeld>(both.release(ann)));
  CHECK(left(both.acquire(bob)) == -1);
}

TEST_CASE("a lease that is over is nobody's, and what comes late finds the lock free") {
  SideBySide both(fleet());
  const SideBySide::Who long_one{"long", 1};
  both.acquire(long_one, 600'000);
  for (const std::int64_t lease : {1, 2, 30}) {
    REQUIRE(is<engine::Granted>(both.acquire_and_outlive(ann, lease)));
    CHECK(is<engine::Free>(both.hold(ann, 1)));
    CHECK(is<engine::NotHeld>(both.release(ann)));
    CHECK(is<engine::Granted>(both.acquire(bob)));
    CHECK(is<engine::NotHeld>(both.release(ann)));
    CHECK(is_taken(both.hold(ann, 1), false));
    CHECK(is<engine::ReleasedHere>(both.release(bob)));
  }
  CHECK(left(both.acquire({"long", 2})) == 600'000 - both.now_ms());
}

TEST_CASE("a node without the scripts asks for them, each for itself") {
  SideBySide both(fleet());
  both.acquire(ann);
  both.flush_scripts();
  CHECK(is<engine::NoScript>(both.acquire(ann)));
  CHECK(is<engine::NoScript>(both.hold(ann, 1)));
  CHECK(is<engine::NoScript>(both.release(ann)));
  CHECK(is_held(both.hold(ann, 1, 60'000, 1, Form::source), 1));
  CHECK(is_held(both.hold(ann, 1), 1));
  CHECK(is<engine::NoScript>(both.acquire(ann)));
  CHECK(is<engine::AlreadyOurs>(both.acquire(ann, 60'000, 1, Form::source)));
  CHECK(is<engine::AlreadyOurs>(both.acquire(ann)));
  CHECK(is<engine::ReleasedHere>(both.release(ann, Form::source)));
  CHECK(is<engine::NotHeld>(both.release(ann)));
}

TEST_CASE("FLUSHALL forgets locks and fences, and no script") {
  SideBySide both(fleet());
  both.acquire(ann, 60'000, 100);
  both.flush_all();
  CHECK(is<engine::Free>(both.hold(ann, 100)));
  CHECK(is<engine::NotHeld>(both.release(ann)));
  CHECK(is_granted(both.acquire(bob), 1));
}

TEST_CASE("a replica says who has the lock, but grants, holds and releases nothing") {
  SideBySide both(fleet());
  both.acquire(ann);
  both.fall_read_only();
  CHECK(left(both.acquire(bob)) == 60'000);
  CHECK(is<engine::AlreadyOurs>(both.acquire(ann, 30'000)));
  CHECK(is_error(both.acquire(ann, 600'000), Cause::read_only));
  CHECK(is_error(both.acquire({"free", 1}), Cause::read_only));
  CHECK(is_error(both.hold(ann, 1), Cause::read_only));
  CHECK(is_error(both.release(ann), Cause::read_only));
  CHECK(is_error(both.force(ann), Cause::read_only));
  both.recover();
  CHECK(is<engine::ReleasedHere>(both.release(ann)));
}

TEST_CASE("a replica without the scripts refuses in full what writes, without taking it in") {
  SideBySide both(fleet());
  both.flush_scripts();
  both.fall_read_only();
  CHECK(is<engine::NoScript>(both.hold(ann, 1)));
  CHECK(is_error(both.hold(ann, 1, 60'000, 1, Form::source), Cause::read_only));
  CHECK(is<engine::NoScript>(both.hold(ann, 1)));
  CHECK(is_error(both.release(ann, Form::source), Cause::read_only));
  CHECK(is<engine::NoScript>(both.release(ann)));
  CHECK(is_error(both.acquire(ann, 60'000, 1, Form::source), Cause::read_only));
  CHECK(is_error(both.acquire(ann), Cause::read_only));
}

TEST_CASE("a full node grants nothing new, but holds and releases") {
  SideBySide both(fleet());
  both.acquire(ann);
  both.fall_full();
  CHECK(left(both.acquire(bob)) == 60'000);
  CHECK(is<engine::AlreadyOurs>(both.acquire(ann, 600'000)));
  CHECK(is_error(both.acquire({"free", 1}), Cause::out_of_memory));
  CHECK(is_error(both.acquire({"free", 1}, 60'000, token_limit), Cause::server_error));
  CHECK(is_held(both.hold(ann, 1, 600'000, 2), 1));
  CHECK(is_held(both.hold(ann, 70, 600'000, 2), 70));
  CHECK(is_held(both.hold(ann, 90, 30'000, 3), 90));
  CHECK(is<engine::ReleasedHere>(both.force(ann)));
  CHECK(is<engine::NotHeld>(both.force(bob)));
  CHECK(is<engine::ForcedOut>(both.acquire(ann)));
  CHECK(is_error(both.acquire({"n", 3}), Cause::out_of_memory));
  both.recover();
  CHECK(is_granted(both.acquire({"n", 3}), 92));
}

TEST_CASE("a node that cannot save says who has the lock and writes nothing") {
  SideBySide both(fleet());
  both.acquire(ann);
  both.fall_misconf();
  CHECK(left(both.acquire(bob)) == 60'000);
  CHECK(is<engine::AlreadyOurs>(both.acquire(ann, 30'000)));
  CHECK(is_error(both.acquire(ann, 600'000), Cause::write_error));
  CHECK(is_error(both.acquire({"free", 1}), Cause::write_error));
  CHECK(is_error(both.hold(ann, 1), Cause::write_error));
  CHECK(is_error(both.release(ann), Cause::write_error));
  CHECK(is_error(both.force(ann), Cause::write_error));
  both.recover();
  CHECK(is<engine::ReleasedHere>(both.release(ann)));
}

TEST_CASE("a node in an endless script refuses everything, known script or not") {
  SideBySide both(fleet());
  both.acquire(ann);
  for (const bool known : {true, false}) {
    if (!known) both.flush_scripts();
    both.fall_busy();
    for (const Form form : {Form::digest, Form::source}) {
      CHECK(is_error(both.acquire(bob, 60'000, 1, form), Cause::busy));
      CHECK(is_error(both.hold(ann, 1, 60'000, 1, form), Cause::busy));
      CHECK(is_error(both.release(ann, form), Cause::busy));
      CHECK(is_error(both.force(ann, 60'000, form), Cause::busy));
    }
    both.recover();
  }
  CHECK(is<engine::NoScript>(both.acquire(ann)));
}

TEST_CASE("a damaged fence fails acquire with no lock written, and hold goes on with fence 0") {
  using Damage = void (SideBySide::*)(const std::string&);
  for (const Damage damage : {&SideBySide::damage_fence, &SideBySide::put_foreign_fence}) {
    SideBySide both(fleet());
    (both.*damage)(ann.name);
    CHECK(is_error(both.acquire(ann), Cause::server_error));
    CHECK(is<engine::Free>(both.hold(ann, 1)));
    both.flush_all();
    both.acquire(ann);
    (both.*damage)(ann.name);
    CHECK(is<engine::AlreadyOurs>(both.acquire(ann)));
    CHECK(left(both.acquire(bob)) == 60'000);
    CHECK(is_held(both.hold(ann, 50, 600'000, 2), 0));
    CHECK(is<engine::ReleasedHere>(both.release(ann)));
  }
}

TEST_CASE("a lost fence is raised again by hold") {
  SideBySide both(fleet());
  both.acquire(ann, 60'000, 20);
  both.lose_fence(ann.name);
  CHECK(is_held(both.hold(ann, 0), 0));
  CHECK(is_held(both.hold(ann, 20), 20));
}

TEST_CASE("a fence at its end or beyond grants nothing and stays as it is") {
  for (const engine::Token end : {token_limit - 1, token_limit, token_limit + 7}) {
    SideBySide both(fleet());
    both.acquire(ann);
    both.put_fence(ann.name, end);
    CHECK(is<engine::AlreadyOurs>(both.acquire(ann)));
    CHECK(is_held(both.hold(ann, 5), end < token_limit ? end : 0));
    both.release(ann);
    CHECK(is_error(both.acquire(bob), Cause::server_error));
  }
}

namespace {

/// What the random traces met, so that they cannot become harmless unnoticed.
struct Met {
  std::array<std::size_t, std::variant_size_v<engine::Reply>> replies{};
  std::size_t expiries = 0;
};

class RandomTrace {
 public:
  RandomTrace(std::uint64_t seed, Met& met)
      : random_(seed),
        both_(fleet()),
        names_{"n", "another", neighbour_of("n"), "{ }\r\n"},
        met_(met) {}

  void step() {
    const std::uint32_t die = random_.below(100);
    if (die < 34) {
      said(both_.acquire(who(), lease(), floor(), form()));
    } else if (die < 60) {
      said(both_.hold(who(), far(50).value_or(token()), lease(), 1 + random_.below(3), form()));
    } else if (die < 77) {
      said(both_.release(who(), form()));
    } else if (die < 80) {
      said(both_.force(who(), lease(), form()));
    } else if (die < 85) {
      short_lease();
    } else if (die < 90) {
      change_ailment();
    } else if (well()) {
      meddle();
    }
  }

 private:
  [[nodiscard]] bool well() const { return both_.model().ailment() == NodeModel::Ailment::none; }
  const std::string& name() { return names_[random_.below(4)]; }
  SideBySide::Who who() { return {name(), random_.below(2)}; }
  /// Far longer than a trace takes, so that none ends that nobody awaits.
  std::int64_t lease() { return 600'000 * random_.between(1, 6); }
  Form form() { return random_.chance(300) ? Form::source : Form::digest; }
  engine::Token token() { return 1 + random_.below(40); }
  engine::Token floor() {
    if (const auto token = far(20)) return *token;
    return random_.chance(500) ? 1 : token();
  }
  /// Now and then: where floors end.
  std::optional<engine::Token> far(std::uint32_t per_mille) {
    if (!random_.chance(per_mille)) return std::nullopt;
    return engine::floor_limit + random_.below(3);
  }

  void said(const engine::Reply& reply) { ++met_.replies[reply.index()]; }

  void short_lease() {
    const SideBySide::Who somebody = who();
    if (both_.model().find(somebody.name, both_.now_ms()) != nullptr) return;
    const engine::Reply reply = both_.acquire_and_outlive(somebody, random_.between(1, 8));
    if (is<engine::Granted>(reply)) ++met_.expiries;
  }

  void change_ailment() {
    if (!well()) return both_.recover();
    random_.chance(500) ? both_.fall_full() : both_.fall_read_only();
  }

  /// What somebody's hand may do to a node.
  void meddle() {
    const std::string& at = name();
    const NodeModel::Lock* lock = both_.model().find(at, both_.now_ms());
    switch (random_.below(9)) {
      case 0:
        return both_.flush_all();
      case 1:
      case 2:
        return both_.flush_scripts();
      case 3:
        return both_.put_foreign(at);
      case 4:
        if (lock != nullptr) both_.persist(at);
        return;
      case 5:
        return both_.put_fence(at, random_.chance(300) ? token_limit - 2 : token());
      case 6:
        return both_.damage_fence(at);
      case 7:
        return both_.put_foreign_fence(at);
      default:
        return both_.lose_fence(at);
    }
  }

  Random random_;
  SideBySide both_;
  std::array<std::string, 4> names_;
  Met& met_;
};

}  // namespace

TEST_CASE("random traces say on the model what they say on a server") {
  constexpr std::uint64_t seeds = 400;
  Met met;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    RandomTrace trace(seed, met);
    for (int step = 0; step < 60; ++step) trace.step();
  }
  for (std::size_t kind = 0; kind < met.replies.size(); ++kind) {
    CAPTURE(kind);
    CHECK(met.replies[kind] > 100);
  }
  CHECK(met.expiries > 100);
}
