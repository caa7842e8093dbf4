// SPDX-License-Identifier: MIT
// Writes the keys out for those who need a whole string; script calls assemble them in place.
#include "wire/key_layout.hpp"

#include <algorithm>
#include <charconv>

#include "engine/stripe.hpp"

namespace redlock::wire {

std::string KeyLayout::lock(std::string_view name) const {
  std::string key;
  key.reserve(lock_prefix.size() + name.size() + lock_suffix.size());
  return key.append(lock_prefix).append(name).append(lock_suffix);
}

std::string KeyLayout::forced(std::string_view name) const {
  return lock(name).append(forced_suffix);
}

std::string KeyLayout::queue(std::string_view name) const {
  return lock(name).append(queue_suffix);
}

std::string KeyLayout::waiters(std::string_view name) const {
  return lock(name).append(waiters_suffix);
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
