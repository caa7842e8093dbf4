// SPDX-License-Identifier: MIT
// What the command prints and nobody can read: a closed stdout, a full disk, a pipe without a
// reader. A grant that could not be written is given back, and the exit status says that something
// went wrong.
#include "cli_process.hpp"

namespace redlock::testing {
namespace {

/// Runs the command under a shell, which redirects its output first. Its status is printed.
Finished redirected(const Fleet& fleet, const std::string& arguments, const std::string& where) {
  auto variables = nodes_variable(fleet.uris());
  variables["XDG_STATE_HOME"] = std::filesystem::temp_directory_path().string();
  const auto script = "{ " + command_path() + " " + arguments + " " + where + "; } ; echo $?";
  return Running({"-c", script}, variables, "/bin/sh").wait();
}

bool is_free(const Fleet& fleet, const std::string& name) {
  return eventually([&] { return fleet.run(0, {"EXISTS", "redlock:lock:{" + name + "}"}) == "0"; });
}

TEST_CASE("a grant that cannot be written is given back, and said so") {
  const Fleet fleet({.nodes = 3});
  for (const auto* where : {">&-", ">/dev/full"}) {
    CAPTURE(where);
    const auto finished = redirected(fleet, "acquire a --node-timeout 10s", where);
    CHECK(finished.out == "125\n");
    CHECK(contains(finished.err, "cannot write to stdout"));
    CHECK(contains(finished.err, "a was given back"));
    CHECK(is_free(fleet, "a"));
  }
}

TEST_CASE("a pipe without a reader gives the grant back as well") {
  const Fleet fleet({.nodes = 3});
  Running first({"acquire", "a", "--node-timeout", "10s"}, nodes_variable(fleet.uris()));
  first.close_stdout();
  const auto finished = first.wait();
  CHECK(finished.status == 125);
  CHECK(contains(finished.err, "a was given back"));
  CHECK(is_free(fleet, "a"));
}

TEST_CASE("hold that cannot print says that the lock is held all the same") {
  const Fleet fleet({.nodes = 3});
  const auto taken =
      redlock({"acquire", "a", "--node-timeout", "10s"}, nodes_variable(fleet.uris()));
  const auto owner = field(taken.out, "owner");
  for (const auto* where : {">&-", ">/dev/full"}) {
    CAPTURE(where);
    const auto finished = redirected(fleet, "hold a --node-timeout 10s --owner " + owner, where);
    CHECK(finished.out == "125\n");
    CHECK(contains(finished.err, "cannot write to stdout"));
    CHECK(contains(finished.err, "a was held longer all the same"));
  }
  Running unread({"hold", "a", "--node-timeout", "10s", "--owner", owner},
                 nodes_variable(fleet.uris()));
  unread.close_stdout();
  const auto finished = unread.wait();
  CHECK(finished.status == 125);
  CHECK(contains(finished.err, "cannot write to stdout"));
  CHECK(fleet.run(0, {"EXISTS", "redlock:lock:{a}"}) == "1");
}

TEST_CASE("whatever is only printed fails if it cannot be") {
  const Fleet fleet({.nodes = 1});
  for (const auto* arguments :
       {"status a", "status a -o json", "list", "doctor", "--version", "--help", "exec --help"}) {
    for (const auto* where : {">&-", ">/dev/full"}) {
      CAPTURE(arguments);
      CAPTURE(where);
      const auto finished = redirected(fleet, arguments, where);
      CHECK(finished.out == "125\n");
      CHECK(contains(finished.err, "cannot write to stdout"));
    }
  }
}

TEST_CASE("nodes whose addresses nobody can read are ended again") {
  const Fleet other({.nodes = 1});
  const TemporaryDirectory place;
  const auto directory = place.path() / "fleet";
  for (const auto* where : {">&-", ">/dev/full"}) {
    CAPTURE(where);
    const auto finished = redirected(other, "fleet up -n 2 --dir " + directory.string(), where);
    CHECK(finished.out == "125\n");
    CHECK(contains(finished.err, "cannot write to stdout"));
    CHECK(processes_in(directory) == 0);
  }
}

TEST_CASE("the command of exec finds stdout closed if it was closed") {
  const Fleet fleet({.nodes = 1});
  const auto closed = redirected(fleet, "exec a -- sh -c 'echo hello'", ">&- 2>/dev/null");
  CHECK(closed.out != "0\n");
  const auto quiet = redirected(fleet, "exec a -- true", "<&- >&- 2>&-");
  CHECK(quiet.out == "0\n");
}

}  // namespace
}  // namespace redlock::testing
