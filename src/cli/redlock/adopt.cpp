// SPDX-License-Identifier: MIT
// redlock adopt: writes the marker on nodes that have none.
#include <algorithm>
#include <memory>

#include <redlock/admin.hpp>

#include "cli/exit_code.hpp"
#include "cli/invocation.hpp"
#include "cli/nodes.hpp"
#include "cli/output.hpp"
#include "cli/redlock/adoption_output.hpp"
#include "cli/redlock/subcommands.hpp"

namespace redlock::cli {
namespace {

constexpr auto* adopt_footer = R"help(
Each node keeps in its data a marker (redlock:node) that says to which set the node belongs: the
number of nodes, the longest lease, the random id of the set, and its members with their addresses,
as this list has them. A node without a marker is new, or has lost its data, and with it perhaps a
lock that is held. A node of another set, a replica, a node of a Redis Cluster and a server that is
listed twice are left alone.

If no node is a member of a set, adopting is your word that the set is new: no client has used it
within its longest lease. All nodes have to answer. If adopt was interrupted, run it again.

Where some nodes are members, a node without a marker at a member's address has to be named with
--replaced: your word that this member lost its data, and that the longest lease has passed since
(or that no client has run for that long). Where a majority are members, so has a node whose own
adoption was interrupted. Of a member that was a replica and has been promoted, adopting is your
word that every lease from before is over. A node at any other address is left alone; to give it
the place of a member: redlock set replace OLD NEW.

To change the number of nodes or the longest lease of a set, see docs/operations.md.

Exits 0 if every node has a marker that agrees, 1 if a marker disagrees or a node is left alone,
69 if a node could not be asked, 78 if most nodes refuse user, password or set, or belong to another
set than the list and --max-lease describe.

Examples:
  redlock adopt --nodes redis://a:7001,redis://b:7001,redis://c:7001
  redlock adopt --nodes-file nodes.txt --max-lease 2m
  redlock adopt --nodes-file nodes.txt --replaced redis://c:7001)help";

std::string as_table(const std::vector<NodeAdoption>& adoptions) {
  std::vector<std::vector<std::string>> rows{{"NODE", "MARKER", ""}};
  for (const auto& node : adoptions) {
    rows.push_back({node.node, to_string(node.adoption), node.detail});
  }
  return table(rows);
}

std::string as_json(const std::vector<NodeAdoption>& adoptions) {
  Json nodes = Json::array();
  for (const auto& node : adoptions) {
    nodes.push_back(
        {{"node", node.node}, {"marker", to_string(node.adoption)}, {"detail", node.detail}});
  }
  return to_text({{"nodes", nodes}});
}

int exit_code_of(const std::vector<NodeAdoption>& adoptions) {
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

bool most_disagree(const std::vector<NodeAdoption>& adoptions) {
  const auto disagree = std::ranges::count(adoptions, Adoption::disagrees, &NodeAdoption::adoption);
  return 2 * static_cast<std::size_t>(disagree) > adoptions.size();
}

class Adopt {
 public:
  Adopt(CLI::App& app, const Invocation& invocation) : nodes_(app, invocation) {
    app.add_option("--replaced", replaced_,
                   "A node without a marker, at a member's address: the member that lost "
                   "its data; see below. May be given several times")
        ->option_text("NODE");
    add_format_option(app, format_);
  }

  int run() {
    auto client = nodes_.connect_to_look();
    const auto adoptions = Admin(client).adopt(replaced_);
    if (!adoptions) throw failure(adoptions.error());
    // Perhaps the client's options say why.
    if (most_disagree(*adoptions)) NodeOptions::check_markers(client);
    return show_adoptions(*adoptions, format_);
  }

 private:
  NodeOptions nodes_;
  std::vector<std::string> replaced_;
  Format format_ = Format::table;
};

}  // namespace

int show_adoptions(const std::vector<NodeAdoption>& adoptions, Format format) {
  print(format == Format::json ? as_json(adoptions) : as_table(adoptions));
  return exit_code_of(adoptions);
}

void add_adopt(CLI::App& app, Invocation& invocation) {
  add_command<Adopt>(
      app, invocation,
      {"adopt", "Mark new nodes as members of the set", "redlock adopt [OPTIONS]", adopt_footer});
}

}  // namespace redlock::cli
