// SPDX-License-Identifier: MIT
// Passwords that are changed while a lease is held: the nodes first or the program first, and with
// every connection broken meanwhile. No text shows an old or a new one.
#include "integration/api_fixture.hpp"
#include "support/temporary_directory.hpp"

namespace redlock::testing {
namespace {

/// What a program knows of its password, changed while the client's threads read it.
class Vault {
 public:
  explicit Vault(std::string password) : password_(std::move(password)) {}
  void set(const std::string& password) {
    const std::scoped_lock lock(mutex_);
    password_ = password;
  }
  [[nodiscard]] std::string get() const {
    const std::scoped_lock lock(mutex_);
    return password_;
  }

 private:
  mutable std::mutex mutex_;
  std::string password_;
};

void change_user(const Fleet& fleet, std::vector<std::string> rules) {
  std::vector<std::string> command{"ACL", "SETUSER", "ann"};
  command.insert(command.end(), rules.begin(), rules.end());
  for (std::size_t node = 0; node < fleet.size(); ++node) REQUIRE(fleet.run(node, command) == "OK");
}

Fleet fleet_of_ann() {
  Fleet fleet({.nodes = 3});
  change_user(fleet, {"on", ">first-one", "~*", "&*", "+@all"});
  return fleet;
}

std::vector<std::string> nodes_of_ann(const Fleet& fleet) {
  std::vector<std::string> nodes;
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    nodes.push_back("redis://ann:@127.0.0.1:" + std::to_string(fleet.port(node)));
  }
  return nodes;
}

void break_connections(const Fleet& fleet) {
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    fleet.run(node, {"CLIENT", "KILL", "USER", "ann"});
  }
}

/// Until every node has a connection of ann again, and the lease is renewed.
bool soon_renewed(const Fleet& fleet, Lease& lease) {
  return eventually([&] {
    for (std::size_t node = 0; node < fleet.size(); ++node) {
      if (!contains(fleet.run(node, {"CLIENT", "LIST"}), " user=ann ")) return false;
    }
    return lease.extend(50s).has_value();
  });
}

TEST_CASE("passwords are changed under a lease, by the nodes first or by the program first") {
  for (const bool nodes_first : {true, false}) {
    CAPTURE(nodes_first);
    const Fleet fleet = fleet_of_ann();
    Vault vault("first-one");
    auto options = options_for(nodes_of_ann(fleet));
    options.password = [&](std::string_view node) {
      REQUIRE(node.starts_with("redis://ann@127.0.0.1:"));
      return vault.get();
    };
    const Client client = start_client(options);
    Lease lease = must(client.lock("seat").acquire({.lease = 40s}));
    const auto token = lease.token();
    REQUIRE(soon_renewed(fleet, lease));
    if (nodes_first) {
      change_user(fleet, {">second-one"});
      break_connections(fleet);
      REQUIRE(soon_renewed(fleet, lease));
      change_user(fleet, {"<first-one"});
      break_connections(fleet);
      vault.set("second-one");
    } else {
      vault.set("second-one");
      break_connections(fleet);
      REQUIRE(soon_renewed(fleet, lease));  // by the one that worked last
      change_user(fleet, {">second-one", "<first-one"});
      break_connections(fleet);
    }
    REQUIRE(soon_renewed(fleet, lease));
    CHECK(lease.valid());
    CHECK(lease.token() == token);
    CHECK(must(lease.release()) == Released::released);
  }
}

TEST_CASE("where neither password is right, no text shows one of them") {
  const Fleet fleet = fleet_of_ann();
  Vault vault("first-one");
  auto options = options_for(nodes_of_ann(fleet));
  options.password = [&](std::string_view) { return vault.get(); };
  const Client client = start_client(options);
  must(must(client.lock("seat").acquire()).release());
  vault.set("second-one");
  change_user(fleet, {">third-one", "<first-one"});
  break_connections(fleet);
  REQUIRE(eventually([&] {
    const auto lease = client.lock("seat").acquire();
    if (lease || !lease.error().is_configuration()) return false;
    CHECK(!contains(lease.error().message, "-one"));
    CHECK(contains(lease.error().message, "WRONGPASS "));
    CHECK(contains(lease.error().message, "; correct the URI or the password file"));
    return true;
  }));
  const auto examination = must(Admin(client).examine());
  for (const auto& node : examination.nodes) {
    CHECK(node.trouble.cause == Cause::authentication);
    for (const auto& problem : node.problems) CHECK(!contains(problem.what, "-one"));
  }
  vault.set("third-one");
  CHECK(eventually([&] { return client.lock("seat").acquire().has_value(); }));
}

