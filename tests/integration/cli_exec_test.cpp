// SPDX-License-Identifier: MIT
// redlock exec: the command runs as it would without redlock, and only while the lock is held.
#include <sched.h>

#include "cli_process.hpp"
#include "support/stub_server.hpp"

namespace redlock::testing {
namespace {

struct Nodes {
  explicit Nodes(std::size_t count) : fleet({.nodes = count}) {}

  /// redlock exec NAME OPTIONS... -- CMD..., ready to be started.
  static Arguments exec(const std::string& name, const Arguments& options, const Arguments& cmd) {
    // A busy machine must not look like a node that is gone.
    Arguments all{"exec", name, "--node-timeout", "10s"};
    all.insert(all.end(), options.begin(), options.end());
    all.emplace_back("--");
    all.insert(all.end(), cmd.begin(), cmd.end());
    return all;
  }
  Finished run(const Arguments& options, const Arguments& cmd, Variables variables = {}) const {
    variables.merge(nodes_variable(fleet.uris()));
    return redlock(exec("a", options, cmd), variables);
  }
  Finished shell(const std::string& script) const { return run({}, {"sh", "-c", script}); }
  std::size_t nodes_with_lock(const std::string& name = "a") const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < fleet.size(); ++i) {
      if (fleet.state(i) != cluster::NodeState::running) continue;
      if (fleet.run(i, {"EXISTS", "redlock:lock:{" + name + "}"}) != "0") ++count;
    }
    return count;
  }

  Fleet fleet;
};

TEST_CASE("--metrics writes what happened, whole, and leaves nothing else") {
  const Nodes nodes(3);
  const TemporaryDirectory directory;
  const auto file = directory.path() / "job.prom";
  const auto finished = nodes.run({"--metrics", file.string()}, {"cat", file.string()});
  CHECK(finished.status == 0);
  // At its beginning the command finds the one of before the grant, or one that came later.
  CHECK(finished.out.find("# TYPE redlock_attempts_total counter\n") != std::string::npos);
  const std::string text = text_in(file);
  CHECK(text.find("redlock_attempts_total{result=\"granted\"} 1\n") != std::string::npos);
  CHECK(text.find("redlock_hold_duration_seconds_count 1\n") != std::string::npos);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    ++files;
  }
  CHECK(files == 1);

  const auto refused =
      nodes.run({"--metrics", (directory.path() / "none" / "job.prom").string()}, {"true"});
  CHECK(refused.status == 64);
  CHECK(refused.err.find("--metrics: cannot write ") != std::string::npos);
  // A pipe in the place of the file that is written beside it is not waited for.
  Running running({"-c", "mkfifo " + file.string() + ".$$; exec " + command_path() +
                             " exec a --node-timeout 10s --metrics " + file.string() + " -- true"},
                  nodes_variable(nodes.fleet.uris()), "/bin/sh");
  REQUIRE(ProcessWatch(running.pid()).await_end());
  CHECK(running.wait().status == 0);
  const auto directory_given = nodes.run({"--metrics", directory.path().string()}, {"true"});
  CHECK(directory_given.status == 64);
  CHECK(directory_given.err.find(" is not a file") != std::string::npos);
}

TEST_CASE("the command has the lock, its name and its token while it runs, and not after") {
  const Nodes nodes(3);
  Running running(
      Nodes::exec("a", {}, {"sh", "-c", "echo $REDLOCK_NAME $REDLOCK_TOKEN; read line"}),
      nodes_variable(nodes.fleet.uris()));
  REQUIRE(running.await_out("\n"));
  // A node that granted it too late, or was not connected, is healed.
  CHECK(eventually([&] { return nodes.nodes_with_lock() == 3; }));
  CHECK(running.out().starts_with("a "));
  CHECK(std::stoull(running.out().substr(2)) > 0);
  running.write("go\n");
  const auto finished = running.wait();
  CHECK(finished.status == 0);
  CHECK(finished.err == "");
  CHECK(eventually([&] { return nodes.nodes_with_lock() == 0; }));
}

TEST_CASE("stdin, stdout and stderr are the command's own") {
  const Nodes nodes(3);
  Running running(Nodes::exec("a", {}, {"sh", "-c", "cat; echo problem >&2"}),
                  nodes_variable(nodes.fleet.uris()));
  running.write("one\ntwo\n");
  const auto finished = running.wait();
  CHECK(finished.status == 0);
  CHECK(finished.out == "one\ntwo\n");
  CHECK(finished.err == "problem\n");
}

