// SPDX-License-Identifier: MIT
//
// A fleet leaves no process and no directory behind, however its program ends: normally, or by a
// SIGKILL at any moment. The programs that are killed here are forked children. And what class
// Fleet does where something is in the way; what it does as a rule, every test shows that uses it.
#include "cluster/fleet.hpp"

#include <array>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <functional>
#include <poll.h>
#include <signal.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "cluster/sockets.hpp"
#include "support/processes.hpp"
#include "support/temporary_directory.hpp"
#include "support/text.hpp"

using namespace redlock::cluster;
using namespace redlock::testing;

namespace {

// What a fleet leaves in the system while it lives, in words that fit on one line: its directory
// and its processes, the reaper (the leader of their group) included.
std::string describe(const Fleet& fleet) {
  std::vector<pid_t> pids{::getpgid(fleet.pid(0))};
  for (std::size_t i = 0; i < fleet.size(); ++i) pids.push_back(fleet.pid(i));
  return fmt::format("{} {}", fleet.directory(0).parent_path().string(), fmt::join(pids, " "));
}

class Traces {
 public:
  explicit Traces(const std::string& description) {
    std::istringstream words(description);
    std::string directory;
    words >> directory;
    directory_ = directory;
    for (pid_t pid = 0; words >> pid;) processes_.emplace_back(pid);
    REQUIRE(std::filesystem::exists(directory_));
    REQUIRE(processes_.size() > 1);
    for (const auto& process : processes_) REQUIRE(process.is_running());
  }

  [[nodiscard]] bool are_gone() const {
    for (const auto& process : processes_) {
      if (process.is_running()) return false;
    }
    return !std::filesystem::exists(directory_);
  }

  // For an end that happens behind our back.
  [[nodiscard]] bool go_away() const {
    for (const auto& process : processes_) {
      if (!process.await_end()) return false;
    }
    return eventually([&] { return !std::filesystem::exists(directory_); });
  }

 private:
  std::filesystem::path directory_;
  std::vector<ProcessWatch> processes_;
};

// A forked child that runs `body` until it is killed, and can say something to the test meanwhile.
class Program {
 public:
  using Say = std::function<void(const std::string&)>;

  explicit Program(const std::function<void(const Say&)>& body) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    hear_ = UniqueFd(ends[0]);
    UniqueFd tell(ends[1]);
    pid_ = ::fork();
    if (pid_ != 0) return;
    try {
      body([&](const std::string& line) {
        (void)!::write(tell.get(), (line + '\n').data(), line.size() + 1);
      });
      for (;;) ::pause();
    } catch (const std::exception& error) {
      fmt::print(stderr, "the program failed: {}\n", error.what());
    }
    ::_exit(1);
  }
  ~Program() { kill(); }

