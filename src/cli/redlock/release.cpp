// SPDX-License-Identifier: MIT
// redlock release: gives back a lock taken by `redlock acquire`, or takes it away from its holder.
#include <fmt/core.h>
#include <memory>

#include <redlock/admin.hpp>
#include <redlock/redlock.hpp>

#include "cli/exit_code.hpp"
#include "cli/invocation.hpp"
#include "cli/nodes.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/redlock/grant_output.hpp"
#include "cli/redlock/node_reports.hpp"
#include "cli/redlock/subcommands.hpp"

namespace redlock::cli {
namespace {

constexpr auto* release_footer = R"help(
With --owner, every node gets the release that is reached within one --node-timeout. Prints what a
quorum of nodes found:
  released      the nodes had the lock for this owner, and deleted it                 (exit 0)
  already_gone  too few nodes had it still: it expired, or another owner has it now   (exit 75)
  unknown       too few nodes answered; grants left end with the lease at the latest  (exit 69,
                or 78 if the nodes' configuration keeps them from answering)

With --force, the owner that holds the lock on a quorum of nodes loses it, and the nodes refuse that
owner from now on, so that it cannot renew or heal its way back. Prints the outcome:
  released      the owner, how many nodes had the lock, and how many refuse the owner     (exit 0)
  nothing_held  no owner had a quorum, or the owner lost the lock by itself meanwhile     (exit 75)
  unknown       too few nodes answered; changes stay, and the call can be repeated  (exit 69 or 78)
and, for every node, whether it deleted the lock, did not have it, or did not answer: a lock on such
a node ends with its lease. Waits for the nodes one --node-timeout at most.
The holder is not asked. Its next renewal (a third of its lease) reports the loss; until then it
works on, perhaps beside the next holder. Its fencing token is older than the next holder's: a
resource that refuses older tokens turns the late holder away, any other resource does not. So look
first, and force a release only if the holder is known to be dead:
  redlock status NAME

Examples:
  redlock release deploy --owner "$owner"
  redlock release deploy --force)help";

std::string what_of(const NodeForced& node) {
  switch (node.what) {
    case ForcedHere::removed:
      return "removed";
    case ForcedHere::not_held:
      return "did not have it; refuses that owner";
    case ForcedHere::not_told:
      return "nothing done";
    case ForcedHere::unreachable:
      break;
  }
  return "unreachable: " + words_of(node.trouble);
}

std::string as_text(const ForcedRelease& forced) {
  std::string text = std::string(to_string(forced.outcome)) + "\n";
  if (forced.outcome == Forced::released) {
    text = fmt::format("released from {} on {} of {} nodes; {} refuse that owner\n", forced.owner,
                       forced.removed, forced.nodes.size(), forced.confirmed);
  }
  if (forced.owner.empty()) return text;
  for (const NodeForced& node : forced.nodes) {
    text += fmt::format("  {}: {}\n", node.node, what_of(node));
  }
  return text;
}

Json as_json(const ForcedRelease& forced) {
  Json nodes = Json::array();
  for (const NodeForced& node : forced.nodes) {
    nodes.push_back(node_as_json(node, {{"result", to_string(node.what)}}));
  }
  return {{"name", forced.name},
          {"result", to_string(forced.outcome)},
          {"owner", forced.owner.empty() ? Json(nullptr) : Json(forced.owner)},
          {"removed", forced.removed},
          {"confirmed", forced.confirmed},
          {"quorum", forced.quorum},
          {"nodes", nodes}};
}

class Release {
 public:
  Release(CLI::App& app, const Invocation& invocation) : nodes_(app, invocation) {
    add_name_option(app, grant_.name);
    auto* const owner = add_owner_option(app, grant_.owner)->required(false);
    app.add_flag("--force", force_, "Take the lock away from its holder; see below")
        ->excludes(owner);
    add_format_option(app, format_);
  }

  int run() {
    if (!force_ && grant_.owner.empty()) {
      throw Exit(
          exit_usage,
          "whose lock? Say --owner with the owner that `redlock acquire` printed, or --force "
          "to take the lock away from its holder (see redlock release --help)");
    }
    const auto client = nodes_.connect();
    return force_ ? take_away(client) : give_back(client);
  }

 private:
  int give_back(const Client& client) const {
    const auto released = client.lock(grant_.name).release(grant_);
    if (!released) throw failure(released.error());
    const std::string result = to_string(*released);
    print(format_ == Format::json ? to_text({{"name", grant_.name}, {"result", result}})
                                  : result + "\n");
    switch (*released) {
      case Released::released:
        return exit_ok;
      case Released::already_gone:
        return exit_contended;
      case Released::unknown:
      case Released::still_held:  // never said of a grant
        break;
    }
    throw failure(why_unknown(client));
  }

  int take_away(const Client& client) const {
    const auto forced = Admin(client).force_release(grant_.name);
    if (!forced) throw failure(forced.error());
    print(format_ == Format::json ? to_text(as_json(*forced)) : as_text(*forced));
    switch (forced->outcome) {
      case Forced::released:
        leave_at_once(exit_ok);
      case Forced::nothing_held:
        return exit_contended;
      case Forced::unknown:
        break;
    }
    throw failure(why_unknown(votes_of(*forced)));
  }

  /// The answer to a release has no votes; the nodes are asked once more, for their reasons.
  Error why_unknown(const Client& client) const {
    const auto report = Admin(client).inspect(grant_.name);
    return why_unknown(report ? votes_of(*report) : std::vector<NodeVote>());
  }
  Error why_unknown(std::vector<NodeVote> votes) const {
    Error error{Errc::no_quorum, "it is not known whether " + grant_.name + " was released",
                std::move(votes)};
    if (const auto why = unavailable_nodes(error.votes); !why.empty()) error.message += ": " + why;
    return error;
  }

  NodeOptions nodes_;
  Grant grant_;
  bool force_ = false;
  Format format_ = Format::table;
};

}  // namespace

void add_release(CLI::App& app, Invocation& invocation) {
  add_command<Release>(app, invocation,
                       {"release", "Give back a lock taken by acquire, or force it from its holder",
                        "redlock release NAME --owner OWNER | --force [OPTIONS]", release_footer});
}

}  // namespace redlock::cli