TEST_CASE("a password is read from a file anew for every connection, and before that of the URI") {
  const Fleet fleet = fleet_of_ann();
  const TemporaryDirectory directory;
  const auto path = (directory.path() / "password").string();
  std::ofstream(path) << "first-one\r\nnot this line\n";
  auto options = options_for({});
  for (std::size_t node = 0; node < 3; ++node) {
    options.nodes.push_back("redis://ann:wrong@127.0.0.1:" + std::to_string(fleet.port(node)));
  }
  options.password = must(password_from_file(path));
  const Client client = start_client(options);
  must(must(client.lock("seat").acquire()).release());
  change_user(fleet, {">second-one", "<first-one"});
  std::ofstream(path) << "second-one";
  break_connections(fleet);
  CHECK(client.lock("seat").acquire({.wait = patience}).has_value());

  std::ofstream(path) << std::string(60'000, 'x') << '\n';
  CHECK(options.password("node") == std::string(60'000, 'x'));
  std::filesystem::remove(path);
  CHECK(options.password("node").empty());
}

TEST_CASE(
    "a file has a password for each node, by the name that errors have for it or by its URI") {
  const Fleet fleet = fleet_of_ann();
  const TemporaryDirectory directory;
  const auto path = (directory.path() / "passwords").string();
  std::ofstream file(path);
  file << "# of the three\r\n\n";
  for (std::size_t node = 0; node < 3; ++node) {
    const std::string password = "of node " + std::to_string(node);
    fleet.run(node, {"ACL", "SETUSER", "ann", "resetpass", ">" + password});
    const std::string login = node == 1 ? "ann:@" : "ann@";
    file << "redis://" << login << "127.0.0.1:" << fleet.port(node) << ' ' << password << "\r\n"
         << "# and the next one\n\n";
  }
  file.close();
  auto options = options_for(nodes_of_ann(fleet));
  options.password = must(password_from_file(path));
  CHECK(options.password("redis://bob@127.0.0.1:6379").empty());
  const Client client = start_client(options);
  warm_up(client, fleet);
}

TEST_CASE("a password file that is wrong is refused by a sentence that repeats nothing of it") {
  const TemporaryDirectory directory;
  const auto path = (directory.path() / "secret").string();
  const auto refusal = [&](const std::string& text) {
    std::ofstream(path) << text;
    const auto refused = password_from_file(path);
    CHECK(code_of(refused) == Errc::invalid_argument);
    return refused ? "" : refused.error().message;
  };
  const std::string good = "redis://127.0.0.1 secret\n";
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"", "its first line, which is to be the password, is empty"},
      {"\nsecret\n", "its first line, which is to be the password, is empty"},
      {"# two\n\n" + good + "secret\n", "line 4 does not begin with a node; write redis://"},
      {std::string(65'537, 's'), "it is longer than 65536 bytes"},
      {good + "secret\n", "line 2 does not begin with a node; write redis://"},
      {good + "\nredis://u:secret@h secret", "line 3 does not begin with a node"},
      {good + "redis://h:secret 1", "line 2 does not begin with a node"},
      {good + "redis://secret", "line 2 has no password behind the node"},
      {good + "redis://secret ", "line 2 has no password behind the node"},
      {good + "redis://127.0.0.1:6379 secret", "line 2 names the same node as an earlier line"}};
  for (const auto& entry : wrong) {
    CAPTURE(entry.first);
    const std::string said = refusal(entry.first);
    CHECK_MESSAGE(contains(said, entry.second), said);
    CHECK(!contains(said, "secret"));
  }
  for (const auto& no_file :
       {directory.path().string(), std::string("/dev/zero"), std::string("/no/secret/file")}) {
    const auto refused = password_from_file(no_file);
    CHECK(code_of(refused) == Errc::invalid_argument);
    CHECK(contains(refused.error().message, "there is no such file that can be read"));
    CHECK(!contains(refused.error().message, "secret"));
  }
}

}  // namespace
}  // namespace redlock::testing
