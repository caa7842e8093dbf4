// SPDX-License-Identifier: MIT
// examples/own_loop as a process: it takes its lock in both ways, and ends by a signal with
// nothing left on its loop.
#include <csignal>
#include <doctest/doctest.h>
#include <string>

#include "cluster/fleet.hpp"
#include "integration/cli_process.hpp"

namespace redlock::testing {
namespace {

const std::string program = std::string(REDLOCK_BIN_DIR) + "/own_loop";

TEST_CASE("it takes the lock with a callback and a coroutine, and gives it back at its end") {
  const cluster::Fleet fleet({.nodes = 3});
  Running running({"the door"}, nodes_variable(fleet.uris()), program);
  REQUIRE(running.await_out("tick, ours for"));
  CHECK(contains(running.out(), "taken with a callback, token "));
  CHECK(contains(running.out(), "taken with a coroutine, token "));
  CHECK(eventually([&] { return fleet.run(0, {"EXISTS", "redlock:lock:{the door}"}) == "1"; }));
  running.signal(SIGTERM);
  const Finished finished = running.wait();
  CHECK(finished.status == 0);
  CHECK(finished.err.empty());
  // How many it says, a busy machine decides: the nodes may confirm too late.
  CHECK(contains(finished.out, "given back at the end: "));
  CHECK(finished.out.ends_with("\nthe loop is closed\n"));
  CHECK(eventually([&] { return fleet.run(0, {"EXISTS", "redlock:lock:{the door}"}) == "0"; }));
}

TEST_CASE("it says what is wrong, and leaves the loop") {
  const Finished none = Running({"x"}, {}, program).wait();
  CHECK(none.status == 64);
  CHECK(contains(none.err, "REDLOCK_NODES"));
  CHECK(Running({}, nodes_variable({"redis://127.0.0.1:1"}), program).wait().status == 64);
  const Finished bad = Running({"{}"}, nodes_variable({"redis://127.0.0.1:1"}), program).wait();
  CHECK(bad.status == 1);
  CHECK(contains(bad.out, "the loop is closed"));
}

}  // namespace
}  // namespace redlock::testing
