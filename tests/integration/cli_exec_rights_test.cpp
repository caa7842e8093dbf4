// SPDX-License-Identifier: MIT
// redlock exec as an ordinary user, with a command that runs as root: what it may not kill it must
// not call killed. And the guard beside the command, when somebody kills that.
#include "cli_process.hpp"

namespace redlock::testing {
namespace {

namespace fs = std::filesystem;

constexpr auto* setpriv = "/usr/bin/setpriv";
const Arguments as_nobody{"--reuid=65534", "--regid=65534", "--clear-groups"};

/// Copies of the command, which an ordinary user may not reach where it was built, and of setpriv,
/// which here gives the rights of root to whoever runs it.
class Place {
 public:
  Place() {
    constexpr auto all_may_run = fs::perms::owner_all | fs::perms::group_exec |
                                 fs::perms::others_exec | fs::perms::others_read;
    fs::permissions(directory_.path(), all_may_run);
    fs::copy_file(command_path(), redlock());
    fs::permissions(redlock(), all_may_run);
    if (!fs::exists(setpriv)) return;
    fs::copy_file(setpriv, to_root());
    fs::permissions(to_root(), all_may_run | fs::perms::set_uid);
  }

  [[nodiscard]] std::string redlock() const { return (directory_.path() / "redlock").string(); }
  [[nodiscard]] std::string to_root() const { return (directory_.path() / "to-root").string(); }

  /// Whether this test may do so: it is root, and the directory honours set-user-ID.
  [[nodiscard]] bool works() const {
    if (!fs::exists(to_root())) return false;
    const auto as_root_again = appended(as_nobody, {to_root(), "--reuid=0", "true"});
    if (Running(as_root_again, {}, setpriv).wait().status == 0) return true;
    std::puts("SKIPPED: this is not root, or set-user-ID has no effect in temporary directories");
    return false;
  }

  /// redlock exec as an ordinary user. Its command is a line for the shell.
  [[nodiscard]] Arguments exec(const Arguments& options, const std::string& line) const {
    const auto exec =
        exec_a(appended({"--node-timeout", "2s"}, options), {"sh", "-c", line, to_root()});
    return appended(appended(as_nobody, {redlock()}), exec);
  }

 private:
  TemporaryDirectory directory_;
};

/// Becomes root, says its process, and ends with its stdin.
constexpr auto* root_until_eof = R"(exec "$0" --reuid=0 sh -c 'echo pid $$; exec cat')";
/// The same, as a part of a command that stays what it was.
constexpr auto* part_is_root =
    R"(exec 3<&0; "$0" --reuid=0 sh -c 'echo pid $$; exec cat <&3' & trap 'exit 0' TERM; wait)";

TEST_CASE("a command that became root is told of at once, and never said to be killed") {
  const Place place;
  if (!place.works()) return;
  Fleet fleet({.nodes = 3});
  Running running(place.exec({"--lease", "6s", "--grace", "1s"}, root_until_eof),
                  variables_of(fleet), setpriv);
  const pid_t pid = printed_pid(running);
  const std::string process = "pid " + std::to_string(pid) + " (cat, uid 0)";
  CHECK(running.await_err("so redlock may neither signal nor kill it"));
  pause_all(fleet);
  CHECK(running.await_err(process + " goes on beside the next holder"));
  CHECK(ProcessWatch(pid).is_running());
  const auto finished = running.wait();  // closes its stdin
  CHECK(finished.status == 79);
  CHECK_FALSE(contains(finished.err, "killed the command"));
  CHECK(occurrences(finished.err, "neither signal nor kill") == 1);
  CHECK(occurrences(finished.err, "goes on beside the next holder") == 1);
}

TEST_CASE("of a command of which a part became root, that part is said to go on") {
  const Place place;
  if (!place.works()) return;
  Fleet fleet({.nodes = 3});
  Running running(place.exec({"--lease", "6s", "--log", "json"}, part_is_root), variables_of(fleet),
                  setpriv);
  const ProcessWatch part(printed_pid(running));
  CHECK(running.await_err("\"command_out_of_reach\""));
  pause_all(fleet);
  CHECK(running.await_err("\"command_not_killed\""));
  CHECK(running.await_err("(cat, uid 0)\""));
  CHECK(part.is_running());
  CHECK(running.wait().status == 79);
}

TEST_CASE("redlock that is root kills a command that gave up its rights, and so does its guard") {
  const Place place;
  if (!place.works()) return;
  Fleet fleet({.nodes = 3});
  const auto as_other = appended({setpriv}, as_nobody);
  const Arguments arguments =
      exec_a({"--node-timeout", "2s", "--lease", "6s"},
             appended(as_other, {"sh", "-c", "trap '' TERM; echo pid $$; cat; cat"}));
  {
    Running running(fleet, arguments);
    const ProcessWatch child(printed_pid(running));
    running.signal(SIGKILL);
    CHECK(child.await_end());
  }
  Running running(fleet, arguments);
  const ProcessWatch child(printed_pid(running));
  pause_all(fleet);
  CHECK(child.await_end());
  const auto finished = exits_with(79, running.wait());
  CHECK(contains(finished.err, "killed the command"));
}

/// The guard in this process group; 0 if there is none.
pid_t guard_of(pid_t group) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    if (text_in(entry.path() / "comm") != "redlock-guard\n") continue;
    const auto process = static_cast<pid_t>(std::stol(entry.path().filename().string()));
    // One that has ended, and was not reaped, cannot read its own pipe any more.
    if (::getpgid(process) == group && ProcessWatch(process).is_running()) return process;
  }
  return 0;
}

TEST_CASE("a guard that was killed is replaced, and the new one kills the command with redlock") {
  const Fleet fleet({.nodes = 3});
  Running running(fleet, exec_a({}, {"sh", "-c", "sleep 1000 & echo pid $$; wait"}));
  const pid_t pid = printed_pid(running);
  const ProcessWatch child(pid);
  for (int i = 0; i < 2; ++i) {
    pid_t guard = 0;
    REQUIRE(eventually([&] { return (guard = guard_of(pid)) != 0; }));
    REQUIRE(::kill(guard, SIGKILL) == 0);
    REQUIRE(eventually([&] {
      const auto now = guard_of(pid);
      return now != 0 && now != guard;
    }));
  }
  CHECK(running.await_err("another has been started"));
  // A guard that stays stopped is of no use.
  const pid_t guard = guard_of(pid);
  REQUIRE(::kill(guard, SIGSTOP) == 0);
  CHECK(eventually([&] { return !is_stopped(guard); }));
  running.signal(SIGKILL);
  CHECK(child.await_end());
  CHECK(running.wait().status == 128 + SIGKILL);
}

}  // namespace
}  // namespace redlock::testing
