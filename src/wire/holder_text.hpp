// SPDX-License-Identifier: MIT
// The note that a node keeps beside the owner of a lock: which program took the lock, and since
// when. The note is for people who ask who holds a lock. The command that grants also writes it,
// and no decision ever reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/types.hpp"

namespace redlock::wire {

/// "SINCE PID HOST LABEL", SINCE being 13 digits of Unix time in milliseconds. The label may
/// contain spaces.
class HolderText {
 public:
  /// The field of the lock's hash. Owners have 32 hexadecimal digits, so it is none of them.
  static constexpr std::string_view field = "@";

  /// A holder without a note: the text is empty, and no field is written.
  HolderText() = default;
  /// Host and label are cut at 64 bytes, their control characters (the host's spaces, too)
  /// replaced.
  HolderText(std::string_view host, std::uint64_t pid, std::string_view label);

  /// This machine's wall clock at `now`. To be repeated: it may have been set.
  void set_clock(engine::Instant now, std::int64_t unix_us);

  /// For a grant whose attempt began then. Valid until the next call; allocates nothing.
  [[nodiscard]] std::string_view since(engine::Instant when);

 private:
  std::string text_;
  engine::Instant when_{};
  /// This machine's Unix time less its BootClock. Replaced only when the clock was set: the nodes
  /// of one lock are to agree to the millisecond.
  std::int64_t offset_ms_ = 0;
};

/// The parts of such a text. Any client of the node may have written it.
struct HolderFields {
  std::int64_t since_unix_ms = 0;
  std::uint64_t pid = 0;
  std::string_view host;
  std::string_view label;
};
/// None if it is no such text.
[[nodiscard]] std::optional<HolderFields> read_holder(std::string_view text);

}  // namespace redlock::wire
