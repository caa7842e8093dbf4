// SPDX-License-Identifier: MIT
// How long to wait before the next attempt to connect: random, so that many clients that a node cut
// off at once do not come back together; doubling, so that a dead one costs little.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "engine/types.hpp"

namespace redlock::wire {

class Backoff {
 public:
  static constexpr std::chrono::milliseconds shortest{10};
  static constexpr std::chrono::milliseconds first_span{100};
  static constexpr std::chrono::milliseconds longest{1'000};

  /// At first anything up to a span: a node that ended a thousand connections, and is there, is not
  /// to get as many at one moment. Then between the half and the whole of one that doubles with
  /// each call.
  [[nodiscard]] std::chrono::milliseconds next(engine::RandomSource& random) {
    const auto least = span_ == first_span ? shortest : span_ / 2;
    const auto choices = static_cast<std::uint64_t>((span_ - least).count()) + 1;
    span_ = std::min(span_ * 2, longest);
    return least + std::chrono::milliseconds(random.next() % choices);
  }

  void reset() { span_ = first_span; }

 private:
  std::chrono::milliseconds span_ = first_span;
};

}  // namespace redlock::wire
