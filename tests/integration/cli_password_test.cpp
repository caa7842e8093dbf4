// SPDX-License-Identifier: MIT
// A password that the command reads from a file, by option or by environment.
#include "cli_process.hpp"

namespace redlock::testing {
namespace {

/// A node with a user, and files that a case writes.
struct NodeWithPassword {
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    const auto path = (directory.path() / name).string();
    std::ofstream(path) << text;
    return path;
  }
  [[nodiscard]] static Finished status(const Arguments& options, Variables variables = {}) {
    variables.emplace("REDLOCK_QUARANTINE", "off");
    return redlock(patient(appended({"status", "seat"}, options)), variables);
  }

  TemporaryDirectory directory;
  Fleet fleet{{.nodes = 1, .settings = {"user ann on >sesame ~* &* +@all"}}};
  std::string at = fmt::format("@127.0.0.1:{}", fleet.port(0));
};

TEST_CASE_FIXTURE(NodeWithPassword, "a file with the password is named by option or variable") {
  const auto file = write("password", "sesame\n");
  const Arguments nodes{"--nodes", "redis://ann:" + at};
  CHECK(contains(status(appended(nodes, {"--password-file", file})).out, "seat is free"));
  const Variables named{{"REDLOCK_PASSWORD_FILE", file}};
  CHECK(contains(status(nodes, named).out, "seat is free"));
  CHECK(contains(status(nodes).err, "has a user and no password"));
  const auto missing =
      exits_with(64, status(appended(nodes, {"--password-file", "/no/such/file"}), named));
  CHECK(contains(missing.err, "--password-file: there is no such file"));
  CHECK_FALSE(contains(missing.err, "/no/such/file"));  // it may be the password itself
  const auto wrong = write("passwords", "redis://127.0.0.1:1 sesame\nredis://127.0.0.1:2\n");
  const auto refused = exits_with(64, status(nodes, {{"REDLOCK_PASSWORD_FILE", wrong}}));
  CHECK(contains(refused.err, "REDLOCK_PASSWORD_FILE: line 2 has no password"));
}

TEST_CASE_FIXTURE(NodeWithPassword, "a file whose password others may read is told of, once") {
  const auto password = write("password", "sesame\n");
  const auto nodes = write("nodes", "redis://ann:" + at + "\n");
  const auto both = write("both", "redis://ann:sesame" + at + "\n");
  const auto said = [&](unsigned mode, const Arguments& options, const Variables& variables = {}) {
    for (const auto& file : {password, nodes, both}) REQUIRE(::chmod(file.c_str(), mode) == 0);
    const auto finished = status(options, variables);
    CHECK(contains(finished.out, "seat is free"));
    return finished.err;
  };
  const Arguments apart{"--nodes-file", nodes, "--password-file", password};
  const std::string warning =
      ": every user of this machine may read the password in it; chmod 600 it\n";
  CHECK(said(0644, apart) == "redlock: --password-file " + password + warning);
  CHECK(said(0604, {"--nodes-file", both}) == "redlock: --nodes-file " + both + warning);
  CHECK(said(0604, {"--nodes-file", nodes}, {{"REDLOCK_PASSWORD_FILE", password}}) ==
        "redlock: REDLOCK_PASSWORD_FILE " + password + warning);
  CHECK(said(0604, {}, {{"REDLOCK_NODES_FILE", both}}) ==
        "redlock: REDLOCK_NODES_FILE " + both + warning);
  CHECK(said(0640, apart).empty());  // a group that was given it on purpose
  CHECK(said(0600, {"--nodes-file", both}).empty());
}

}  // namespace
}  // namespace redlock::testing
