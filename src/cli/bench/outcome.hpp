// SPDX-License-Identifier: MIT
// The result of a whole run of `redlock bench`, and how it is shown.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/bench/assertion.hpp"
#include "cli/bench/measurements.hpp"
#include "cli/bench/settings.hpp"
#include "cli/output.hpp"

namespace redlock::cli {

struct JudgedAssertion {
  std::string text;
  Assertion::Judgement outcome;
};

struct BenchOutcome {
  BenchSettings settings;
  std::vector<std::string> nodes;  ///< as they were configured, without passwords
  std::vector<bool> relayed;       ///< by node: reached through a relay of this process
  std::string fault;               ///< in words; empty if there is none
  bool interrupted = false;
  Measurements measured;
  std::vector<JudgedAssertion> assertions;

  [[nodiscard]] std::size_t quorum() const { return nodes.size() / 2 + 1; }
};

[[nodiscard]] std::string bench_table(const BenchOutcome& outcome);
[[nodiscard]] Json bench_json(const BenchOutcome& outcome);
[[nodiscard]] std::string bench_csv(const BenchOutcome& outcome);

}  // namespace redlock::cli
