// SPDX-License-Identifier: MIT
// redlock waiters: who waits for a lock, in which order, and in the lines of which nodes.
#include <algorithm>
#include <fmt/core.h>
#include <iterator>
#include <optional>
#include <string_view>
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

constexpr auto* waiters_footer = R"help(
Each node keeps a line of the calls that wait for a lock in order. Each call that is in any line is
shown, the next in line first:
  FOR      how long the call has waited (since its last grant that came too late)
  PLACES   its place in the line of each node, in the order of the list of nodes: 1 is the next in
           line, - it is not in that line, ? that line could not be read
  WOKEN    turn: a node keeps the lock, which is free there, for it now; yes: the nodes tell it when
           its turn has come; polls: one cannot, and if too few others can it asks again and again
Calls in no line are not shown: those that wait with --ordering barging, those that find no quorum
of nodes, and all but the first of a program's calls for the lock. A call whose program
was killed stays listed for 2.5 s.

waiters changes nothing. Exits 0 whether or not a call waits, 69 if too few nodes show their lines,
78 if that is because they refuse us or the user may not read the lines (cluster/users.acl).
--watch asks the nodes again and again, as that of `redlock status` does.

Examples:
  redlock waiters deploy
  redlock waiters deploy --watch 500ms
  redlock waiters deploy -o json | jq '.waiting | length')help";

constexpr auto* unseen = "calls that wait with --ordering barging are in no line, and not shown";

/// Its place in this node's line, from 1; 0 if it is not there; none if that is not known.
std::optional<std::size_t> place_on(const NodeLock& node, const WaitingCall& call) {
  if (!node.answered() || !node.waiting) return std::nullopt;
  const auto found = std::find_if(node.waiting->begin(), node.waiting->end(),
                                  [&call](const WaitingCall& here) { return here.id == call.id; });
  if (found == node.waiting->end()) return 0;
  return static_cast<std::size_t>(std::distance(node.waiting->begin(), found)) + 1;
}

std::string places_of(const LockReport& report, const WaitingCall& call) {
  std::string text;
  for (const auto& node : report.nodes) {
    const auto place = place_on(node, call);
    if (!text.empty()) text += ' ';
    text += !place ? "?" : *place == 0 ? "-" : std::to_string(*place);
  }
  return text;
}

std::string waited_of(const WaitingCall& call) {
  if (!call.waited) return "?";
  const auto ms = call.waited->count();
  if (ms < 10'000) return fmt::format("{} ms", ms);
  return ms < 7'200'000 ? fmt::format("{} s", ms / 1000) : fmt::format("{} h", ms / 3'600'000);
}

std::string woken_of(const WaitingCall& call) {
  if (call.has_turn) return "turn";
  return call.polls ? "polls" : "yes";
}

Colour colour_of_waiter(std::string_view title, std::string_view cell) {
  if (title != "WOKEN") return Colour::none;
  if (cell == "turn") return Colour::green;
  return cell == "polls" ? Colour::yellow : Colour::none;
}

std::string why_unread(const NodeLock& node) {
  if (!node.answered()) return words_of(node.trouble);
  return node.waiting ? "" : "the user may not read its line (cluster/users.acl has the rights)";
}

std::size_t lines_read(const LockReport& report) {
  return static_cast<std::size_t>(
      std::count_if(report.nodes.begin(), report.nodes.end(),
                    [](const NodeLock& node) { return why_unread(node).empty(); }));
}

std::string heading(const LockReport& report) {
  const auto name = printable(report.name);
  const auto count = report.waiting.size();
  const auto read = lines_read(report);
  if (read == 0) return fmt::format("{}: no node shows its line\n", name);
  if (read < report.quorum) {
    return fmt::format("{}: {} seen waiting, but only {} of {} nodes show their lines\n", name,
                       count, read, report.nodes.size());
  }
  if (count == 0) return fmt::format("nobody waits for {} in order; {}\n", name, unseen);
  return fmt::format("{} {} for {}\n", count, count == 1 ? "waits" : "wait", name);
}

std::string waiters_table(const LockReport& report) {
  std::string text = heading(report);
  if (report.verdict != Verdict::unknown) text += verdict_lines(report);
  if (!report.waiting.empty()) {
    Rows rows{{"", "WAITER", "FOR", "PLACES", "WOKEN"}};
    for (const auto& call : report.waiting) {
      rows.push_back({std::to_string(rows.size()), program_of(call.who), waited_of(call),
                      places_of(report, call), woken_of(call)});
    }
    text += table(rows, {}, colour_of_waiter);
  }
  for (const auto& node : report.nodes) {
    const auto why = why_unread(node);
    const auto where = shortened(node.node, columns() / 2);
    if (!why.empty()) text += wrapped(where + ": " + why, columns(), 2);
  }
  return text;
}

Json waiter_as_json(const LockReport& report, const WaitingCall& call) {
  Json places = Json::array();
  for (const auto& node : report.nodes) {
    const auto place = place_on(node, call);
    places.push_back(place && *place > 0 ? Json(*place) : Json(nullptr));
  }
  return {{"id", call.id},
          {"who", holder_as_json(call.who)},
          {"waited_ms", milliseconds_or_null(call.waited)},
          {"polls", call.polls},
          {"has_turn", call.has_turn},
          {"places", places}};
}

Json waiters_as_json(const LockReport& report) {
  Json waiting = Json::array();
  for (const auto& call : report.waiting) waiting.push_back(waiter_as_json(report, call));
  Json nodes = Json::array();
  for (const auto& node : report.nodes) {
    const auto why = why_unread(node);
    nodes.push_back({{"node", node.node}, {"read", why.empty()}, {"detail", why}});
  }
  return {{"name", report.name},
          {"verdict", to_string(report.verdict)},
          {"owner", report.owner.empty() ? Json(nullptr) : Json(report.owner)},
          {"quorum", report.quorum},
          {"waiting", waiting},
          {"nodes", nodes}};
}

int status_of_lines(const LockReport& report) {
  if (lines_read(report) >= report.quorum) return exit_ok;
  // Nodes that answered, and did not let us read the line.
  return report.verdict == Verdict::unknown ? exit_code_of_unknown(report) : exit_configuration;
}

Look waiters_seen(LockReport report) {
  Look look{
      .text = {}, .json = waiters_as_json(report), .status = status_of_lines(report), .nodes = {}};
  for (const auto& node : report.nodes) look.nodes.emplace_back(node.node, why_unread(node));
  look.text = [report = std::move(report)] { return waiters_table(report); };
  return look;
}

class Waiters : public LockLook {
 public:
  Waiters(CLI::App& app, const Invocation& invocation) : LockLook(app, invocation, waiters_seen) {}
};

}  // namespace

void add_waiters(CLI::App& app, Invocation& invocation) {
  add_command<Waiters>(app, invocation,
                       {"waiters", "Show who waits for a lock, in order",
                        "redlock waiters NAME [OPTIONS]", waiters_footer});
}

}  // namespace redlock::cli
