// SPDX-License-Identifier: MIT
// How many rounds may be under way at once. The window follows the time that answers take, as TCP's
// window follows the round trip: it halves when answers take, beyond the nodes' distance, half of
// what the node timeout leaves, and grows while they are quick and more rounds wait.
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/types.hpp"

namespace redlock::engine {

class AdaptiveWindow {
 public:
  /// `fewest`: never less, unless it begins with less. `most`: where growth ends.
  struct Limits {
    std::size_t fewest = 0;
    std::size_t most = 0;
  };
  AdaptiveWindow(std::size_t first, Limits limits, Duration node_timeout)
      : node_timeout_(node_timeout),
        window_(first),
        smallest_(std::min(first, limits.fewest)),
        largest_(std::max(first, limits.most)) {}

  [[nodiscard]] std::size_t size() const { return window_; }

  /// A round has ended; `answered`: by the nodes' answers. `more_wanted`: a round waits for room.
  void ended(Instant now, Instant started, bool answered, bool more_wanted);

 private:
  Duration node_timeout_;
  std::size_t window_;
  std::size_t smallest_;
  std::size_t largest_;
  std::size_t quick_ = 0;               // quick answers since the window grew last
  Duration fastest_ = Duration::max();  // of recent answers: the time of the nodes' distance alone
  Instant shrunk_at_ = Instant::min();  // rounds that began before it ran under the old window
};

}  // namespace redlock::engine
