// SPDX-License-Identifier: MIT
#include "cli/file_descriptor.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

#include "cli/exit_code.hpp"

namespace redlock::cli {

FileDescriptor::FileDescriptor(int fd, std::string_view what) : fd_(fd) {
  if (fd >= 0) return;
  throw Exit(exit_internal, fmt::format("no {}: {}", what, std::generic_category().message(errno)));
}

void FileDescriptor::close() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Pipe Pipe::make() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) ends = {-1, -1};
  return {FileDescriptor(ends[0], "pipe"), FileDescriptor(ends[1], "pipe")};
}

Event::Event() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "event descriptor") {}

void Event::notify() const noexcept {
  const std::uint64_t one = 1;
  // It can fail only when it has been notified 2^64 times, and is then set anyway.
  [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
}

void Event::clear() const noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto read = ::read(fd_.get(), &count, sizeof count);
}

}  // namespace redlock::cli
