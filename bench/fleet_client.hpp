// SPDX-License-Identifier: MIT
// A client as the benchmarks want it: over all nodes of a fleet that is new, on a machine that may
// be busy.
#pragma once

#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>

#include <redlock/redlock.hpp>

#include "cluster/fleet.hpp"

namespace bench {

inline redlock::Client connect(const redlock::cluster::Fleet& fleet,
                               std::shared_ptr<redlock::Observer> observer = {}) {
  redlock::ClientOptions options;
  options.observer = std::move(observer);
  options.nodes = fleet.uris();
  options.quarantine = redlock::Quarantine::off;
  options.node_timeout = std::chrono::seconds(2);
  auto client = redlock::Client::create(std::move(options));
  if (!client) throw std::runtime_error(client.error().message);
  return std::move(*client);
}

}  // namespace bench
