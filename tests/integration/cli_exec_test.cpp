// SPDX-License-Identifier: MIT
// redlock exec: the command runs as it would without redlock, and only while the lock is held.
#include <sched.h>

#include "cli_process.hpp"

namespace redlock::testing {
namespace {

TEST_CASE_FIXTURE(ThreeNodes, "--metrics writes what happened, whole, and leaves nothing else") {
  const TemporaryDirectory directory;
  const auto file = (directory.path() / "job.prom").string();
  const auto finished = exits_with(0, exec({"--metrics", file}, {"cat", file}));
  // At its beginning the command finds the one of before the grant, or one that came later.
  CHECK(contains(finished.out, "# TYPE redlock_attempts_total counter\n"));
  CHECK(contains(text_in(file), "redlock_attempts_total{result=\"granted\"} 1\n"));
  CHECK(contains(text_in(file), "redlock_hold_duration_seconds_count 1\n"));
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);

  for (const auto& [place, sentence] :
       {std::pair{(directory.path() / "none" / "job.prom").string(), "--metrics: cannot write "},
        std::pair{directory.path().string(), " is not a file"}}) {
    const auto refused = exits_with(64, exec({"--metrics", place}, {"true"}));
    CHECK(contains(refused.err, sentence));
  }
  // A pipe in the place of the file that is written beside it is not waited for.
  Running running =
      in_shell(fleet, "mkfifo " + file + ".$$; exec " + command_path() +
                          " exec a --node-timeout 10s --metrics " + file + " -- true");
  REQUIRE(ProcessWatch(running.pid()).await_end());
  CHECK(running.wait().status == 0);
}

TEST_CASE_FIXTURE(ThreeNodes, "the command has the lock while it runs, its name and its token") {
  Running running(fleet, exec_a({}, {"sh", "-c", "echo $REDLOCK_NAME $REDLOCK_TOKEN; read line"}));
  REQUIRE(running.await_out_lines(1));
  // A node that granted it too late, or was not connected, is healed.
  CHECK(eventually([&] { return nodes_with_lock() == 3; }));
  CHECK(running.out().starts_with("a "));
  CHECK(std::stoull(running.out().substr(2)) > 0);
  running.write("go\n");
  const auto finished = exits_with(0, running.wait());
  CHECK(finished.err == "");
  CHECK(eventually([&] { return nodes_with_lock() == 0; }));
}

TEST_CASE_FIXTURE(ThreeNodes, "stdin, stdout and stderr are the command's own") {
  Running running(fleet, exec_a({}, {"sh", "-c", "cat; echo problem >&2"}));
  running.write("one\ntwo\n");
  const auto finished = exits_with(0, running.wait());
  CHECK(finished.out == "one\ntwo\n");
  CHECK(finished.err == "problem\n");
}

TEST_CASE_FIXTURE(ThreeNodes, "the exit status is the command's, or says why it could not run") {
  struct Ending {
    Arguments command;
    int status;
  };
  for (const Ending& ending :
       {Ending{{"true"}, 0}, Ending{{"sh", "-c", "exit 7"}, 7},
        Ending{{"sh", "-c", "exit 255"}, 255}, Ending{{"sh", "-c", "kill -TERM $$"}, 128 + SIGTERM},
        Ending{{"sh", "-c", "kill -KILL $$"}, 128 + SIGKILL}, Ending{{"/nowhere/command"}, 127},
        Ending{{"no-such-command-in-path"}, 127}, Ending{{"/etc/passwd"}, 126}}) {
    CAPTURE(ending.command);
    const auto finished = exits_with(ending.status, exec({}, ending.command));
    const bool has_run = ending.status != 126 && ending.status != 127;
    CHECK(contains(finished.err, ending.command[0]) != has_run);
  }
  CHECK(eventually([&] { return nodes_with_lock() == 0; }));
}

TEST_CASE_FIXTURE(ThreeNodes, "signals that redlock gets go on to the command") {
  for (const auto& [number, name] :
       {std::pair{SIGINT, "INT"}, std::pair{SIGTERM, "TERM"}, std::pair{SIGHUP, "HUP"},
        std::pair{SIGQUIT, "QUIT"}, std::pair{SIGUSR1, "USR1"}, std::pair{SIGUSR2, "USR2"},
        std::pair{SIGWINCH, "WINCH"}}) {
    Running running(fleet, exec_a({}, {"sh", "-c",
                                       fmt::format("trap 'echo got; exit 5' {}; echo ready; "
                                                   "while :; do sleep 0.01; done",
                                                   name)}));
    REQUIRE(running.await_out("ready\n"));
    running.signal(number);
    const auto finished = running.wait();
    CHECK(finished.out == "ready\ngot\n");
    CHECK(finished.status == 5);
  }
}

TEST_CASE_FIXTURE(OneNode, "a command that signals its group at once is not waited for in vain") {
  // On one processor the command often runs before the guard beside it, which is in the same group.
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  for (int i = 0; i < 30; ++i) {
    CHECK(exec({}, {"sh", "-c", "trap '' TTIN; kill -TTIN 0; exit 7"}).status == 7);
  }
  sched_setaffinity(0, sizeof before, &before);
}

TEST_CASE_FIXTURE(OneNode, "the command starts with the signals that redlock was started with") {
  // Fields of /proc/self/status as masks; the shell itself blocks and ignores nothing.
  const auto finished = exec({}, {"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"});
  CHECK(finished.out == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  // One that was ignored stays ignored.
  Running running =
      in_shell(fleet, "trap '' HUP; exec " + command_path() + " exec a --node-timeout 10s -- " +
                          R"(sh -c 'grep SigIgn /proc/self/status; read line; echo "$line"')");
  REQUIRE(running.await_out("0000000000000001"));
  running.signal(SIGHUP);
  running.write("still here\n");
  const auto ignored = exits_with(0, running.wait());
  CHECK(contains(ignored.out, "still here"));
}

TEST_CASE_FIXTURE(OneNode, "the command has a process group of its own") {
  Running running(fleet, exec_a({}, {"sh", "-c", "echo pid $$; read line"}));
  const pid_t child = printed_pid(running);
  CHECK(::getpgid(child) == child);
  CHECK(::getpgid(running.pid()) != child);
}

TEST_CASE_FIXTURE(ThreeNodes, "a bounded wait that ends exits 75, or what -E says") {
  const Holder holder(fleet);
  const auto at_once = exits_with(75, exec({"--wait", "0"}, {"echo", "no"}));
  CHECK(at_once.out.empty());
  CHECK_FALSE(contains(at_once.err, "waiting"));
  // The second time for as long as a slow machine needs for the nodes' answers.
  const auto status_after_wait = [&](const Arguments& options) {
    const int status = exec(appended(options, {"--wait", "200ms"}), {"echo", "no"}).status;
    if (status != 69) return status;
    return exec(appended(options, {"--wait", "10s"}), {"echo", "no"}).status;
  };
  CHECK(status_after_wait({}) == 75);
  CHECK(exec({"--wait", "0", "-E", "3"}, {"echo", "no"}).status == 3);
  CHECK(status_after_wait({"-E", "0"}) == 0);
}

TEST_CASE_FIXTURE(ThreeNodes, "--quiet is silent where another has the lock, and nowhere else") {
  const Holder holder(fleet);
  for (const auto* wait : {"0", "2s"}) {
    const auto refused = exits_with(75, exec({"--quiet", "--wait", wait}, {"echo", "no"}));
    CHECK(refused.err == "");
    CHECK(exec({"-q", "-E", "0", "--wait", wait}, {"echo", "no"}).err == "");
  }
  const auto without_nodes =
      exec({"-q", "--wait", "0"}, {"true"}, {{"REDLOCK_NODES", "redis://127.0.0.1:1"}});
  CHECK(contains(without_nodes.err, "no quorum"));
}

TEST_CASE_FIXTURE(ThreeNodes, "a signal amid a wait for the lock releases all and exits 128 + N") {
  Holder holder(fleet);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    Running waiting(fleet, exec_a({}, {"echo", "no"}));
    REQUIRE(waiting.await_err("waiting"));
    waiting.signal(signal);
    const auto finished = exits_with(128 + signal, waiting.wait());
    CHECK(finished.out.empty());
  }
  holder.let_go();
  CHECK(eventually([&] { return nodes_with_lock() == 0; }));
}

TEST_CASE_FIXTURE(Nodes<5>, "a minority of dead or hung nodes is not noticed, at the end either") {
  fleet.kill(0);
  fleet.pause(1);
  // Waiting for the hung nodes would take longer than this test may.
  const Arguments for_long{"--node-timeout", "10m"};
  Holder holder(fleet, for_long);
  fleet.pause(2);
  // One of those that granted it hangs now instead.
  fleet.resume(1);
  holder.write("go\n");
  const auto finished = exits_with(0, holder.wait());
  CHECK(finished.err == "");
  // What was owed to the hung node had left when the command ended.
  fleet.resume(2);
  CHECK(eventually([&] { return nodes_with_lock() == 0; }));

  fleet.pause(2);
  const auto acquired = exits_with(0, run(appended({"acquire", "a"}, for_long)));
  const auto owner = field(acquired.out, "owner");
  // It waits for the hung node, which may have the lock, but not for ever.
  CHECK(run({"release", "a", "--owner", owner, "--node-timeout", "2s"}).status == 0);
}

TEST_CASE("a password is in no list of processes, no environment of the command and no output") {
  const Fleet fleet({.nodes = 3, .password = "s3cret-word"});
  const auto list = variables_of(fleet)["REDLOCK_NODES"];
  REQUIRE(contains(list, "s3cret-word"));
  const TemporaryDirectory place;
  const auto file = (place.path() / "nodes").string();
  std::ofstream(file) << "# all of them\n"
                      << fleet.uri(0) << "\n  " << fleet.uri(1) << "  \n\n"
                      << fleet.uri(2) << "\n";
  struct Way {
    Arguments options;
    Variables variables;
  };
  for (const Way& way : {Way{{"--nodes", list}, {}}, Way{{"--nodes=" + list}, {}},
                         Way{{"--nodes-file", file}, {}}, Way{{}, {{"REDLOCK_NODES", list}}}}) {
    CAPTURE(way.options);
    Variables variables = way.variables;
    variables.emplace("REDLOCK_QUARANTINE", "off");
    Running running(patient(exec_a(way.options, {"sh", "-c", "env; echo ready; read line"})),
                    variables);
    REQUIRE(running.await_out("ready"));
    const auto process = "/proc/" + std::to_string(running.pid());
    const auto arguments = text_in(process + "/cmdline");
    CHECK(contains(arguments, "exec"));
    CHECK_FALSE(contains(arguments, "s3cret-word"));
    CHECK_FALSE(contains(text_in(process + "/environ"), "s3cret-word"));
    // The guard beside it, too, as soon as it has its name.
    CHECK(eventually([] {
      std::size_t guards = 0;
      for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        if (text_in(entry.path() / "comm") != "redlock-guard\n") continue;
        ++guards;
        CHECK_FALSE(contains(text_in(entry.path() / "cmdline"), "s3cret-word"));
      }
      return guards >= 1;
    }));
    running.write("go\n");
    const auto finished = exits_with(0, running.wait());
    CHECK_FALSE(contains(finished.out, "s3cret-word"));
    CHECK_FALSE(contains(finished.out, "REDLOCK_NODES"));
    CHECK_FALSE(contains(finished.err, "s3cret-word"));
  }
}

