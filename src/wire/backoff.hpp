// SPDX-License-Identifier: MIT
// How long to wait before the next attempt to connect: random, so that many clients that a node cut
// off at once do not come back together; doubling, so that a dead node costs little. Longer after a
// connection that was ended because the node exceeded a bound: the next connection would cost as
// much.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "engine/types.hpp"

namespace redlock::wire {

class Backoff {
 public:
  static constexpr std::chrono::milliseconds shortest{10};
  static constexpr std::chrono::milliseconds first_span{100};
  static constexpr std::chrono::milliseconds longest{1'000};
  // After a connection that exceeded a bound.
  static constexpr std::chrono::milliseconds first_penalty{2'000};
  static constexpr std::chrono::milliseconds longest_penalty{32'000};
  static constexpr std::chrono::milliseconds forgiven_after{60'000};

  /// At first anything up to a span: a live node that ended a thousand connections must not get as
  /// many at one moment. Then between the half and the whole of a span that doubles with each call.
  [[nodiscard]] std::chrono::milliseconds next(engine::RandomSource& random) {
    const bool punished = std::exchange(penalty_is_due_, false);
    const auto span = punished ? penalty_ : span_;
    const auto least = span == first_span ? shortest : span / 2;
    const auto choices = static_cast<std::uint64_t>((span - least).count()) + 1;
    if (!punished) span_ = std::min(span_ * 2, longest);
    return least + std::chrono::milliseconds(random.next() % choices);
  }

  void reset() { span_ = first_span; }

  /// A connection of this duration exceeded a bound: the next pause is a penalty, which doubles
  /// from one such connection to the next, unless that lasted for forgiven_after.
  void lengthen(engine::Duration lasted) {
    const bool forgiven = lasted >= forgiven_after;
    penalty_ = forgiven ? first_penalty : std::clamp(penalty_ * 2, first_penalty, longest_penalty);
    penalty_is_due_ = true;
  }

 private:
  std::chrono::milliseconds span_ = first_span;
  std::chrono::milliseconds penalty_{};
  bool penalty_is_due_ = false;
};

}  // namespace redlock::wire
