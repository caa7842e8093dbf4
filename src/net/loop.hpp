// SPDX-License-Identifier: MIT
// A libuv loop, of our own or given by the program, and what everything of ours on it shares.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <uv.h>

namespace redlock::net {

class Loop {
 public:
  enum class Whose : std::uint8_t { ours, given };

  explicit Loop(uv_loop_t& on, Whose of = Whose::ours) : uv(on), whose(of) {}
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  uv_loop_t& uv;
  /// For a given one no thread is started.
  const Whose whose;
  /// Every stream reads into this one: what was read is taken in before the next read.
  std::array<char, std::size_t{64} * 1024> input{};

  // libuv has a handle until the callback of uv_close(), and a request until its own. Until then
  // neither the memory nor a given loop may go.

  /// One handle or request more.
  void enter() noexcept { ++in_use_; }
  /// One less. May destroy this loop.
  void leave();
  /// Calls the function once nothing of ours is in use: now, or by a leave(). It may destroy this
  /// loop.
  void when_left(std::function<void()> left);

 private:
  std::size_t in_use_ = 0;
  std::function<void()> left_;
};

/// For uv_close(): destroys what the handle's `data` points to, which has a member `loop`.
template <typename Owner>
void destroy_closed(uv_handle_t* handle) {
  std::unique_ptr<Owner> closed(static_cast<Owner*>(handle->data));
  Loop& loop = closed->loop;
  closed.reset();
  loop.leave();
}

/// 0 or libuv's error. What it has to have at the least is tried first: without the descriptors for
/// its signal pipes libuv ends the process, and before 1.52 it keeps some of what it opened before
/// it failed.
[[nodiscard]] int init_loop(uv_loop_t& uv);

}  // namespace redlock::net
