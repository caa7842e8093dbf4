// SPDX-License-Identifier: MIT
// One process of the storm: takes the lock, increments every counter, gives it back, until told to
// end.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fencing/storm/board.hpp"
#include "fencing/storm/counter.hpp"

namespace redlock::storm {

enum class Fencing { on, off };

struct WorkerPlan {
  std::size_t number = 0;
  std::vector<std::string> nodes{};
  Places places{};
  Fencing fencing = Fencing::on;
};

/// The whole life of the process. The exit status.
int be_worker(const WorkerPlan& plan, Board& board);

}  // namespace redlock::storm
