// SPDX-License-Identifier: MIT
// It is read on the client's own thread, so whatever could keep that waiting (a pipe, a device) is
// not read at all.
#include <array>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <redlock/options.hpp>

namespace redlock {
namespace {

constexpr std::size_t longest_password_line = 4096;

std::string first_line_of(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return {};
  struct stat about {};
  std::array<char, longest_password_line> text{};
  const bool regular = ::fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  const ssize_t size = regular ? ::read(file, text.data(), text.size()) : -1;
  ::close(file);
  if (size <= 0) return {};
  const std::string_view all(text.data(), static_cast<std::size_t>(size));
  std::string_view line = all.substr(0, all.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return std::string(line);
}

}  // namespace

std::function<std::string(std::string_view)> password_from_file(std::string path) {
  return [path = std::move(path)](std::string_view /*node*/) { return first_line_of(path); };
}

}  // namespace redlock
