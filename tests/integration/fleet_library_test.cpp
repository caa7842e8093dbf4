// SPDX-License-Identifier: MIT
//
// What cluster/ gives to operators to copy: a real server must understand redis.conf and users.acl
// and do what their comments say, and the markers that adopt.sh writes are the library's own. It
// needs redis-cli and a shell, no container. What the users may do is in api_rights_test.cpp.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <redlock/admin.hpp>
#include <redlock/client.hpp>
#include <redlock/lease.hpp>
#include <redlock/redlock.hpp>

#include "cluster/fleet.hpp"
#include "integration/cli_process.hpp"
#include "support/shell.hpp"
#include "support/temporary_directory.hpp"

using namespace redlock;
using namespace redlock::cluster;
using namespace redlock::testing;

namespace {

// Three durable nodes that know the users of users.acl.
Fleet fleet_with_the_users() {
  std::ifstream text(std::string(REDLOCK_SOURCE_DIR) + "/cluster/users.acl");
  std::vector<std::string> users;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("user redlock")) users.push_back(line);
  }
  REQUIRE(users.size() == 2);
  return Fleet({.nodes = 3, .persistence = Persistence::always, .settings = users});
}

Client client_as_the_administrator(const Fleet& fleet) {
  // Patient: what is shown here is who may do what, not how fast a busy machine does it.
  auto client = Client::create({.nodes = uris_as("redlock-admin:change-me-too", fleet),
                                .node_timeout = std::chrono::seconds(10),
                                .connect_timeout = std::chrono::seconds(10)});
  REQUIRE(client);
  return std::move(*client);
}

/// A redis-server with the project's redis.conf and further lines, whoever may log in there.
class Server {
 public:
  explicit Server(const std::string& settings) {
    const auto conf = directory_.path() / "redis.conf";
    std::ofstream(conf) << "include " REDLOCK_SOURCE_DIR "/cluster/redis.conf\nport " << port()
                        << "\ndir " << directory_.path().string() << '\n'
                        << settings;
    process_.emplace(Arguments{"-c", "exec ${REDLOCK_REDIS_SERVER:-redis-server} " + conf.string()},
                     Variables{}, "/bin/sh");
    REQUIRE(process_->await_out("eady to accept connections"));
  }
  [[nodiscard]] std::uint16_t port() const { return port_.number(); }

 private:
  FreePort port_ = FreePort::pick();
  TemporaryDirectory directory_;
  std::optional<Running> process_;
};

}  // namespace

TEST_CASE("a node with the project's redis.conf is durable, never evicts, and is small") {
  const Fleet fleet({.nodes = 1, .persistence = Persistence::always});
  const auto setting = [&](const std::string& name) {
    const auto reply = fleet.run(0, {"CONFIG", "GET", name});
    return reply.substr(reply.find('\n') + 1);
  };
  CHECK(setting("appendonly") == "yes");
  CHECK(setting("appendfsync") == "always");
  CHECK(setting("no-appendfsync-on-rewrite") == "no");
  CHECK(setting("save") == "");
  CHECK(setting("maxmemory-policy") == "noeviction");
  CHECK(setting("maxmemory") == "134217728");
  CHECK(setting("protected-mode") == "yes");
  CHECK(setting("bind") == "127.0.0.1 -::1");
  CHECK(setting("cluster-enabled") == "no");
}

// What it has no need of, it has no right to: api_rights_test.cpp takes each right away in turn.
TEST_CASE("the user of users.acl may do nothing else") {
  const auto fleet = fleet_with_the_users();
  NodeClient client(fleet.port(0));
  REQUIRE(client.command({"AUTH", "redlock", "change-me"}) == "OK");
  const std::vector<std::vector<std::string>> forbidden{
      {"GET", "else"},
      {"EVAL", "return redis.call('get', 'else')", "0"},
      {"FLUSHALL"},
      {"CONFIG", "SET", "appendonly", "no"},
      {"PUBLISH", "redlock:x", "y"},
      {"SUBSCRIBE", "redlock:x"},
      {"PSUBSCRIBE", "redlock:wake:*"},
      {"EVAL", "return redis.call('publish', 'redlock:x', 'y')", "0"},
  };
  for (const auto& command : forbidden) {
    const auto reply = client.command(command);
    INFO(fmt::format("{}: {}", fmt::join(command, " "), reply));
    CHECK(reply.find("(error)") == 0);
    CHECK((contains(reply, "NOPERM") || contains(reply, "ACL failure in script: ") ||
           contains(reply, "The user executing the script can't")));
  }
}

