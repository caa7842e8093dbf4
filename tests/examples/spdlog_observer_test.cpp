// SPDX-License-Identifier: MIT
// examples/spdlog_observer as a process: the lines that nodes and a lost lease leave.
#include <csignal>
#include <doctest/doctest.h>
#include <string>

#include "cluster/fleet.hpp"
#include "integration/cli_process.hpp"

namespace redlock::testing {
namespace {

const std::string program = std::string(REDLOCK_BIN_DIR) + "/spdlog_observer";

std::string node_field(const cluster::Fleet& fleet, std::size_t node) {
  return " node=\"" + fleet.uri(node) + "\"";
}

TEST_CASE("the log has nodes that go and come, and the lease that is lost with them") {
  cluster::Fleet fleet({.nodes = 3});
  Running running({}, nodes_variable(fleet.uris()), program);
  REQUIRE(running.await_err(" level=info event=working name=\"report\" token="));
  CHECK(running.await_err(" event=node_up" + node_field(fleet, 0)));
  fleet.kill(0);
  CHECK(running.await_err(" level=warning event=node_down" + node_field(fleet, 0) + " cause="));
  fleet.kill(1);
  CHECK(running.await_err(" level=warning event=node_down" + node_field(fleet, 1) + " cause="));
  CHECK(running.await_err(" level=warning event=renewal_failed name=\"report\" "));
  CHECK(running.await_err(" level=error event=lost name=\"report\" token="));
  running.signal(SIGTERM);
  const Finished finished = running.wait();
  CHECK(finished.status == 0);
  CHECK(finished.err.starts_with("time=20"));
  CHECK(contains(finished.err, " reason=nodes_unavailable\n"));
}

TEST_CASE("a name with quotes and a line break is one field of one line") {
  const cluster::Fleet fleet({.nodes = 1});
  Running running({"a \"b\"\nlevel=c"}, nodes_variable(fleet.uris()), program);
  CHECK(running.await_err(R"( event=working name="a \"b\"\x0alevel=c" token=)"));
  running.signal(SIGTERM);
  CHECK(running.wait().status == 0);
}

TEST_CASE("without nodes it says what is missing") {
  const Finished none = Running({}, {}, program).wait();
  CHECK(none.status == 1);
  CHECK(contains(none.out, "REDLOCK_NODES"));
}

}  // namespace
}  // namespace redlock::testing
