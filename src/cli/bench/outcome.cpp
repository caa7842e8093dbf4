// SPDX-License-Identifier: MIT
#include "cli/bench/outcome.hpp"

#include <array>
#include <fmt/core.h>
#include <set>
#include <utility>

#include "cli/duration.hpp"

namespace redlock::cli {
namespace {

double microseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

std::string in_ms(const Histogram& times, std::chrono::nanoseconds time) {
  if (times.count() == 0) return "-";
  return fmt::format("{:.3f}", microseconds(time) / 1'000);
}

Json times_as_json(const Histogram& times) {
  if (times.count() == 0) return {{"count", 0}};
  return {{"count", times.count()},
          {"p50_us", microseconds(times.quantile(0.5))},
          {"p90_us", microseconds(times.quantile(0.9))},
          {"p99_us", microseconds(times.quantile(0.99))},
          {"p99_9_us", microseconds(times.quantile(0.999))},
          {"max_us", microseconds(times.max())},
          {"mean_us", microseconds(times.mean())}};
}

Json votes_as_json(const NodeTally& votes) {
  Json unavailable = Json::object();
  for (const auto& [cause, count] : votes.unavailable) unavailable[to_string(cause)] = count;
  return {{"granted", votes.granted},
          {"refused", votes.refused},
          {"not_awaited", votes.not_awaited},
          {"unavailable", unavailable}};
}

Json settings_as_json(const BenchSettings& settings) {
  return {{"scenario", to_string(settings.scenario)},
          {"duration_ms", settings.duration.count()},
          {"rate", settings.rate ? Json(*settings.rate) : Json(nullptr)},
          {"concurrency", settings.concurrency},
          {"names", settings.names},
          {"lease_ms", settings.lease.count()}};
}

Json over_time_as_json(const Measurements& all) {
  Json slots = Json::array();
  for (std::size_t i = 0; i < all.slots.size(); ++i) {
    const auto begins = all.slot_length * static_cast<std::int64_t>(i);
    auto slot = times_as_json(all.slots[i].acquire);
    slot["at_s"] = microseconds(begins) / 1e6;
    slot["failed"] = all.slots[i].failed;
    slots.push_back(std::move(slot));
  }
  return slots;
}

std::string failures_in_words(const Measurements& all) {
  if (all.failures.empty()) return "no errors";
  std::string text;
  for (const auto& [code, count] : all.failures) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, to_string(code));
  }
  return fmt::format("errors: {}", text);
}

std::string rate_in_words(const BenchSettings& settings) {
  return settings.rate ? fmt::format("{:.6g} cycles/s", *settings.rate) : "as fast as they can";
}

struct TimesRow {
  std::string name;
  const Histogram* times = nullptr;
};

/// Operations, then the quorum's round trip, then each node's.
std::vector<TimesRow> times_rows(const BenchOutcome& outcome) {
  std::vector<TimesRow> rows;
  for (const auto what : all_timed) rows.push_back({to_string(what), &outcome.measured.of(what)});
  for (std::size_t node = 0; node < outcome.nodes.size(); ++node) {
    rows.push_back({outcome.nodes[node], &outcome.measured.node_round_trips[node]});
  }
  return rows;
}

/// "3rd of 5": the place, in the order of the answers, of the one that makes a quorum.
std::string quorum_in_words(const BenchOutcome& outcome) {
  static constexpr std::array endings{"th", "st", "nd", "rd"};
  const auto quorum = outcome.quorum();
  return fmt::format("{}{} of {}", quorum, endings[quorum < endings.size() ? quorum : 0],
                     outcome.nodes.size());
}

/// The settings and the overall result, in lines.
std::vector<std::string> summary_lines(const BenchOutcome& outcome) {
  const auto& all = outcome.measured;
  const auto& settings = outcome.settings;
  const double seconds = microseconds(all.elapsed) / 1e6;
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{}{}: {} cycles in {:.1f} s, {:.1f}/s; {} callers, {}",
                              to_string(settings.scenario),
                              outcome.interrupted ? " (interrupted)" : "", all.cycles, seconds,
                              all.throughput(), settings.concurrency, rate_in_words(settings)));
  if (all.fault_at) {
    lines.push_back(fmt::format("{} from {:.1f} s on, as seen from this program only",
                                outcome.fault, microseconds(*all.fault_at) / 1e6));
  }
  std::string more = failures_in_words(all);
  if (all.unstarted > 0) {
    more += fmt::format(
        "; {} due and not begun: all callers were busy",
        all.unstarted == 1 ? "1 cycle was" : fmt::format("{} cycles were", all.unstarted));
  }
  lines.push_back(std::move(more));
  if (all.grants > 0) {
    lines.push_back(
        fmt::format("{:.4g} % of grants settled in one round trip", 100 * all.settled_at_once()));
  }
  return lines;
}

