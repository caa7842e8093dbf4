// SPDX-License-Identifier: MIT
// Two owners of one client take and leave one name at random, over nodes that answer late or not at
// all: exclusion, the count of levels, deadlines, and nothing left at the end.
#include "engine/rig.hpp"

using namespace redlock::engine::test;

namespace {

constexpr NodeIndex members = 3;
constexpr std::uint64_t owners = 2;

class RandomOwners {
 public:
  explicit RandomOwners(std::uint32_t seed) : random_(seed) {}

  void run() {
    for (int step = 0; step < 400; ++step) {
      const std::uint32_t choice = below(100);
      if (choice < 15) {
        take(below(owners));
      } else if (choice < 25) {
        leave(below(owners));
      } else if (choice < 28 && !waiting_.empty()) {
        rig_.cancel(waiting_.begin()->first);
      } else if (choice < 32) {
        rig_.advance(std::chrono::milliseconds(below(60)));
      } else {
        answer(below(members));
      }
      judge();
    }
    end();
  }

 private:
  struct Waiting {
    std::uint64_t owner = 0;
    Instant deadline;
  };
  struct Level {
    GrantId grant = 0;
    std::uint32_t count = 0;
  };
  struct Lock {
    OwnerId owner;
    std::uint32_t count = 1;
  };

  std::uint32_t below(std::uint64_t end) { return static_cast<std::uint32_t>(random_() % end); }

  void take(std::uint64_t owner) {
    AcquireRequest what = Rig::waiting(std::chrono::milliseconds(below(3) * 100));
    if (below(3) == 0) what.deadline = rig_.now + std::chrono::milliseconds(1 + below(100));
    waiting_.emplace(++last_, Waiting{owner, what.deadline});
    rig_.engine.take(rig_.now, last_, {owner, std::move(what)});
    rig_.collect();
  }

  void leave(std::uint64_t owner) {
    if (held_[owner].count == 0) return;
    const GrantId released = rig_.engine.leave(rig_.now, 0, {Rig::request().name, owner});
    CHECK(released == (held_[owner].count == 1 ? held_[owner].grant : 0));
    --held_[owner].count;
    rig_.collect();
  }

  void answer(NodeIndex node) {
    if (!rig_.asked(node)) return;
    if (!ending_ && below(20) == 0) return rig_.answer(node, down);
    auto& lock = locks_[node];
    if (rig_.oldest_is<AcquireCommand>(node)) {
      const OwnerId owner = rig_.oldest<AcquireCommand>(node).owner;
      if (lock) return rig_.answer(node, Refused{30s});
      lock = Lock{owner};
      rig_.answer(node, Granted{++token_});
    } else if (rig_.oldest_is<HoldCommand>(node)) {
      const auto& hold = rig_.oldest<HoldCommand>(node);
      const bool ours = lock && lock->owner == hold.owner;
      if (ours) lock->count = hold.count;
      token_ = std::max(token_, hold.token);
      if (ours) return rig_.answer(node, Held{token_});
      lock ? rig_.answer(node, Taken{}) : rig_.answer(node, Free{});
    } else {
      const bool ours = lock && lock->owner == rig_.oldest<ReleaseCommand>(node).owner;
      if (ours) lock.reset();
      ours ? rig_.answer(node, ReleasedHere{}) : rig_.answer(node, NotHeld{});
    }
  }

  void judge() {
    for (auto call = waiting_.begin(); call != waiting_.end();) {
      const auto& [request, waits] = *call;
      Level& held = held_[waits.owner];
      if (rig_.ended_with<AcquireSucceeded>(request)) {
        CHECK(held.count == 0);
        held = {rig_.result<AcquireSucceeded>(request).grant, 1};
      } else if (rig_.ended_with<EnterSucceeded>(request)) {
        CHECK(rig_.result<EnterSucceeded>(request).grant == held.grant);
        CHECK(rig_.result<EnterSucceeded>(request).count == ++held.count);
      } else if (!rig_.ended(request)) {
        CHECK(rig_.now <= waits.deadline);
        ++call;
        continue;
      }
      call = waiting_.erase(call);
    }
    CHECK((held_[0].count == 0 || held_[1].count == 0 || !rig_.lost.empty()));
  }

  void end() {
    ending_ = true;
    for (auto calls = waiting_; const auto& call : calls) rig_.cancel(call.first);
    judge();
    CHECK(waiting_.empty());
    for (std::uint64_t owner = 0; owner < owners; ++owner) {
      while (held_[owner].count > 0) leave(owner);
    }
    for (NodeIndex node = 0; node < members; ++node) rig_.node_up(node);  // releases are repeated
    for (int round = 0; round < 100; ++round) {
      for (NodeIndex node = 0; node < members; ++node) answer(node);
    }
    for (NodeIndex node = 0; node < members; ++node) {
      CHECK_FALSE(rig_.asked(node));
      CHECK_FALSE(locks_[node].has_value());
    }
  }

  Rig rig_{members};
  std::mt19937 random_;
  std::map<RequestId, Waiting> waiting_;
  std::map<std::uint64_t, Level> held_;
  std::map<NodeIndex, std::optional<Lock>> locks_;
  Token token_ = 0;
  RequestId last_ = 1'000;
  bool ending_ = false;
};

}  // namespace

TEST_CASE("owners that take and leave at random exclude each other, and their counts come out") {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    RandomOwners(seed).run();
  }
}
