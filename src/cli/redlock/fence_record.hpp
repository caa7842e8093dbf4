// SPDX-License-Identifier: MIT
// The largest token that a file has seen, in a file beside it, and the lock that keeps two commands
// from working on the file at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "cli/file_descriptor.hpp"

namespace redlock::cli {

/// The token, or nothing if the text is not one: a decimal number from 1 to 2^53 - 1.
[[nodiscard]] std::optional<std::uint64_t> parse_token(std::string_view text);

class FenceRecord {
 public:
  /// For this file, which need not exist, but its directory must. Symbolic links are followed, so
  /// that one file has one record. Throws Exit, as everything below does.
  explicit FenceRecord(const std::filesystem::path& file);

  /// Takes the lock, waiting this long (redlock::forever: without end); false if another process
  /// had it all the time. The lock is held until the last process that got its descriptor is gone.
  [[nodiscard]] bool lock(std::chrono::milliseconds wait);
  /// Makes the lock last until this process ends, whatever program it runs by then and whatever
  /// that program does to its descriptors.
  void keep_locked() const;

  /// The largest token seen; nothing if there was none.
  [[nodiscard]] std::optional<std::uint64_t> token() const;
  /// Records this token. When it returns, the record survives a power failure; until then the old
  /// one stands.
  void stamp(std::uint64_t token) const;

  /// The file, with its links followed.
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

 private:
  [[nodiscard]] std::filesystem::path beside(std::string_view ending) const;

  std::filesystem::path file_;
  FileDescriptor lock_;
};

}  // namespace redlock::cli
