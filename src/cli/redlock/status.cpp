// SPDX-License-Identifier: MIT
// redlock status: one lock, as each node sees it.
#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include <redlock/admin.hpp>

#include "cli/exit_code.hpp"
#include "cli/invocation.hpp"
#include "cli/output.hpp"
#include "cli/redlock/holder.hpp"
#include "cli/redlock/lock_report.hpp"
#include "cli/redlock/node_reports.hpp"
#include "cli/redlock/subcommands.hpp"

namespace redlock::cli {
namespace {

constexpr auto* status_footer = R"help(
Prints for each node who holds the lock, how often (count), what is left of the lease and the value
of the fence (the counter from which tokens come), and the verdict of a quorum of nodes:
  held         one owner has the lock on a quorum
  free         the lock is free on a quorum
  no_majority  neither: an attempt is under way, or one that failed left grants behind
  unknown      too few nodes answered
For a node that may have forgotten locks, the table says in how many seconds it votes again.
"taken by" is the holder's own note: its program (or --as), process, host, and when its attempt
began, by its own clock. Nothing checks the note.
The waiters follow, in the order in which they are to get the lock, as the nodes' lines have them.
A program with many calls for the lock shows the first of them; calls with --ordering barging
are not shown.
status changes nothing, and its report may be out of date when it is printed. Exits 0 whatever the
verdict, but 69 if it is unknown, or 78 if it is unknown because the nodes refuse us.

--watch asks the nodes again and again over the same connections. The output is redrawn in place on
a terminal, written in blocks with the time elsewhere, and with -o json one object per line, with
its "time". A node that goes away, or answers again, is named at the end. A signal N ends the watch
(Ctrl-C, say), with exit status 128+N.

Examples:
  redlock status deploy
  redlock status deploy --watch                      or --watch 500ms
  redlock status deploy --watch 10s -o json >> deploy.jsonl
  redlock status deploy -o json | jq -r .verdict)help";

std::string holder_of(const NodeLock& node) {
  if (!node.answered()) return "?";
  if (node.foreign_type) return "a key of another type";
  std::string text;
  for (const auto& holder : node.owners)
    text += (text.empty() ? "" : ",") + printable(holder.owner);
  return text.empty() ? "-" : text;
}

std::string count_of(const NodeLock& node) {
  return node.owners.empty() ? "-" : std::to_string(node.owners.front().count);
}

std::string remaining_of(const NodeLock& node) {
  if (node.remaining) return fmt::format("{} ms", node.remaining->count());
  return node.owners.empty() ? "-" : "never ends";
}

std::string note_on(const NodeLock& node) {
  if (!node.answered()) return words_of(node.trouble);
  return node.quarantine ? node.quarantine->why : "";
}

constexpr std::size_t most_lines = 20;

std::string waiting_lines(const std::vector<WaitingCall>& waiting) {
  if (waiting.empty()) return {};
  std::string text = fmt::format("{} waiting:\n", waiting.size());
  for (std::size_t i = 0; i < std::min(waiting.size(), most_lines); ++i) {
    text += wrapped(fmt::format("{:>4}. {}", i + 1, in_words(waiting[i].who)), columns(), 6);
  }
  if (waiting.size() <= most_lines) return text;
  return text + fmt::format("      and {} more; see -o json\n", waiting.size() - most_lines);
}

Colour colour_of_lock(std::string_view title, std::string_view cell) {
  return title == "HOLDER" && cell == "?" ? Colour::red : Colour::none;
}

std::string as_table(const LockReport& report) {
  std::vector<std::vector<std::string>> rows{{"NODE", "HOLDER", "COUNT", "REMAINING", "FENCE", ""}};
  for (const auto& node : report.nodes) {
    rows.push_back({node.node, holder_of(node), count_of(node), remaining_of(node),
                    node.fence ? std::to_string(*node.fence) : "-", note_on(node)});
  }
  return verdict_lines(report) + table(rows, {}, colour_of_lock) + waiting_lines(report.waiting);
}

Json as_json(const NodeLock& node) {
  Json holders = Json::array();
  for (const auto& holder : node.owners) {
    holders.push_back({{"owner", holder.owner}, {"count", holder.count}});
  }
  return node_as_json(node,
                      {{"holders", holders},
                       {"holder", holder_as_json(node.holder)},
                       {"foreign_type", node.foreign_type},
                       {"remaining_ms", milliseconds_or_null(node.remaining)},
                       {"fence", node.fence ? Json(*node.fence) : Json(nullptr)},
                       {"quarantine", quarantine_as_json(node.quarantine)},
                       {"waiting", node.waiting ? waiting_as_json(*node.waiting) : Json(nullptr)}});
}

Json as_json(const LockReport& report) {
  Json nodes = Json::array();
  for (const auto& node : report.nodes) nodes.push_back(as_json(node));
  return {{"name", report.name},
          {"verdict", to_string(report.verdict)},
          {"owner", report.owner.empty() ? Json(nullptr) : Json(report.owner)},
          {"nodes_of_owner", report.nodes_of_owner},
          {"holder", holder_as_json(report.holder)},
          {"quorum", report.quorum},
          {"nodes", nodes},
          {"waiting", waiting_as_json(report.waiting)}};
}

Look look_of(LockReport report) {
  const int status = report.verdict == Verdict::unknown ? exit_code_of_unknown(report) : exit_ok;
  Look look{.text = {}, .json = as_json(report), .status = status, .nodes = {}};
  for (const auto& node : report.nodes) look.nodes.emplace_back(node.node, words_of(node.trouble));
  look.text = [report = std::move(report)] { return as_table(report); };
  return look;
}

class Status : public LockLook {
 public:
  Status(CLI::App& app, const Invocation& invocation) : LockLook(app, invocation, look_of) {}
};

}  // namespace

void add_status(CLI::App& app, Invocation& invocation) {
  add_command<Status>(app, invocation,
                      {"status", "Show who holds a lock, according to each node",
                       "redlock status NAME [OPTIONS]", status_footer});
}

}  // namespace redlock::cli
