// SPDX-License-Identifier: MIT
#include "net/loop.hpp"

#include <cerrno>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace redlock::net {

void Loop::leave() {
  if (--in_use_ == 0 && left_) std::exchange(left_, nullptr)();
}

void Loop::when_left(std::function<void()> left) {
  if (in_use_ == 0) return left();
  left_ = std::move(left);
}

void Loop::fail(std::exception_ptr why) noexcept {
  if (failed()) return;
  failure_ = std::move(why);
  when_failed_();
}

int init_loop(uv_loop_t& uv) {
  constexpr std::size_t needed = 12;  // with those of the seat
  std::array<int, needed> spare{};
  std::size_t opened = 0;
  while (opened < needed && (spare[opened] = eventfd(0, EFD_CLOEXEC)) >= 0) ++opened;
  const int problem = opened < needed ? uv_translate_sys_error(errno) : 0;
  while (opened > 0) ::close(spare[--opened]);
  if (problem != 0) return problem;
  uv.backend_fd = -1;
  const int status = uv_loop_init(&uv);
  if (status != 0 && uv.backend_fd != -1) ::close(uv.backend_fd);
  return status;
}

}  // namespace redlock::net
