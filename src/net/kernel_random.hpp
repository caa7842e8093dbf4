// SPDX-License-Identifier: MIT
// Random numbers from the kernel, drawn when they are needed: an owner id must be unguessable and
// unique among all clients there are, which no seed could guarantee. Numbers kept in memory would
// be given out twice by a process that is copied (a virtual machine that is cloned, a snapshot that
// is restored).
#pragma once

#include <cstdint>

#include "engine/types.hpp"

namespace redlock::net {

class KernelRandom final : public engine::RandomSource {
 public:
  std::uint64_t next() override;
  /// In one call to the kernel.
  engine::OwnerId next_owner() override;
};

}  // namespace redlock::net
