// SPDX-License-Identifier: MIT
// What the nodes themselves say of their set: for lists and settings that are to be compared with
// it, and for programs that know a few of its members only.
#include <algorithm>
#include <string>
#include <utility>

#include <redlock/admin.hpp>

#include "admin/marker.hpp"
#include "admin/node_query.hpp"
#include "client/client_impl.hpp"
#include "wire/key_layout.hpp"
#include "wire/node_address.hpp"

namespace redlock {
namespace {

/// The markers of members of a set, of the nodes that answer, fit to be shown. Adds the addresses
/// of the nodes that were asked; the client may go on to others meanwhile.
Result<std::vector<wire::NodeMarker>> markers_of(const Client& client,
                                                 std::vector<std::string>* asked = nullptr) {
  auto query = admin::NodeQuery::inspecting(*client.impl());
  if (!query) return tl::make_unexpected(query.error());
  const auto shown = admin::ask_markers(*query);
  if (!shown) return tl::make_unexpected(shown.error());
  for (std::size_t node = 0; asked != nullptr && node < shown->size(); ++node) {
    asked->push_back(query->nodes()[node].address);
  }
  std::vector<wire::NodeMarker> markers;
  for (const auto& marker : *shown) {
    const bool is_member = marker && !marker->set_name.empty();
    if (is_member && !marker->disagreement(wire::SetTerms())) markers.push_back(*marker);
  }
  return markers;
}

tl::unexpected<Error> not_found(std::string sentence) {
  return tl::make_unexpected(Error{Errc::no_quorum, std::move(sentence), {}});
}

}  // namespace

Result<std::optional<MarkedSet>> Admin::marked_set() const {
  const auto markers = markers_of(*client_);
  if (!markers) return tl::make_unexpected(markers.error());
  return admin::set_shown(*markers, markers->size() / 2);
}

Result<ClientOptions> find_set(ClientOptions seeds) {
  const ClientOptions given = seeds;
  std::string name;
  for (int epochs = 0; epochs < 3; ++epochs) {  // one may come while the members are asked
    const auto client = Client::create(seeds);
    if (!client) return tl::make_unexpected(client.error());
    std::vector<std::string> asked;
    auto markers = markers_of(*client, &asked);
    if (!markers) return tl::make_unexpected(markers.error());
    // One that only a marker names may be in a set of its own by now.
    std::erase_if(*markers,
                  [&](const auto& marker) { return epochs > 0 && marker.set_name != name; });
    const auto agreed = admin::agreed_set(*markers);
    const auto set = agreed ? agreed : admin::set_shown(*markers, 0);
    if (!set && epochs > 0) break;
    if (!set) {
      return not_found(
          "none of the nodes that answer is a member of a set: start them, run redlock "
          "adopt if the set is new, or correct the list");
    }
    const bool all = std::ranges::is_permutation(asked, set->members);
    if (epochs == 0 && !all && std::ranges::any_of(*markers, [&](const auto& marker) {
          return marker.set_name != set->set;
        })) {
      return not_found("the nodes are members of different sets; correct the list");
    }
    name = set->set;
    seeds.lease = std::min(given.lease, set->max_lease);
    if (all && agreed) return seeds;
    const auto seed = wire::parse_node_uri(given.nodes.front());
    seeds.nodes.clear();
    for (const auto& address : set->members) {
      const auto member = wire::parse_node_uri(address);
      if (!member || member->tls != seed->tls) {
        return not_found("a marker names a member, " + address + ", that is not reached as " +
                         seed->label + " is; list all nodes");
      }
      seeds.nodes.push_back(wire::uri_of(*member, *seed));
    }
  }
  return not_found(
      "too few members of the set answer to know who belongs to it: start them, or "
      "give other nodes of the set");
}

}  // namespace redlock
