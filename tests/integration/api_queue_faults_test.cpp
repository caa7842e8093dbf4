// SPDX-License-Identifier: MIT
// Waiting in order when something fails: waiters and holders that are killed or stopped, nodes that
// end or have forgotten their lines, users who may not use them.
#include <csignal>

#include "integration/api_queue_fixture.hpp"
#include "integration/cli_process.hpp"

namespace redlock::testing {
namespace {

/// A process of its own that takes the lock and keeps it, or waits until it has it.
struct OtherProcess {
  OtherProcess(const Fleet& fleet, const std::string& name, const std::string& lease = "60s")
      : command({"exec", name, "--lease", lease, "--node-timeout", "10s", "--", "sh", "-c",
                 "echo held; read line"},
                nodes_variable(fleet.uris())) {}
  void end() const { command.write("go\n"); }
  /// Returns when it stands still.
  void stop() const {
    command.signal(SIGSTOP);
    int status = 0;
    REQUIRE(::waitpid(command.pid(), &status, WUNTRACED) == command.pid());
    REQUIRE(WIFSTOPPED(status));
  }

  Running command;
};

TEST_CASE_FIXTURE(Waiters, "a waiter that was killed or stands still is passed over at once") {
  for (const bool is_killed : {true, false}) {
    CAPTURE(is_killed);
    const std::string name = is_killed ? "killed" : "stopped";
    Grants grants_of_second;
    const Client second = start_client(fleet);
    Lease held = must(holder.lock(name).acquire());
    OtherProcess first(fleet, name);
    REQUIRE(queue_becomes(fleet, name, 1));
    wait_as(2, second, grants_of_second, name);
    REQUIRE(queue_becomes(fleet, name, 2));
    is_killed ? first.command.signal(SIGKILL) : first.stop();
    must(held.release());
    CHECK(in_words(grants_of_second.await(1)) == "2");  // after a moment, not a lease
    if (!is_killed) {
      first.command.signal(SIGCONT);
      CHECK(first.command.await_out("held"));
      first.end();
      CHECK(first.command.wait().status == 0);
    }
    CHECK(eventually([&] { return queue_keys(fleet, name) == 0; }));
  }
}

TEST_CASE("when the holder was killed those who wait have the lock in order after its lease") {
  const Fleet& fleet = three_nodes();
  CHECK(served_in_order([&] {
    OtherProcess holder(fleet, "orphan", "5s");  // kept until six others wait
    REQUIRE(holder.command.await_out("held"));
    SixWaiters waiters(fleet, "orphan", options_for(fleet.uris()));
    holder.command.signal(SIGKILL);
    auto order = waiters.order();
    CHECK(eventually([&] { return queue_keys(fleet, "orphan") == 0; }));
    return order;
  }));
}

TEST_CASE("where the rights to subscribe, or to all of the line, are missing, waiters are served") {
  struct Case {
    std::vector<std::string> missing;
    bool polls;  // in the line; otherwise the waiters barge
  };
  for (const Case& lack :
       {Case{{"-subscribe"}, true},
        Case{{"-hello", "-subscribe", "-publish", "-hmget", "-zadd", "-zrange", "-zrank", "-zrem"},
             false}}) {
    CAPTURE(lack.polls);
    const Fleet fleet({.nodes = 3});
    std::vector<std::string> command{"ACL", "SETUSER", "default"};
    std::ranges::copy(lack.missing, std::back_inserter(command));
    run_on_all(fleet, command);
    Grants grants;
    const Client holder = start_client(fleet);
    const Client one = start_client(fleet);
    const Client another = start_client(fleet);
    Lease held = must(holder.lock("seat").acquire());
    for (int i = 0; i < 6; ++i) wait_as(i, i % 2 == 0 ? one : another, grants, "seat");
    // What polls is forgotten soon if it does not ask again.
    if (lack.polls) REQUIRE(eventually([&] { return entries_on(fleet, 0, "seat") > 0; }));
    must(held.release());
    CHECK(grants.await_sorted(6) == "0 1 2 3 4 5");
    if (!lack.polls) CHECK(queue_keys(fleet, "seat") == 0);
    CHECK(eventually([&] { return queue_keys(fleet, "seat") == 0; }));
  }
}

TEST_CASE("a node that is killed, and comes back without its line, changes nothing") {
  bool comes_back = false;
  SUBCASE("it is down when the lock is released") {}
  SUBCASE("it is up again, and has forgotten all") {
    comes_back = true;
  }
  CHECK(served_in_order([&] {
    Fleet fleet({.nodes = 3});
    const Client holder = start_client(fleet);
    Lease held = must(holder.lock("restarted").acquire({.lease = 60s}));
    SixWaiters waiters(fleet, "restarted", options_for(fleet.uris()));
    fleet.kill(2);
    if (comes_back) fleet.restart(2);
    must(held.release());
    return waiters.order();
  }));
}

TEST_CASE("a node in quarantine neither blocks those who wait nor changes their order") {
  CHECK(served_in_order([] {
    Fleet fleet({.nodes = 3, .persistence = cluster::Persistence::always, .adopted = true});
    const ClientOptions options = careful_options_for(fleet.uris());
    const Client holder = start_client(options);
    Lease held = must(holder.lock("careful").acquire({.lease = 60s}));
    SixWaiters waiters(fleet, "careful", options);
    fleet.restart(0, cluster::Data::empty);
    must(held.release());
    return waiters.order();
  }));
}

}  // namespace
}  // namespace redlock::testing
