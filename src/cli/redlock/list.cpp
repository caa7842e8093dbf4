// SPDX-License-Identifier: MIT
// redlock list: the locks that exist.
#include <fmt/core.h>

#include <redlock/admin.hpp>

#include "cli/invocation.hpp"
#include "cli/nodes.hpp"
#include "cli/output.hpp"
#include "cli/redlock/holder.hpp"
#include "cli/redlock/node_reports.hpp"
#include "cli/redlock/subcommands.hpp"

namespace redlock::cli {
namespace {

constexpr auto* list_footer = R"help(
A lock is held if one owner has it on a quorum of nodes; a lock on fewer nodes belongs to an attempt
that is under way, or was left by one that failed, and ends with its lease. Every node walks over
all its keys (SCAN): on a node with many other keys this takes a while. Nodes that left a question
unanswered are named on stderr; a lock that such a node had listed appears with the owner "?". Exits
69 if too few nodes answered everything. The program that took a lock is shown behind it, or below
where the line is too short. WAITING is the number of waiters in order, on the node that has most.

Examples:
  redlock list
  redlock list 'seat-*' --limit 20
  redlock list -o json | jq -r '.locks[].name')help";

std::string owner_of(const ListedLock& lock) {
  switch (lock.kind) {
    case ListedAs::lock:
      break;
    case ListedAs::several_owners:
      return "several owners";
    case ListedAs::foreign_type:
      return "a key of another type";
    case ListedAs::unread:
      return "?";
  }
  return printable(lock.owner);
}

std::string remaining_of(const ListedLock& lock) {
  if (lock.remaining) return fmt::format("{} ms", lock.remaining->count());
  return lock.kind == ListedAs::unread ? "?" : "never ends";
}

std::string as_table(const LockList& list) {
  std::vector<std::vector<std::string>> rows{
      {"NAME", "OWNER", "NODES", "WAITING", "REMAINING", ""}};
  for (const auto& lock : list.locks) {
    rows.push_back({printable(lock.name), owner_of(lock),
                    fmt::format("{}/{}", lock.nodes_of_owner, list.nodes.size()),
                    std::to_string(lock.waiting), remaining_of(lock),
                    lock.holder ? "taken by " + program_of(lock.holder) : ""});
  }
  return table(rows);
}

Json as_json(const LockList& list) {
  Json locks = Json::array();
  for (const auto& lock : list.locks) {
    locks.push_back({{"name", lock.name},
                     {"kind", to_string(lock.kind)},
                     {"owner", lock.owner.empty() ? Json(nullptr) : Json(lock.owner)},
                     {"held", lock.nodes_of_owner >= list.quorum},
                     {"nodes_of_owner", lock.nodes_of_owner},
                     {"remaining_ms", milliseconds_or_null(lock.remaining)},
                     {"holder", holder_as_json(lock.holder)},
                     {"waiting", lock.waiting}});
  }
  Json nodes = Json::array();
  for (const auto& node : list.nodes) nodes.push_back(node_as_json(node));
  return {
      {"locks", locks}, {"truncated", list.truncated}, {"quorum", list.quorum}, {"nodes", nodes}};
}

class List {
 public:
  List(CLI::App& app, const Invocation& invocation) : nodes_(app, invocation) {
    app.add_option("PATTERN", pattern_, "Only names that match: * ? [a-c] as in Redis; default *");
    app.add_option("--limit", limit_, "The most locks to list; default 1000")
        ->check(CLI::Range(1, 1'000'000))
        ->option_text("N");
    add_format_option(app, format_);
  }

  int run() {
    auto client = nodes_.connect_to_look();
    const auto list =
        report_of(client, [this](const Admin& admin) { return admin.list(pattern_, limit_); });
    print(format_ == Format::json ? to_text(as_json(list)) : as_table(list));
    if (list.truncated) say(fmt::format("there are more than {} locks; see --limit", limit_));
    const auto silent = unavailable_nodes(votes_of(list));
    if (!silent.empty()) say("nodes that did not answer everything: " + silent);
    return exit_code_of_nodes(list);
  }

 private:
  NodeOptions nodes_;
  std::string pattern_ = "*";
  std::size_t limit_ = 1000;
  Format format_ = Format::table;
};

}  // namespace

void add_list(CLI::App& app, Invocation& invocation) {
  add_command<List>(
      app, invocation,
      {"list", "List the locks that exist", "redlock list [PATTERN] [OPTIONS]", list_footer});
}

}  // namespace redlock::cli
