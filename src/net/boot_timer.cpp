// SPDX-License-Identifier: MIT
// A timerfd, because libuv's own timers use CLOCK_MONOTONIC.
#include "net/boot_timer.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <sys/timerfd.h>
#include <unistd.h>
#include <utility>

namespace redlock::net {

void set_alarm(int descriptor, engine::Instant when) noexcept {
  // All zero would disarm it; the boot itself is long past.
  const auto since_boot = std::max(when.time_since_epoch(), engine::Duration(1));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
  itimerspec setting{};
  setting.it_value.tv_sec = seconds.count();
  setting.it_value.tv_nsec = (since_boot - seconds).count();
  timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &setting, nullptr);
}

struct BootTimer::Handle {
  explicit Handle(Loop& of) : loop(of) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (descriptor >= 0) ::close(descriptor);
  }

  Loop& loop;
  uv_poll_t uv{};
  int descriptor = -1;
  BootTimer* owner = nullptr;
  std::function<void()> expired;
};

std::unique_ptr<BootTimer> BootTimer::create(Loop& loop, std::function<void()> expired) {
  auto handle = std::make_unique<Handle>(loop);
  std::unique_ptr<BootTimer> timer(new BootTimer);
  handle->descriptor = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (handle->descriptor < 0) return nullptr;
  if (uv_poll_init(&loop.uv, &handle->uv, handle->descriptor) != 0) return nullptr;
  loop.enter();
  handle->uv.data = handle.get();
  handle->expired = std::move(expired);
  uv_poll_start(&handle->uv, UV_READABLE, [](uv_poll_t* uv, int, int) {
    auto& self = *static_cast<Handle*>(uv->data);
    std::uint64_t expirations = 0;
    if (::read(self.descriptor, &expirations, sizeof expirations) != sizeof expirations) return;
    self.owner->armed_ = engine::never;
    self.loop.run(self.expired);
  });
  handle->owner = timer.get();
  timer->handle_ = handle.release();
  return timer;
}

BootTimer::~BootTimer() {
  if (handle_ == nullptr) return;  // it was not created
  uv_close(reinterpret_cast<uv_handle_t*>(&handle_->uv), destroy_closed<Handle>);
}

void BootTimer::expire_by(engine::Instant when) {
  if (when >= armed_) return;
  armed_ = when;
  set_alarm(handle_->descriptor, when);
}

}  // namespace redlock::net
