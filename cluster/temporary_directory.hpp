// SPDX-License-Identifier: MIT
//
// A directory that is gone, with what is in it, when its object is.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace redlock::cluster {

class TemporaryDirectory {
 public:
  /// Only its user may enter it. Below the directory for such things, which TMPDIR may name.
  /// Throws std::system_error (std::filesystem::filesystem_error is one) if there can be none.
  explicit TemporaryDirectory(std::string_view purpose = "redlock")
      : TemporaryDirectory(purpose, std::filesystem::temp_directory_path()) {}
  TemporaryDirectory(std::string_view purpose, const std::filesystem::path& parent) {
    std::string pattern = (parent / purpose).string() + "-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), "cannot make " + pattern);
    }
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace redlock::cluster
