// SPDX-License-Identifier: MIT
// redlock fence: who is let through to a file, that one works at a time, and that the record beside
// the file is whole and durable whatever is killed, at whichever of its system calls.
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "cli_process.hpp"

namespace redlock::testing {
namespace {

namespace fs = std::filesystem;

/// A file in a directory of its own, and what redlock fence does to it.
struct FencedFile {
  [[nodiscard]] std::string path() const { return (place.path() / "file").string(); }
  [[nodiscard]] std::string record() const { return text_in(path() + ".fence"); }
  [[nodiscard]] Arguments fence(std::uint64_t token, const Arguments& cmd) const {
    return appended({"fence", path(), "--token", std::to_string(token), "--"}, cmd);
  }
  [[nodiscard]] Finished shell(std::uint64_t token, const std::string& script) const {
    return redlock(fence(token, {"sh", "-c", script}));
  }
  /// The status of a command that does nothing.
  [[nodiscard]] int enter(std::uint64_t token) const {
    return redlock(
               {"fence", path(), "--token", std::to_string(token), "--wait", "30s", "--", "true"})
        .status;
  }
  /// Another command, which does not wait.
  [[nodiscard]] Finished intrude(std::uint64_t token) const {
    return redlock(
        {"fence", path(), "--token", std::to_string(token), "--wait", "0", "--", "true"});
  }

