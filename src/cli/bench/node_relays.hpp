// SPDX-License-Identifier: MIT
// Faults on this side of the network: the nodes that are to be down, to hang or to be slow are
// reached through relays in this process. The servers are not touched, and other clients are not
// affected.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/settings.hpp"
#include "cluster/relay.hpp"
#include "cluster/temporary_directory.hpp"

namespace redlock::cli {

class NodeRelays {
 public:
  /// For the scenario's nodes, the last of the list. The relays are Unix sockets in a directory
  /// that only this user may enter, and for nodes with TLS, which have to have `tls_name` if it is
  /// not empty, ports of the loopback interface. Throws Exit if the scenario needs more nodes, or
  /// if there can be no such directory.
  NodeRelays(Scenario scenario, std::vector<std::string> nodes, const std::string& tls_name);

  /// The URIs to give to a client, in the order of the list.
  [[nodiscard]] const std::vector<std::string>& uris() const { return uris_; }
  /// Whether this one, counted from 0, is reached through a relay.
  [[nodiscard]] bool is_relayed(std::size_t node) const {
    return node >= uris_.size() - relays_.size();
  }

  void begin_fault();
  void end_fault();
  /// "nodes 4 and 5 hang"; empty if the scenario has no fault.
  [[nodiscard]] std::string in_words() const;

 private:
  void relay_last(std::size_t count, const std::string& tls_name);

  Scenario scenario_;
  std::vector<std::string> uris_;
  std::optional<cluster::TemporaryDirectory> directory_;
  std::vector<std::unique_ptr<cluster::Relay>> relays_;
};

}  // namespace redlock::cli
