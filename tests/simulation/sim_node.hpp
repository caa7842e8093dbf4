// SPDX-License-Identifier: MIT
// A node with its wall clock, as the judges of a run see it.
#pragma once

#include <vector>

#include "simulation/drifting_clock.hpp"
#include "simulation/node_data.hpp"

namespace redlock::simulation {

struct SimNode {
  NodeData data;
  DriftingClock wall;                ///< from 1970
  std::vector<Instant> forgot = {};  ///< when it lost data or was promoted, by the world's time
  Instant marked = Instant::min();   ///< when a client last wrote its marker, likewise

  [[nodiscard]] std::int64_t now_us(Instant world) const {
    return wall.read(world).time_since_epoch().count() / 1'000;
  }
  [[nodiscard]] std::int64_t now_ms(Instant world) const { return now_us(world) / 1'000; }
};

}  // namespace redlock::simulation
