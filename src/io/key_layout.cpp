// SPDX-License-Identifier: MIT
// Spells the keys out for those who need a whole string; script calls assemble them in place.
#include "io/key_layout.hpp"

#include "engine/stripe.hpp"

namespace redlock::io {

std::string KeyLayout::lock(std::string_view name) {
  std::string key;
  key.reserve(lock_prefix.size() + name.size() + lock_suffix.size());
  return key.append(lock_prefix).append(name).append(lock_suffix);
}

std::string KeyLayout::fence(std::string_view name) {
  return std::string(fence_prefix) + std::to_string(engine::stripe_of(name));
}

}  // namespace redlock::io
