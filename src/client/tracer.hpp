// SPDX-License-Identifier: MIT
// The lines of ClientOptions::trace: time, process, client, and the words. Without such a function
// no line is made.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace redlock::client {

/// Used by the thread that drives.
class Tracer {
 public:
  using Taker = std::function<void(std::string_view)>;

  /// The taker, which may be empty, must outlive it.
  explicit Tracer(const Taker& taker);

  /// `say` makes the words of a line.
  template <typename Say>
  void line(const Say& say) const {
    if (taker_) give(say());
  }

 private:
  void give(const std::string& words) const;

  const Taker& taker_;
  std::string client_;  // "4711 client 1: "; empty if there is no taker
};

}  // namespace redlock::client
