// SPDX-License-Identifier: MIT
// Between fork and exec another thread's locks may be held for ever: the children below make system
// calls only, on memory that was prepared before.
#include "cli/redlock/child.hpp"

#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <optional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include "cli/exit_code.hpp"
#include "cli/secrets.hpp"

namespace redlock::cli {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  // exec does not change them; its signature is older than const.
  for (const auto& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

[[noreturn]] void run_command(char* const* arguments, char* const* environment, pid_t parent,
                              int start, int failed, const Signals& signals) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(exit_internal);  // it died before we asked
  ::setpgid(0, 0);
  char go = 0;
  if (::read(start, &go, 1) != 1) ::_exit(exit_internal);
  signals.restore_inherited();
  ::execvpe(arguments[0], arguments, environment);
  const int why = errno;
  [[maybe_unused]] const auto written = ::write(failed, &why, sizeof why);
  ::_exit(exit_not_found);
}

// It starts with every signal blocked: signals to the group are meant for the command.
[[noreturn]] void run_guard(pid_t group, int life) {
  ::setpgid(0, group);
  ::prctl(PR_SET_NAME, "redlock-guard");
  // The guard must not keep open a descriptor whose closing is awaited, such as the command's
  // stdout.
  if (life > 0) ::close_range(0, static_cast<unsigned>(life) - 1, 0);
  ::close_range(static_cast<unsigned>(life) + 1, UINT_MAX, 0);
  char nothing = 0;
  while (::read(life, &nothing, 1) < 0 && errno == EINTR) {
  }
  // 0 is its own group. By number, it could be another group that got the number since.
  ::kill(0, SIGKILL);
  ::_exit(0);
}

Exit no_process() {
  return {exit_internal,
          fmt::format("cannot start a process: {}", std::generic_category().message(errno))};
}

bool is_out_of_reach(pid_t process) {
  return ::kill(process, 0) != 0 && errno == EPERM;
}

/// "pid 4711 (sudo, uid 0)"; nothing for a process that has ended and was not reaped.
std::optional<std::string> words_on(pid_t process) {
  std::string name = "?";
  std::string uid = "?";
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Name:\t")) name = line.substr(6);
    if (line.starts_with("Uid:\t")) uid = line.substr(5, line.find('\t', 5) - 5);
    if (line.starts_with("State:\tZ") || line.starts_with("State:\tX")) return std::nullopt;
  }
  return fmt::format("pid {} ({}, uid {})", process, name, uid);
}

}  // namespace

Child::Child(const ChildPlan& plan, const Signals& signals, Terminal& terminal)
    : life_(Pipe::make()), start_(Pipe::make()), failed_(Pipe::make()) {
  const auto arguments = pointers(plan.arguments);
  const auto environment = pointers(plan.environment);
  const auto parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw no_process();
  if (pid_ == 0) {
    start_.write.close();
    run_command(arguments.data(), environment.data(), parent, start_.read.get(),
                failed_.write.get(), signals);
  }
  ::setpgid(pid_, pid_);  // whichever of the two comes first
  failed_.write.close();  // a guard that had it, and was stopped, would keep await_exec waiting
  if (!start_guard()) throw no_process();
  if (terminal.is_interactive()) terminal.give_to(pid_);
  const char go = 1;
  [[maybe_unused]] const auto written = ::write(start_.write.get(), &go, 1);
  try {
    await_exec(plan.arguments.front());
  } catch (...) {
    terminal.take_back();
    throw;
  }
}

bool Child::start_guard() {
  const SignalsKeptOut blocked;
  const pid_t started = ::fork();
  if (started < 0) return false;
  if (started == 0) run_guard(pid_, life_.read.get());
  guard_ = started;
  ::setpgid(guard_, pid_);
  return true;
}

Child::Guard Child::tend_guard() {
  siginfo_t seen{};
  const auto id = static_cast<id_t>(guard_);
  if (::waitid(P_PID, id, &seen, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0) {
    return Guard::watches;
  }
  if (seen.si_pid == 0) return Guard::watches;
  if (seen.si_code == CLD_STOPPED) {
    ::waitid(P_PID, id, &seen, WSTOPPED | WNOHANG);
    ::kill(guard_, SIGCONT);
    return Guard::watches;
  }
  const pid_t before = guard_;
  if (!start_guard()) return Guard::missing;
  // Not before: until then it keeps the group's number from being used again.
  ::waitpid(before, nullptr, 0);
  return Guard::replaced;
}

void Child::await_exec(const std::string& program) {
  int why = 0;
  ssize_t got = 0;
  do {
    got = ::read(failed_.read.get(), &why, sizeof why);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof why) return;
  ::waitpid(pid_, &status_, 0);
  ended_ = true;
  throw Exit(why == ENOENT ? exit_not_found : exit_cannot_run,
             fmt::format("cannot run '{}': {}", program, std::generic_category().message(why)));
}

Child::~Child() {
  if (!ended_) {
    signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::kill(guard_, SIGKILL);
  ::waitpid(guard_, nullptr, 0);
}

void Child::signal(int number) const noexcept {
  // The guard, not yet reaped, keeps the group's number from being used again.
  ::kill(-pid_, number);
}

std::string Child::out_of_reach() const {
  std::string found;
  const auto look_at = [&found](pid_t process) {
    if (!is_out_of_reach(process)) return;
    if (const auto words = words_on(process)) found += (found.empty() ? "" : ", ") + *words;
  };
  // Without /proc, which may hide the processes of others.
  look_at(pid_);
  std::error_code ignored;
  for (std::filesystem::directory_iterator at("/proc", ignored), end; at != end;
       at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    pid_t process = 0;
    std::from_chars(name.data(), name.data() + name.size(), process);
    if (process > 0 && process != pid_ && ::getpgid(process) == pid_) look_at(process);
  }
  return found;
}

Child::State Child::poll() {
  if (ended_) return State::ended;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG | WUNTRACED) != pid_) return State::running;
  status_ = status;
  if (WIFSTOPPED(status)) return State::stopped;
  ended_ = true;
  return State::ended;
}

int Child::exit_status() const {
  return WIFSIGNALED(status_) ? exit_by_signal + WTERMSIG(status_) : WEXITSTATUS(status_);
}

bool Child::killed() const {
  return WIFSIGNALED(status_);
}

int Child::stop_signal() const {
  return WSTOPSIG(status_);
}

std::vector<std::string> child_environment(const std::string& name, std::uint64_t token,
                                           const std::string& nodes_variable) {
  std::vector<std::string> result;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view variable(*at);
    if (variable.starts_with("REDLOCK_NAME=") || variable.starts_with("REDLOCK_TOKEN=")) continue;
    if (variable.starts_with("REDLOCK_NODES=") && has_password(nodes_variable)) continue;
    result.emplace_back(variable);
  }
  result.push_back("REDLOCK_NAME=" + name);
  result.push_back(fmt::format("REDLOCK_TOKEN={}", token));
  return result;
}

}  // namespace redlock::cli
