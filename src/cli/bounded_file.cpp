// SPDX-License-Identifier: MIT
#include "cli/bounded_file.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <system_error>
#include <unistd.h>

#include <redlock/clock.hpp>

#include "cli/exit_code.hpp"
#include "cli/file_descriptor.hpp"
#include "cli/output.hpp"
#include "cli/secrets.hpp"

namespace redlock::cli {
namespace {

// 64 nodes with the longest of names and passwords are less.
constexpr std::size_t most_bytes = 65'536;
// Long enough to type the pass phrase of a program that decrypts the list: --nodes-file <(gpg -d
// nodes).
constexpr std::chrono::seconds longest_wait(20);

class BoundedFile {
 public:
  BoundedFile(std::string_view option, const std::string& path)
      : what_(fmt::format("{} {}", option, printable(without_passwords(path)))),
        until_(BootClock::now() + longest_wait) {
    // Opening a pipe without a writer would wait; reading waits below.
    const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) fail();
    fd_ = FileDescriptor(fd, "file");
  }

  std::string read() {
    std::string text;
    std::array<char, 4096> part{};
    for (;;) {
      await_readable();
      const auto count = ::read(fd_.get(), part.data(), part.size());
      if (count == 0) return text;
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (count < 0) fail();
      text.append(part.data(), static_cast<std::size_t>(count));
      if (text.size() > most_bytes) {
        throw Exit(exit_usage,
                   fmt::format("{} is longer than {} bytes, too long for a list of nodes; "
                               "name a file with one node on each line",
                               what_, most_bytes));
      }
    }
  }

 private:
  void await_readable() const {
    pollfd waiting{fd_.get(), POLLIN, 0};
    for (;;) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(until_ - BootClock::now()).count();
      if (left <= 0) {
        throw Exit(exit_usage, fmt::format("{} did not end within {} s; name a file, or "
                                           "a pipe that its writer closes",
                                           what_, longest_wait.count()));
      }
      if (::poll(&waiting, 1, static_cast<int>(left)) > 0) return;
    }
  }

  [[noreturn]] void fail() const {
    const int why = errno;
    throw Exit(
        exit_usage,
        fmt::format("cannot read {}: {}", what_,
                    why == EISDIR ? "it is a directory; name a file with one node on each line"
                                  : std::generic_category().message(why)));
  }

  std::string what_;
  BootClock::time_point until_;
  FileDescriptor fd_;
};

}  // namespace

std::string read_bounded(std::string_view option, const std::string& path) {
  return BoundedFile(option, path).read();
}

}  // namespace redlock::cli
