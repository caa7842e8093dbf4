// SPDX-License-Identifier: MIT
// Converts the items of RESP3 to those of RESP2, which hiredis 0.14 supports: maps, sets and pushes
// become arrays, verbatim texts texts, booleans integers, doubles and big numbers texts. So code
// that reads replies does not depend on which of the two a connection uses.
#pragma once

#include <string>
#include <string_view>

namespace redlock::wire {

inline constexpr std::string_view line_end = "\r\n";
/// Begins a verbatim text: what kind of text it is, in three letters.
inline constexpr std::string_view verbatim_kind = "txt:";

/// Whether an item that begins so is none of RESP2.
[[nodiscard]] constexpr bool is_resp3(char type) {
  return std::string_view("%~>_=#,(").find(type) != std::string_view::npos;
}

/// Appends whole items that an ItemScanner has passed, as RESP2.
void append_as_resp2(std::string_view items, std::string& out);

}  // namespace redlock::wire
