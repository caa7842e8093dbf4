// SPDX-License-Identifier: MIT
//
// The fleet that outlives its program, as `redlock fleet` uses it: one program starts it, others
// find it in its directory, and the last one ends it.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <functional>
#include <future>
#include <regex>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/fleet.hpp"
#include "cluster/sockets.hpp"
#include "support/processes.hpp"
#include "support/temporary_directory.hpp"
#include "support/text.hpp"

using namespace redlock::cluster;
using namespace redlock::testing;

namespace {

namespace fs = std::filesystem;

// The fleet of a test must not outlive the test.
struct Place {
  ~Place() { Fleet::down(fleet()); }
  [[nodiscard]] fs::path fleet() const { return directory.path() / "fleet"; }
  void rewrite_record(const std::string& pattern, const std::string& text) const {
    const std::string before = text_in(fleet() / "fleet");
    const auto after = std::regex_replace(before, std::regex(pattern), text);
    REQUIRE(after != before);
    std::ofstream(fleet() / "fleet") << after;
  }
  TemporaryDirectory directory;
};

// A process that has nothing to do with any fleet.
struct Bystander {
  ~Bystander() {
    process.signal(SIGKILL);
    process.await_end(std::chrono::seconds(30));
  }
  Process process = Process::spawn({.argv = {"sleep", "1000"}});
  ProcessId id = process.id();
};

// A program that is killed while it starts a server for the fleet. The server ends, too.
void kill_while_starting(const Place& place, void (*start)(Fleet&)) {
  const auto server = script_in(place.directory, "server",
                                fmt::format(R"sh(
echo $$ >{0}/pid.new; mv {0}/pid.new {0}/pid
exec sleep 1000
)sh",
                                            place.directory.path().string()));
  const auto program = ::fork();
  if (program == 0) {
    const ScopedVariable chosen("REDLOCK_REDIS_SERVER", server);
    auto fleet = Fleet::open(place.fleet());
    start(fleet);
    ::_exit(0);
  }
  REQUIRE(eventually([&] { return fs::exists(place.directory.path() / "pid"); }));
  pid_t pid = 0;
  std::ifstream(place.directory.path() / "pid") >> pid;
  const ProcessWatch watch(pid);
  CHECK(watch.is_running());
  ::kill(program, SIGKILL);
  ::waitpid(program, nullptr, 0);
  CHECK(watch.await_end());
}

}  // namespace

TEST_CASE("nodes restarted side by side are in the record, and down ends all, paused ones too") {
  const Place place;
  auto fleet = Fleet::start_detached(place.fleet(), {.nodes = 4});
  // One object for some of the threads, one of its own for the others, as programs have.
  std::vector<Fleet> objects;
  for (int i = 0; i < 4; ++i) objects.push_back(Fleet::open(place.fleet()));
  std::vector<std::future<void>> threads;
  for (std::size_t i = 0; i < 4; ++i) {
    Fleet& object = i < 2 ? fleet : objects[i];
    threads.push_back(std::async(std::launch::async, [&object, i] { object.restart(i); }));
  }
  for (auto& thread : threads) CHECK_NOTHROW(thread.get());
  const auto found = Fleet::open(place.fleet());
  for (std::size_t i = 0; i < 4; ++i) CHECK(found.state(i) == NodeState::running);
  fleet.pause(1);
  CHECK(Fleet::down(place.fleet()));
  CHECK(processes_in(place.fleet()) == 0);
  CHECK_FALSE(fs::exists(place.fleet()));
  CHECK_FALSE(Fleet::down(place.fleet()));
}

TEST_CASE("down leaves files alone that are not the fleet's") {
  const Place place;
  Fleet::start_detached(place.fleet(), {.nodes = 1});
  std::ofstream(place.fleet() / "notes.txt") << "mine";
  CHECK(Fleet::down(place.fleet()));
  CHECK(fs::exists(place.fleet() / "notes.txt"));
  CHECK_FALSE(fs::exists(place.fleet() / "node-0"));
}

TEST_CASE("a second start in the same directory is refused while a node runs, paused or not") {
  const Place place;
  auto fleet = Fleet::start_detached(place.fleet(), {.nodes = 2});
  fleet.kill(0);
  fleet.pause(1);
  const auto message = message_of<FleetError>([&] { Fleet::start_detached(place.fleet()); });
  CHECK(contains(message, "a fleet already runs in"));
  CHECK(contains(message, "redlock fleet down --dir"));
  CHECK(fleet.state(1) == NodeState::paused);
}

TEST_CASE("a directory with other files is refused and left as it is") {
  const TemporaryDirectory place;
  std::ofstream(place.path() / "notes.txt") << "mine";
  CHECK(contains(message_of<FleetError>([&] { Fleet::start_detached(place.path()); }),
                 "holds files that are not of a fleet"));
  CHECK(fs::exists(place.path() / "notes.txt"));
}

TEST_CASE("a detached fleet that fails to start leaves nothing") {
  const Place place;
  CHECK_THROWS_AS(Fleet::start_detached(place.fleet(), {.nodes = 2, .settings = {"no-such 1"}}),
                  FleetError);
  CHECK_FALSE(fs::exists(place.fleet()));
}