TEST_CASE("the exit status is the command's, 128 + N if a signal ended it") {
  const Nodes nodes(3);
  CHECK(nodes.shell("exit 0").status == 0);
  CHECK(nodes.shell("exit 7").status == 7);
  CHECK(nodes.shell("exit 255").status == 255);
  CHECK(nodes.shell("kill -TERM $$").status == 128 + SIGTERM);
  CHECK(nodes.shell("kill -KILL $$").status == 128 + SIGKILL);
}

TEST_CASE(
    "a command that is not there exits 127, one that cannot be run 126; the lock is given back") {
  const Nodes nodes(3);
  const auto missing = nodes.run({}, {"/nowhere/command"});
  CHECK(missing.status == 127);
  CHECK(contains(missing.err, "/nowhere/command"));
  const auto forbidden = nodes.run({}, {"/etc/passwd"});
  CHECK(forbidden.status == 126);
  CHECK(contains(forbidden.err, "/etc/passwd"));
  CHECK(nodes.run({}, {"no-such-command-in-path"}).status == 127);
  CHECK(eventually([&] { return nodes.nodes_with_lock() == 0; }));
}

TEST_CASE("signals that redlock gets go on to the command") {
  const Nodes nodes(3);
  struct Signal {
    int number;
    std::string name;
  };
  for (const Signal& signal :
       {Signal{SIGINT, "INT"}, Signal{SIGTERM, "TERM"}, Signal{SIGHUP, "HUP"},
        Signal{SIGQUIT, "QUIT"}, Signal{SIGUSR1, "USR1"}, Signal{SIGUSR2, "USR2"},
        Signal{SIGWINCH, "WINCH"}}) {
    CAPTURE(signal.name);
    Running running(Nodes::exec("a", {},
                                {"sh", "-c",
                                 "trap 'echo got; exit 5' " + signal.name +
                                     "; echo ready; while :; do sleep 0.01; done"}),
                    nodes_variable(nodes.fleet.uris()));
    REQUIRE(running.await_out("ready\n"));
    running.signal(signal.number);
    const auto finished = running.wait();
    CHECK(finished.out == "ready\ngot\n");
    CHECK(finished.status == 5);
  }
}

TEST_CASE("a command that signals its own group at once is not waited for in vain") {
  // On one processor the command often runs before the guard beside it, which is in the same group.
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  const Nodes nodes(1);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  for (int i = 0; i < 30; ++i) {
    CHECK(nodes.run({}, {"sh", "-c", "trap '' TTIN; kill -TTIN 0; exit 7"}).status == 7);
  }
  sched_setaffinity(0, sizeof before, &before);
}

TEST_CASE("the command starts with the signals that redlock was started with") {
  const Nodes nodes(1);
  // Fields of /proc/self/status as masks; the shell itself blocks and ignores nothing.
  const auto finished = nodes.run({}, {"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"});
  CHECK(finished.status == 0);
  std::istringstream lines(finished.out);
  for (std::string name, mask; lines >> name >> mask;) {
    CAPTURE(name);
    CHECK(mask == "0000000000000000");
  }
}

TEST_CASE("a signal that was ignored when redlock was started stays ignored") {
  const Nodes nodes(1);
  std::string script = "trap '' HUP; exec " + command_path();
  for (const auto& part : Nodes::exec("a", {}, {})) script += " " + part;
  Running running(
      {"-c", script + R"( sh -c 'grep SigIgn /proc/self/status; read line; echo "$line"')"},
      nodes_variable(nodes.fleet.uris()), "/bin/sh");
  REQUIRE(running.await_out("0000000000000001"));
  running.signal(SIGHUP);
  running.write("still here\n");
  const auto finished = running.wait();
  CHECK(finished.status == 0);
  CHECK(contains(finished.out, "still here"));
}

TEST_CASE("the command has a process group of its own") {
  const Nodes nodes(1);
  Running running(Nodes::exec("a", {}, {"sh", "-c", "echo $$; read line"}),
                  nodes_variable(nodes.fleet.uris()));
  REQUIRE(running.await_out("\n"));
  const auto child = static_cast<pid_t>(std::stol(running.out()));
  CHECK(::getpgid(child) == child);
  CHECK(::getpgid(running.pid()) != child);
}

