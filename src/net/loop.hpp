// SPDX-License-Identifier: MIT
// A libuv loop, the client's own or given by the program, and the parts that all handles on it
// share.
#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <uv.h>

namespace redlock::net {

class Loop {
 public:
  explicit Loop(uv_loop_t& on) : uv(on) {}
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  uv_loop_t& uv;
  /// Every stream reads into this buffer: its bytes are taken in before the next read.
  std::array<char, std::size_t{64} * 1024> input{};

  // Where exceptions end: no memory, or code of users that throws. None may pass through libuv, and
  // the interrupted work may be half done. So the first exception makes the loop failed: its core
  // drops all that it has on the loop, calls its host, and from then on only runs tasks, which the
  // host answers.

  /// Runs a function for a callback of libuv. Skipped once the loop has failed.
  template <typename Step>
  void run(const Step& step) noexcept {
    if (!failed()) attempt(step);
  }
  /// The same, and never skipped.
  template <typename Step>
  void attempt(const Step& step) noexcept {
    try {
      step();
    } catch (...) {
      fail(std::current_exception());
    }
  }
  void fail(std::exception_ptr why) noexcept;
  [[nodiscard]] bool failed() const noexcept { return failure_ != nullptr; }
  [[nodiscard]] const std::exception_ptr& failure() const noexcept { return failure_; }
  /// The function that fail() calls, the first time. It must not throw.
  void when_failed(std::function<void()> then) { when_failed_ = std::move(then); }

  // libuv has a handle until the callback of uv_close(), and a request until its own. Until then
  // neither the memory nor a given loop may go.

  /// One handle or request more.
  void enter() noexcept { ++in_use_; }
  /// One less. May destroy this loop.
  void leave();
  /// Calls the function once no handle or request is in use: now, or by a leave(). It may destroy
  /// this loop.
  void when_left(std::function<void()> left);

 private:
  std::size_t in_use_ = 0;
  std::function<void()> left_;
  std::exception_ptr failure_;
  std::function<void()> when_failed_;
};

/// For uv_close(): destroys what the handle's `data` points to, which has a member `loop`.
template <typename Owner>
void destroy_closed(uv_handle_t* handle) {
  std::unique_ptr<Owner> closed(static_cast<Owner*>(handle->data));
  Loop& loop = closed->loop;
  closed.reset();
  loop.leave();
}

/// 0 or libuv's error. The descriptors that it needs at least are tried first: without those for
/// its signal pipes libuv ends the process, and before 1.52 a failed start leaks some of them.
[[nodiscard]] int init_loop(uv_loop_t& uv);

}  // namespace redlock::net
