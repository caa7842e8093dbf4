// SPDX-License-Identifier: MIT
#include "cli/bench/report_page.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <utility>

#include <redlock/version.hpp>

#include "cli/bench/plot.hpp"

namespace redlock::cli {
namespace {

// Text has a contrast of 4.5 to 1 at least in both schemes, lines 3 to 1.
constexpr auto* style = R"css(
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1b1f24; --soft: #555d66;
  --grid: #d9dde2; --fault: #fdeeee; --s0: #0b62c4; --s1: #b35900; --s2: #0a7a4b; --s3: #8a3ab9;
  --s4: #c22f3d; --s5: #007a8a; --s6: #7a5a2f; --s7: #b0307e; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171c; --ink: #e8eaed; --soft: #a6adb6;
  --grid: #343a42; --fault: #2c1d21; --s0: #6cb1ff; --s1: #ffb066; --s2: #5fd6a0; --s3: #cf9bff;
  --s4: #ff8a94; --s5: #5fd0de; --s6: #d3b183; --s7: #ff8fcf; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 16px; max-width: 832px; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 8px 0; } h2 { font-size: 17px; margin: 28px 0 4px; }
p { margin: 4px 0; overflow-wrap: anywhere; } .soft { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: 3px 12px 3px 0; text-align: right; white-space: nowrap; }
th { color: var(--soft); font-weight: 600; }
th:first-child, td:first-child { text-align: left; }
td { border-top: 1px solid var(--grid); }
svg { display: block; max-width: 100%; height: auto; }
svg.narrow { display: none; }
svg text { fill: var(--soft); font: 12px system-ui, sans-serif; }
svg .grid { stroke: var(--grid); stroke-width: 1; }
svg .mark { stroke: var(--s4); stroke-width: 1.5; } svg .fault { fill: var(--fault); }
svg .mark-text { fill: var(--s4); }
svg polyline { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; list-style: none; margin: 6px 0;
  padding: 0; font-size: 13px; color: var(--soft); }
.legend li { display: flex; align-items: center; gap: 6px; overflow-wrap: anywhere; }
.legend svg { flex: none; } .legend line { stroke-width: 3; }
svg .ink { stroke: var(--ink); } svg circle.ink { fill: var(--ink); }
svg polyline.ink { stroke-width: 2.6; } svg .dash { stroke-dasharray: 6 4; }
)css";

constexpr std::size_t colours = 8;

double ms(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::string line_style(std::size_t number) {
  return fmt::format("s{}{}", number % colours, number >= colours ? " dash" : "");
}

std::string style_sheet() {
  std::string text = style;
  for (std::size_t i = 0; i < colours; ++i) {
    text += fmt::format(
        "svg .s{0} {{ stroke: var(--s{0}); }} svg circle.s{0} {{ fill: var(--s{0}); "
        "}}\n",
        i);
  }
  return text;
}

std::string html_table(const Rows& rows) {
  std::string text = "<div class=\"scroll\"><table>\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto* cell_tag = i == 0 ? "th" : "td";
    text += "<tr>";
    for (const auto& cell : rows[i]) {
      text += fmt::format("<{0}>{1}</{0}>", cell_tag, escaped(printable(cell)));
    }
    text += "</tr>\n";
  }
  return text + "</table></div>\n";
}

// A node's number and address: the number is what a legend needs, the address what it means.
std::string node_title(const BenchOutcome& outcome, std::size_t node) {
  return fmt::format("node {}: {}{}", node + 1, printable(outcome.nodes[node]),
                     outcome.relayed[node] ? " (relayed)" : "");
}

// Over the part of all on a scale on which 90 %, 99 % and 99.9 % are equally far apart.
PlotLine distribution_of(std::string name, std::string line, const Histogram& times) {
  PlotLine result{.name = std::move(name), .style = std::move(line)};
  const double all = static_cast<double>(times.count());
  for (double nines = 0; nines <= 4.001; nines += 0.05) {
    const double beyond = std::pow(10, -nines);
    if (all * beyond < 1) break;
    result.points.emplace_back(nines, ms(times.quantile(1 - beyond)));
  }
  return result;
}

// What a logarithmic axis must have room for.
PlotAxis times_axis_for(const std::vector<PlotLine>& lines) {
  double low = 1e9;
  double high = 1e-3;
  for (const auto& line : lines) {
    for (const auto& point : line.points) {
      low = std::min(low, point.second);
      high = std::max(high, point.second);
    }
  }
  return time_axis("milliseconds", std::min(low, high), high);
}

std::string distribution(const BenchOutcome& outcome) {
  const auto& all = outcome.measured;
  Plot plot;
  plot.description = "Distribution of round trips by node, of the quorum, and of acquire";
  for (std::size_t node = 0; node < outcome.nodes.size(); ++node) {
    if (all.node_round_trips[node].count() == 0) continue;
    plot.lines.push_back(
        distribution_of(node_title(outcome, node), line_style(node), all.node_round_trips[node]));
  }
  plot.lines.push_back(distribution_of(fmt::format("quorum ({})", quorum_in_words(outcome)), "ink",
                                       all.of(Timed::quorum)));
  plot.lines.push_back(
      distribution_of("acquire, as its caller sees it", "ink dash", all.of(Timed::acquire)));
  plot.x = {.title = "part of all that took no longer", .high = 1};
  for (const auto& line : plot.lines) {
    if (!line.points.empty()) plot.x.high = std::max(plot.x.high, line.points.back().first);
  }
  for (const auto& [nines, text] :
       {std::pair{0.30103, "50 %"}, std::pair{1.0, "90 %"}, std::pair{2.0, "99 %"},
        std::pair{3.0, "99.9 %"}, std::pair{4.0, "99.99 %"}}) {
    if (nines <= plot.x.high) plot.x.ticks.emplace_back(nines, text);
  }
  plot.y = times_axis_for(plot.lines);
  return draw(plot);
}

std::string over_time(const BenchOutcome& outcome) {
  const auto& all = outcome.measured;
  Plot plot;
  plot.description = "Acquire over time: median, 99 % and the longest";
  constexpr auto dots = PlotLine::Shape::dots;
  plot.lines = {{.name = "longest", .style = "s1", .shape = dots},
                {.name = "99 %", .style = "s0"},
                {.name = "median", .style = "ink"},
                {.name = "cycles that failed", .style = "s4", .shape = dots}};
  for (std::size_t i = 0; i < all.slots.size(); ++i) {
    const double at = ms(all.slot_length) / 1'000 * (static_cast<double>(i) + 0.5);
    const auto& times = all.slots[i].acquire;
    if (times.count() > 0) {
      plot.lines[0].points.emplace_back(at, ms(times.max()));
      plot.lines[1].points.emplace_back(at, ms(times.quantile(0.99)));
      plot.lines[2].points.emplace_back(at, ms(times.quantile(0.5)));
    }
    if (all.slots[i].failed > 0) plot.lines[3].points.emplace_back(at, 1e9);
  }
  const double end = ms(all.slot_length) / 1'000 * static_cast<double>(all.slots.size());
  plot.x = linear_axis("seconds", end);
  plot.x.high = end;
  std::erase_if(plot.x.ticks, [end](const auto& tick) { return tick.first > 1.001 * end; });
  plot.y = times_axis_for({plot.lines.begin(), plot.lines.begin() + 3});
  if (plot.lines[3].points.empty()) plot.lines.pop_back();
  if (all.fault_at) plot.mark = PlotMark{ms(*all.fault_at) / 1'000, outcome.fault};
  return draw(plot);
}

std::string by_concurrency(const BenchOutcome& outcome) {
  Plot plot;
  plot.description = "Cycles a second over the number of callers";
  PlotLine measured{
      .name = "cycles a second", .style = "s0", .shape = PlotLine::Shape::line_with_dots};
  double highest = 1;
  for (const auto& step : outcome.steps) {
    const auto callers = static_cast<double>(step.callers);
    measured.points.emplace_back(callers, step.throughput);
    highest = std::max(highest, step.throughput);
    plot.x.ticks.emplace_back(callers, std::to_string(step.callers));
  }
  plot.lines.push_back(std::move(measured));
  plot.x.title = "callers";
  plot.x.logarithmic = true;
  plot.x.low = 0.9;
  plot.x.high = static_cast<double>(outcome.steps.back().callers) * 1.1;
  if (const auto rate = outcome.settings.rate) {
    highest = std::max(highest, *rate);
    plot.lines.push_back({"asked for (--rate)", "ink dash", {{0.9, *rate}, {plot.x.high, *rate}}});
  }
  plot.y = linear_axis("cycles a second", highest);
  Rows rows{{"callers", "cycles/s", "acquire p50, ms", "p99, ms"}};
  for (const auto& step : outcome.steps) {
    rows.push_back({std::to_string(step.callers), fmt::format("{:.1f}", step.throughput),
                    fmt::format("{:.3f}", ms(step.p50)), fmt::format("{:.3f}", ms(step.p99))});
  }
  return draw(plot) + html_table(rows);
}

std::string times_table(const BenchOutcome& outcome) {
  Rows rows{{"milliseconds", "count", "p50", "p90", "p99", "p99.9", "max"}};
  for (const auto& [name, times] : times_rows(outcome)) {
    std::vector<std::string> row{name, std::to_string(times->count())};
    for (const auto time : {times->quantile(0.5), times->quantile(0.9), times->quantile(0.99),
                            times->quantile(0.999), times->max()}) {
      row.push_back(times->count() == 0 ? "-" : fmt::format("{:.3f}", ms(time)));
    }
    rows.push_back(std::move(row));
  }
  return html_table(rows);
}

std::string assertions_table(const BenchOutcome& outcome) {
  if (outcome.assertions.empty()) return {};
  Rows rows{{"assertion", "measured", ""}};
  for (const auto& [text, result] : outcome.assertions) {
    rows.push_back({text, result.measured, result.holds ? "holds" : "does not hold"});
  }
  return "<h2>Assertions</h2>\n" + html_table(rows);
}

}  // namespace

std::string report_page(const BenchOutcome& outcome) {
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>redlock bench: {}</title>\n<style>{}@media (max-width: 720px) {{ svg.wide {{ "
      "display: none; }} svg.narrow {{ display: block; }} }}\n</style>\n</head>\n<body>\n"
      "<h1>redlock bench: {}</h1>\n",
      to_string(outcome.settings.scenario), style_sheet(), to_string(outcome.settings.scenario));
  for (const auto& line : summary_lines(outcome)) {
    page += fmt::format("<p>{}</p>\n", escaped(printable(line)));
  }
  page += assertions_table(outcome);
  page += "<h2>Times</h2>\n" + times_table(outcome);
  page +=
      "<p class=\"soft\">acquire counts from the moment at which its cycle was due, late is the "
      "part of it before the call. A node's row is its round trip for an acquire.</p>\n";
  page += "<h2>Round trips by node, and of the quorum</h2>\n" + distribution(outcome);
  page += "<h2>Acquire over time</h2>\n" + over_time(outcome);
  if (!outcome.steps.empty()) {
    page += "<h2>Throughput over concurrency</h2>\n" + by_concurrency(outcome);
  }
  page += "<h2>Votes</h2>\n" + html_table(vote_rows(outcome));
  page += fmt::format("<p class=\"soft\">redlock {}; {} nodes, {} names, leases of {} ms</p>\n",
                      REDLOCK_VERSION, outcome.nodes.size(), outcome.settings.names,
                      outcome.settings.lease.count());
  return page + "</body>\n</html>\n";
}

}  // namespace redlock::cli
