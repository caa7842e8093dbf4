// SPDX-License-Identifier: MIT
// What a whole run of `redlock bench` came to, and how it is shown.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/assertion.hpp"
#include "cli/bench/measurements.hpp"
#include "cli/bench/settings.hpp"
#include "cli/output.hpp"

namespace redlock::cli {

/// The same load by fewer callers, for a moment, without a fault.
struct ConcurrencyStep {
  std::size_t callers = 0;
  double throughput = 0;
  std::chrono::nanoseconds p50{};
  std::chrono::nanoseconds p99{};
};

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
  std::vector<ConcurrencyStep> steps;
  std::vector<JudgedAssertion> assertions;

  [[nodiscard]] std::size_t quorum() const { return nodes.size() / 2 + 1; }
};

/// One row of times, as all three formats and the page show it.
struct TimesRow {
  std::string name;
  const Histogram* times = nullptr;
};
/// Operations, then the quorum's round trip, then each node's.
[[nodiscard]] std::vector<TimesRow> times_rows(const BenchOutcome& outcome);
/// "3rd of 5": whose answer makes a quorum, in the order of the answers.
[[nodiscard]] std::string quorum_in_words(const BenchOutcome& outcome);
/// What was done and how it went, in lines.
[[nodiscard]] std::vector<std::string> summary_lines(const BenchOutcome& outcome);
/// How nodes voted: a header, and a row for each.
[[nodiscard]] Rows vote_rows(const BenchOutcome& outcome);

[[nodiscard]] std::string bench_table(const BenchOutcome& outcome);
[[nodiscard]] Json bench_json(const BenchOutcome& outcome);
[[nodiscard]] std::string bench_csv(const BenchOutcome& outcome);

}  // namespace redlock::cli
