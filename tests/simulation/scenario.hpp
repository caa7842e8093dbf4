// SPDX-License-Identifier: MIT
// Scenario files: a claim in words, then blocks of steps, dashes, and what must happen. README.md
// beside the files explains the steps.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "simulation/stage.hpp"

namespace redlock::simulation {

struct Scenario {
  struct Block {
    std::vector<std::string> steps;
    std::vector<std::string> expected;
  };
  /// What becomes of it with a bug planted: the rule that is broken.
  struct Break {
    std::string bug;
    std::string rule;
  };

  std::vector<std::string> head;  ///< the claim and the settings, as they stand in the file
  std::vector<Block> blocks;
  std::vector<Break> breaks;
  Stage::Settings settings;
};

/// Throws std::runtime_error with the file and line that is wrong.
[[nodiscard]] Scenario read_scenario(const std::filesystem::path& file);

/// Plays it and returns what happened, block by block. A broken promise ends it, as an event
/// "BROKEN: rule".
[[nodiscard]] std::vector<std::vector<std::string>> play(const Scenario& scenario);

/// The file as it should be, with these events.
[[nodiscard]] std::string to_text(const Scenario& scenario,
                                  const std::vector<std::vector<std::string>>& events);

}  // namespace redlock::simulation
