// SPDX-License-Identifier: MIT
// A relay on a port of its own, in front of a node on this machine.
#pragma once

#include <cstdint>
#include <fmt/core.h>
#include <string>

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

}  // namespace redlock::testing
