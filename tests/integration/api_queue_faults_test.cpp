// SPDX-License-Identifier: MIT
// Waiting in order when something fails: waiters and holders that are killed or stopped, nodes that
// end or have forgotten their lines, users who may not use them.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <string>

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

TEST_CASE("a waiter whose process was killed is passed over") {
  const Fleet& fleet = three_nodes();
  Grants grants;
  const Client holder = start_client(fleet);
  const Client second = start_client(fleet);
  Lease held = must(holder.lock("killed").acquire());
  OtherProcess first(fleet, "killed");
  REQUIRE(queue_becomes(fleet, "killed", 1));
  wait_as(2, second, grants, "killed");
  REQUIRE(queue_becomes(fleet, "killed", 2));
  first.command.signal(SIGKILL);
  must(held.release());
  CHECK(in_words(grants.await(1)) == "2");
  CHECK(eventually([&] { return queue_keys(fleet, "killed") == 0; }));
}

TEST_CASE("a waiter whose process stands still keeps the others for a moment, not for a lease") {
  const Fleet& fleet = three_nodes();
  Grants grants;
  const Client holder = start_client(fleet);
  const Client second = start_client(fleet);
  Lease held = must(holder.lock("stopped").acquire());
  OtherProcess first(fleet, "stopped");
  REQUIRE(queue_becomes(fleet, "stopped", 1));
  wait_as(2, second, grants, "stopped");
  REQUIRE(queue_becomes(fleet, "stopped", 2));
  first.stop();
  must(held.release());
  CHECK(in_words(grants.await(1)) == "2");
  first.command.signal(SIGCONT);
  CHECK(first.command.await_out("held"));
  first.end();
  CHECK(first.command.wait().status == 0);
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

/// Counts attempts that found no quorum.
class NoQuorumCounter final : public Observer {
 public:
  void on_attempt(std::string_view, const Errc* code, const std::vector<NodeVote>&,
                  std::chrono::nanoseconds) override {
    if (code != nullptr && *code == Errc::no_quorum) ++count;
  }
  std::atomic<int> count = 0;
};

TEST_CASE("nodes that all stood still for a moment keep nobody from the lock") {
  Fleet fleet({.nodes = 3});
  Grants grants;
  const auto counter = std::make_shared<NoQuorumCounter>();
  ClientOptions options = options_for(fleet.uris());
  options.node_timeout = 100ms;
  options.observer = counter;
  const Client client = start_client(options);
  must(client.lock("paused").acquire({.wait = patience}));  // all are reached
  for (std::size_t node = 0; node < fleet.size(); ++node) fleet.pause(node);
  wait_as(1, client, grants, "paused");
  const bool noticed = eventually([&] { return counter->count >= 3; });
  for (std::size_t node = 0; node < fleet.size(); ++node) fleet.resume(node);
  REQUIRE(noticed);
  CHECK(in_words(grants.await(1)) == "1");
}

/// Nodes whose user lacks these rights.
Fleet nodes_without(const std::vector<std::string>& rights) {
  Fleet fleet({.nodes = 3});
  std::vector<std::string> command{"ACL", "SETUSER", "default"};
  for (const auto& right : rights) command.push_back("-" + right);
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    REQUIRE(fleet.run(node, command) == "OK");
  }
  return fleet;
}

TEST_CASE("where nobody may subscribe, those who wait are served all the same") {
  const Fleet fleet = nodes_without({"subscribe"});
  Grants grants;
  const Client holder = start_client(fleet);
  const Client one = start_client(fleet);
  const Client another = start_client(fleet);
  Lease held = must(holder.lock("polled").acquire());
  for (int i = 0; i < 4; ++i) wait_as(i, i % 2 == 0 ? one : another, grants, "polled");
  // What polls is forgotten soon if it does not ask again.
  REQUIRE(eventually([&] { return entries_on(fleet, 0, "polled") > 0; }));
  must(held.release());
  auto all = grants.await(4);
  std::ranges::sort(all);
  CHECK(in_words(all) == "0 1 2 3");
  CHECK(eventually([&] { return queue_keys(fleet, "polled") == 0; }));
}

TEST_CASE("where the rights to the line are missing, those who wait barge") {
  const Fleet fleet =
      nodes_without({"hello", "subscribe", "publish", "hmget", "zadd", "zrange", "zrank", "zrem"});
  Grants grants;
  const Client holder = start_client(fleet);
  const Client one = start_client(fleet);
  const Client another = start_client(fleet);
  Lease held = must(holder.lock("barged").acquire());
  for (int i = 0; i < 6; ++i) wait_as(i, i % 2 == 0 ? one : another, grants, "barged");
  must(held.release());
  auto all = grants.await(6);
  std::ranges::sort(all);
  CHECK(in_words(all) == "0 1 2 3 4 5");
  CHECK(queue_keys(fleet, "barged") == 0);
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
    ClientOptions options = options_for(fleet.uris());
    options.quarantine = Quarantine::on;
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
