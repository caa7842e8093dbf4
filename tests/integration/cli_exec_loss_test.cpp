// SPDX-License-Identifier: MIT
// redlock exec when the lock is lost, and when redlock itself is killed or stopped: the command
// must not go on without its lock. The leases are long enough for a machine that is busy with
// something else; shorter ones were lost before the test began.
#include "cli_process.hpp"

namespace redlock::testing {
namespace {

/// A command that prints its process, says when it is told to end, and goes on all the same.
const Arguments stubborn{"sh", "-c",
                         "trap 'echo told' TERM; echo pid $$; while :; do sleep 0.05; done"};

Arguments exec(const Arguments& options, const Arguments& cmd) {
  Arguments all{"exec", "a", "--node-timeout", "2s"};
  all.insert(all.end(), options.begin(), options.end());
  all.emplace_back("--");
  all.insert(all.end(), cmd.begin(), cmd.end());
  return all;
}

pid_t number_after(const std::string& text, const std::string& word) {
  const auto at = text.find(word + " ");
  REQUIRE(at != std::string::npos);
  return static_cast<pid_t>(std::stol(text.substr(at + word.size() + 1)));
}

void pause_all(Fleet& fleet) {
  for (std::size_t i = 0; i < fleet.size(); ++i) fleet.pause(i);
}

TEST_CASE("a command whose lease cannot be renewed is told to end, then killed; exit 79") {
  Fleet fleet({.nodes = 3});
  Running running(exec({"--lease", "6s", "--grace", "2s"}, stubborn), nodes_variable(fleet.uris()));
  REQUIRE(running.await_out("pid"));
  REQUIRE(running.await_out("\n"));
  const ProcessWatch child(number_after(running.out(), "pid"));
  pause_all(fleet);
  const auto finished = running.wait();
  CHECK(finished.status == 79);
  CHECK(contains(finished.out, "told"));
  CHECK_FALSE(child.is_running());
  CHECK(contains(finished.err, "can no longer be trusted"));
  CHECK(contains(finished.err, "SIGTERM"));
  CHECK(contains(finished.err, "killed the command"));
}

TEST_CASE(
    "a command that ends in its time of grace is not killed, and redlock exits 79 all the same") {
  Fleet fleet({.nodes = 3});
  Running running(
      exec({"--lease", "6s", "--grace", "2900ms", "--signal", "USR1"},
           {"sh", "-c", "trap 'echo tidy; exit 0' USR1; echo ready; while :; do sleep 0.05; done"}),
      nodes_variable(fleet.uris()));
  REQUIRE(running.await_out("ready"));
  pause_all(fleet);
  const auto finished = running.wait();
  CHECK(finished.status == 79);
  CHECK(contains(finished.out, "tidy"));
  CHECK(contains(finished.err, "SIGUSR1"));
  CHECK_FALSE(contains(finished.err, "killed the command"));
}

TEST_CASE("a stderr that nobody reads does not keep the command alive without its lease") {
  for (const std::string format : {"text", "json"}) {
    CAPTURE(format);
    Fleet fleet({.nodes = 3});
    // It fills the pipe that redlock writes to as well.
    Running running(exec({"--lease", "6s", "--grace", "1s", "--log", format},
                         {"sh", "-c", "echo pid $$; exec yes >&2"}),
                    nodes_variable(fleet.uris()));
    REQUIRE(running.await_out("pid"));
    REQUIRE(running.await_out("\n"));
    const ProcessWatch child(number_after(running.out(), "pid"));
    REQUIRE(child.is_running());
    pause_all(fleet);
    CHECK(child.await_end());
    CHECK(running.wait().status == 79);
  }
}

TEST_CASE("what the command started dies with it when the lease is lost") {
  Fleet fleet({.nodes = 3});
  Running running(exec({"--lease", "6s", "--grace", "1s"},
                       {"sh", "-c", "sleep 1000 & echo pid $!; trap 'exit 0' TERM; wait"}),
                  nodes_variable(fleet.uris()));
  REQUIRE(running.await_out("pid"));
  REQUIRE(running.await_out("\n"));
  const ProcessWatch grandchild(number_after(running.out(), "pid"));
  pause_all(fleet);
  CHECK(running.wait().status == 79);
  CHECK(grandchild.await_end());
}

TEST_CASE("a lock that somebody deleted on a quorum of nodes ends the command") {
  Fleet fleet({.nodes = 3});
  Running running(exec({"--lease", "6s", "--grace", "0"}, stubborn), nodes_variable(fleet.uris()));
  REQUIRE(running.await_out("pid"));
  for (std::size_t i = 0; i < 3; ++i) {
    // In one step: between two the watchdog could heal the node.
    fleet.run(i,
              {"EVAL", "redis.call('DEL', KEYS[1]) return redis.call('HSET', KEYS[1], ARGV[1], 1)",
               "1", "redlock:lock:{a}", std::string(32, 'e')});
  }
  const auto finished = running.wait();
  CHECK(finished.status == 79);
  // The other owner's lock is not touched.
  CHECK(fleet.run(0, {"HGETALL", "redlock:lock:{a}"}) == std::string(32, 'e') + "\n1");
}

TEST_CASE("the lease is renewed for as long as the command runs") {
  Fleet fleet({.nodes = 3});
  Running running(exec({"--lease", "5s"}, {"sh", "-c", "echo ready; sleep 8; echo done"}),
                  nodes_variable(fleet.uris()));
  REQUIRE(running.await_out("ready"));
  CHECK(redlock({"acquire", "a", "--node-timeout", "10s"}, nodes_variable(fleet.uris())).status ==
        75);
  const auto finished = running.wait();
  CHECK(finished.status == 0);
  CHECK(contains(finished.out, "done"));
}

TEST_CASE("if redlock is killed, so is the command with all that it started") {
  Fleet fleet({.nodes = 3});
  Running running(exec({}, {"sh", "-c", "sleep 1000 & echo pid $$ and $!; wait"}),
                  nodes_variable(fleet.uris()));
  REQUIRE(running.await_out("and"));
  REQUIRE(running.await_out("\n"));
  const ProcessWatch child(number_after(running.out(), "pid"));
  const ProcessWatch grandchild(number_after(running.out(), "and"));
  REQUIRE(child.is_running());
  REQUIRE(grandchild.is_running());
  running.signal(SIGKILL);
  CHECK(child.await_end());
  CHECK(grandchild.await_end());
  CHECK(running.wait().status == 128 + SIGKILL);
}

TEST_CASE("after a pause past the lease the command is killed before anything else happens") {
  Fleet fleet({.nodes = 3});
  Running running(exec({"--lease", "4s", "--grace", "0"}, {"sh", "-c", "echo pid $$; read line"}),
                  nodes_variable(fleet.uris()));
  REQUIRE(running.await_out("pid"));
  running.signal(SIGSTOP);
  // The nodes free the lock: it is somebody else's before the first goes on.
  const auto other = redlock({"acquire", "a", "--wait", "forever", "--node-timeout", "10s"},
                             nodes_variable(fleet.uris()));
  CHECK(other.status == 0);
  running.signal(SIGCONT);
  const auto finished = running.wait();
  CHECK(finished.status == 79);
  CHECK(contains(finished.err, "killed the command"));
}

/// The third field; the second, the name in parentheses, has no blank in this test.
char state_of(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string pid;
  std::string name;
  char state = '?';
  stat >> pid >> name >> state;
  return state;
}

TEST_CASE("a stopped command is continued to handle the signal that ends it") {
  const Fleet fleet({.nodes = 1});
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    CAPTURE(signal);
    Running running(
        {"exec", "a", "--node-timeout", "10s", "--", "sh", "-c", "echo $$; exec sleep 1000"},
        nodes_variable(fleet.uris()));
    REQUIRE(running.await_out("\n"));
    const auto child = static_cast<pid_t>(std::stol(running.out()));
    REQUIRE(::kill(child, SIGSTOP) == 0);
    REQUIRE(eventually([&] { return state_of(child) == 'T'; }));
    running.signal(signal);
    CHECK(running.wait().status == 128 + signal);
  }
}

}  // namespace
}  // namespace redlock::testing
