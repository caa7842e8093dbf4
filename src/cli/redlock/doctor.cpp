// SPDX-License-Identifier: MIT
// redlock doctor: whether the nodes are fit to hold locks, and what to do where they are not.
#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <memory>
#include <utility>

#include <redlock/admin.hpp>

#include "cli/exit_code.hpp"
#include "cli/invocation.hpp"
#include "cli/nodes.hpp"
#include "cli/output.hpp"
#include "cli/redlock/live_view.hpp"
#include "cli/redlock/subcommands.hpp"
#include "cli/timestamp.hpp"

namespace redlock::cli {
namespace {

constexpr auto* doctor_footer = R"help(
Examines every node: whether it is reachable, its round trip, version, run id, role, persistence,
eviction policy, uptime, its clock against this machine's, its marker (see redlock adopt --help),
and whether it votes: a node that may have forgotten locks does not vote at first, and the table
says for how many seconds. Each node grants, holds and releases the lock "redlock-doctor". Doctor
also tries each right that the user needs (cluster/users.acl), and, on a node without
protected-mode, what a client without a password may do; and compares the counters from which
tokens come (redlock:fence:*), which needs the right to SCAN. Nothing else is changed.
Then doctor examines the set as a whole. The first line is the verdict:
  healthy   every node votes, and there is nothing to do                                  (exit 0)
  degraded  all guarantees hold and locks are granted; there is a warning                 (exit 1)
  unsafe    there is an error: a guarantee is broken or cannot be confirmed, or too few
            nodes can vote for a lock to be granted                                       (exit 2)
Then each problem, with what to do about it:
  error     a voting node that may forget or evict locks, or does not show whether it may; one
            server listed as two nodes; nodes of different sets; a majority that is unreachable,
            or without markers (a new set, until `redlock adopt`); a node that lets other
            machines in without a password, or whose user may read another user's password
  warning   a node that does not vote, or does not vote yet: down, refusing us, in quarantine;
            clocks that are apart; a damaged counter; appendfsync everysec; a certificate, of a
            node or of this client, that ends within 14 days (or the last third of its life); a
            key file that other users may read
  hint      a possible improvement; a set with hints alone is healthy
Columns that a terminal has no room for are left out; -o json has everything.

--mend sets each damaged counter (it is no number, or years ahead of all clocks and of most nodes)
to the largest of the other nodes' counters and clocks and an hour of tokens more, and then
examines. Locks may be in use meanwhile. Until a counter is mended its node has no vote on the locks
that use it; everything else goes on.

--watch examines the nodes again and again over the same connections. The output is redrawn in place
on a terminal, written in blocks with the time elsewhere, and with -o json one object per line, with
its "time". A node that goes away, or answers again, is named at the end. A signal N ends the watch
(Ctrl-C, say), with exit status 128+N.

Examples:
  redlock doctor
  redlock doctor --watch                  or --watch 10s
  redlock doctor --nodes-file nodes.txt -o json | jq -r .verdict
  redlock doctor >/dev/null || [ $? = 1 ] || exit    goes on unless the set is unsafe)help";

template <typename Value>
std::string shown(const std::optional<Value>& value) {
  return value ? fmt::format("{}", *value) : "?";
}

std::string persistence_of(const NodeHealth& node) {
  if (!node.append_only) return "?";
  if (!*node.append_only) return "none";
  return "aof " + shown(node.append_fsync);
}

std::string uptime_of(const NodeHealth& node) {
  if (!node.uptime) return "?";
  const auto seconds = node.uptime->count();
  if (seconds < 120) return fmt::format("{}s", seconds);
  if (seconds < 7200) return fmt::format("{}m", seconds / 60);
  if (seconds < 172'800) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / 86400);
}

template <typename Duration>
std::string in_ms(const std::optional<Duration>& duration) {
  if (!duration) return "?";
  // In floating point: the offset of a damaged clock is more than nanoseconds reach.
  return fmt::format("{:.1f} ms", std::chrono::duration<double, std::milli>(*duration).count());
}

std::string state_of(const NodeHealth& node) {
  if (!node.quarantine) return "up";
  if (node.quarantine->votes_in == std::chrono::seconds(0)) return "no member";
  return fmt::format("votes in {}s", node.quarantine->votes_in.count());
}

std::vector<std::string> row_of(const NodeHealth& node) {
  if (!node.answered()) return {node.node, to_string(node.trouble.cause)};
  return {node.node,
          state_of(node),
          in_ms(node.round_trip),
          shown(node.version),
          node.run_id ? node.run_id->substr(0, 8) : "?",
          shown(node.role),
          persistence_of(node),
          shown(node.eviction),
          uptime_of(node),
          in_ms(node.clock_offset),
          node.marker ? node.marker->id.substr(0, 8) : "missing"};
}

std::string line_of(const Problem& problem, const std::string& where) {
  const std::string severity = to_string(problem.severity);
  const auto lines =
      wrapped(fmt::format("{:8} {}: {}", severity, shortened(where, columns() / 2), problem.what),
              columns(), 9);
  const auto colour = problem.severity == Severity::error     ? Colour::red
                      : problem.severity == Severity::warning ? Colour::yellow
                                                              : Colour::none;
  return painted(colour, severity) + lines.substr(severity.size());
}

std::string fitness_line(const Examination& examination) {
  const auto nodes = examination.nodes.size();
  switch (examination.fitness()) {
    case Fitness::healthy:
      return painted(Colour::green, "healthy") +
             fmt::format(": all {} nodes vote; there is nothing to do\n", nodes);
    case Fitness::degraded:
      return painted(Colour::yellow, "degraded") +
             ": all guarantees hold and locks are granted; fix the warnings below\n";
    case Fitness::unsafe:
      break;
  }
  return painted(Colour::red, "unsafe") +
         ": a guarantee is broken or unconfirmed, or no lock can be granted\n";
}

Colour colour_of_health(std::string_view title, std::string_view cell) {
  if (title == "STATE") {
    if (cell == "up") return Colour::green;
    return cell.starts_with("votes in") ? Colour::yellow : Colour::red;
  }
  const bool is_lacking = (title == "PERSISTENCE" && cell == "none") || cell == "missing";
  return is_lacking ? Colour::red : Colour::none;
}

std::string as_table(const Examination& examination) {
  std::vector<std::vector<std::string>> rows{{"NODE", "STATE", "ROUND TRIP", "VERSION", "RUN ID",
                                              "ROLE", "PERSISTENCE", "EVICTION", "UPTIME", "CLOCK",
                                              "MARKER"}};
  std::map<Severity, std::string> problems;  // the worst first
  const auto note = [&problems](const std::vector<Problem>& found, const std::string& where) {
    for (const auto& problem : found) problems[problem.severity] += line_of(problem, where);
  };
  note(examination.problems, "the set");
  for (const auto& node : examination.nodes) {
    rows.push_back(row_of(node));
    note(node.problems, node.node);
  }
  std::string text = fitness_line(examination);
  for (const auto& [severity, lines] : problems) text += lines;
  return text + "\n" +
         table(rows, {"RUN ID", "MARKER", "EVICTION", "ROLE", "VERSION", "ROUND TRIP", "UPTIME"},
               colour_of_health);
}

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <typename Duration>
Json count_or_null(const std::optional<Duration>& duration) {
  return duration ? Json(duration->count()) : Json(nullptr);
}

Json as_json(const std::vector<Problem>& problems) {
  Json list = Json::array();
  for (const auto& problem : problems) {
    list.push_back({{"severity", to_string(problem.severity)}, {"what", problem.what}});
  }
  return list;
}

Json as_json(const std::optional<Marker>& marker) {
  if (!marker) return nullptr;
  return {{"id", marker->id},          {"layout", marker->layout},
          {"nodes", marker->nodes},    {"max_lease_ms", marker->max_lease_ms},
          {"set", marker->set},        {"epoch", marker->epoch},
          {"members", marker->members}};
}

Json as_json(const std::optional<CertificateHealth>& certificate) {
  if (!certificate) return nullptr;
  return {{"begins", iso_8601(certificate->begins)},
          {"ends", iso_8601(certificate->ends)},
          {"of_authority", certificate->of_authority}};
}

Json as_json(const std::vector<DamagedFence>& fences) {
  Json list = Json::array();
  for (const auto& fence : fences) {
    list.push_back({{"stripe", fence.stripe},
                    {"value", fence.value.empty() ? Json(nullptr) : Json(fence.value)},
                    {"mended", or_null(fence.mended)}});
  }
  return list;
}

Json as_json(const NodeHealth& node) {
  const auto trip =
      node.round_trip
          ? std::optional(std::chrono::duration_cast<std::chrono::microseconds>(*node.round_trip))
          : std::nullopt;
  return node_as_json(
      node,
      {{"round_trip_us", count_or_null(trip)},
       {"version", or_null(node.version)},
       {"run_id", or_null(node.run_id)},
       {"same_as", node.same_as.empty() ? Json(nullptr) : Json(node.same_as)},
       {"role", or_null(node.role)},
       {"promoted", node.promoted},
       {"vouched", node.vouched},
       {"cluster", node.cluster},
       {"append_only", or_null(node.append_only)},
       {"append_fsync", or_null(node.append_fsync)},
       {"append_error", or_null(node.append_error)},
       {"eviction", or_null(node.eviction)},
       {"max_memory", or_null(node.max_memory)},
       {"uptime_s", count_or_null(node.uptime)},
       {"clock_offset_us", count_or_null(node.clock_offset)},
       {"clock_noted_ms", node.clock_noted.count()},
       {"marker", as_json(node.marker)},
       {"refusal", node.refusal.cause == Cause::none ? Json(nullptr) : Json(node.refusal.detail)},
       {"missing_rights", node.missing_rights},
       {"open", node.open},
       {"readable_passwords", node.readable_passwords},
       {"serves_in_order", or_null(node.serves_in_order)},
       {"quarantine", quarantine_as_json(node.quarantine)},
       {"fences_compared", node.fences_compared},
       {"damaged_fences", as_json(node.damaged_fences)},
       {"certificate", as_json(node.certificate)},
       {"problems", as_json(node.problems)}});
}

Json as_json(const Examination& examination) {
  Json nodes = Json::array();
  for (const auto& node : examination.nodes) nodes.push_back(as_json(node));
  return {{"verdict", to_string(examination.fitness())},
          {"safe", examination.safe()},
          {"quorum", examination.quorum},
          {"client_certificate", as_json(examination.client_certificate)},
          {"problems", as_json(examination.problems)},
          {"nodes", nodes}};
}

int exit_code_of(Fitness fitness) {
  if (fitness == Fitness::healthy) return exit_ok;
  return fitness == Fitness::degraded ? exit_degraded : exit_unsafe;
}

Look look_of(Examination examination) {
  Look look{.text = {},
            .json = as_json(examination),
            .status = exit_code_of(examination.fitness()),
            .nodes = {}};
  for (const auto& node : examination.nodes)
    look.nodes.emplace_back(node.node, words_of(node.trouble));
  look.text = [examination = std::move(examination)] { return as_table(examination); };
  return look;
}

class Doctor {
 public:
  Doctor(CLI::App& app, const Invocation& invocation) : nodes_(app, invocation), look_(app) {
    app.add_flag("--mend", mend_, "Mend damaged counters of tokens first; see below");
  }

  int run() {
    return look_.show([this] {
      auto set = std::make_shared<ExaminedSet>(nodes_.connect_to_look());
      if (mend_) mend(set->client);
      return [set]() mutable {
        auto examination = set->examine();
        const bool too_few = examination.quorum > examination.nodes.size();
        if (too_few || (!examination.safe() && differs(examination, set->client.options()))) {
          NodeOptions::check_markers(set->client);
        }
        return look_of(std::move(examination));
      };
    });
  }

 private:
  static void mend(const Client& client) {
    const auto fences = Admin(client).mend_fences();
    if (!fences) throw failure(fences.error());
    if (fences->empty()) say("no counter of tokens is damaged");
    for (const auto& [node, fence, problem] : *fences) {
      const auto what = fmt::format("redlock:fence:{} of {} ({})", fence.stripe, node,
                                    fence.value.empty() ? "no number" : fence.value);
      say(problem.empty() ? fmt::format("mended {}: it is {} now", what, *fence.mended)
                          : fmt::format("did not mend {}: {}", what, problem));
    }
  }

  /// Whether a marker may have other terms than were given.
  static bool differs(const Examination& examination, const ClientOptions& options) {
    return std::ranges::any_of(examination.nodes, [&](const NodeHealth& node) {
      return node.marker && (node.marker->nodes != std::to_string(options.nodes.size()) ||
                             options.max_lease != options.max_lease.zero());
    });
  }

  struct ExaminedSet {
    explicit ExaminedSet(Client made) : client(std::move(made)), examinations(client) {}
    Examination examine() {
      auto examination = examinations.next();
      if (!examination) throw failure(examination.error());
      return std::move(*examination);
    }
    Client client;
    Examinations examinations;
  };

  NodeOptions nodes_;
  LookOptions look_;
  bool mend_ = false;
};

}  // namespace

void add_doctor(CLI::App& app, Invocation& invocation) {
  add_command<Doctor>(app, invocation,
                      {"doctor", "Examine the nodes: are they fit to hold locks?",
                       "redlock doctor [OPTIONS]", doctor_footer});
}

}  // namespace redlock::cli
