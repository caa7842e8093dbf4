// SPDX-License-Identifier: MIT
// Values are compared as the decimal text that `adopt` writes.
#include "wire/node_marker.hpp"

#include <algorithm>
#include <cctype>

#include "wire/error_reply.hpp"

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
    if (*name == "vouched") marker.vouched = *value;
  }
  return marker;
}

std::optional<std::string> NodeMarker::disagreement(const SetTerms& set,
                                                    const Secrets& secrets) const {
  const auto sentence = [&](const std::string& what, const std::string& there,
                            const std::string& here) {
    return "its marker says " + what + " " +
           (there.empty() ? "nothing" : printable(there, secrets)) + ", this client " + here +
           "; give every client of a set its whole list of nodes and its max_lease "
           "(REDLOCK_MAX_LEASE), and no node of another set";
  };
  if (layout != set.layout.id) return sentence("layout", layout, std::string(set.layout.id));
  const bool odd = set_name.size() > 64 || !std::ranges::all_of(set_name, [](unsigned char c) {
                     return std::isalnum(c) != 0 || c == '-' || c == '_';
                   });
  if (odd) return "its marker names a set as redlock does not; DEL redlock:node and adopt it anew";
  const std::string count = std::to_string(set.nodes);
  if (nodes != count) return sentence("nodes", nodes, count);
  const std::string lease = std::to_string(set.max_lease.count());
  if (max_lease_ms != lease) return sentence("max_lease_ms", max_lease_ms, lease);
  return {};
}

}  // namespace redlock::wire
