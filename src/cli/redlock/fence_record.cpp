// SPDX-License-Identifier: MIT
// Two files stand beside FILE: FILE.fence, the record, which is replaced by rename and so is whole
// at any moment; and FILE.fence.lock, which is never replaced, because a lock on a file that is
// renamed away excludes no other process.
#include "cli/redlock/fence_record.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include <redlock/clock.hpp>
#include <redlock/options.hpp>

#include "cli/exit_code.hpp"
#include "cli/output.hpp"

namespace redlock::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(std::string_view what, const fs::path& path) {
  throw Exit(exit_internal, fmt::format("cannot {} {}: {}", what, path.string(),
                                        std::generic_category().message(errno)));
}

// Not through a symbolic link: the record of one file would be that of another, or what the link
// leads to would be written over.
FileDescriptor open_file(std::string_view what, const fs::path& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) fail(what, path);
  return {fd, "file"};
}

fs::path followed(const fs::path& file) {
  std::error_code missing;
  fs::path path = fs::canonical(file, missing);
  if (missing) {
    if (fs::is_symlink(fs::symlink_status(file, missing))) {
      throw Exit(exit_usage, fmt::format("{} is a symbolic link that leads nowhere; name the file "
                                         "itself",
                                         file.string()));
    }
    const fs::path parent = file.parent_path();
    path = fs::canonical(parent.empty() ? "." : parent, missing) / file.filename();
    if (missing || !fs::is_directory(path.parent_path(), missing)) {
      throw Exit(exit_usage,
                 fmt::format("the directory of '{}' does not exist; make it first", file.string()));
    }
  }
  if (path.filename().empty()) {
    throw Exit(exit_usage,
               fmt::format("no record can be kept beside '{}'; name a file in a directory",
                           file.string()));
  }
  return path;
}

// From here on this process, and what it forks, is not among those that are interrupted or stopped
// with the command.
void leave_group() {
  ::setsid();
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
}

// No process waits for this one, and it has no descriptor open whose closing is awaited.
[[noreturn]] void run_keeper(int lock, int command) {
  ::prctl(PR_SET_NAME, "redlock-keeper");
  const auto [low, high] =
      std::minmax({static_cast<unsigned>(lock), static_cast<unsigned>(command)});
  if (low > 0) ::close_range(0, low - 1, 0);
  if (high - low > 1) ::close_range(low + 1, high - 1, 0);
  ::close_range(high + 1, UINT_MAX, 0);
  pollfd end{command, POLLIN, 0};
  while (::poll(&end, 1, -1) < 0 && errno == EINTR) {
  }
  ::_exit(0);
}

}  // namespace

std::optional<std::uint64_t> parse_token(std::string_view text) {
  constexpr std::uint64_t limit = std::uint64_t{1} << 53U;
  std::uint64_t token = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, token);
  if (problem != std::errc() || rest != end || token == 0 || token >= limit) return std::nullopt;
  return token;
}

FenceRecord::FenceRecord(const fs::path& file) : file_(followed(file)) {
  const fs::path path = beside(".fence.lock");
  const auto opened = open_file("open", path, O_RDONLY | O_CREAT);
  // The command inherits it, but not as its stdin if redlock was started without one.
  const int inherited = ::fcntl(opened.get(), F_DUPFD, STDERR_FILENO + 1);
  lock_ = FileDescriptor(inherited, "file descriptor");
}

bool FenceRecord::lock(std::chrono::milliseconds wait) {
  const auto start = BootClock::now();
  const bool endless = wait == forever;
  while (::flock(lock_.get(), endless ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) fail("lock", beside(".fence.lock"));
    if (BootClock::now() - start >= wait) return false;
    std::this_thread::sleep_for(std::min(wait, std::chrono::milliseconds(20)));
  }
  return true;
}

void FenceRecord::keep_locked() const {
  const FileDescriptor self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)), "pidfd");
  // Forked twice: the command must not find a child that it did not start. When the first has
  // ended, the second is out of reach already.
  const pid_t pid = ::fork();
  if (pid < 0) fail("start a process that keeps", beside(".fence.lock"));
  if (pid == 0) {
    leave_group();
    const pid_t keeper = ::fork();
    if (keeper == 0) run_keeper(lock_.get(), self.get());
    ::_exit(keeper < 0 ? 1 : 0);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) {
    errno = EAGAIN;
    fail("start a process that keeps", beside(".fence.lock"));
  }
}

std::optional<std::uint64_t> FenceRecord::token() const {
  const fs::path path = beside(".fence");
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) return std::nullopt;
  if (fd < 0) fail("read", path);
  const FileDescriptor record(fd, "file");
  std::array<char, 64> buffer{};
  const auto count = ::read(fd, buffer.data(), buffer.size());
  if (count < 0) fail("read", path);
  std::string_view text(buffer.data(), static_cast<std::size_t>(count));
  if (text.ends_with('\n')) text.remove_suffix(1);
  const auto token = text.size() < buffer.size() - 1 ? parse_token(text) : std::nullopt;
  if (!token) {
    throw Exit(exit_internal,
               fmt::format("the record {} is damaged: it should be one token; no writer is let "
                           "through until it has the largest one that {} has seen",
                           path.string(), file_.string()));
  }
  return token;
}

void FenceRecord::stamp(std::uint64_t token) const {
  const fs::path path = beside(".fence");
  // One name is enough: only the process with the lock writes it. A file of that name was left by a
  // process that died, and may be another user's, or a link or pipe that was put there as a trap.
  const fs::path fresh = beside(".fence.new");
  if (::unlink(fresh.c_str()) != 0 && errno != ENOENT) fail("replace", fresh);
  const std::string text = fmt::format("{}\n", token);
  const auto record = open_file("write", fresh, O_WRONLY | O_CREAT | O_EXCL);
  const auto written = ::write(record.get(), text.data(), text.size());
  if (written >= 0 && written < static_cast<ssize_t>(text.size())) errno = ENOSPC;
  if (written != static_cast<ssize_t>(text.size()) || ::fsync(record.get()) != 0) {
    fail("write", fresh);
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) fail("replace", path);
  const auto directory = open_file("open", path.parent_path(), O_RDONLY | O_DIRECTORY);
  if (::fsync(directory.get()) != 0) fail("write", path.parent_path());
}

fs::path FenceRecord::beside(std::string_view ending) const {
  fs::path path = file_;
  path += ending;
  return path;
}

}  // namespace redlock::cli
