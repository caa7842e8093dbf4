// SPDX-License-Identifier: MIT
//
// posix_spawn does the starting, because the program that uses a Fleet may have threads, and a
// plain fork in such a program may do next to nothing safely.
#include "process.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/core.h>
#include <fstream>
#include <iterator>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sstream>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "fleet_error.hpp"

namespace redlock::cluster {
namespace {

// What /proc says about a process: its state letter and its start time.
struct ProcStat {
  char state = '?';
  std::uint64_t started = 0;
};

std::optional<ProcStat> read_stat(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto name_end = text.rfind(')');  // the name before it may contain anything
  if (name_end == std::string::npos) return std::nullopt;

  std::istringstream fields(text.substr(name_end + 1));
  ProcStat stat;
  fields >> stat.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> stat.started;
  if (!fields) return std::nullopt;
  return stat;
}

UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

void require(int error, const char* what) {
  if (error != 0) throw FleetError(fmt::format("cannot {}: {}", what, std::strerror(error)));
}

// The attributes and file actions of one posix_spawn, freed in every case.
class SpawnPlan {
 public:
  explicit SpawnPlan(const SpawnRequest& request) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    plan_descriptors(request);
    plan_signals(request.group);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  [[nodiscard]] const posix_spawn_file_actions_t* actions() const { return &actions_; }
  [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  void plan_descriptors(const SpawnRequest& request) {
    if (request.standard_input >= 0) {
      posix_spawn_file_actions_adddup2(&actions_, request.standard_input, 0);
    } else {
      posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    }
    const std::string output = request.output.empty() ? "/dev/null" : request.output.string();
    posix_spawn_file_actions_addopen(&actions_, 1, output.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0600);
    posix_spawn_file_actions_adddup2(&actions_, 1, 2);
    posix_spawn_file_actions_addclosefrom_np(&actions_, 3);
  }

  void plan_signals(pid_t group) {
    sigset_t all;
    sigfillset(&all);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setpgroup(&attributes_, group);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }

  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (auto& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

// Node lists may carry passwords; no server has any use for them.
std::vector<std::string> environment_for_servers() {
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::string_view(*entry).substr(0, 8) != "REDLOCK_") result.emplace_back(*entry);
  }
  return result;
}

}  // namespace

Process Process::spawn(const SpawnRequest& request) {
  const SpawnPlan plan(request);
  auto arguments = request.argv;
  auto environment = environment_for_servers();
  pid_t pid = -1;
  require(posix_spawnp(&pid, arguments.at(0).c_str(), plan.actions(), plan.attributes(),
                       pointers(arguments).data(), pointers(environment).data()),
          fmt::format("start {}", request.argv.at(0)).c_str());

  // Nobody else reaps our child, so the pid is still its own, ended or not. (Only in a program that
  // ignores SIGCHLD it may be gone already: then no process has this identity.)
  auto handle = open_pidfd(pid);
  const auto stat = read_stat(pid);
  return {ProcessId{pid, stat ? stat->started : 0}, std::move(handle)};
}

std::optional<Process> Process::find(ProcessId id) {
  // The handle first: if the start time is right afterwards, it was right when we opened it.
  auto handle = open_pidfd(id.pid);
  const auto stat = read_stat(id.pid);
  if (!handle || !stat || stat->started != id.started) return std::nullopt;
  Process found(id, std::move(handle));
  if (found.ended()) return std::nullopt;
  return found;
}

bool Process::ended() const {
  return await_end(std::chrono::milliseconds(0));
}

bool Process::stopped() const {
  const auto stat = read_stat(id_.pid);
  return !ended() && stat && stat->state == 'T';
}

void Process::signal(int number) const {
  if (handle_) syscall(SYS_pidfd_send_signal, handle_.get(), number, nullptr, 0);
}

bool Process::await_end(std::chrono::milliseconds timeout) const {
  if (!handle_) return true;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd poll_for_end{handle_.get(), POLLIN, 0};
    const int count = ::poll(&poll_for_end, 1, static_cast<int>(std::max<long>(left.count(), 0)));
    if (count > 0) break;
    if (count == 0) return false;
    if (errno != EINTR) throw FleetError(fmt::format("cannot poll: {}", std::strerror(errno)));
  }
  siginfo_t info{};
  waitid(P_PIDFD, static_cast<id_t>(handle_.get()), &info, WEXITED | WNOHANG);
  return true;
}

bool Process::await_stop(std::chrono::milliseconds timeout) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!stopped()) {
    if (ended() || std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // the kernel has no event for it
  }
  return true;
}

}  // namespace redlock::cluster
