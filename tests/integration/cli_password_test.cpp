// SPDX-License-Identifier: MIT
// A password that the command reads from a file, by option or by environment.
#include "cli_process.hpp"
#include "support/shell.hpp"

using namespace redlock::testing;
using redlock::cluster::Fleet;

TEST_CASE("the command reads the password from a file, which option or environment names") {
  const Fleet fleet({.nodes = 1, .settings = {"user ann on >sesame ~* &* +@all"}});
  const TemporaryDirectory directory;
  const auto file = (directory.path() / "password").string();
  std::ofstream(file) << "sesame\n";
  const auto redlock = fmt::format(
      "REDLOCK_QUARANTINE=off REDLOCK_NODES=redis://ann:@127.0.0.1:{} {{}} " REDLOCK_BIN_DIR
      "/redlock status seat {{}} 2>&1",
      fleet.port(0));
  const auto run = [&](const std::string& variable, const std::string& option) {
    return shell(fmt::format(fmt::runtime(redlock), variable, option));
  };
  const std::string named = "REDLOCK_PASSWORD_FILE=" + file;
  CHECK(contains(run("", "--password-file " + file).output, "seat is free"));
  CHECK(contains(run(named, "").output, "seat is free"));
  CHECK(contains(run("", "").output, "has a user and no password"));
  const auto missing = run(named, "--password-file /no/such/file");
  CHECK(missing.status == 64);
  CHECK(contains(missing.output, "--password-file: there is no such file"));
  CHECK_FALSE(contains(missing.output, "/no/such/file"));  // it may be the password itself
}

TEST_CASE("the command says once that others may read a file with a password, and whose it is") {
  const Fleet fleet({.nodes = 1, .settings = {"user ann on >sesame ~* &* +@all"}});
  const TemporaryDirectory directory;
  const auto file = [&](const std::string& name, const std::string& text) {
    const auto path = (directory.path() / name).string();
    std::ofstream(path) << text;
    return path;
  };
  const auto at = fmt::format("@127.0.0.1:{}", fleet.port(0));
  const auto password = file("password", "sesame\n");
  const auto nodes = file("nodes", "redis://ann:" + at + "\n");
  const auto both = file("both", "redis://ann:sesame" + at + "\n");
  const auto said = [&](const std::string& mode, const Arguments& options,
                        const std::string& variable = "") {
    REQUIRE(shell(fmt::format("chmod {} {} {} {}", mode, password, nodes, both)).status == 0);
    Arguments arguments{"status", "seat"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto finished = redlock::testing::redlock(
        arguments, {{"REDLOCK_QUARANTINE", "off"}, {"REDLOCK_PASSWORD_FILE", variable}});
    CHECK(contains(finished.out, "seat is free"));
    return finished.err;
  };
  const Arguments apart{"--nodes-file", nodes, "--password-file", password};
  const std::string warning =
      ": every user of this machine may read the password in it; chmod 600 it\n";
  CHECK(said("644", apart) == "redlock: --password-file " + password + warning);
  CHECK(said("604", {"--nodes-file", both}) == "redlock: --nodes-file " + both + warning);
  CHECK(said("604", {"--nodes-file", nodes}, password) ==
        "redlock: REDLOCK_PASSWORD_FILE " + password + warning);
  const auto by_variable = redlock::testing::redlock(
      {"status", "seat"}, {{"REDLOCK_QUARANTINE", "off"}, {"REDLOCK_NODES_FILE", both}});
  CHECK(by_variable.err == "redlock: REDLOCK_NODES_FILE " + both + warning);
  CHECK(said("640", apart).empty());  // a group that was given it on purpose
  CHECK(said("600", {"--nodes-file", both}).empty());
}

TEST_CASE("a password file with a wrong line is refused with the number of the line") {
  const TemporaryDirectory directory;
  const auto path = (directory.path() / "passwords").string();
  std::ofstream(path) << "redis://127.0.0.1:1 sesame\nredis://127.0.0.1:2\n";
  for (const Variables& variables : {Variables{{"REDLOCK_PASSWORD_FILE", path}}, Variables{}}) {
    Arguments arguments{"status", "seat", "--nodes", "redis://127.0.0.1:1"};
    if (variables.empty()) arguments.insert(arguments.end(), {"--password-file", path});
    const auto refused = redlock::testing::redlock(arguments, variables);
    CHECK(refused.status == 64);
    CHECK(contains(refused.err, variables.empty()
                                    ? "--password-file: line 2 has no password"
                                    : "REDLOCK_PASSWORD_FILE: line 2 has no password"));
    CHECK_FALSE(contains(refused.err, "sesame"));
  }
}
