// SPDX-License-Identifier: MIT
// What the command prints. Where nobody can read it (a closed stdout, a full disk, a pipe without a
// reader) a grant that could not be written is given back, and the exit status says that something
// went wrong. Tables fit the terminal: 80 columns, or more where it has them; what is cut there is
// whole in JSON.
#include "cli_process.hpp"

namespace redlock::testing {
namespace {

/// Where nobody can read.
constexpr std::array unwritable{">&-", ">/dev/full"};

/// Runs the command under a shell, which redirects its output first. Its status is printed.
Finished redirected(const Fleet& fleet, const std::string& arguments, const std::string& where) {
  const auto state = std::filesystem::temp_directory_path().string();
  return in_shell(fleet, "export XDG_STATE_HOME=" + state + "; { " + command_path() + " " +
                             arguments + " " + where + "; } ; echo $?")
      .wait();
}

/// Checks that it ends with 125 and says these words besides the reason.
void cannot_write(const Fleet& fleet, const std::string& arguments, const std::string& words = "") {
  for (const std::string where : unwritable) {
    CAPTURE(arguments);
    CAPTURE(where);
    const auto finished = redirected(fleet, arguments, where);
    CHECK(finished.out == "125\n");
    check_contains(finished.err, {"cannot write to stdout", words});
  }
}

/// Checks the same of a pipe that nobody reads.
void cannot_pipe(const Fleet& fleet, const Arguments& arguments, const std::string& words) {
  Running unread(fleet, arguments);
  unread.close_stdout();
  const auto finished = exits_with(125, unread.wait());
  check_contains(finished.err, {"cannot write to stdout", words});
}

TEST_CASE_FIXTURE(ThreeNodes, "a grant that cannot be written is given back, and said so") {
  cannot_write(fleet, "acquire a --node-timeout 10s", "a was given back");
  cannot_pipe(fleet, {"acquire", "a"}, "a was given back");
  CHECK(eventually([&] { return nodes_with_lock() == 0; }));
}

TEST_CASE_FIXTURE(ThreeNodes, "hold that cannot print says that the lock is held all the same") {
  const auto owner = field(run({"acquire", "a"}).out, "owner");
  cannot_write(fleet, "hold a --node-timeout 10s --owner " + owner,
               "a was held longer all the same");
  cannot_pipe(fleet, {"hold", "a", "--owner", owner}, "a was held longer all the same");
  CHECK(nodes_with_lock() >= 2);
}

TEST_CASE_FIXTURE(OneNode, "whatever is only printed fails if it cannot be") {
  for (const auto* arguments :
       {"status a", "status a -o json", "list", "doctor", "--version", "--help", "exec --help",
        "bench --duration 200ms --node-timeout 10s"}) {
    cannot_write(fleet, arguments);
  }
}

TEST_CASE_FIXTURE(OneNode, "nodes whose addresses nobody can read are ended again") {
  const TemporaryDirectory place;
  const auto directory = place.path() / "fleet";
  cannot_write(fleet, "fleet up -n 2 --dir " + directory.string());
  CHECK(processes_in(directory) == 0);
}

TEST_CASE_FIXTURE(OneNode, "the command of exec finds stdin, stdout and stderr as redlock did") {
  const auto closed = redirected(fleet, "exec a -- sh -c 'echo hello'", ">&- 2>/dev/null");
  CHECK(closed.out != "0\n");
  for (const auto* which : {"<&-", ">&-", "2>&-", "<&- >&- 2>&-"}) {
    CAPTURE(which);
    const auto quiet = redirected(fleet, "exec a -- true", which);
    CHECK(quiet.out == "0\n");
    CHECK(quiet.err.empty());
  }
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (const auto& line : lines_of(text)) widest = std::max(widest, characters_in(line));
  return widest;
}

/// Names as long as those in a cloud, of nodes that do not exist there.
std::vector<std::string> long_names() {
  std::vector<std::string> uris;
  for (const auto* zone : {"a", "b", "c"}) {
    uris.push_back("redis://lock-node-in-availability-zone-" + std::string(zone) +
                   ".redlock.production.eu-central-1.internal.invalid:7001");
  }
  return uris;
}

TEST_CASE("no table is wider than 80 columns, however long the names of nodes are") {
  const auto uris = long_names();
  for (const auto& arguments : looks) {
    CAPTURE(arguments);
    const auto finished = redlock(arguments, nodes_variable(uris));
    CAPTURE(finished.out);
    CHECK_FALSE(finished.out.empty());
    CHECK(widest_line(finished.out) <= 80);
    const auto with_json = appended(arguments, {"-o", "json"});
    const auto whole = json::parse(redlock(with_json, nodes_variable(uris)).out);
    CHECK(whole["nodes"][0]["node"] == uris[0]);
  }
  // Both ends tell nodes apart.
  const auto status = redlock({"status", "a"}, nodes_variable(uris)).out;
  check_contains(status, {"redis://lock-node-in-", "…", "invalid:7001"});
}

TEST_CASE("tables of real nodes fit, too, with all that there is to say of them") {
  Fleet fleet({.nodes = 3, .persistence = Persistence::always, .adopted = true});
  const std::string name(200, 'n');
  REQUIRE(redlock(fleet, {"acquire", name}, with_quarantine).status == 0);
  fleet.kill(2);
  for (const auto& arguments : {Arguments{"status", name}, {"doctor"}, {"list"}}) {
    const auto finished = redlock(fleet, arguments, with_quarantine);
    CAPTURE(finished.out);
    // The first line of status has the name as it is.
    CHECK(widest_line(finished.out.substr(finished.out.find('\n'))) <= 80);
  }
  CHECK(in_json(fleet, {"list"}, with_quarantine)["locks"][0]["name"] == name);
}

TEST_CASE("a wider terminal shows more") {
  const Fleet fleet({.nodes = 1, .persistence = Persistence::always, .adopted = true});
  CHECK_FALSE(contains(redlock(fleet, {"doctor"}).out, "RUN ID"));
  CHECK(contains(redlock(fleet, {"doctor"}, {{"COLUMNS", "200"}}).out, "RUN ID"));
  CHECK(contains(redlock(fleet, {"doctor"}, {{"COLUMNS", "40"}}).out, "PERSISTENCE"));
}

TEST_CASE("the tables of fleets fit") {
  const TemporaryDirectory place;
  const auto state = place.path() / std::string(90, 'd');
  const Variables variables{{"XDG_STATE_HOME", state.string()}};
  REQUIRE(redlock({"fleet", "up", "-n", "1"}, variables).status == 0);
  CHECK(widest_line(redlock({"fleet", "status"}, variables).out) <= 80);
  CHECK(widest_line(redlock({"fleet", "list"}, variables).out) <= 80);
  CHECK(contains(redlock({"fleet", "list", "-o", "json"}, variables).out, state.string()));
  CHECK(redlock({"fleet", "down"}, variables).status == 0);
}

}  // namespace
}  // namespace redlock::testing
