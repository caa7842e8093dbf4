// SPDX-License-Identifier: MIT
// What a connection keeps of its buffers' memory.
#pragma once

#include <cstddef>

namespace redlock::wire {

/// Empties a string or vector. Its memory stays for what comes next, unless it is more than that
/// needs as a rule: it was many calls at once, or a long answer.
template <typename Buffer>
void make_empty(Buffer& buffer) {
  constexpr std::size_t longest_kept = std::size_t{64} << 10;
  buffer.clear();
  // Not by an assignment, which keeps the memory.
  if (buffer.capacity() * sizeof(*buffer.data()) > longest_kept) Buffer().swap(buffer);
}

}  // namespace redlock::wire
