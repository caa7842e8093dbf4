// SPDX-License-Identifier: MIT
//
// A pidfd becomes readable when its process ends, whoever the parent is.
#include "support/processes.hpp"

#include <chrono>
#include <cstdlib>
#include <poll.h>
#include <sys/syscall.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace redlock::testing {

ProcessWatch::ProcessWatch(pid_t pid)
    : handle_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

bool ProcessWatch::ended_within(int timeout_ms) const {
  if (!handle_) return true;
  pollfd end{handle_.get(), POLLIN, 0};
  return ::poll(&end, 1, timeout_ms) == 1;
}

std::size_t processes_in(const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::error_code not_ours;  // or not a process, or it has just ended
    const auto place = fs::read_symlink(entry.path() / "cwd", not_ours).string();
    if (!not_ours && place.starts_with(directory.string() + "/")) ++count;
  }
  return count;
}

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

ScopedVariable::ScopedVariable(std::string name, const std::optional<std::string>& value)
    : name_(std::move(name)) {
  if (const char* before = std::getenv(name_.c_str()); before != nullptr) before_ = before;
  set(value);
}

void ScopedVariable::set(const std::optional<std::string>& value) const {
  value ? ::setenv(name_.c_str(), value->c_str(), 1) : ::unsetenv(name_.c_str());
}

}  // namespace redlock::testing
