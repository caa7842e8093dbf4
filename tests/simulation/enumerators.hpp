// SPDX-License-Identifier: MIT
// The names of an enumeration's values as its source has them. Compilers say them of a template:
// "... name_of() [value = redlock::simulation::Fault::node_killed]".
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace redlock::simulation {

template <auto value>
constexpr std::string_view name_of() {
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("value = "));
  name = name.substr(0, name.find_first_of(";]"));
  return name.substr(name.rfind("::") + 2);
}

/// Of the first so many, which are numbered from 0.
template <typename Enum, std::size_t count>
inline constexpr auto names_of = []<std::size_t... values>(std::index_sequence<values...>) {
  return std::array{name_of<static_cast<Enum>(values)>()...};
}
(std::make_index_sequence<count>());

inline std::string in_words(std::string_view name) {
  std::string words(name);
  std::ranges::replace(words, '_', ' ');
  return words;
}

}  // namespace redlock::simulation
