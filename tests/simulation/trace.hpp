// SPDX-License-Identifier: MIT
// What happened in a run: always as a hash, by which two runs are compared, and as text if somebody
// wants to read it.
#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <string>
#include <utility>

#include "engine/types.hpp"

namespace redlock::simulation {

class Trace {
 public:
  using Reader = std::function<void(const std::string&)>;

  explicit Trace(Reader reader) : reader_(std::move(reader)) {}

  /// One step: numbers for the hash, and a function that says it in words if there is a reader.
  template <typename Say>
  void step(engine::Instant when, std::uint64_t a, std::uint64_t b, std::uint64_t c, Say&& say) {
    mix(static_cast<std::uint64_t>(when.time_since_epoch().count()));
    mix(a);
    mix(b);
    mix(c);
    ++steps_;
    if (reader_) tell(when, say());
  }

  [[nodiscard]] std::uint64_t hash() const { return hash_; }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  void mix(std::uint64_t word) {
    hash_ = (hash_ ^ word) * 0x9fb21c651e98df25U;
    hash_ ^= hash_ >> 32;
  }
  void tell(engine::Instant when, const std::string& text) const {
    const std::int64_t ns = when.time_since_epoch().count();
    reader_(fmt::format("{:>6}.{:06} ms  {}", ns / 1'000'000, ns % 1'000'000, text));
  }

  Reader reader_;
  std::uint64_t hash_ = 0x243f6a8885a308d3U;
  std::uint64_t steps_ = 0;
};

}  // namespace redlock::simulation
