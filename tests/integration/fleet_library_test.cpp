// SPDX-License-Identifier: MIT
//
// What cluster/ gives to operators, tried with the library itself: the user of users.acl is enough
// for everything it does, and the markers that adopt.sh writes are its own.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <fstream>

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
  std::vector<std::string> nodes;
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    nodes.push_back(fmt::format("redis://redlock-admin:change-me-too@127.0.0.1:{}", fleet.port(i)));
  }
  // Patient: what is shown here is who may do what, not how fast a busy machine does it.
  auto client = Client::create({.nodes = nodes,
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

TEST_CASE("a user of before there were lines locks as well, and the doctor says what it lacks") {
  for (const std::string lacks : {"", "resetchannels", "-subscribe", "-publish", "-zadd"}) {
    CAPTURE(lacks);
    const auto fleet = fleet_with_the_users();
    for (std::size_t i = 0; i < fleet.size() && !lacks.empty(); ++i) {
      REQUIRE(fleet.run(i, {"ACL", "SETUSER", "redlock-admin", lacks}) == "OK");
    }
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
      CHECK(node.problems[0].what.find("these calls ask it again") != std::string::npos);
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

TEST_CASE("adopt.sh logs in as the user of its environment") {
  const Server server("include " REDLOCK_SOURCE_DIR "/cluster/users.acl\n");
  const std::string tree = REDLOCK_SOURCE_DIR;
  const auto adopt = [&](const std::string& login) {
    return shell(fmt::format("{} {} {} 60000 127.0.0.1:{}", login,
                             quoted(tree + "/cluster/adopt.sh"),
                             quoted(tree + "/src/wire/scripts/adopt.lua"), server.port()));
  };
  CHECK(contains(adopt("").output, "NOAUTH Authentication required"));
  const auto adopted = adopt("REDISCLI_USER=redlock-admin REDISCLI_AUTH=change-me-too");
  CHECK(contains(adopted.output, ": adopted, one of 1"));
  CHECK(adopted.status == 0);
}

TEST_CASE("a set that adopt.sh has adopted needs no adopting any more") {
  const auto fleet = fleet_with_the_users();
  const std::string tree = REDLOCK_SOURCE_DIR;
  auto command = fmt::format("{} {} 60000", quoted(tree + "/cluster/adopt.sh"),
                             quoted(tree + "/src/wire/scripts/adopt.lua"));
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    command += fmt::format(" 127.0.0.1:{}", fleet.port(i));
  }
  REQUIRE(shell(command).status == 0);
  const auto client = client_as_the_administrator(fleet);
  const auto adopted = Admin(client).adopt();
  REQUIRE(adopted);
  for (const auto& node : *adopted) {
    INFO(node.detail);
    CHECK(node.adoption == Adoption::already_there);
  }
}
