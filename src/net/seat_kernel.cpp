// SPDX-License-Identifier: MIT
#include "net/seat_kernel.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <utility>
#include <uv.h>

namespace redlock::net {

namespace {

/// How long ready descriptors wait for a caller to come back: longer than a program needs that
/// takes one lock after the other, and short beside every time that an option can set.
constexpr std::chrono::nanoseconds alarm_after = std::chrono::milliseconds(1);

int control(int epoll, int operation, int descriptor, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = descriptor;
  return epoll_ctl(epoll, operation, descriptor, &event);
}

}  // namespace

SeatKernel::~SeatKernel() {
  for (const int descriptor : {epoll_, bell_, alarm_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

int SeatKernel::open(int loop_descriptor) {
  loop_ = loop_descriptor;
  const bool opened = (bell_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) >= 0 &&
                      (alarm_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) >= 0 &&
                      (epoll_ = epoll_create1(EPOLL_CLOEXEC)) >= 0 &&
                      control(epoll_, EPOLL_CTL_ADD, bell_, EPOLLIN) == 0 &&
                      // By its edge, so that it need not be read: setting it again resets it.
                      control(epoll_, EPOLL_CTL_ADD, alarm_, EPOLLIN | EPOLLET) == 0 &&
                      control(epoll_, EPOLL_CTL_ADD, loop_, EPOLLONESHOT) == 0;
  return opened ? 0 : uv_translate_sys_error(errno);
}

void SeatKernel::ring() const noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto done = ::write(bell_, &one, sizeof one);
}

void SeatKernel::stop_ringing() const noexcept {
  std::uint64_t rung = 0;
  [[maybe_unused]] const auto done = ::read(bell_, &rung, sizeof rung);
}

void SeatKernel::arm() const noexcept {
  control(epoll_, EPOLL_CTL_MOD, loop_, EPOLLIN | EPOLLONESHOT);
}

void SeatKernel::disarm() const noexcept {
  control(epoll_, EPOLL_CTL_MOD, loop_, EPOLLONESHOT);
}

void SeatKernel::set_alarm() const noexcept {
  itimerspec setting{};
  setting.it_value.tv_nsec = alarm_after.count();
  timerfd_settime(alarm_, 0, &setting, nullptr);
}

SeatKernel::SeatEvent SeatKernel::await_event() noexcept {
  std::array<epoll_event, 3> events{};
  // The timers that a caller sets are looked at when the alarm goes off that its leaving sets.
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()),
                               std::exchange(timeout_, -1));
  SeatEvent found;
  for (int i = 0; i < count; ++i) {
    const int descriptor = events[static_cast<std::size_t>(i)].data.fd;
    found.bell |= descriptor == bell_;
    found.alarm |= descriptor == alarm_;
  }
  return found;
}

}  // namespace redlock::net
