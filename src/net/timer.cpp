// SPDX-License-Identifier: MIT
// The handle outlives the Timer until libuv has closed it.
#include "net/timer.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace redlock::net {

struct Timer::Handle {
  explicit Handle(Loop& of) : loop(of) {}

  Loop& loop;
  uv_timer_t uv{};
  std::function<void()> expired;
};

Timer::Timer(Loop& loop, std::function<void()> expired) : handle_(new Handle(loop)) {
  handle_->expired = std::move(expired);
  handle_->uv.data = handle_.get();
  uv_timer_init(&loop.uv, &handle_->uv);
  loop.enter();
}

void Timer::start(std::chrono::milliseconds after) {
  // The loop's own time is that of its last turn's beginning.
  uv_update_time(handle_->uv.loop);
  const auto span = static_cast<std::uint64_t>(std::max<std::int64_t>(after.count(), 0));
  uv_timer_start(
      &handle_->uv,
      [](uv_timer_t* uv) {
        Handle& self = *static_cast<Handle*>(uv->data);
        self.loop.attempt(self.expired);
      },
      span, 0);
}

void Timer::stop() {
  uv_timer_stop(&handle_->uv);
}

void Timer::Close::operator()(Handle* handle) const {
  uv_close(reinterpret_cast<uv_handle_t*>(&handle->uv), destroy_closed<Handle>);
}

}  // namespace redlock::net
