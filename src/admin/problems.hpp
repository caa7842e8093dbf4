// SPDX-License-Identifier: MIT
// The problems that `doctor` reports, given the findings on the nodes. This code sends nothing, so
// it reads as a list of rules.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <redlock/admin.hpp>

#include "wire/node_marker.hpp"

namespace redlock::admin {

/// What a client expects of its nodes.
struct Expectation {
  wire::SetTerms set;
  std::vector<std::string> listed{};  ///< the nodes that it was given; it may know more by now
  std::chrono::nanoseconds drift_allowance{};
  /// The name that a quorum of the markers have; none if they share no name.
  std::optional<std::string> set_name{};
  /// Its members, as a quorum of the markers have them; none if no quorum agrees.
  engine::SetConfiguration members{};
  /// The markers share no name, but those of nodes that were not reached may.
  bool set_open = false;
  std::chrono::sys_seconds now{};  ///< by this machine's clock
  std::uint32_t quorum = 0;        ///< of the members, as far as markers show them
};

/// What a client has for nodes with TLS.
struct ClientFiles {
  std::optional<CertificateHealth> certificate{};
  std::string not_in_use{};   ///< why changed files cannot be used; empty if they can
  std::string exposed_key{};  ///< the file of its key, if others may read that
};

/// The problems of one node.
[[nodiscard]] std::vector<Problem> problems_of_node(const NodeHealth& node,
                                                    const Expectation& expected);

/// The problems of the set as a whole, beyond those of its nodes.
[[nodiscard]] std::vector<Problem> problems_of_set(const std::vector<NodeHealth>& nodes,
                                                   const Expectation& expected);

/// The problems of this client's own certificate and key.
[[nodiscard]] std::vector<Problem> problems_of_client(const ClientFiles& files,
                                                      std::chrono::sys_seconds now);

}  // namespace redlock::admin
