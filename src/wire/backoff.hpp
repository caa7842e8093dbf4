// SPDX-License-Identifier: MIT
// How long to wait before the next attempt to connect: random, so that many clients of a node that
// came back do not arrive together; doubling, so that a dead one costs little.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "engine/types.hpp"

namespace redlock::wire {

class Backoff {
 public:
  static constexpr std::chrono::milliseconds shortest{20};
  static constexpr std::chrono::milliseconds longest{1'000};

  /// Between the half and the whole of a span that doubles with each call.
  [[nodiscard]] std::chrono::milliseconds next(engine::RandomSource& random) {
    const auto half = static_cast<std::uint64_t>(span_.count()) / 2;
    span_ = std::min(span_ * 2, longest);
    return std::chrono::milliseconds(half + random.next() % (half + 1));
  }

  void reset() { span_ = shortest; }

 private:
  std::chrono::milliseconds span_ = shortest;
};

}  // namespace redlock::wire
