// SPDX-License-Identifier: MIT
#include "simulation/trace.hpp"

#include <fmt/format.h>

namespace redlock::simulation {

void Trace::tell(engine::Instant when, const std::string& text) const {
  const std::int64_t ns = when.time_since_epoch().count();
  reader_(fmt::format("{:>6}.{:06} ms  {}", ns / 1'000'000, ns % 1'000'000, text));
}

}  // namespace redlock::simulation
