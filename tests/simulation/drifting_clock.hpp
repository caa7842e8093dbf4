// SPDX-License-Identifier: MIT
// A clock that is wrong in the ways clocks are: an offset, a speed, steps. It translates between
// the world's time, which nobody in the world can read, and what this clock shows.
#pragma once

#include <utility>

#include "engine/types.hpp"

namespace redlock::simulation {

using engine::Duration;
using engine::Instant;

class DriftingClock {
 public:
  /// Shows `local` when the world's time is `world`.
  DriftingClock(Instant world, Instant local, std::int32_t parts_per_million)
      : world_(world), local_(local), ppm_(parts_per_million) {}

  [[nodiscard]] Instant read(Instant world) const {
    if (frozen_) return local_;
    const Duration passed = world - world_;
    return local_ + passed + Duration(passed.count() * ppm_ / million);
  }

  /// The first moment of the world at which it shows this or more.
  [[nodiscard]] Instant when(Instant local) const {
    if (frozen_) return local <= local_ ? world_ : engine::never;
    const Duration to_go = local - local_;
    // A time of days would overflow below, and no run is that long.
    if (to_go > std::chrono::hours(2)) return engine::never;
    Instant world =
        world_ + Duration(to_go.count() / (million + ppm_) * million +
                          to_go.count() % (million + ppm_) * million / (million + ppm_));
    while (read(world) < local) world += Duration(1);
    while (world > world_ && read(world - Duration(1)) >= local) world -= Duration(1);
    return world;
  }

  void set_speed(Instant world, std::int32_t parts_per_million) {
    local_ = read(world);
    world_ = world;
    ppm_ = parts_per_million;
  }
  void step(Instant world, Duration by) {
    set_speed(world, ppm_);
    local_ += by;
  }
  /// It stands still, as that of a machine that is suspended with its clock.
  void freeze(Instant world) {
    set_speed(world, ppm_);
    frozen_ = true;
  }
  void thaw(Instant world) {
    if (std::exchange(frozen_, false)) world_ = world;
  }

 private:
  static constexpr std::int64_t million = 1'000'000;

  Instant world_;
  Instant local_;
  std::int32_t ppm_;
  bool frozen_ = false;
};

}  // namespace redlock::simulation
