// SPDX-License-Identifier: MIT
// Passwords that are changed while a lease is held: the nodes first or the program first, and with
// every connection broken meanwhile. No text shows an old or a new one.
#include "integration/api_fixture.hpp"
#include "support/temporary_directory.hpp"

namespace redlock::testing {
namespace {

/// What a program knows of its password, changed while the client's threads read it.
using Vault = std::atomic<const char*>;

/// All nodes have a user ann, whose password is first-one.
struct NodesOfAnn {
  Fleet fleet{{.nodes = 3}};
  TemporaryDirectory directory;
  std::string path = (directory.path() / "passwords").string();

  NodesOfAnn() { change_user({"on", ">first-one", "~*", "&*", "+@all"}); }
  void change_user(const std::vector<std::string>& rules) const {
    std::vector<std::string> command{"ACL", "SETUSER", "ann"};
    command.insert(command.end(), rules.begin(), rules.end());
    run_on_all(fleet, command);
  }
  [[nodiscard]] ClientOptions options_with(const std::string& login = "ann:") const {
    return options_for(uris_as(login, fleet));
  }
  void break_connections() const { run_on_all(fleet, {"CLIENT", "KILL", "USER", "ann"}); }
};

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
    const NodesOfAnn nodes;
    Vault vault("first-one");
    auto options = nodes.options_with();
    options.password = [&](std::string_view node) {
      REQUIRE(node.starts_with("redis://ann@127.0.0.1:"));
      return std::string(vault);
    };
    const Client client = start_client(options);
    Lease lease = must(client.lock("seat").acquire({.lease = 40s}));
    const auto token = lease.token();
    REQUIRE(soon_renewed(nodes.fleet, lease));
    if (nodes_first) {
      nodes.change_user({">second-one"});
      nodes.break_connections();
      REQUIRE(soon_renewed(nodes.fleet, lease));
      nodes.change_user({"<first-one"});
      nodes.break_connections();
      vault = "second-one";
    } else {
      vault = "second-one";
      nodes.break_connections();
      REQUIRE(soon_renewed(nodes.fleet, lease));  // by the one that worked last
      nodes.change_user({">second-one", "<first-one"});
      nodes.break_connections();
    }
    REQUIRE(soon_renewed(nodes.fleet, lease));
    CHECK(lease.valid());
    CHECK(lease.token() == token);
    CHECK(must(lease.release()) == Released::released);
  }
}

TEST_CASE_FIXTURE(NodesOfAnn, "where neither password is right, no text shows one of them") {
  Vault vault("first-one");
  auto options = options_with();
  options.password = [&](std::string_view) { return std::string(vault); };
  const Client client = start_client(options);
  must(must(client.lock("seat").acquire()).release());
  vault = "second-one";
  change_user({">third-one", "<first-one"});
  break_connections();
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
  vault = "third-one";
  CHECK(eventually([&] { return client.lock("seat").acquire().has_value(); }));
}

TEST_CASE_FIXTURE(
    NodesOfAnn,
    "a password is read from a file anew for every connection, and before that of the URI") {
  std::ofstream(path) << "first-one\r\nnot this line\n";
  auto options = options_with("ann:wrong");
  options.password = must(password_from_file(path));
  const Client client = start_client(options);
  must(must(client.lock("seat").acquire()).release());
  change_user({">second-one", "<first-one"});
  std::ofstream(path) << "second-one";
  break_connections();
  CHECK(client.lock("seat").acquire({.wait = patience}).has_value());

  std::ofstream(path) << std::string(60'000, 'x') << '\n';
  CHECK(options.password("node") == std::string(60'000, 'x'));
  std::filesystem::remove(path);
  CHECK(options.password("node").empty());
}

TEST_CASE_FIXTURE(
    NodesOfAnn,
    "a file has a password for each node, by the name that errors have for it or by its URI") {
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
  auto options = options_with();
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