  TemporaryDirectory place;
};

TEST_CASE_FIXTURE(FencedFile, "a file without a record lets any token through, and keeps it") {
  const auto finished = exits_with(0, shell(7, "echo $REDLOCK_TOKEN; cat " + path() + ".fence"));
  CHECK(finished.out == "7\n7\n");  // the record stands before the command starts
  CHECK(finished.err == "");
  CHECK(record() == "7\n");
}

TEST_CASE_FIXTURE(FencedFile, "an older token is refused with 77; the same may come again") {
  CHECK(enter(7) == 0);
  const auto refused = exits_with(77, shell(6, "echo ran"));
  CHECK(refused.out == "");
  CHECK(refused.err == "redlock: token 6 is too old: " + fs::canonical(place.path()).string() +
                           "/file has seen 7; the lease behind it is over\n");
  CHECK(record() == "7\n");
  CHECK(enter(7) == 0);
  CHECK(enter(8) == 0);
  CHECK(record() == "8\n");
}

TEST_CASE_FIXTURE(FencedFile, "tokens are compared as numbers, up to the last one that there is") {
  CHECK(enter(99) == 0);
  CHECK(enter(100) == 0);
  CHECK(enter(9'007'199'254'740'991) == 0);
  CHECK(enter(9'007'199'254'740'990) == 77);
}

TEST_CASE_FIXTURE(FencedFile, "the command takes redlock's place: status, signals, stdin") {
  CHECK(shell(1, "exit 5").status == 5);
  CHECK(shell(1, "kill -KILL $$").status == 128 + SIGKILL);
  CHECK(redlock(fence(1, {"/nowhere/command"})).status == 127);
  CHECK(redlock(fence(1, {"/etc/passwd"})).status == 126);
  Running running(fence(1, {"sh", "-c", "echo pid $$; cat; wait; exec sleep 1000"}));
  REQUIRE(running.await_out("\n"));
  CHECK(running.out() == "pid " + std::to_string(running.pid()) + "\n");
  running.write("word\n");
  CHECK(running.await_out("word"));
  running.signal(SIGTERM);
  CHECK(running.wait().status == 128 + SIGTERM);
}

TEST_CASE_FIXTURE(FencedFile, "one command works at a time; who does not wait is told with 75") {
  Running first(fence(1, {"sh", "-c", "echo in; read line"}));
  REQUIRE(first.await_out("in"));
  const auto busy = exits_with(75, intrude(2));
  CHECK(contains(busy.err, "in use"));
  CHECK(record() == "1\n");
  Running second(fence(2, {"cat", path()}));
  first.write("go\n");
  CHECK(first.wait().status == 0);
  CHECK(second.wait().status == 1);  // nothing was written; it came in all the same
  CHECK(record() == "2\n");
}

/// A command that closes every descriptor that it was given, and goes on.
const Arguments closes_all{"bash", "-c",
                           "for f in /proc/$$/fd/*; do f=${f##*/}; [ $f -lt 3 ] || "
                           "eval \"exec $f>&-\"; done; echo in; read line"};

TEST_CASE_FIXTURE(FencedFile, "a command that closes every descriptor is alone until its end") {
  Running running(fence(1, closes_all));
  REQUIRE(running.await_out("in"));
  CHECK(intrude(2).status == 75);
  running.signal(SIGKILL);
  CHECK(running.wait().status == 128 + SIGKILL);
  CHECK(enter(2) == 0);
}

TEST_CASE_FIXTURE(FencedFile, "a command stopped and killed without descriptors leaves no lock") {
  Running running(appended({command_path()}, fence(1, closes_all)), {}, "/usr/bin/setsid");
  REQUIRE(running.await_out("in"));
  REQUIRE(::kill(-running.pid(), SIGSTOP) == 0);
  running.signal(SIGKILL);
  CHECK(running.wait().status == 128 + SIGKILL);
  CHECK(enter(2) == 0);
}

TEST_CASE_FIXTURE(FencedFile, "what the command leaves running keeps others out as well") {
  Running left(fence(2, {"sh", "-c", "sleep 60 </dev/null >/dev/null 2>&1 & echo $!"}));
  const auto finished = exits_with(0, left.wait());
  CHECK(intrude(3).status == 75);
  ::kill(static_cast<pid_t>(std::stol(finished.out)), SIGKILL);
  CHECK(enter(3) == 0);
}

TEST_CASE_FIXTURE(FencedFile, "of processes that come at once every write let through counts") {
  std::ofstream(path()) << "0\n";
  const std::string script = "n=$(cat " + path() + "); echo $((n + 1)) >" + path();
  std::list<Running> all;
  // In an order in which some come too late.
  for (const std::uint64_t token : {3U, 1U, 4U, 2U, 6U, 5U, 8U, 7U, 9U, 9U, 9U, 10U}) {
    all.emplace_back(fence(token, {"sh", "-c", script}));
  }
  int written = 0;
  for (Running& running : all) {
    const int status = running.wait().status;
    CHECK((status == 0 || status == 77));
    written += status == 0 ? 1 : 0;
  }
  CHECK(text_in(path()) == std::to_string(written) + "\n");
  CHECK(record() == "10\n");
}

TEST_CASE_FIXTURE(FencedFile, "a link to the file is the file") {
  std::ofstream(path()) << "";
  const auto link = (place.path() / "link").string();
  fs::create_symlink("file", link);
  CHECK(enter(5) == 0);
  CHECK(redlock({"fence", link, "--token", "4", "--", "true"}).status == 77);
  CHECK_FALSE(fs::exists(link + ".fence"));
}

TEST_CASE_FIXTURE(FencedFile, "links and pipes beside the file are no trap") {
  const auto precious = (place.path() / "precious").string();
  std::ofstream(precious) << "7\n";
  const std::string beside = path() + ".fence";
  fs::create_symlink(precious, beside + ".new");
  CHECK(enter(9) == 0);
  CHECK(record() == "9\n");
  CHECK_FALSE(fs::is_symlink(beside));
  REQUIRE(::mkfifo((beside + ".new").c_str(), 0600) == 0);
  CHECK(enter(9) == 0);
  CHECK(record() == "9\n");

  const auto refuses = [&](const std::string& link) {
    fs::remove(link);
    fs::create_symlink(precious, link);
    const auto finished = exits_with(125, shell(9, "echo ran"));
    CHECK(finished.out == "");
    CHECK(contains(finished.err, link.substr(link.rfind('/'))));
    CHECK(fs::is_symlink(link));
    fs::remove(link);
  };
  refuses(beside);
  refuses(beside + ".lock");
  CHECK(text_in(precious) == "7\n");
}

TEST_CASE_FIXTURE(FencedFile, "on a full disk the old record stands and no command is run") {
  CHECK(enter(7) == 0);
  // Whatever is written finds no room; the signal that would end the process is ignored.
  const auto finished =
      exits_with(125, Running({"-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh", command_path(),
                               "fence", path(), "--token", "8", "--", "echo", "ran"},
                              {}, "/bin/sh")
                          .wait());
  CHECK(finished.out == "");
  CHECK(contains(finished.err, "file.fence.new"));
  CHECK(record() == "7\n");
  CHECK(enter(8) == 0);
}

TEST_CASE_FIXTURE(FencedFile, "under redlock exec the token is that of the lock") {
  const cluster::Fleet fleet({.nodes = 3});
  const auto exec =
      exec_a({}, {command_path(), "fence", path(), "--", "sh", "-c", "echo $REDLOCK_TOKEN"});
  const auto first = exits_with(0, redlock(fleet, exec));
  CHECK(record() == first.out);
  const auto second = redlock(fleet, exec);
  CHECK(std::stoull(second.out) > std::stoull(first.out));
  CHECK(enter(std::stoull(first.out)) == 77);
}

TEST_CASE_FIXTURE(FencedFile, "a damaged record lets nobody through") {
  const std::string long_number(100, '0');
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("0\n"), std::string("-1\n"),
        std::string("7 8\n"), std::string("x"), std::string("9007199254740992\n"),
        long_number.substr(0, 63) + "79"}) {
    CAPTURE(text);
    std::ofstream(path() + ".fence") << text;
    const auto finished = exits_with(125, shell(9, "echo ran"));
    CHECK(finished.out == "");
    CHECK(contains(finished.err, "damaged"));
    CHECK(record() == text);
  }
}

TEST_CASE_FIXTURE(FencedFile, "what cannot work is refused with one sentence") {
  const auto refuses = [&](const Arguments& arguments, const std::string& sentence,
                           const Variables& variables = {}) {
    const auto finished = exits_with(64, redlock(arguments, variables));
    CHECK(contains(finished.err, sentence));
    CHECK(occurrences(finished.err, "\n") == 1);
  };
  refuses({"fence"}, "FILE");
  refuses({"fence", path(), "--token", "1"}, "behind --");
  refuses({"fence", path(), "--token", "1", "--"}, "behind --");
  refuses({"fence", path(), "--", "true"}, "redlock exec");
  refuses({"fence", path(), "--", "true"}, "redlock exec", {{"REDLOCK_TOKEN", ""}});
  refuses({"fence", path(), "--", "true"}, "REDLOCK_TOKEN is 'x'", {{"REDLOCK_TOKEN", "x"}});
  for (const auto* token :
       {"0", "-1", "1.5", "", " 1", "9007199254740992", "99999999999999999999"}) {
    CAPTURE(token);
    refuses({"fence", path(), std::string("--token=") + token, "--", "true"}, "--token");
  }
  refuses({"fence", path(), "--token", "1", "--wait", "5", "--", "true"}, "say 5s");
  refuses({"fence", "", "--token", "1", "--", "true"}, "FILE");
  refuses({"fence", "/", "--token", "1", "--", "true"}, "beside");
  refuses({"fence", "/nowhere/file", "--token", "1", "--", "true"}, "does not exist");
  fs::create_symlink("nothing", place.path() / "astray");
  refuses({"fence", (place.path() / "astray").string(), "--token", "1", "--", "true"},
          "leads nowhere");
  CHECK_FALSE(fs::exists(path() + ".fence"));
}

TEST_CASE("a directory that cannot be written to is told of, and the command not run") {
  const auto finished =
      exits_with(125, redlock({"fence", "/proc/version", "--token", "1", "--", "echo", "ran"}));
  CHECK(finished.out == "");
  CHECK(contains(finished.err, "/proc/version.fence.lock"));
}

TEST_CASE_FIXTURE(FencedFile, "passwords of nodes do not reach the command") {
  const auto nodes = [&](const std::string& value) {
    return redlock(fence(1, {"sh", "-c", "echo \"<$REDLOCK_NODES>\""}), {{"REDLOCK_NODES", value}})
        .out;
  };
  CHECK(nodes("redis://:secret@h:1") == "<>\n");
  CHECK(nodes("redis://h:1") == "<redis://h:1>\n");
}

/// The system calls that redlock fence makes from its lock to its command, stopped at one by one.
class FenceRun {
 public:
  explicit FenceRun(const Arguments& fence) {
    const std::string program = command_path();
    auto words = appended({program}, fence);
    std::vector<char*> pointers;
    for (auto& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      ::execv(program.c_str(), pointers.data());
      ::_exit(99);
    }
    REQUIRE(::waitpid(pid_, nullptr, 0) == pid_);  // stopped by its exec
    REQUIRE(::ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) ==
            0);
    while (go_on() != SYS_flock) {
    }
  }
  FenceRun(const FenceRun&) = delete;
  FenceRun& operator=(const FenceRun&) = delete;
  ~FenceRun() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  /// Nothing when the command is about to take its place.
  std::optional<long> next_call() {
    const long call = go_on();
    return call == SYS_execve ? std::nullopt : std::optional(call);
  }

 private:
  /// Goes on to the next system call, and stands before it: its number.
  long go_on() {
    for (;;) {
      ::ptrace(PTRACE_SYSCALL, pid_, nullptr, nullptr);
      int status = 0;
      REQUIRE(::waitpid(pid_, &status, 0) == pid_);
      REQUIRE(WIFSTOPPED(status));
      __ptrace_syscall_info info{};
      ::ptrace(static_cast<__ptrace_request>(PTRACE_GET_SYSCALL_INFO), pid_, sizeof info, &info);
      if (info.op == PTRACE_SYSCALL_INFO_ENTRY) return static_cast<long>(info.entry.nr);
    }
  }

  pid_t pid_ = -1;
};

TEST_CASE_FIXTURE(FencedFile, "killed at any step, it leaves the old record or the new one") {
  bool reached_command = false;
  int old_seen = 0;
  int new_seen = 0;
  for (int steps = 0; !reached_command; ++steps) {
    CAPTURE(steps);
    std::ofstream(path() + ".fence") << "10\n";
    {
      FenceRun run(fence(20, {"/bin/true"}));
      for (int step = 0; step < steps && !reached_command; ++step) {
        reached_command = !run.next_call().has_value();
      }
    }  // killed
    CHECK((record() == "10\n" || record() == "20\n"));
    (record() == "10\n" ? old_seen : new_seen) += 1;
    CHECK(enter(9) == 77);
    CHECK(enter(21) == 0);
    CHECK(record() == "21\n");
  }
  CHECK(old_seen > 3);
  CHECK(new_seen > 1);
}

TEST_CASE_FIXTURE(FencedFile, "the record is on disk, under its name, before the command starts") {
  FenceRun run(fence(20, {"/bin/true"}));
  std::vector<long> steps;
  while (const auto call = run.next_call()) {
    if (*call == SYS_fsync || *call == SYS_rename) steps.push_back(*call);
  }
  CHECK(steps == std::vector<long>{SYS_fsync, SYS_rename, SYS_fsync});
}

}  // namespace
}  // namespace redlock::testing
