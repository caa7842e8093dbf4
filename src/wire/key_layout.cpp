// SPDX-License-Identifier: MIT
// Writes the keys out for those who need a whole string; script calls assemble them in place.
#include "wire/key_layout.hpp"

#include <algorithm>
#include <charconv>

#include "engine/stripe.hpp"

namespace redlock::wire {

std::string KeyLayout::of(std::string_view prefix, std::string_view name) {
  std::string key;
  key.reserve(prefix.size() + name.size() + 2);
  return key.append(prefix).append("{").append(name).append("}");
}

std::string KeyLayout::forced(std::string_view name, std::string_view owner) const {
  return of(forced_prefix, name).append(":").append(owner);
}

std::string KeyLayout::fence(std::string_view name) const {
  std::array<char, longest_fence> buffer;
  return std::string(fence(name, buffer));
}

std::string KeyLayout::channel(std::string_view client) const {
  return std::string(wake_prefix).append(client);
}

std::string_view KeyLayout::fence(std::string_view name,
                                  std::array<char, longest_fence>& buffer) const {
  char* const digits = std::ranges::copy(fence_prefix, buffer.data()).out;
  char* const end = buffer.data() + buffer.size();
  const auto written = std::to_chars(digits, end, engine::stripe_of(name));
  return {buffer.data(), written.ptr};
}

}  // namespace redlock::wire