TEST_CASE_FIXTURE(OneNode, "nodes without a password stay in the command's environment") {
  CHECK(exec({}, {"sh", "-c", "echo $REDLOCK_NODES"}).out == fleet.uri(0) + "\n");
}

TEST_CASE("a wrong password on every node exits 78, even when waiting for ever") {
  const Fleet fleet({.nodes = 3, .password = "right"});
  const auto refused = [&fleet](const Arguments& arguments, int status = 78) {
    CAPTURE(arguments);
    const auto finished = exits_with(
        status, redlock(patient(arguments), nodes_variable(uris_as(":wr0ng-word", fleet))));
    CHECK_FALSE(contains(finished.out + finished.err, "wr0ng-word"));
    return finished;
  };
  for (const auto* wait : {"forever", "0", "1h"}) {
    const auto finished = refused(exec_a({"--wait", wait}, {"echo", "no"}));
    CHECK(finished.out.empty());
    // Two nodes that refuse decide it; the third may not have answered yet.
    CHECK(contains(finished.err, "WRONGPASS"));
  }
  refused({"acquire", "a"});
  for (const Arguments& look : looks) refused(look, look.front() == "doctor" ? 2 : 78);
  const auto release = refused({"release", "a", "--owner", "0123456789abcdef0123456789abcdef"});
  CHECK(release.out == "unknown\n");
  CHECK(contains(release.err, "WRONGPASS"));
  const auto doctor = unwrapped(refused({"doctor"}, 2).out);
  check_contains(doctor, {"refuses the user or password", "correct the URI or the password file"});
}

