// SPDX-License-Identifier: MIT
// What exec shows while it waits for a lock, and when it gives up.
#include <doctest/doctest.h>

#include "cli_process.hpp"
#include "cluster/fleet.hpp"
#include "on_terminal.hpp"
#include "support/stub_server.hpp"

namespace redlock::testing {
namespace {

using cluster::Fleet;

Arguments waiting_for(const std::string& name, const Arguments& options = {}) {
  Arguments arguments{"exec", name, "--node-timeout", "500ms"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--", "echo", "done"});
  return arguments;
}

TEST_CASE("without --wait, exec gives up when no node has ever answered") {
  Fleet fleet({.nodes = 3});
  for (std::size_t node = 0; node < 3; ++node) fleet.kill(node);
  const auto finished = redlock(waiting_for("a"), nodes_variable(fleet.uris()));
  CHECK(finished.status == 69);
  CHECK(finished.out.empty());
  CHECK(contains(finished.err, "waiting up to 10s for a (no quorum of nodes: "));
  CHECK(contains(finished.err, "no node has answered within 10 s"));
  CHECK(contains(finished.err, "--wait forever"));
  CHECK(contains(finished.err, "connection refused"));
}

TEST_CASE("nodes that accept connections and never answer have not answered") {
  const auto one = StubServer::silent();
  const auto finished = redlock(waiting_for("a"), nodes_variable({one.uri()}));
  CHECK(finished.status == 69);
  CHECK(contains(finished.err, "no node has answered within 10 s"));
}

TEST_CASE(
    "one node that answers, or --wait, makes exec go on waiting, and say so ever more rarely") {
  Fleet fleet({.nodes = 3});
  fleet.kill(0);
  fleet.kill(1);
  Running patient(waiting_for("a"), nodes_variable(fleet.uris()));
  Running told(waiting_for("a", {"--wait", "forever"}), nodes_variable({"redis://127.0.0.1:1"}));
  // At once, after 5, 15 and 35 seconds.
  REQUIRE(patient.await_err("waiting since 15s for a (no quorum of nodes: " + fleet.uri(0)));
  REQUIRE(told.await_err("waiting since 15s for a (no quorum of nodes: redis://127.0.0.1:1"));
  fleet.restart(0);
  const auto finished = patient.wait();
  CHECK(finished.status == 0);
  CHECK(finished.out == "done\n");
  told.signal(SIGTERM);
  CHECK(told.wait().status == 128 + SIGTERM);
}

TEST_CASE("a wait that is to end says how long it has waited and how long it still will") {
  const Fleet fleet({.nodes = 1});
  const auto variables = nodes_variable(fleet.uris());
  Running holder({"exec", "a", "--", "sh", "-c", "echo held; read line"}, variables);
  REQUIRE(holder.await_out("held"));
  Running waiter(waiting_for("a", {"--wait", "60s"}), variables);
  REQUIRE(waiter.await_err("waiting up to 1m for a, next in line (held by "));
  REQUIRE(waiter.await_err("waiting since 5s up to 55s more for a, next in line (held by "));
  holder.write("go\n");
  CHECK(waiter.wait().out == "done\n");
}

TEST_CASE("on a terminal the line is refreshed, and gone when the lock is there") {
  const Fleet fleet({.nodes = 1});
  Running holder({"exec", "a", "--", "sh", "-c", "echo held; read line"},
                 nodes_variable(fleet.uris()));
  REQUIRE(holder.await_out("held"));
  OnTerminal session(fleet,
                     R"($REDLOCK exec a --node-timeout 10s -- echo granted; echo "status $?")");
  REQUIRE(session.await("\r\x1b[Kredlock: waiting for a, next in line (held by "));
  REQUIRE(session.await("\r\x1b[Kredlock: waiting since 1s for a, next in line (held by "));
  REQUIRE(session.await("\r\x1b[Kredlock: waiting since 2s for a, next in line (held by "));
  holder.write("go\n");
  REQUIRE(session.await("\r\x1b[Kgranted"));
  CHECK(session.await("status 0"));
  // Each line is written over the one before it.
  CHECK_FALSE(contains(session.shown().substr(0, session.shown().find("granted")), "\n"));
}

TEST_CASE("the line says how many are before it, and moves up with them") {
  const Fleet fleet({.nodes = 3});
  const auto variables = nodes_variable(fleet.uris());
  Running holder({"exec", "a", "--", "sh", "-c", "echo held; read line"}, variables);
  REQUIRE(holder.await_out("held"));
  Running first({"exec", "a", "--node-timeout", "10s", "--", "sh", "-c", "echo second; read line"},
                variables);
  REQUIRE(first.await_err("for a, next in line (held by "));
  OnTerminal last(fleet, R"($REDLOCK exec a --node-timeout 10s -- echo granted)");
  REQUIRE(last.await("for a, 1 before it (held by "));
  holder.write("go\n");
  REQUIRE(first.await_out("second"));
  REQUIRE(last.await("for a, next in line (held by "));
  first.write("go\n");
  CHECK(last.await("\r\x1b[Kgranted"));
}

TEST_CASE("who barges has no place in any line") {
  const Fleet fleet({.nodes = 3});
  const auto variables = nodes_variable(fleet.uris());
  Running holder({"exec", "a", "--", "sh", "-c", "echo held; read line"}, variables);
  REQUIRE(holder.await_out("held"));
  Running waiter(waiting_for("a", {"--ordering", "barging"}), variables);
  REQUIRE(waiter.await_err("waiting for a (held by "));
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    CHECK(fleet.run(node, {"KEYS", "redlock:lock:*"}) == "redlock:lock:{a}");
  }
  holder.write("go\n");
  CHECK(waiter.wait().out == "done\n");
}

}  // namespace
}  // namespace redlock::testing
