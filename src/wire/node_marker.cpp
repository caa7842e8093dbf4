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
#include "wire/objection_text.hpp"

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

namespace {

/// Zero if it is no duration that a client may have.
std::chrono::milliseconds duration_in(std::string_view text) {
  std::int64_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  const bool fits = count > 0 && count <= engine::longest_max_lease.count();
  return std::chrono::milliseconds(fits ? count : 0);
}

}  // namespace

std::string NodeMarker::max_lease_text(std::chrono::milliseconds max_lease,
                                       std::chrono::milliseconds announced) {
  const auto text = std::to_string(max_lease.count());
  return announced == announced.zero() ? text : text + " " + std::to_string(announced.count());
}

engine::SetConfiguration NodeMarker::configuration() const {
  engine::SetConfiguration its{set_name.empty() ? forming : set_name, 0, {}};
  const std::string_view leases = max_lease_ms;
  const auto blank = std::min(leases.find(' '), leases.size());
  its.max_lease = duration_in(leases.substr(0, blank));
  its.announced = duration_in(leases.substr(std::min(blank + 1, leases.size())));
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
  if (layout != set.layout.id) {
    return "its marker says layout " + (layout.empty() ? "nothing" : printable(layout, secrets)) +
           ", this client " + std::string(set.layout.id) +
           "; give all programs one version of redlock, and no node of another set";
  }
  const auto odd = [](const std::string& name) {
    return name.size() > 64 || !std::ranges::all_of(name, [](unsigned char c) {
             return std::isalnum(c) != 0 || c == '-' || c == '_';
           });
  };
  if (odd(id) || odd(set_name) || odd(forming) || odd(epoch))
    return "its marker names a set as redlock does not; DEL redlock:node and adopt it anew";
  const auto its = configuration();
  const bool is_read = its.max_lease > its.max_lease.zero() &&
                       max_lease_ms == max_lease_text(its.max_lease, its.announced) &&
                       (its.announced == its.announced.zero() || its.announced > its.max_lease);
  if (!is_read) {
    return "its marker's max_lease_ms is " +
           (max_lease_ms.empty() ? "missing" : printable(max_lease_ms, secrets)) +
           ", which is no duration; DEL redlock:node there, and run redlock adopt --replaced NODE "
           "when its old leases are over";
  }
  if (its.max_lease < set.max_lease) {
    return sentence_of(engine::OtherMaxLease{its.max_lease, its.announced, set.max_lease});
  }
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
