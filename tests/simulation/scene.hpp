// SPDX-License-Identifier: MIT
// What all parts of a world share: its plan, its time and what is to happen, its random numbers,
// the nodes' data, and the judges.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "simulation/event.hpp"
#include "simulation/fault.hpp"
#include "simulation/invariants.hpp"
#include "simulation/plan.hpp"
#include "simulation/random.hpp"
#include "simulation/trace.hpp"

namespace redlock::simulation {

using ClientIndex = std::uint32_t;
using NodeIndex = engine::NodeIndex;

/// Texts that are no fence, most of which Lua takes for numbers; and the last fence but one.
inline constexpr auto damaged_fences = std::to_array<const char*>(
    {"text", "1e9", "0x10", "-5", "9007199254740990", "9007199254740993"});

struct Scene {
  Scene(Plan what, Trace& steps, Coverage& phases);
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  void at(Instant when, Event::What what, std::uint32_t a = 0, std::uint32_t b = 0,
          std::uint64_t c = 0) {
    agenda.add({.when = when, .what = what, .a = a, .b = b, .c = c});
  }
  template <typename Say>
  void note(std::uint64_t a, std::uint64_t b, std::uint64_t c, Say&& say) {
    trace.step(now, a, b, c, std::forward<Say>(say));
  }

  const Plan plan;
  Trace& trace;
  Coverage& coverage;
  Random random;
  Instant now;
  Agenda agenda;
  std::vector<SimNode> nodes;
  std::vector<DriftingClock> clocks;  ///< of the clients' machines
  Invariants invariants;
  engine::RequestId last_request = 0;
  std::vector<NodeIndex> parted;  ///< which node each client does not reach
  bool ending = false;            ///< faults are over, and everything is given back
};

}  // namespace redlock::simulation