/// How nodes voted: a header, and a row for each.
Rows vote_rows(const BenchOutcome& outcome) {
  std::set<Cause> causes;
  for (const auto& votes : outcome.measured.votes) {
    for (const auto& entry : votes.unavailable) causes.insert(entry.first);
  }
  Rows rows{{"VOTES", "GRANTED", "REFUSED", "NOT_AWAITED"}};
  for (const auto cause : causes) {
    std::string title = to_string(cause);
    for (auto& c : title) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    rows.front().push_back(std::move(title));
  }
  for (std::size_t node = 0; node < outcome.nodes.size(); ++node) {
    const auto& votes = outcome.measured.votes[node];
    std::vector<std::string> row{outcome.nodes[node], std::to_string(votes.granted),
                                 std::to_string(votes.refused), std::to_string(votes.not_awaited)};
    for (const auto cause : causes) {
      const auto found = votes.unavailable.find(cause);
      row.push_back(std::to_string(found == votes.unavailable.end() ? 0 : found->second));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::string bench_table(const BenchOutcome& outcome) {
  std::string text;
  for (const auto& line : summary_lines(outcome)) text += wrapped(line, columns(), 2);
  Rows rows{{"MILLISECONDS", "COUNT", "P50", "P90", "P99", "P99.9", "MAX"}};
  for (const auto& [name, times] : times_rows(outcome)) {
    const bool is_quorum = times == &outcome.measured.of(Timed::quorum);
    rows.push_back({is_quorum ? fmt::format("quorum ({})", quorum_in_words(outcome)) : name,
                    std::to_string(times->count()), in_ms(*times, times->quantile(0.5)),
                    in_ms(*times, times->quantile(0.9)), in_ms(*times, times->quantile(0.99)),
                    in_ms(*times, times->quantile(0.999)), in_ms(*times, times->max())});
  }
  text += "\n" + table(rows) + "\n" + table(vote_rows(outcome));
  if (outcome.assertions.empty()) return text;
  Rows judged{{"ASSERTION", "MEASURED", ""}};
  for (const auto& [assertion, result] : outcome.assertions) {
    judged.push_back({assertion, result.measured, result.holds ? "holds" : "DOES NOT HOLD"});
  }
  return text + "\n" + table(judged);
}

Json bench_json(const BenchOutcome& outcome) {
  const auto& all = outcome.measured;
  Json times = Json::object();
  for (const auto what : all_timed) times[to_string(what)] = times_as_json(all.of(what));
  Json nodes = Json::array();
  for (std::size_t node = 0; node < outcome.nodes.size(); ++node) {
    nodes.push_back({{"node", outcome.nodes[node]},
                     {"relayed", static_cast<bool>(outcome.relayed[node])},
                     {"round_trip", times_as_json(all.node_round_trips[node])},
                     {"votes", votes_as_json(all.votes[node])}});
  }
  Json failures = Json::object();
  for (const auto& [code, count] : all.failures) failures[to_string(code)] = count;
  Json assertions = Json::array();
  for (const auto& [text, result] : outcome.assertions) {
    assertions.push_back({{"text", text}, {"holds", result.holds}, {"measured", result.measured}});
  }
  Json fault = nullptr;
  if (all.fault_at) fault = {{"what", outcome.fault}, {"at_s", microseconds(*all.fault_at) / 1e6}};
  return {{"settings", settings_as_json(outcome.settings)},
          {"interrupted", outcome.interrupted},
          {"elapsed_s", microseconds(all.elapsed) / 1e6},
          {"cycles", all.cycles},
          {"throughput", all.throughput()},
          {"failures", failures},
          {"unstarted", all.unstarted},
          {"grants", all.grants},
          {"settled_in_one_round_trip", all.grants - std::min(all.grants, all.settled_again)},
          {"quorum", outcome.quorum()},
          {"fault", fault},
          {"times", times},
          {"nodes", nodes},
          {"over_time", over_time_as_json(all)},
          {"assertions", assertions}};
}

std::string bench_csv(const BenchOutcome& outcome) {
  std::string text = "what,count,p50_us,p90_us,p99_us,p99_9_us,max_us\n";
  for (const auto& [name, times] : times_rows(outcome)) {
    std::string quoted;
    for (const char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
    text += fmt::format("\"{}\",{}", quoted, times->count());
    for (const auto time : {times->quantile(0.5), times->quantile(0.9), times->quantile(0.99),
                            times->quantile(0.999), times->max()}) {
      text += times->count() == 0 ? "," : fmt::format(",{:.1f}", microseconds(time));
    }
    text += "\n";
  }
  return text;
}

}  // namespace redlock::cli
