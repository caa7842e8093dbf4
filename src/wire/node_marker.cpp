// SPDX-License-Identifier: MIT
// Values are compared as the decimal text that `adopt` writes.
#include "wire/node_marker.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>

#include "engine/quorum.hpp"
#include "wire/error_reply.hpp"
#include "wire/node_address.hpp"

namespace redlock::wire {

std::optional<NodeMarker> NodeMarker::read(const Value& fields) {
  const auto* const list = std::get_if<std::vector<Value>>(&fields.data);
  if (list == nullptr || list->empty()) return {};
  NodeMarker marker;
  for (std::size_t i = 0; i + 1 < list->size(); i += 2) {
    const auto* const name = std::get_if<std::string>(&(*list)[i].data);
    const auto* const value = std::get_if<std::string>(&(*list)[i + 1].data);
    if (name == nullptr || value == nullptr) continue;
    if (*name == "id") marker.id = *value;
    if (*name == "layout") marker.layout = *value;
    if (*name == "nodes") marker.nodes = *value;
    if (*name == "max_lease_ms") marker.max_lease_ms = *value;
    if (*name == "set") marker.set_name = *value;
    if (*name == "forming") marker.forming = *value;
    if (*name == "epoch") marker.epoch = *value;
    if (*name == "members") marker.members = *value;
    if (*name == "vouched") marker.vouched = *value;
  }
  return marker;
}

engine::SetConfiguration NodeMarker::configuration() const {
  engine::SetConfiguration its{set_name.empty() ? forming : set_name, 0, {}};
  std::from_chars(epoch.data(), epoch.data() + epoch.size(), its.epoch);
  std::string_view rest = members;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::size_t address = std::min(equals + 1, word.size());
    its.members.push_back({std::string(word.substr(0, equals)), std::string(word.substr(address))});
  }
  return its;
}

std::optional<engine::Membership> NodeMarker::membership() const {
  if (set_name.empty()) return std::nullopt;
  return engine::Membership{id, configuration()};
}

std::string NodeMarker::state() const {
  return set_name.empty() ? forming : set_name + " " + epoch;
}

std::string NodeMarker::members_text(const std::vector<engine::Member>& members) {
  std::string text;
  for (const engine::Member& member : members) {
    text += (text.empty() ? "" : " ") + member.id + "=" + member.address;
  }
  return text;
}

std::optional<std::string> NodeMarker::disagreement(const SetTerms& set,
                                                    const Secrets& secrets) const {
  const auto sentence = [&](const std::string& what, const std::string& there,
                            const std::string& here) {
    return "its marker says " + what + " " +
           (there.empty() ? "nothing" : printable(there, secrets)) + ", this client " + here +
           "; give every client of a set its max_lease (REDLOCK_MAX_LEASE), and no node of another "
           "set";
  };
  if (layout != set.layout.id) return sentence("layout", layout, std::string(set.layout.id));
  const auto odd = [](const std::string& name) {
    return name.size() > 64 || !std::ranges::all_of(name, [](unsigned char c) {
             return std::isalnum(c) != 0 || c == '-' || c == '_';
           });
  };
  if (odd(id) || odd(set_name) || odd(forming) || odd(epoch))
    return "its marker names a set as redlock does not; DEL redlock:node and adopt it anew";
  const std::string lease = std::to_string(set.max_lease.count());
  if (max_lease_ms != lease) return sentence("max_lease_ms", max_lease_ms, lease);
  const auto its = configuration();
  const bool text = std::ranges::all_of(members, [](char c) { return c >= ' ' && c <= '~'; });
  constexpr std::uint64_t last_epoch = std::uint64_t{1} << 53;
  const bool counted = its.epoch > 0 && its.epoch < last_epoch &&
                       epoch == std::to_string(its.epoch);  // the very text is compared by nodes
  const bool distinct = std::ranges::all_of(its.members, [&](const engine::Member& member) {
    return std::ranges::count(its.members, member.id, &engine::Member::id) == 1 &&
           std::ranges::count(its.members, member.address, &engine::Member::address) == 1;
  });
  const bool reached = std::ranges::all_of(its.members, [](const engine::Member& member) {
    const auto node = parse_node_uri(member.address);
    return node && node->address == member.address;
  });
  const bool fits = its.members.size() <= engine::NodeSet::max_nodes;
  const bool whole = fits && nodes == std::to_string(its.members.size()) && its.has(id);
  if (text && counted && distinct && reached && whole) return {};
  return "its marker does not list " + (nodes.empty() ? "its" : printable(nodes, secrets)) +
         " members and itself; DEL redlock:node there, and run redlock adopt --replaced NODE when "
         "its old leases are over";
}

}  // namespace redlock::wire
