// SPDX-License-Identifier: MIT
// What processes have of the machine, second by second, and whether that grows: the first minute of
// a run against the last one.
#pragma once

#include <cstddef>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace redlock::soak {

struct Footprint {
  double descriptors = 0;
  double threads = 0;
  double memory = 0;  // MiB that are its own
};

Footprint footprint_of(pid_t process);

class Footprints {
 public:
  /// The mean of these processes. To be called once a second.
  void note(const std::vector<pid_t>& processes);

  [[nodiscard]] const Footprint& latest() const { return all_.back(); }

  /// Says both, and whether they are alike. Of a run of less than four minutes nothing can be said:
  /// it is still warming up. Descriptors and threads may be so many more; memory by a tenth, and
  /// `slack` MiB.
  [[nodiscard]] bool are_flat(double more, double slack) const;

 private:
  [[nodiscard]] Footprint mean_from(std::size_t index) const;

  std::vector<Footprint> all_;
};

}  // namespace redlock::soak
