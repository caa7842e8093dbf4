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

struct LostLock : ThreeNodes {
  static Arguments exec(const Arguments& options, const Arguments& command) {
    return exec_a(appended({"--node-timeout", "2s"}, options), command);
  }
};

TEST_CASE_FIXTURE(LostLock, "a command that loses its lease is told to end, then killed; exit 79") {
  Running running(fleet, exec({"--lease", "6s", "--grace", "2s"}, stubborn));
  const ProcessWatch child(printed_pid(running));
  pause_all(fleet);
  const auto finished = exits_with(79, running.wait());
  CHECK(contains(finished.out, "told"));
  CHECK_FALSE(child.is_running());
  check_contains(finished.err, {"can no longer be trusted", "SIGTERM", "killed the command"});
}

TEST_CASE("a stderr that nobody reads does not keep the command alive without its lease") {
  for (const std::string format : {"text", "json"}) {
    CAPTURE(format);
    LostLock nodes;
    // It fills the pipe that redlock writes to as well.
    Running running(nodes.fleet, LostLock::exec({"--lease", "6s", "--grace", "1s", "--log", format},
                                                {"sh", "-c", "echo pid $$; exec yes >&2"}));
    const ProcessWatch child(printed_pid(running));
    REQUIRE(child.is_running());
    pause_all(nodes.fleet);
    CHECK(child.await_end());
    CHECK(running.wait().status == 79);
  }
}

TEST_CASE_FIXTURE(LostLock, "what the command started dies with it when the lease is lost") {
  Running running(fleet, exec({"--lease", "6s", "--grace", "1s"},
                              {"sh", "-c", "sleep 1000 & echo pid $!; trap 'exit 0' TERM; wait"}));
  const ProcessWatch grandchild(printed_pid(running));
  pause_all(fleet);
  CHECK(running.wait().status == 79);
  CHECK(grandchild.await_end());
}

TEST_CASE_FIXTURE(LostLock, "the lease is renewed for as long as the command runs") {
  Running running(fleet, exec({"--lease", "5s"}, {"sh", "-c", "echo ready; sleep 8; echo done"}));
  REQUIRE(running.await_out("ready"));
  CHECK(run({"acquire", "a"}).status == 75);
  const auto finished = exits_with(0, running.wait());
  CHECK(contains(finished.out, "done"));
}

TEST_CASE_FIXTURE(LostLock, "if redlock is killed, so is the command with all that it started") {
  Running running(fleet, exec({}, {"sh", "-c", "sleep 1000 & echo pid $$ and $!; wait"}));
  const ProcessWatch child(printed_pid(running));
  const ProcessWatch grandchild(printed_pid(running, "and"));
  REQUIRE(child.is_running());
  REQUIRE(grandchild.is_running());
  running.signal(SIGKILL);
  CHECK(child.await_end());
  CHECK(grandchild.await_end());
  CHECK(running.wait().status == 128 + SIGKILL);
}

TEST_CASE_FIXTURE(LostLock, "after a pause past the lease the command is killed first of all") {
  Running running(fleet,
                  exec({"--lease", "4s", "--grace", "0"}, {"sh", "-c", "echo pid $$; read line"}));
  REQUIRE(running.await_out("pid"));
  running.signal(SIGSTOP);
  // The nodes free the lock: it is somebody else's before the first goes on.
  CHECK(run({"acquire", "a", "--wait", "forever"}).status == 0);
  running.signal(SIGCONT);
  const auto finished = exits_with(79, running.wait());
  CHECK(contains(finished.err, "killed the command"));
}

TEST_CASE_FIXTURE(OneNode, "a stopped command is continued to handle the signal that ends it") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    CAPTURE(signal);
    Running running(fleet, exec_a({}, {"sh", "-c", "echo pid $$; exec sleep 1000"}));
    const pid_t child = printed_pid(running);
    REQUIRE(::kill(child, SIGSTOP) == 0);
    REQUIRE(eventually([&] { return is_stopped(child); }));
    running.signal(signal);
    CHECK(running.wait().status == 128 + signal);
  }
}

TEST_CASE_FIXTURE(LostLock,
                  "a stopped command is continued to tidy up in its grace; exit 79 as well") {
  Running running(
      fleet, exec({"--lease", "6s", "--grace", "2900ms", "--signal", "USR1"},
                  {"sh", "-c",
                   "trap 'echo tidy; exit 0' USR1; echo pid $$; while :; do sleep 0.05; done"}));
  const pid_t child = printed_pid(running);
  REQUIRE(::kill(child, SIGSTOP) == 0);
  REQUIRE(eventually([&] { return is_stopped(child); }));
  pause_all(fleet);
  const auto finished = exits_with(79, running.wait());
  CHECK(contains(finished.out, "tidy"));
  CHECK(contains(finished.err, "SIGUSR1"));
  CHECK_FALSE(contains(finished.err, "killed the command"));
}

}  // namespace
}  // namespace redlock::testing
