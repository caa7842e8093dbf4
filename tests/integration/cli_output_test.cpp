// SPDX-License-Identifier: MIT
// What the command prints and nobody can read: a closed stdout, a full disk, a pipe without a
// reader. A grant that could not be written is given back, and the exit status says that something
// went wrong.
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

}  // namespace
}  // namespace redlock::testing