  [[nodiscard]] std::string received() const {
    std::string line;
    for (char c = 0; ::read(hear_.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

  void kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    pid_ = -1;
  }

 private:
  UniqueFd hear_;
  pid_t pid_ = -1;
};

std::size_t entries_in(const std::filesystem::path& directory) {
  const std::filesystem::directory_iterator entries(directory);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

}  // namespace

TEST_CASE("nothing is left when a fleet goes out of scope, whatever state its nodes are in") {
  std::optional<Traces> traces;
  {
    Fleet fleet({.persistence = Persistence::always});
    traces.emplace(describe(fleet));
    fleet.pause(1);
    fleet.kill(2);
    fleet.terminate(3);
    fleet.restart(4);
  }
  CHECK(traces->are_gone());
}

TEST_CASE("a fleet that fails to start says the server's own words, and leaves nothing") {
  const TemporaryDirectory place;
  const ScopedVariable here("TMPDIR", place.path().string());
  const FleetOptions options{.nodes = 3, .node_settings = {{2, {"no-such-setting 1"}}}};
  CHECK(contains(message_of<FleetError>([&] { Fleet{options}; }),
                 "ended while starting; its last words: "));
  CHECK(entries_in(place.path()) == 0);
}

TEST_CASE("nothing is left when the program is killed, not even nodes that are paused") {
  Program program([](const Program::Say& say) {
    Fleet fleet({.persistence = Persistence::always});
    fleet.pause(1);
    fleet.pause(3);
    fleet.kill(2);
    fleet.restart(2);
    say(describe(fleet));
    for (;;) ::pause();
  });
  const Traces traces(program.received());
  program.kill();
  CHECK(traces.go_away());
}

TEST_CASE("a node that is added ends with the others, also when the program is killed") {
  std::optional<Traces> traces;
  {
    Fleet fleet({.nodes = 2, .adopted = true, .password = "secret"});
    CHECK(fleet.add() == 2);
    CHECK(fleet.run(2, {"DBSIZE"}) == "0");
    traces.emplace(describe(fleet));
  }
  CHECK(traces->are_gone());
  Program program([](const Program::Say& say) {
    Fleet fleet({.nodes = 1});
    fleet.pause(fleet.add());
    say(describe(fleet));
    for (;;) ::pause();
  });
  const Traces killed(program.received());
  program.kill();
  CHECK(killed.go_away());
}

TEST_CASE("a node that does not start is not added, and the others go on") {
  Fleet fleet({.nodes = 2, .node_settings = {{2, {"no-such-setting 1"}}}});
  const auto place = fleet.directory(0).parent_path();
  CHECK(contains(message_of<FleetError>([&] { fleet.add(); }), "node 3 ended while starting"));
  CHECK(fleet.size() == 2);
  CHECK(entries_in(place) == 2);
  CHECK(processes_in(place) == 2);
  CHECK(fleet.run(1, {"PING"}) == "PONG");
}

TEST_CASE("a node is added also where the port behind the last one is taken") {
  std::optional<FreePort> behind;
  std::optional<Fleet> fleet;
  for (int i = 0; i < 20 && !fleet; ++i) {
    const auto port = FreePort::pick().number();
    try {
      behind = FreePort::take(static_cast<std::uint16_t>(port + 1));
      fleet.emplace(FleetOptions{.nodes = 1, .first_port = port});
    } catch (const FleetError&) {  // another program has taken one of them meanwhile
    }
  }
  REQUIRE(fleet.has_value());
  CHECK(fleet->add() == 1);
}

TEST_CASE("many programs killed at any moment leave nothing") {
  const TemporaryDirectory place;
  const ScopedVariable here("TMPDIR", place.path().string());
  for (int round = 0; round < 20; ++round) {
    Program program([](const Program::Say&) {
      const Fleet fleet({.nodes = 2});
      for (;;) ::pause();
    });
    // The moment is a little later each time: from before the first process to a running fleet.
    ::usleep(static_cast<useconds_t>(round * 1500));
  }
  CHECK(eventually([&] { return entries_in(place.path()) == 0; }));
  CHECK(eventually([&] { return processes_in(place.path()) == 0; }));
}

TEST_CASE("a forked child of the program that ends does not end the fleet") {
  Fleet fleet({.nodes = 2});
  const Traces traces(describe(fleet));
  const auto child = ::fork();
  if (child == 0) {
    { const Fleet inherited(std::move(fleet)); }
    ::_exit(0);
  }
  REQUIRE(child > 0);
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(fleet.run(0, {"PING"}) == "PONG");
  CHECK(fleet.run(1, {"PING"}) == "PONG");
}

TEST_CASE("no process of a fleet keeps a descriptor of the program open") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);  // inherited by whoever is not careful
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const Fleet fleet({.nodes = 2});
  writer.reset();
  pollfd end{reader.get(), POLLIN, 0};
  CHECK(::poll(&end, 1, 0) == 1);
  CHECK((end.revents & POLLHUP) != 0);
}

