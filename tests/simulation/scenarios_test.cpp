// SPDX-License-Identifier: MIT
// Plays every scenario file, once as it stands and once with each bug that it names. With
// REDLOCK_REWRITE_SCENARIOS in the environment the files are rewritten with what happens now; read
// the difference before you commit it.
#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "simulation/bugs.hpp"
#include "simulation/scenario.hpp"

namespace redlock::simulation {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(SCENARIO_DIR)) {
    if (entry.path().extension() == ".scn") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

std::string contents(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST_CASE("every scenario happens as its file says") {
  CHECK(files().size() >= 10);
  for (const fs::path& path : files()) {
    CAPTURE(path.filename().string());
    const Scenario scenario = read_scenario(path);
    const std::string text = to_text(scenario, play(scenario));
    if (std::getenv("REDLOCK_REWRITE_SCENARIOS") != nullptr) {
      std::ofstream(path) << text;
    } else {
      CHECK(text == contents(path));
    }
  }
}

TEST_CASE("a scenario that a planted bug must break is broken by it") {
  for (const fs::path& path : files()) {
    Scenario scenario = read_scenario(path);
    // The consequences are asked for, not the rule that was switched off.
    scenario.settings.judged.rules = false;
    scenario.settings.judged.possession = false;
    for (const Scenario::Break& expected : scenario.breaks) {
      CAPTURE(path.filename().string());
      CAPTURE(expected.bug);
      const Planted planted(expected.bug);
      const auto events = play(scenario);
      REQUIRE(!events.empty());
      REQUIRE(!events.back().empty());
      CHECK(events.back().back() == "BROKEN: " + expected.rule);
    }
  }
}

}  // namespace
}  // namespace redlock::simulation