TEST_CASE("a user of before there were lines locks as well, and the doctor says what it lacks") {
  for (const std::string lacks : {"", "resetchannels", "-subscribe", "-publish", "-zadd"}) {
    CAPTURE(lacks);
    const auto fleet = fleet_with_the_users();
    if (!lacks.empty()) run_on_all(fleet, {"ACL", "SETUSER", "redlock-admin", lacks});
    const auto client = client_as_the_administrator(fleet);
    const Admin admin(client);
    REQUIRE(admin.adopt());
    const auto lease = client.lock("seat:A05").acquire({.wait = std::chrono::seconds(30)});
    REQUIRE(lease);
    const auto health = admin.examine();
    REQUIRE(health);
    for (const auto& node : health->nodes) {
      INFO(node.refusal.detail);
      CHECK(node.serves_in_order == lacks.empty());
      CHECK(node.refusal.cause == redlock::Cause::none);
      REQUIRE(node.problems.size() == (lacks.empty() ? 0 : 1));
      if (lacks.empty()) continue;
      CHECK(node.problems[0].severity == redlock::Severity::hint);
      CHECK(node.problems[0].what.find("these calls ask it by their own timers") !=
            std::string::npos);
    }
    CHECK(health->fitness() == redlock::Fitness::healthy);
  }
}

TEST_CASE("a node with users.acl as it stands lets nobody in without a password") {
  const std::string users = REDLOCK_SOURCE_DIR "/cluster/users.acl";
  const TemporaryDirectory directory;
  const auto without_comments = (directory.path() / "users.acl").string();
  REQUIRE(shell("grep -v '^#' " + quoted(users) + " >" + without_comments).status == 0);
  for (const auto& line : {"include " + users, "aclfile " + without_comments}) {
    CAPTURE(line);
    // To the doctor it is bound to an address of another machine, too.
    const Server server(line + "\nprotected-mode no\nbind 127.0.0.1 -192.0.2.1\n");
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"FLUSHALL"}, {"DEL", "redlock:node"}, {"PING"}, {"INFO"}}) {
      CHECK(contains(NodeClient(server.port()).command(command), "(error) NOAUTH "));
    }
    CHECK(contains(NodeClient(server.port()).command({"AUTH", "default", "x"}), "WRONGPASS "));

    const auto at = fmt::format("@127.0.0.1:{}", server.port());
    const auto administrator =
        Client::create({.nodes = {"redis://redlock-admin:change-me-too" + at}});
    REQUIRE(administrator);
    REQUIRE(Admin(*administrator).adopt());
    const auto health = Admin(*administrator).examine();
    REQUIRE(health);
    CHECK(health->fitness() == redlock::Fitness::healthy);
    CHECK_FALSE(health->nodes.at(0).open);
    CHECK(health->nodes.at(0).problems.empty());
    const auto program = Client::create({.nodes = {"redis://redlock:change-me" + at}});
    REQUIRE(program);
    const auto lease = program->lock("seat").acquire({.wait = std::chrono::seconds(30)});
    INFO((lease ? "" : lease.error().message));
    CHECK(lease);
  }
}

namespace {

ShellResult adopt(const std::string& arguments, const std::string& login = "") {
  const std::string tree = REDLOCK_SOURCE_DIR;
  return shell(fmt::format("{} {} {} {}", login, quoted(tree + "/cluster/adopt.sh"),
                           quoted(tree + "/src/wire/scripts/adopt.lua"), arguments));
}

/// The first nodes of the fleet.
ShellResult adopt(const Fleet& fleet, std::size_t nodes, const std::string& max_lease = "60000") {
  std::string arguments = max_lease;
  for (std::size_t i = 0; i < nodes; ++i) arguments += fmt::format(" 127.0.0.1:{}", fleet.port(i));
  return adopt(arguments);
}

std::map<std::string, std::string> marker(const Fleet& fleet, std::size_t node) {
  std::istringstream lines(fleet.run(node, {"HGETALL", "redlock:node"}));
  std::map<std::string, std::string> fields;
  for (std::string field, value; std::getline(lines, field) && std::getline(lines, value);) {
    fields[field] = value;
  }
  return fields;
}

}  // namespace

