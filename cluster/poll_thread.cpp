// SPDX-License-Identifier: MIT
//
// One turn: list, sleep, perform, tell everybody who waits.
#include "cluster/poll_thread.hpp"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <sys/eventfd.h>

namespace redlock::cluster {
namespace {

timespec left_until(PollThread::TimePoint deadline) {
  const auto left =
      std::clamp<std::chrono::nanoseconds>(deadline - std::chrono::steady_clock::now(),
                                           std::chrono::nanoseconds(0), std::chrono::minutes(1));
  const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
  return {.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
}

// Not to the millisecond, as poll: a relay may delay by less.
void sleep_in_poll(std::vector<pollfd>& polled, std::optional<PollThread::TimePoint> deadline) {
  const timespec left = deadline ? left_until(*deadline) : timespec{};
  ::ppoll(polled.data(), polled.size(), deadline ? &left : nullptr, nullptr);
}

}  // namespace

PollThread::PollThread(Prepare prepare, Perform perform)
    : prepare_(std::move(prepare)),
      perform_(std::move(perform)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

PollThread::~PollThread() {
  change([this] { stopping_ = true; });
  thread_.join();
}

void PollThread::run() {
  std::vector<pollfd> polled;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    polled.clear();
    const auto deadline = prepare_(polled);
    polled.push_back({wake_.get(), POLLIN, 0});

    lock.unlock();
    sleep_in_poll(polled, deadline);
    std::uint64_t count = 0;
    if (polled.back().revents != 0) (void)!::read(wake_.get(), &count, sizeof count);
    lock.lock();

    polled.pop_back();
    perform_(polled);
    happened_.notify_all();
  }
}

void PollThread::wake() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

}  // namespace redlock::cluster
