// SPDX-License-Identifier: MIT
#include "simulation/run.hpp"

#include <deque>
#include <fmt/format.h>

#include "simulation/world.hpp"

namespace redlock::simulation {

RunResult run(std::uint64_t seed, Coverage& coverage, Trace::Reader reader) {
  return run(plan_of(seed), coverage, std::move(reader));
}

RunResult run(Plan plan, Coverage& coverage, Trace::Reader reader) {
  Trace trace(std::move(reader));
  World world(std::move(plan), trace, coverage);
  RunResult result;
  try {
    world.run();
  } catch (const Violation& violation) {
    result.violation = violation;
  }
  result.hash = trace.hash();
  result.steps = trace.steps();
  result.counts = world.counts();
  return result;
}

std::string report(std::uint64_t seed, const Violation& violation) {
  return report(plan_of(seed), violation);
}

std::string report(const Plan& plan, const Violation& violation) {
  constexpr std::size_t shown = 150;
  std::deque<std::string> last;
  Coverage ignored;
  run(plan, ignored, [&](const std::string& line) {
    last.push_back(line);
    if (last.size() > shown) last.pop_front();
  });
  std::string text =
      fmt::format("BROKEN: {}\n  {}\n{}\nthe last steps (all: ./dev simulate --seed {}):\n",
                  violation.rule, violation.what, plan.in_words(), plan.seed);
  for (const std::string& line : last) text += line + "\n";
  return text;
}

}  // namespace redlock::simulation
