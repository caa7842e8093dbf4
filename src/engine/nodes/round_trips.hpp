// SPDX-License-Identifier: MIT
// How far away the nodes are: a waiter's turn is to last as long as its client needs.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "engine/quorum.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

class RoundTrips {
 public:
  explicit RoundTrips(std::uint32_t nodes) : of_(nodes, Duration::max()) {}

  /// A node answered after this time. A shorter one counts at once, a longer one by degrees: the
  /// node or this process may have been busy.
  void add(NodeIndex node, Duration took) {
    Duration& known = of_[node];
    known = took < known ? took : known + (took - known) / 8;
  }
  /// Within which so many nodes answer, or as many as are known; zero if none is.
  [[nodiscard]] Duration of(std::uint32_t nodes) const {
    std::array<Duration, NodeSet::max_nodes> known;
    const auto end = std::ranges::copy_if(of_, known.begin(), is_known).out;
    if (end == known.begin()) return Duration::zero();
    const auto nth = known.begin() + (std::min<std::ptrdiff_t>(nodes, end - known.begin()) - 1);
    std::nth_element(known.begin(), nth, end);
    return *nth;
  }

 private:
  static bool is_known(Duration round_trip) { return round_trip != Duration::max(); }

  std::vector<Duration> of_;
};

}  // namespace redlock::engine
