// SPDX-License-Identifier: MIT
// The libuv loop and what everything on it shares.
#pragma once

#include <array>
#include <cstddef>
#include <uv.h>

namespace redlock::net {

struct Loop {
  uv_loop_t uv{};
  /// Every stream reads into this one: what was read is taken in before the next read.
  std::array<char, std::size_t{64} * 1024> input{};

  /// The loop that a handle belongs to. `uv.data` must point to it.
  [[nodiscard]] static Loop& of(const uv_loop_t* uv) { return *static_cast<Loop*>(uv->data); }
};

/// 0 or libuv's error. What it has to have at the least is tried first: without the descriptors for
/// its signal pipes libuv ends the process, and before 1.52 it keeps some of what it opened before
/// it failed.
[[nodiscard]] int init_loop(uv_loop_t& uv);

}  // namespace redlock::net
