// SPDX-License-Identifier: MIT
// redlock fence, killed at each of its system calls in turn: the record must be the old token or
// the new one, and the next command must find its way.
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "cli_process.hpp"

namespace redlock::testing {
namespace {

/// A command whose system calls can be stopped at, one by one.
class Traced {
 public:
  explicit Traced(Arguments arguments) {
    const std::string program = command_path();
    arguments.insert(arguments.begin(), program);
    std::vector<char*> pointers;
    for (auto& argument : arguments) pointers.push_back(argument.data());
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
  }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;
  ~Traced() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  /// Goes on to the next system call, and stands before it: its number. Nothing when it has ended.
  std::optional<long> next_call() {
    for (;;) {
      ::ptrace(PTRACE_SYSCALL, pid_, nullptr, nullptr);
      int status = 0;
      if (::waitpid(pid_, &status, 0) != pid_ || !WIFSTOPPED(status)) return std::nullopt;
      __ptrace_syscall_info info{};
      ::ptrace(static_cast<__ptrace_request>(PTRACE_GET_SYSCALL_INFO), pid_, sizeof info, &info);
      if (info.op == PTRACE_SYSCALL_INFO_ENTRY) return static_cast<long>(info.entry.nr);
    }
  }

 private:
  pid_t pid_ = -1;
};

/// The calls that redlock fence makes from its lock to its command.
class FenceRun {
 public:
  explicit FenceRun(const std::string& file, const std::string& token)
      : traced_({"fence", file, "--token", token, "--", "/bin/true"}) {
    while (const auto call = traced_.next_call()) {
      if (*call == SYS_flock) return;
    }
    FAIL("it took no lock");
  }
  /// Nothing when the command is about to take its place.
  std::optional<long> next_call() {
    const auto call = traced_.next_call();
    REQUIRE(call.has_value());
    return *call == SYS_execve ? std::nullopt : call;
  }

 private:
  Traced traced_;
};

std::string record_of(const std::string& file) {
  return text_in(file + ".fence");
}

int fence(const std::string& file, const std::string& token) {
  return redlock({"fence", file, "--token", token, "--wait", "30s", "--", "true"}).status;
}

TEST_CASE("killed at any step, redlock fence leaves the old record or the new one") {
  const TemporaryDirectory place;
  const std::string file = (place.path() / "file").string();
  bool reached_command = false;
  int old_seen = 0;
  int new_seen = 0;
  for (int steps = 0; !reached_command; ++steps) {
    CAPTURE(steps);
    std::ofstream(file + ".fence") << "10\n";
    {
      FenceRun run(file, "20");
      for (int step = 0; step < steps && !reached_command; ++step) {
        reached_command = !run.next_call().has_value();
      }
    }  // killed
    const auto record = record_of(file);
    CHECK((record == "10\n" || record == "20\n"));
    (record == "10\n" ? old_seen : new_seen) += 1;
    CHECK(fence(file, "9") == 77);
    CHECK(fence(file, "21") == 0);
    CHECK(record_of(file) == "21\n");
  }
  CHECK(old_seen > 3);
  CHECK(new_seen > 1);
}

TEST_CASE("the record is on the disk, under its name, before the command starts") {
  const TemporaryDirectory place;
  FenceRun run((place.path() / "file").string(), "20");
  std::vector<long> steps;
  while (const auto call = run.next_call()) {
    if (*call == SYS_fsync || *call == SYS_rename) steps.push_back(*call);
  }
  CHECK(steps == std::vector<long>{SYS_fsync, SYS_rename, SYS_fsync});
}

}  // namespace
}  // namespace redlock::testing