TEST_CASE("adopt.sh logs in as the user of its environment") {
  const Server server("include " REDLOCK_SOURCE_DIR "/cluster/users.acl\n");
  const auto arguments = fmt::format("60000 127.0.0.1:{}", server.port());
  CHECK(contains(adopt(arguments).output, "NOAUTH Authentication required"));
  const auto adopted = adopt(arguments, "REDISCLI_USER=redlock-admin REDISCLI_AUTH=change-me-too");
  CHECK(contains(adopted.output, ": adopted, one of 1"));
  CHECK(adopted.status == 0);
}

TEST_CASE("adopt.sh gives every node a marker of its own, and it needs no adopting any more") {
  const auto fleet = fleet_with_the_users();
  const auto result = adopt(fleet, 3);
  INFO(result.output);
  CHECK(result.status == 0);
  std::set<std::string> ids;
  std::set<std::string> sets;
  for (std::size_t i = 0; i < 3; ++i) {
    auto fields = marker(fleet, i);
    CHECK(contains(result.output, fmt::format("127.0.0.1:{}: adopted, one of 3", fleet.port(i))));
    CHECK(fields.size() == 7);
    CHECK(fields["layout"] == "redlock-3");
    CHECK(fields["nodes"] == "3");
    CHECK(fields["max_lease_ms"] == "60000");
    CHECK(fields["id"].size() == 32);
    CHECK(fields["id"].find_first_not_of("0123456789abcdef") == std::string::npos);
    ids.insert(fields["id"]);
    sets.insert(fields["set"]);
  }
  CHECK(ids.size() == 3);
  CHECK(sets.size() == 1);
  CHECK(sets.begin()->size() == 32);
  const auto client = client_as_the_administrator(fleet);
  const auto adopted = Admin(client).adopt();
  REQUIRE(adopted);
  for (const auto& node : *adopted) {
    INFO(node.detail);
    CHECK(node.adoption == Adoption::already_there);
  }
}

TEST_CASE("adopt.sh leaves a marker as it is, that agrees or is of another set, which it refuses") {
  const Fleet fleet({.nodes = 2});
  REQUIRE(adopt(fleet, 2).status == 0);
  const auto before = marker(fleet, 1);
  const auto again = adopt(fleet, 2);
  CHECK(again.status == 0);
  CHECK(contains(again.output, fmt::format("127.0.0.1:{}: adopted already", fleet.port(1))));
  CHECK(marker(fleet, 1) == before);
  // The longest lease may have been raised since.
  CHECK(adopt(fleet, 2, "90000").status == 0);
  CHECK(marker(fleet, 1) == before);
  fleet.run(1, {"HSET", "redlock:node", "set", "another"});
  const auto other = adopt(fleet, 2);
  CHECK(other.status == 1);
  CHECK(contains(other.output, "not adopted: it has answered"));
  CHECK(marker(fleet, 1)["set"] == "another");
}

TEST_CASE("adopt.sh enrols no blank node beside nodes that have a marker") {
  const Fleet fleet({.nodes = 3});
  REQUIRE(adopt(fleet, 2).status == 0);
  const auto mixed = adopt(fleet, 3);
  CHECK(mixed.status == 1);
  const auto blank = fmt::format("127.0.0.1:{}", fleet.port(2));
  CHECK(contains(mixed.output, blank + ": not adopted: it has no marker, and others have one"));
  CHECK(contains(mixed.output, "redlock adopt --replaced " + blank));
  CHECK(marker(fleet, 2).empty());
}

TEST_CASE("adopt.sh says which node it could not reach, and waits for a quorum") {
  Fleet fleet({.nodes = 2});
  fleet.kill(0);
  const auto result = adopt(fleet, 2);
  CHECK(result.status == 1);
  for (const std::size_t node : {0U, 1U}) {
    CHECK(contains(result.output, fmt::format("127.0.0.1:{}: not adopted", fleet.port(node))));
  }
  CHECK(marker(fleet, 1).empty());
  fleet.restart(0);
  REQUIRE(adopt(fleet, 2).status == 0);
  CHECK(marker(fleet, 1)["set"].size() == 32);
  CHECK(marker(fleet, 1)["set"] == marker(fleet, 0)["set"]);
}
