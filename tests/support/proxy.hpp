// SPDX-License-Identifier: MIT
// A relay on a port of its own, in front of a node on this machine.
#pragma once

#include <cstdint>
#include <fmt/core.h>
#include <memory>
#include <string>
#include <vector>

#include "cluster/fleet.hpp"
#include "cluster/relay.hpp"
#include "cluster/sockets.hpp"

namespace redlock::testing {

class Proxy : public cluster::Relay {
 public:
  /// Stands in front of the node at 127.0.0.1:`node_port`, and passes.
  explicit Proxy(std::uint16_t node_port)
      : Relay(cluster::listen_on_loopback(),
              [node_port] { return cluster::connect_to_loopback(node_port); }) {}

  [[nodiscard]] std::uint16_t port() const { return cluster::port_of(listener()); }
  [[nodiscard]] std::string uri() const { return fmt::format("redis://127.0.0.1:{}", port()); }
  /// Of a node with TLS, of which the proxy sees nothing but records.
  [[nodiscard]] std::string tls_uri() const { return fmt::format("rediss://127.0.0.1:{}", port()); }
};

using Proxies = std::vector<std::unique_ptr<Proxy>>;

/// One in front of each node.
inline Proxies proxies_of(const cluster::Fleet& fleet) {
  Proxies proxies;
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    proxies.push_back(std::make_unique<Proxy>(fleet.port(node)));
  }
  return proxies;
}

inline std::vector<std::string> uris_of(const Proxies& proxies) {
  std::vector<std::string> uris;
  for (const auto& proxy : proxies) uris.push_back(proxy->uri());
  return uris;
}

}  // namespace redlock::testing
