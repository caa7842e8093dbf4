// SPDX-License-Identifier: MIT
// Random numbers from the kernel, fetched 64 at a time: an owner id must be unguessable and unique
// among all clients there are, which no seed of ours could promise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/types.hpp"

namespace redlock::io {

class KernelRandom final : public engine::RandomSource {
 public:
  std::uint64_t next() override;

 private:
  void refill();

  std::array<std::uint64_t, 64> numbers_{};
  std::size_t left_ = 0;
};

}  // namespace redlock::io