TEST_CASE("while somebody else holds the lock, exec says what it waits for") {
  const Nodes nodes(3);
  const auto variables = nodes_variable(nodes.fleet.uris());
  Running first(Nodes::exec("a", {}, {"sh", "-c", "echo first; read line"}), variables);
  REQUIRE(first.await_out("first"));
  Running second(Nodes::exec("a", {}, {"echo", "second"}), variables);
  REQUIRE(second.await_err("for a, next in line (held by "));
  CHECK(second.out().empty());
  first.write("go\n");
  CHECK(first.wait().status == 0);
  const auto finished = second.wait();
  CHECK(finished.status == 0);
  CHECK(finished.out == "second\n");
  // Again only after seconds.
  CHECK(occurrences(finished.err, "waiting") == occurrences(finished.err, "\n"));
}

TEST_CASE("a bounded wait that ends exits 75, or what -E says") {
  const Nodes nodes(3);
  const auto variables = nodes_variable(nodes.fleet.uris());
  Running holder(Nodes::exec("a", {}, {"sh", "-c", "echo held; read line"}), variables);
  REQUIRE(holder.await_out("held"));
  const auto at_once = nodes.run({"--wait", "0"}, {"echo", "no"});
  CHECK(at_once.status == 75);
  CHECK(at_once.out.empty());
  CHECK_FALSE(contains(at_once.err, "waiting"));
  // The second time for as long as a slow machine needs for the nodes' answers.
  const auto status_after_wait = [&](Arguments options) {
    options.insert(options.end(), {"--wait", "200ms"});
    const int status = nodes.run(options, {"echo", "no"}).status;
    if (status != 69) return status;
    options.back() = "10s";
    return nodes.run(options, {"echo", "no"}).status;
  };
  CHECK(status_after_wait({}) == 75);
  CHECK(nodes.run({"--wait", "0", "-E", "3"}, {"echo", "no"}).status == 3);
  CHECK(status_after_wait({"-E", "0"}) == 0);
}

TEST_CASE("without a quorum a bounded wait exits 69, and -E does not replace it") {
  Nodes nodes(3);
  nodes.fleet.kill(0);
  nodes.fleet.kill(1);
  const auto finished = redlock(
      {"exec", "a", "--node-timeout", "500ms", "--wait", "0", "-E", "3", "--", "echo", "no"},
      nodes_variable(nodes.fleet.uris()));
  CHECK(finished.status == 69);
  CHECK(finished.out.empty());
  CHECK(contains(finished.err, nodes.fleet.uri(0)));
  const auto waited =
      redlock({"exec", "a", "--node-timeout", "500ms", "--wait", "300ms", "--", "echo", "no"},
              nodes_variable(nodes.fleet.uris()));
  CHECK(waited.status == 69);
  CHECK(contains(waited.err, "no quorum"));
}

TEST_CASE("a wait without end goes on while nodes are gone, and ends when they are back") {
  Nodes nodes(3);
  nodes.fleet.kill(0);
  nodes.fleet.kill(1);
  Running running(Nodes::exec("a", {}, {"echo", "done"}), nodes_variable(nodes.fleet.uris()));
  REQUIRE(running.await_err("for a (no quorum of nodes: " + nodes.fleet.uri(0)));
  nodes.fleet.restart(0);
  const auto finished = running.wait();
  CHECK(finished.status == 0);
  CHECK(finished.out == "done\n");
}

TEST_CASE("a signal while waiting for the lock releases everything and exits 128 + N") {
  const Nodes nodes(3);
  const auto variables = nodes_variable(nodes.fleet.uris());
  Running holder(Nodes::exec("a", {}, {"sh", "-c", "echo held; read line"}), variables);
  REQUIRE(holder.await_out("held"));
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    Running waiting(Nodes::exec("a", {}, {"echo", "no"}), variables);
    REQUIRE(waiting.await_err("waiting"));
    waiting.signal(signal);
    const auto finished = waiting.wait();
    CHECK(finished.status == 128 + signal);
    CHECK(finished.out.empty());
  }
  holder.write("go\n");
  CHECK(holder.wait().status == 0);
  CHECK(eventually([&] { return nodes.nodes_with_lock() == 0; }));
}