TEST_CASE(
    "a process with the pid of a former node, or of one before the machine's restart, is none") {
  const Place place;
  Fleet::start_detached(place.fleet(), {.nodes = 1}).kill(0);
  const Bystander bystander;
  // As if the kernel had given the node's pid to somebody else. The time is written too: the kernel
  // counts it in steps, and on a fast machine both processes can have begun in the same one.
  const auto record = [&](std::uint64_t started) {
    place.rewrite_record("node .*", fmt::format("node 1 {} {}", bystander.id.pid, started));
  };
  record(bystander.id.started - 1);
  CHECK(Fleet::open(place.fleet()).state(0) == NodeState::ended);
  record(bystander.id.started);
  CHECK(Fleet::open(place.fleet()).state(0) == NodeState::running);
  place.rewrite_record("boot .*", "boot 01234567-0123-0123-0123-0123456789ab");
  CHECK(Fleet::open(place.fleet()).state(0) == NodeState::ended);
  CHECK(Fleet::down(place.fleet()));
  CHECK(ProcessWatch(bystander.id.pid).is_running());
}

TEST_CASE("the password of a detached fleet is kept where only its owner can read") {
  const Place place;
  Fleet::start_detached(place.fleet(), {.nodes = 1, .password = "top secret"});
  CHECK(Fleet::open(place.fleet()).run(0, {"PING"}) == "PONG");
  for (const auto* file : {"fleet", "node-0"}) {
    struct stat status {};
    REQUIRE(::stat((place.fleet() / file).c_str(), &status) == 0);
    CHECK((status.st_mode & 077) == 0);
  }
}

TEST_CASE("a restart that is killed half-way leaves neither a server nor the fleet damaged") {
  const Place place;
  {
    auto fleet =
        Fleet::start_detached(place.fleet(), {.nodes = 1, .persistence = Persistence::always});
    fleet.run(0, {"SET", "key", "value"});
    fleet.kill(0);
  }
  kill_while_starting(place, [](Fleet& fleet) { fleet.restart(0); });
  Fleet::open(place.fleet()).restart(0);
  CHECK(Fleet::open(place.fleet()).run(0, {"GET", "key"}) == "value");
}

TEST_CASE("a node that is added has the options of the others, and is found by other programs") {
  const Place place;
  Fleet::start_detached(place.fleet(), {.nodes = 1,
                                        .persistence = Persistence::always,
                                        .adopted = true,
                                        .unix_sockets = true,
                                        .password = "top secret",
                                        .settings = {"maxclients 77", "", "timeout 99\n \nhz 11"}});
  auto adding = Fleet::open(place.fleet());
  CHECK(adding.add() == 1);
  CHECK(adding.port(1) != adding.port(0));
  const auto found = Fleet::open(place.fleet());
  REQUIRE(found.size() == 2);
  CHECK(found.pid(1) == adding.pid(1));
  CHECK(found.uri(1) == adding.uri(1));
  CHECK(fs::is_socket(found.unix_uri(1).substr(std::string("unix://").size())));
  for (const auto& name :
       {"appendonly", "appendfsync", "requirepass", "maxclients", "timeout", "hz"}) {
    CHECK(found.run(1, {"CONFIG", "GET", name}) == found.run(0, {"CONFIG", "GET", name}));
  }
  CHECK(found.run(0, {"DBSIZE"}) == "1");
  CHECK(found.run(1, {"DBSIZE"}) == "0");
  Fleet::open(place.fleet()).restart(1);
  CHECK(Fleet::open(place.fleet()).run(1, {"PING"}) == "PONG");
}

TEST_CASE("programs that add nodes at the same time get a place each, and each other's nodes") {
  const Place place;
  auto first = Fleet::start_detached(place.fleet(), {.nodes = 1});
  auto second = Fleet::open(place.fleet());
  auto one = std::async(std::launch::async, [&] { return first.add(); });
  auto other = std::async(std::launch::async, [&] { return second.add(); });
  CHECK(one.get() + other.get() == 3);
  CHECK(first.add() == 3);
  CHECK(second.add() == 4);
  const auto found = Fleet::open(place.fleet());
  REQUIRE(found.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(found.run(i, {"PING"}) == "PONG");
    CHECK(second.pid(i) == found.pid(i));
  }
  CHECK(Fleet::down(place.fleet()));
  CHECK(processes_in(place.fleet()) == 0);
  CHECK_FALSE(fs::exists(place.fleet()));
  CHECK_THROWS_AS(first.add(), FleetError);
}

TEST_CASE("of a node that could not be added nothing is left") {
  const Place place;
  auto fleet = Fleet::start_detached(place.fleet(), {.nodes = 1});
  const auto record = text_in(place.fleet() / "fleet");
  // It runs and answers, but its record cannot be written; or it does not run.
  for (const bool runs : {true, false}) {
    CAPTURE(runs);
    const auto draft = place.fleet() / "fleet.new";
    const ScopedVariable chosen("REDLOCK_REDIS_SERVER",
                                runs ? std::nullopt : std::optional<std::string>("/bin/false"));
    if (runs) fs::create_directory(draft);
    CHECK_THROWS_AS(fleet.add(), FleetError);
    if (runs) fs::remove(draft);
    CHECK(fleet.size() == 1);
    CHECK(processes_in(place.fleet()) == 1);
    CHECK_FALSE(fs::exists(place.fleet() / "node-1"));
    CHECK(text_in(place.fleet() / "fleet") == record);
  }
  CHECK(fleet.add() == 1);
}

TEST_CASE("a program that is killed while it adds a node leaves no server, and the place free") {
  const Place place;
  Fleet::start_detached(place.fleet(), {.nodes = 1});
  kill_while_starting(place, [](Fleet& fleet) { fleet.add(); });
  CHECK(Fleet::open(place.fleet()).size() == 1);
  std::ofstream(place.fleet() / "node-1" / "data" / "dump.rdb") << "of that node";
  CHECK(Fleet::open(place.fleet()).add() == 1);
  fs::remove(place.directory.path() / "pid");
  kill_while_starting(place, [](Fleet& fleet) { fleet.add(); });
  CHECK(Fleet::down(place.fleet()));
  CHECK_FALSE(fs::exists(place.fleet()));
}