TEST_CASE("no server is given the variables that may name nodes and their passwords") {
  const TemporaryDirectory place;
  const auto server = script_in(place, "server",
                                fmt::format(R"sh(
env >{}/environment
exec redis-server "$@"
)sh",
                                            place.path().string()));
  const ScopedVariable chosen("REDLOCK_REDIS_SERVER", server);
  const ScopedVariable secret("REDLOCK_NODES", "redis://:secret@127.0.0.1:1");
  const Fleet fleet({.nodes = 1});
  const std::string environment = text_in(place.path() / "environment");
  CHECK(environment.find("PATH=") != std::string::npos);
  CHECK(environment.find("REDLOCK_") == std::string::npos);
}

TEST_CASE("a password is asked for, and is part of the URI") {
  Fleet fleet({.nodes = 1, .password = "a b\"c\\d%"});
  CHECK(fleet.uri(0) == fmt::format("redis://:a%20b%22c%5Cd%25@127.0.0.1:{}", fleet.port(0)));
  CHECK(fleet.run(0, {"PING"}) == "PONG");
  NodeClient stranger(fleet.port(0));
  CHECK(contains(stranger.command({"PING"}), "(error) NOAUTH"));
}

TEST_CASE("a port that is taken at the last moment is replaced by another one") {
  // The first start says what redis-server says then.
  const TemporaryDirectory place;
  const auto server = script_in(place, "server",
                                fmt::format(R"sh(
if mkdir {0}/first; then
  grep '^port' "$1" >{0}/port; echo 'bind: Address already in use'; exit 1
fi
exec redis-server "$@"
)sh",
                                            place.path().string()));
  const ScopedVariable chosen("REDLOCK_REDIS_SERVER", server);
  const Fleet fleet({.nodes = 1});
  CHECK(fleet.run(0, {"PING"}) == "PONG");
  std::string word;
  int taken = 0;
  std::ifstream lines(place.path() / "port");
  while (lines >> word >> taken) {
  }
  CHECK(taken > 0);
  CHECK(fleet.port(0) != taken);
}

TEST_CASE("a node whose port another program took meanwhile does not restart, and says why") {
  Fleet fleet({.nodes = 2});
  fleet.kill(0);
  {
    const auto intruder = listen_on_loopback(fleet.port(0));
    CHECK(message_of<FleetError>([&] { fleet.restart(0); }) ==
          fmt::format("another program has taken port {} of node 1; end that program and restart "
                      "the node again",
                      fleet.port(0)));
    CHECK(fleet.state(0) == NodeState::ended);
  }
  fleet.restart(0);
  CHECK(fleet.run(0, {"PING"}) == "PONG");
}

TEST_CASE("a missing redis-server is an error that says what to do") {
  const ScopedVariable no_path("PATH", "/nowhere");
  CHECK(contains(message_of<FleetError>([] { Fleet fleet; }), "apt install redis-server"));
  const ScopedVariable chosen("REDLOCK_REDIS_SERVER", "/nowhere/redis-server");
  CHECK(contains(message_of<FleetError>([] { Fleet fleet; }), "REDLOCK_REDIS_SERVER names"));
}

TEST_CASE(
    "a paused node can be restarted, killed and terminated; one that has ended is not paused") {
  Fleet fleet({.nodes = 2});
  fleet.pause(0);
  fleet.restart(0);
  CHECK(fleet.run(0, {"PING"}) == "PONG");
  fleet.pause(0);
  fleet.kill(0);
  fleet.pause(1);
  fleet.terminate(1);
  CHECK(fleet.state(0) == NodeState::ended);
  CHECK(fleet.state(1) == NodeState::ended);
  for (const auto& change : {&Fleet::pause, &Fleet::resume}) {
    CHECK(message_of<FleetError>([&] { (fleet.*change)(0); }) ==
          "node 1 does not run; restart it first");
  }
  fleet.restart(0);
  fleet.terminate(0);
  CHECK(fleet.state(0) == NodeState::ended);
}