TEST_CASE("a minority of dead or hung nodes is not noticed, at the end either") {
  Nodes nodes(5);
  nodes.fleet.kill(0);
  nodes.fleet.pause(1);
  const auto variables = nodes_variable(nodes.fleet.uris());
  // Waiting for the hung nodes would take longer than this test may.
  Running running({"exec", "a", "--node-timeout", "10m", "--", "sh", "-c", "echo ready; read line"},
                  variables);
  REQUIRE(running.await_out("ready"));
  nodes.fleet.pause(2);
  // One of those that granted it hangs now instead.
  nodes.fleet.resume(1);
  running.write("go\n");
  const auto finished = running.wait();
  CHECK(finished.status == 0);
  CHECK(finished.err == "");
  // What was owed to the hung node had left when the command ended.
  nodes.fleet.resume(2);
  CHECK(eventually([&] { return nodes.nodes_with_lock() == 0; }));

  nodes.fleet.pause(2);
  const auto acquired = redlock({"acquire", "a", "--node-timeout", "10m"}, variables);
  CHECK(acquired.status == 0);
  // It waits for the hung node, which may have the lock, but not for ever.
  CHECK(redlock({"release", "a", "--owner", field(acquired.out, "owner"), "--node-timeout", "2s"},
                variables)
            .status == 0);
}

