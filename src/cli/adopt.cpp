// SPDX-License-Identifier: MIT
// redlock adopt: writes the marker on nodes that have none.
#include <algorithm>
#include <memory>

#include <redlock/admin.hpp>

#include "cli/exit_code.hpp"
#include "cli/invocation.hpp"
#include "cli/nodes.hpp"
#include "cli/output.hpp"

namespace redlock::cli {
namespace {

constexpr auto* adopt_footer = R"help(
A node keeps in its own data a marker (redlock:node) that says to which set it belongs: of how many
nodes, with which longest lease, and by which random id, one for all nodes of a set. A node without
a marker is new, or has lost its data, and with it perhaps a lock that is held. Adopting it is your
word that this is not so: that the set is new, or that the longest lease (--max-lease) has passed
since the node came back. A marker that exists is never changed, except that one without an id is
given it; a node with the id of another set, a replica, a node of a Redis Cluster and a server named
twice are left alone. To change the number of nodes or the longest lease of a set: stop all clients,
wait one longest lease (the old one), delete the markers (redis-cli DEL redlock:node on every node),
and adopt the new set.

Exits 0 if every node has a marker that agrees, 1 if one disagrees, 69 if one could not be asked, 78
if most refuse user, password or set.

Examples:
  redlock adopt --nodes redis://a:7001,redis://b:7001,redis://c:7001
  redlock adopt --nodes-file nodes.txt --max-lease 2m)help";

class Adopt {
 public:
  Adopt(CLI::App& app, const Invocation& invocation) : nodes_(app, invocation) {
    add_format_option(app, format_);
  }

  int run() {
    const auto client = nodes_.connect_to_look();
    const auto adoptions = Admin(client).adopt();
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

  static int exit_code_of(const std::vector<NodeAdoption>& adoptions) {
    const auto any = [&](Adoption adoption) {
      return std::any_of(adoptions.begin(), adoptions.end(),
                         [=](const auto& node) { return node.adoption == adoption; });
    };
    if (any(Adoption::disagrees)) return exit_disagrees;
    if (!any(Adoption::failed)) return exit_ok;
    Error error{Errc::no_quorum, {}, {}};
    for (const auto& node : adoptions) {
      const bool failed = node.adoption == Adoption::failed;
      error.votes.push_back(
          {node.node, failed ? Vote::unavailable : Vote::granted, node.cause, node.detail});
    }
    return exit_code_for(error);
  }

  NodeOptions nodes_;
  Format format_ = Format::table;
};

}  // namespace

void add_adopt(CLI::App& app, Invocation& invocation) {
  add_command<Adopt>(
      app, invocation,
      {"adopt", "Mark new nodes as members of the set", "redlock adopt [OPTIONS]", adopt_footer});
}

}  // namespace redlock::cli
