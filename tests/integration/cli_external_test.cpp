// SPDX-License-Identifier: MIT
// Subcommands that are programs beside redlock: how they are found, and what is said of one that is
// not there. In place of the real ones stand scripts, beside a copy of redlock.
#include "cli_process.hpp"

namespace redlock::testing {
namespace {

namespace fs = std::filesystem;

class CopyOfRedlock {
 public:
  CopyOfRedlock() { fs::copy_file(command_path(), path()); }

  void put_beside(const std::string& program, const std::string& script) const {
    static_cast<void>(script_in(directory_, program, script));
  }
  [[nodiscard]] std::string path() const { return (directory_.path() / "redlock").string(); }
  [[nodiscard]] Finished run(const Arguments& arguments, const Variables& variables = {}) const {
    return Running(arguments, variables, path()).wait();
  }

 private:
  TemporaryDirectory directory_;
};

TEST_CASE("a program beside redlock takes its place, with its arguments and its exit status") {
  const CopyOfRedlock redlock;
  redlock.put_beside("redlock-fleet", "echo \"$$ $*\"; exit 7\n");
  Running running({"fleet", "up", "-n", "3"}, {}, redlock.path());
  const auto pid = running.pid();
  const auto finished = exits_with(7, running.wait());
  CHECK(finished.out == std::to_string(pid) + " up -n 3\n");
  CHECK(finished.err.empty());
  CHECK(contains(redlock.run({"help", "fleet", "up"}).out, " up --help\n"));
  CHECK(contains(redlock.run({"fleet", "--", "up"}).out, " -- up\n"));
}

TEST_CASE("a program beside redlock is given the passwords as they were written") {
  const CopyOfRedlock redlock;
  redlock.put_beside("redlock-bench", "echo \"$REDLOCK_NODES $2\"\n");
  const auto finished =
      redlock.run({"bench", "--nodes", "redis://:two@h"}, {{"REDLOCK_NODES", "redis://:one@h"}});
  CHECK(finished.out == "redis://:one@h redis://:two@h\n");
}

TEST_CASE("redlock finds the programs beside itself by way of a link, and in no PATH") {
  const CopyOfRedlock redlock;
  redlock.put_beside("redlock-fleet", "echo beside\n");
  const TemporaryDirectory place;
  const auto link = (place.path() / "redlock").string();
  fs::create_symlink(redlock.path(), link);
  CHECK(Running({"fleet"}, {}, link).wait().out == "beside\n");
  const CopyOfRedlock alone;
  const auto beside = fs::path(redlock.path()).parent_path().string();
  CHECK(alone.run({"fleet"}, {{"PATH", beside}}).status == 127);
}

TEST_CASE("a program that is not installed is told with the package that has it") {
  const CopyOfRedlock redlock;
  const auto missing = exits_with(127, redlock.run({"bench", "--duration", "1s"}));
  CHECK(missing.out.empty());
  check_contains(missing.err, {"redlock: redlock bench is a separate program, ",
                               "/redlock-bench, which is not installed; install the package "
                               "redlock-tools, or build the target redlock_commands"});
  const auto logged = redlock.run({"bench", "--log", "json"});
  CHECK(contains(logged.err, "\"status\":127"));
  CHECK(contains(redlock.run({"--help"}).out, "Measure locks on these nodes"));
  CHECK(contains(redlock.run({"completion", "bash"}).out, "'/fleet') command='fleet'"));
  CHECK(contains(redlock.run({"manual"}).out, "redlock\\-bench"));

  redlock.put_beside("redlock-fleet", "");
  fs::permissions(fs::path(redlock.path()).replace_filename("redlock-fleet"),
                  fs::perms::owner_read);
  const auto refused = exits_with(126, redlock.run({"fleet", "list"}));
  CHECK(contains(refused.err, "redlock-fleet cannot be run: Permission denied"));
}

}  // namespace
}  // namespace redlock::testing
