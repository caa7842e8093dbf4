// SPDX-License-Identifier: MIT
#include "engine/adaptive_window.hpp"

namespace redlock::engine {

void AdaptiveWindow::ended(Instant now, Instant started, bool answered, bool more_wanted) {
  const Duration took = now - started;
  if (answered && took < fastest_) {
    fastest_ = took;
  } else if (answered && window_ == smallest_) {
    // No message of this client waits at the nodes behind its others: a longer time means a longer
    // distance.
    fastest_ += (took - fastest_) / 16;
  }
  const Duration distance = fastest_ < node_timeout_ ? fastest_ : Duration::zero();
  const Duration room = node_timeout_ - distance;
  if (took > distance + room / 2) {
    if (started < shrunk_at_) return;
    window_ = std::max(window_ / 2, smallest_);
    shrunk_at_ = now;
    quick_ = 0;
  } else if (answered && took < distance + room / 4 && more_wanted) {
    if (++quick_ < 8) return;
    quick_ = 0;
    window_ = std::min(window_ + 1, largest_);
  }
}

}  // namespace redlock::engine
