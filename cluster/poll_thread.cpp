// SPDX-License-Identifier: MIT
//
// One turn: list, sleep, perform, tell everybody who waits.
#include "cluster/poll_thread.hpp"

#include <algorithm>
#include <cstdint>
#include <sys/eventfd.h>

namespace redlock::cluster {
namespace {

int poll_timeout(std::optional<PollThread::TimePoint> deadline) {
  if (!deadline) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
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
    ::poll(polled.data(), polled.size(), poll_timeout(deadline));
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
