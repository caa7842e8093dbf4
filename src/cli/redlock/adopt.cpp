// SPDX-License-Identifier: MIT
// redlock adopt: writes the marker on nodes that have none.
#include <algorithm>
#include <memory>

#include <redlock/admin.hpp>

#include "cli/exit_code.hpp"
#include "cli/invocation.hpp"
#include "cli/nodes.hpp"
#include "cli/output.hpp"
#include "cli/redlock/subcommands.hpp"

namespace redlock::cli {
namespace {

constexpr auto* adopt_footer = R"help(
Each node keeps in its data a marker (redlock:node) that says to which set the node belongs: the
number of nodes, the longest lease, and the random id that all nodes of the set share. A node
without a marker is new, or has lost its data, and with it perhaps a lock that is held. An existing
marker is never changed, except that a marker that agrees but has no id gets the id of the set. A
node with the id of another set, a replica, a node of a Redis Cluster and a server that is listed
twice are left alone.

If no node has a marker, adopting is your word that the set is new: no client has used it within its
longest lease. If some nodes have a marker, the others may take the places of members, or may be
listed by mistake, and then two lists would have a quorum each. So each of the others has to be
named with --replaced: your word that the member whose place it takes is stopped for good, and that
the longest lease has passed since (or that no client has run for that long). A node that is not
named is left alone.

To change the number of nodes or the longest lease of a set, see docs/operations.md.

Exits 0 if every node has a marker that agrees, 1 if a marker disagrees or a node has to be named,
69 if a node could not be asked, 78 if most nodes refuse user, password or set, or belong to another
set than the list and --max-lease describe.

Examples:
  redlock adopt --nodes redis://a:7001,redis://b:7001,redis://c:7001
  redlock adopt --nodes-file nodes.txt --max-lease 2m
  redlock adopt --nodes-file nodes.txt --replaced redis://d:7001)help";

class Adopt {
 public:
  Adopt(CLI::App& app, const Invocation& invocation) : nodes_(app, invocation) {
    app.add_option("--replaced", replaced_,
                   "A node without a marker that takes a member's place, or is a member that lost "
                   "its data; see below. May be given several times")
        ->option_text("NODE");
    add_format_option(app, format_);
  }

  int run() {
    const auto client = nodes_.connect_to_look();
    auto adoptions = Admin(client).adopt(replaced_);
    if (adoptions && most_disagree(*adoptions)) {
      if (const auto other = nodes_.as_marked(client)) {
        adoptions = Admin(*other).adopt(replaced_);
      }
    }
    if (!adoptions) throw failure(adoptions.error());
    print(format_ == Format::json ? as_json(*adoptions) : as_table(*adoptions));
    return exit_code_of(*adoptions);
  }

 private:
  static std::string as_table(const std::vector<NodeAdoption>& adoptions) {
    std::vector<std::vector<std::string>> rows{{"NODE", "MARKER", ""}};
    for (const auto& node : adoptions) {
      rows.push_back({node.node, to_string(node.adoption), node.detail});
    }
    return table(rows);
  }

  static std::string as_json(const std::vector<NodeAdoption>& adoptions) {
    Json nodes = Json::array();
    for (const auto& node : adoptions) {
      nodes.push_back(
          {{"node", node.node}, {"marker", to_string(node.adoption)}, {"detail", node.detail}});
    }
    return to_text({{"nodes", nodes}});
  }

  static bool most_disagree(const std::vector<NodeAdoption>& adoptions) {
    const auto disagree =
        std::ranges::count(adoptions, Adoption::disagrees, &NodeAdoption::adoption);
    return 2 * static_cast<std::size_t>(disagree) > adoptions.size();
  }

  static int exit_code_of(const std::vector<NodeAdoption>& adoptions) {
    const auto any = [&](Adoption adoption) {
      return std::any_of(adoptions.begin(), adoptions.end(),
                         [=](const auto& node) { return node.adoption == adoption; });
    };
    if (any(Adoption::disagrees)) return exit_disagrees;
    if (!any(Adoption::failed)) return any(Adoption::unconfirmed) ? exit_disagrees : exit_ok;
    Error error{Errc::no_quorum, {}, {}};
    for (const auto& node : adoptions) {
      const bool failed = node.adoption == Adoption::failed;
      error.votes.push_back(
          {node.node, failed ? Vote::unavailable : Vote::granted, node.cause, node.detail});
    }
    return exit_code_for(error);
  }

  NodeOptions nodes_;
  std::vector<std::string> replaced_;
  Format format_ = Format::table;
};

}  // namespace

void add_adopt(CLI::App& app, Invocation& invocation) {
  add_command<Adopt>(
      app, invocation,
      {"adopt", "Mark new nodes as members of the set", "redlock adopt [OPTIONS]", adopt_footer});
}

}  // namespace redlock::cli
