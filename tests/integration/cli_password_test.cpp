// SPDX-License-Identifier: MIT
// A password that the command reads from a file, by option or by environment.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <fstream>

#include "cluster/fleet.hpp"
#include "support/shell.hpp"
#include "support/temporary_directory.hpp"
#include "support/text.hpp"

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
  CHECK(contains(missing.output, "--password-file /no/such/file: there is no such file"));
}