/// The cookbook's line for the crontab, with another list of nodes and another job.
std::string crontab_line(const std::string& nodes_file, const std::string& job) {
  std::istringstream page(text_in(REDLOCK_SOURCE_DIR "/docs/cookbook.md"));
  std::string line;
  while (std::getline(page, line) && !line.starts_with("0 3 * * *")) {
  }
  const std::string list = "/etc/redlock/nodes";
  const std::string begin = "redlock exec ";
  const auto command = line.find(begin);
  REQUIRE(command != std::string::npos);
  line = line.substr(command + begin.size());
  REQUIRE(contains(line, list));
  line.replace(line.find(list), list.size(), nodes_file);
  // A busy machine must not look like a node that is gone.
  return "exec " + command_path() + " exec --node-timeout 10s " +
         line.substr(0, line.find("-- ") + 3) + job;
}

TEST_CASE_FIXTURE(ThreeNodes, "the cookbook's line for cron runs a job once on many machines") {
  const TemporaryDirectory place;
  const auto file = (place.path() / "nodes").string();
  const auto done = (place.path() / "done").string();
  std::ofstream list(file);
  for (const auto& uri : fleet.uris()) list << uri << "\n";
  list.close();
  const auto line = crontab_line(file, "sh -c 'echo done >>" + done + "; exit 7'");
  const Variables variables{{"REDLOCK_QUARANTINE", "off"}};
  Running first({"-c", line}, variables, "/bin/sh");
  REQUIRE(eventually([&] { return text_in(done) == "done\n"; }));
  // Late: the job is over.
  const auto late = exits_with(0, Running({"-c", line}, variables, "/bin/sh").wait());
  CHECK(late.err == "");
  CHECK(nodes_with_lock("nightly") >= 2);
  first.signal(SIGTERM);
  const auto finished = exits_with(7, first.wait());
  CHECK(finished.err == "");
  CHECK(text_in(done) == "done\n");
  CHECK(eventually([&] { return nodes_with_lock("nightly") == 0; }));
}

TEST_CASE_FIXTURE(ThreeNodes, "--hold-for ends with the lease, or a command that took longer") {
  CHECK(exec({"--hold-for", "1ms"}, {"sleep", "0.1"}).status == 0);
  Running running(fleet, exec_a({"--hold-for", "1h"}, {"sh", "-c", "echo ran; exit 3"}));
  REQUIRE(running.await_out("ran"));
  REQUIRE(run({"release", "a", "--force"}).status == 0);
  running.close_stdin();
  REQUIRE(ProcessWatch(running.pid()).await_end());
  const int status = running.wait().status;
  // The command may have been told to end before it had.
  CHECK((status == 3 || status == 79));
}

TEST_CASE_FIXTURE(ThreeNodes, "a release that no quorum confirmed is told, whatever the status") {
  Running running(fleet, exec_a({}, {"sh", "-c", "echo held; read line; exit 79"}));
  REQUIRE(running.await_out("held"));
  for (const std::size_t node : {0U, 1U}) fleet.pause(node);
  running.close_stdin();
  const auto ended = exits_with(79, running.wait());
  CHECK_MESSAGE(contains(ended.err, "giving back a: "), ended.err);
}

}  // namespace
}  // namespace redlock::testing
