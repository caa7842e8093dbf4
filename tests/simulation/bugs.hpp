// SPDX-License-Identifier: MIT
// The planted bugs by their names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/planted_bug.hpp"
#include "simulation/enumerators.hpp"
#include "simulation/script_bugs.hpp"

namespace redlock::simulation {

inline constexpr auto bug_count = static_cast<std::size_t>(engine::Bug::count_of_bugs);

inline constexpr auto bug_names = names_of<engine::Bug, bug_count>;

[[nodiscard]] constexpr std::optional<engine::Bug> engine_bug_named(std::string_view name) {
  for (std::size_t i = 0; i < bug_count; ++i) {
    if (bug_names[i] == name) return static_cast<engine::Bug>(i);
  }
  return std::nullopt;
}

/// The names of all bugs, those of scripts last.
[[nodiscard]] inline std::vector<std::string_view> all_bugs() {
  std::vector<std::string_view> names(bug_names.begin() + 1, bug_names.end());
  for (const ScriptBug& bug : script_bugs) {
    if (std::ranges::count(names, bug.name) == 0) names.push_back(bug.name);
  }
  return names;
}

[[nodiscard]] inline bool is_bug(std::string_view name) {
  return name == bug_names.front() || std::ranges::count(all_bugs(), name) > 0;
}

/// Plants a bug in this thread for as long as it lives: in the library, in its scripts, or in both.
class Planted {
 public:
  explicit Planted(std::string_view name) : name_(name) {
    engine::the_planted_bug = engine_bug_named(name_).value_or(engine::Bug::none);
    if (std::ranges::count(script_bugs, name_, &ScriptBug::name) > 0) {
      the_planted_script_bug = name_;
    }
  }
  ~Planted() {
    engine::the_planted_bug = engine::Bug::none;
    the_planted_script_bug = {};
  }
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;

 private:
  std::string name_;
};

}  // namespace redlock::simulation
