// SPDX-License-Identifier: MIT
#include "client/small_file.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace redlock {
namespace {

// 64 nodes with the longest of names and passwords are less.
constexpr std::size_t most_bytes = 65'536;

tl::unexpected<Error> refused(std::string sentence) {
  return tl::make_unexpected(Error{Errc::invalid_argument, std::move(sentence), {}});
}

}  // namespace

Result<std::string> read_small_file(const std::string& path) {
  const auto unreadable = [](const std::string& why) {
    return refused("there is no such file that can be read (" + why + "); name a regular file");
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return unreadable(std::generic_category().message(errno));
  struct stat about {};
  const bool regular = ::fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  std::string text;
  std::array<char, 4096> part{};
  ssize_t count = 0;
  while (regular && text.size() <= most_bytes) {
    count = ::read(file, part.data(), part.size());
    if (count <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  ::close(file);
  if (!regular) return unreadable("it is a directory, a pipe or a device");
  if (count < 0) return unreadable(std::generic_category().message(errno));
  if (text.size() <= most_bytes) return text;
  return refused("it is longer than " + std::to_string(most_bytes) + " bytes");
}

}  // namespace redlock
