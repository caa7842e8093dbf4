// SPDX-License-Identifier: MIT
// ./dev simulate: one seed step by step, or as many as there is time for.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <thread>

#include "simulation/bugs.hpp"
#include "simulation/explore.hpp"
#include "simulation/run.hpp"

namespace redlock::simulation {
namespace {

struct Arguments {
  std::uint64_t seed = 0;
  std::uint64_t from = 0;
  std::uint64_t hashes = 0;
  std::string length = "1m";
  std::string bug = "none";
  bool promises = false;
  bool waiting = false;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
};

/// "90s", "10m", "2h"; plain seconds without a unit.
std::chrono::seconds parse_length(const std::string& text) {
  std::size_t digits = 0;
  const std::int64_t count = std::stoll(text, &digits);
  const std::string unit = text.substr(digits);
  if (unit == "m") return std::chrono::minutes(count);
  if (unit == "h") return std::chrono::hours(count);
  if (!unit.empty() && unit != "s") throw std::invalid_argument("unit");
  return std::chrono::seconds(count);
}

int replay(std::uint64_t seed, bool judges_rules) {
  Plan plan = plan_of(seed);
  plan.judges_rules = judges_rules;
  fmt::print("{}\n", plan.in_words());
  Coverage coverage;
  const RunResult result =
      run(plan, coverage, [](const std::string& line) { fmt::print("{}\n", line); });
  fmt::print("{} steps, hash {:016x}\n", result.steps, result.hash);
  if (!result.violation) return 0;
  fmt::print("BROKEN: {}\n  {}\n", result.violation->rule, result.violation->what);
  return 1;
}

/// For a comparison between compilers.
int print_hashes(std::uint64_t count) {
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    Coverage coverage;
    fmt::print("{} {:016x}\n", seed, run(seed, coverage).hash);
  }
  return 0;
}

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Runs the protocol in simulated worlds, each made by a seed."};
  app.add_option("--seed", arguments.seed, "replay this one, step by step");
  app.add_option("--for", arguments.length, "explore for so long (90s, 10m, 2h)");
  app.add_option("--from", arguments.from, "explore from this seed on (otherwise: by the clock)");
  app.add_option("--threads", arguments.threads, "explore on so many cores");
  app.add_option("--bug", arguments.bug, "with this bug planted");
  app.add_flag("--promises", arguments.promises,
               "judge what is promised, and not by which rules it is kept");
  app.add_flag("--waiting", arguments.waiting, "explore only worlds that judge how callers wait");
  app.add_option("--hashes", arguments.hashes, "print the trace hashes of so many seeds");
  CLI11_PARSE(app, argc, argv);

  if (!is_bug(arguments.bug)) {
    fmt::print(stderr, "no such bug; there are:\n");
    for (const std::string_view name : all_bugs()) fmt::print(stderr, "  {}\n", name);
    return 64;
  }
  if (arguments.hashes != 0) return print_hashes(arguments.hashes);
  if (arguments.seed != 0) {
    const Planted planted(arguments.bug);
    return replay(arguments.seed, !arguments.promises);
  }
  Exploration what{.length = parse_length(arguments.length),
                   .threads = arguments.threads,
                   .bug = arguments.bug,
                   .judges_rules = !arguments.promises,
                   .waiting = arguments.waiting};
  const auto by_the_clock = std::chrono::system_clock::now().time_since_epoch().count();
  what.first_seed =
      arguments.from != 0 ? arguments.from : static_cast<std::uint64_t>(by_the_clock) / 1000;
  return explore(what) ? 0 : 1;
}

}  // namespace
}  // namespace redlock::simulation

int main(int argc, char** argv) {
  return redlock::simulation::main(argc, argv);
}
