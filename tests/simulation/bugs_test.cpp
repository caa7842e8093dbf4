// SPDX-License-Identifier: MIT
// A simulator that finds nothing may be blind. Here each rule of the protocol is switched off in
// turn, and some seed must notice.
#include "simulation/bugs.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <string>

#include "simulation/run.hpp"

namespace redlock::simulation {
namespace {

constexpr std::uint64_t seeds = 250;

TEST_CASE("each planted bug is caught within the fixed seeds") {
  std::string table =
      fmt::format("{:<36} {:>5} of {} seeds, most often because\n", "planted bug", "caught", seeds);
  for (std::size_t i = 1; i < bug_count; ++i) {
    const auto bug = static_cast<engine::Bug>(i);
    const Planted planted(bug);
    std::map<std::string, int> rules;
    int caught = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      Coverage coverage;
      const RunResult result = run(seed, coverage);
      if (!result.violation) continue;
      ++caught;
      ++rules[result.violation->rule];
    }
    const auto most = std::ranges::max_element(rules, {}, [](const auto& r) { return r.second; });
    const std::string rule = rules.empty() ? "NOBODY NOTICED" : most->first;
    table += fmt::format("{:<36} {:>5}  {}\n", name_of(bug), caught, rule);
    CHECK_MESSAGE(caught > 0, "survived: ", std::string(name_of(bug)));
  }
  MESSAGE(table);
}

}  // namespace
}  // namespace redlock::simulation
