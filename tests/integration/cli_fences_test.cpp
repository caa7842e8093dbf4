// SPDX-License-Identifier: MIT
// redlock doctor compares the nodes' counters of tokens, and mends those that are damaged.
#include "cli_process.hpp"

namespace redlock::testing {
namespace {

const std::string counter = "redlock:fence:6562";  // of the name "a"

class Counters {
 public:
  Counters() { REQUIRE(run({"adopt"}).status == 0); }

  Fleet fleet{{.nodes = 5, .persistence = Persistence::always}};

  [[nodiscard]] Finished run(const Arguments& arguments) const {
    auto finished = redlock(fleet, arguments, with_quarantine);
    finished.out = unwrapped(finished.out);
    finished.err = unwrapped(finished.err);
    return finished;
  }
  /// The token of a lock that is taken and given back.
  [[nodiscard]] std::uint64_t token() const {
    const auto taken = run({"acquire", "a", "-o", "json"});
    CAPTURE(taken.err);
    REQUIRE(taken.status == 0);
    const auto grant = json::parse(taken.out);
    REQUIRE(run({"release", "a", "--owner", grant["owner"].get<std::string>()}).status == 0);
    return grant["token"];
  }
  [[nodiscard]] std::uint64_t value(std::size_t node) const {
    return std::stoull(fleet.run(node, {"GET", counter}));
  }
};

TEST_CASE_FIXTURE(Counters, "a damaged counter costs its node the vote, and is mended by a word") {
  const auto before = token();
  CHECK(run({"doctor"}).status == 0);
  fleet.run(0, {"SET", counter, "4503599627370495"});
  fleet.run(1, {"DEL", counter});
  fleet.run(1, {"RPUSH", counter, "no", "number"});

  const auto found = run({"doctor"});
  CHECK(found.status == 1);
  CHECK(contains(found.out, "its fence counter " + counter +
                                " is damaged (4503599627370495), so it does not vote on locks "
                                "that use it; run `redlock doctor --mend`"));
  CHECK(contains(found.out, counter + " is damaged (no number)"));

  const auto mended = run({"doctor", "--mend"});
  CAPTURE(mended.err);
  CHECK(mended.status == 0);
  CHECK(contains(mended.err, "mended " + counter + " of "));
  for (const std::size_t node : {0U, 1U}) {
    CHECK(value(node) > before);
    CHECK(value(node) < before + 2 * (std::uint64_t{1} << 32));
  }
  CHECK(token() > before);
  CHECK(contains(run({"doctor", "--mend"}).err, "no counter of tokens is damaged"));
}

TEST_CASE_FIXTURE(Counters, "what damage and nodes that are down cost together is said") {
  (void)token();
  fleet.run(0, {"SET", counter, "9007199254740989"});
  fleet.kill(3);
  fleet.kill(4);

  const auto mended = run({"doctor", "--mend"});
  CHECK(mended.status == 2);
  CHECK(contains(mended.err, "did not mend " + counter));
  CHECK(contains(mended.out, "only 2 of 5 nodes can vote on locks that use the fence counter " +
                                 counter + " and 3 must"));
  CHECK(contains(mended.out, "run `redlock doctor --mend` when more of the other nodes answer"));

  fleet.restart(3);
  CHECK(run({"doctor", "--mend"}).status == 1);
  CHECK(token() < 9007199254740989);
}

TEST_CASE_FIXTURE(Counters, "a node that lost its data says nothing of what tokens there were") {
  (void)token();
  fleet.run(0, {"SET", counter, "9007199254740989"});
  fleet.run(1, {"FLUSHALL"});
  fleet.run(2, {"FLUSHALL"});
  CHECK(contains(run({"doctor", "--mend"}).err, "did not mend " + counter));
  CHECK(value(0) == 9007199254740989);
}

}  // namespace
}  // namespace redlock::testing