TEST_CASE("a password is in no list of processes, no environment of the command and no output") {
  const Fleet fleet({.nodes = 3, .password = "s3cret-word"});
  std::string list;
  for (const auto& uri : fleet.uris()) list += (list.empty() ? "" : ",") + uri;
  const TemporaryDirectory place;
  const auto file = (place.path() / "nodes").string();
  std::ofstream(file) << "# all of them\n"
                      << fleet.uri(0) << "\n  " << fleet.uri(1) << "  \n\n"
                      << fleet.uri(2) << "\n";
  REQUIRE(contains(list, "s3cret-word"));
  struct Way {
    Arguments options;
    Variables variables;
  };
  for (const Way& way : {Way{{"--nodes", list}, {}}, Way{{"--nodes=" + list}, {}},
                         Way{{"--nodes-file", file}, {}}, Way{{}, {{"REDLOCK_NODES", list}}}}) {
    CAPTURE(way.options);
    Variables variables = way.variables;
    variables.emplace("REDLOCK_QUARANTINE", "off");
    Running running(Nodes::exec("a", way.options, {"sh", "-c", "env; echo ready; read line"}),
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
    const auto finished = running.wait();
    CHECK(finished.status == 0);
    CHECK_FALSE(contains(finished.out, "s3cret-word"));
    CHECK_FALSE(contains(finished.out, "REDLOCK_NODES"));
    CHECK_FALSE(contains(finished.err, "s3cret-word"));
  }
}

TEST_CASE("nodes without a password stay in the command's environment") {
  const Nodes nodes(1);
  const auto finished = nodes.shell("echo $REDLOCK_NODES");
  CHECK(finished.out == nodes.fleet.uri(0) + "\n");
}

TEST_CASE("a wrong password on every node exits 78, even when waiting for ever") {
  const Fleet fleet({.nodes = 3, .password = "right"});
  std::vector<std::string> uris;
  for (std::size_t i = 0; i < 3; ++i) {
    uris.push_back("redis://:wr0ng-word@127.0.0.1:" + std::to_string(fleet.port(i)));
  }
  for (const auto* wait : {"forever", "0", "1h"}) {
    CAPTURE(wait);
    const auto finished =
        redlock(Nodes::exec("a", {"--wait", wait}, {"echo", "no"}), nodes_variable(uris));
    CAPTURE(finished.err);
    CHECK(finished.status == 78);
    CHECK(finished.out.empty());
    // Two nodes that refuse decide it; the third may not have answered yet.
    CHECK(contains(finished.err, "WRONGPASS"));
    CHECK_FALSE(contains(finished.err, "wr0ng-word"));
  }
  const auto patiently = [&](Arguments arguments) {
    arguments.insert(arguments.end(), {"--node-timeout", "10s"});
    return redlock(arguments, nodes_variable(uris));
  };
  for (const auto* subcommand : {"acquire", "status"}) {
    CHECK(patiently({subcommand, "a"}).status == 78);
  }
  const auto release = patiently({"release", "a", "--owner", "0123456789abcdef0123456789abcdef"});
  CHECK(release.status == 78);
  CHECK(release.out == "unknown\n");
  CHECK(contains(release.err, "WRONGPASS"));
  CHECK(patiently({"list"}).status == 78);
  CHECK(patiently({"adopt"}).status == 78);
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

TEST_CASE("the cookbook's line for cron runs a short job once on ten machines, silently") {
  const Nodes nodes(3);
  const TemporaryDirectory place;
  const auto file = (place.path() / "nodes").string();
  const auto done = (place.path() / "done").string();
  std::ofstream list(file);
  for (const auto& uri : nodes.fleet.uris()) list << uri << "\n";
  list.close();
  const auto line = crontab_line(file, "sh -c 'echo done >>" + done + "; exit 7'");
  std::vector<std::unique_ptr<Running>> machines;
  const auto add_five = [&] {
    for (int i = 0; i < 5; ++i) {
      machines.push_back(std::make_unique<Running>(
          Arguments{"-c", line}, Variables{{"REDLOCK_QUARANTINE", "off"}}, "/bin/sh"));
    }
  };
  add_five();
  REQUIRE(eventually([&] { return text_in(done) == "done\n"; }));
  add_five();  // late: the job is over
  std::vector<Running*> left;
  for (const auto& machine : machines) left.push_back(machine.get());
  // All but one give up.
  REQUIRE(eventually([&] {
    std::erase_if(left, [](const Running* running) { return running->has_ended(); });
    return left.size() == 1;
  }));
  CHECK(nodes.nodes_with_lock("nightly") >= 2);
  left.front()->signal(SIGTERM);
  for (const auto& machine : machines) {
    const auto finished = machine->wait();
    CHECK(finished.status == (machine.get() == left.front() ? 7 : 0));
    CHECK(finished.err == "");
  }
  CHECK(text_in(done) == "done\n");
  CHECK(eventually([&] { return nodes.nodes_with_lock("nightly") == 0; }));
}

TEST_CASE("--quiet is silent where somebody else has the lock, and nowhere else") {
  const Nodes nodes(3);
  Running holder(Nodes::exec("a", {}, {"sh", "-c", "echo held; read line"}),
                 nodes_variable(nodes.fleet.uris()));
  REQUIRE(holder.await_out("held"));
  for (const auto* wait : {"0", "2s"}) {
    const auto refused = nodes.run({"--quiet", "--wait", wait}, {"echo", "no"});
    CHECK(refused.status == 75);
    CHECK(refused.err == "");
    CHECK(nodes.run({"-q", "-E", "0", "--wait", wait}, {"echo", "no"}).err == "");
  }
  CHECK(contains(redlock({"exec", "a", "-q", "--wait", "0", "--", "true"},
                         {{"REDLOCK_NODES", "redis://127.0.0.1:1"}})
                     .err,
                 "no quorum"));
}

TEST_CASE("--hold-for ends with the lease, and is over when the command took longer") {
  const Nodes nodes(3);
  CHECK(nodes.run({"--hold-for", "1ms"}, {"sleep", "0.1"}).status == 0);
  Running running(Nodes::exec("a", {"--hold-for", "1h"}, {"sh", "-c", "echo ran; exit 3"}),
                  nodes_variable(nodes.fleet.uris()));
  REQUIRE(running.await_out("ran"));
  REQUIRE(redlock({"release", "a", "--force", "--node-timeout", "10s"},
                  nodes_variable(nodes.fleet.uris()))
              .status == 0);
  running.close_stdin();
  REQUIRE(ProcessWatch(running.pid()).await_end());
  const int status = running.wait().status;
  // The command may have been told to end before it had.
  CHECK((status == 3 || status == 79));
}

TEST_CASE("a release that no quorum confirmed is told, whatever status the command ends with") {
  Nodes nodes(3);
  Running running(Nodes::exec("a", {}, {"sh", "-c", "echo held; read line; exit 79"}),
                  nodes_variable(nodes.fleet.uris()));
  REQUIRE(running.await_out("held"));
  for (const std::size_t node : {0U, 1U}) nodes.fleet.pause(node);
  running.close_stdin();
  const auto ended = running.wait();
  CHECK(ended.status == 79);
  CHECK_MESSAGE(contains(ended.err, "giving back a: "), ended.err);
}

TEST_CASE("commands of one name never overlap") {
  const Nodes nodes(3);
  const TemporaryDirectory place;
  const auto counter = (place.path() / "counter").string();
  std::ofstream(counter) << "0\n";
  // Read, pause, write: an overlap loses an update.
  const std::string script = "read n < " + counter + "; sleep 0.01; echo $((n + 1)) > " + counter;
  std::vector<std::unique_ptr<Running>> racing;
  for (int i = 0; i < 8; ++i) {
    racing.push_back(std::make_unique<Running>(Nodes::exec("a", {}, {"sh", "-c", script}),
                                               nodes_variable(nodes.fleet.uris())));
  }
  for (const auto& running : racing) CHECK(running->wait().status == 0);
  CHECK(text_in(counter) == "8\n");
}

}  // namespace
}  // namespace redlock::testing
