// SPDX-License-Identifier: MIT
#include "client/loss_guard.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <new>
#include <pthread.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <utility>

#include "client/lease_state.hpp"
#include "net/boot_timer.hpp"
#include "net/signals.hpp"

namespace redlock::client {

namespace {

thread_local const LossGuard* current_guard = nullptr;

}  // namespace

LossGuard::~LossGuard() {
  stop();
  if (alarm_ >= 0) ::close(alarm_);
}

bool LossGuard::on_own_thread() const noexcept {
  return current_guard == this;
}

void LossGuard::watch(engine::Instant until, const std::shared_ptr<Lease::State>& lease) noexcept {
  const std::scoped_lock lock(mutex_);
  if (stopped_) return;
  if (!thread_.joinable()) start();
  if (thread_.joinable()) add({until, lease, true});
}

void LossGuard::check_once(engine::Instant until,
                           const std::shared_ptr<Lease::State>& lease) noexcept {
  const std::scoped_lock lock(mutex_);
  if (!stopped_ && thread_.joinable()) add({until, lease, false});
}

void LossGuard::add(Check check) noexcept {
  if (checks_.size() >= tidy_at_) drop_expired();
  const bool earliest = checks_.empty() || check.when < checks_.front().when;
  try {
    checks_.push_back(std::move(check));
  } catch (const std::bad_alloc&) {
    return;  // as if there were no thread
  }
  std::push_heap(checks_.begin(), checks_.end());
  if (earliest) net::set_alarm(alarm_, checks_.front().when);
}

/// Most leases are released long before their check is due.
void LossGuard::drop_expired() {
  std::erase_if(checks_, [](const Check& check) { return check.lease.expired(); });
  std::make_heap(checks_.begin(), checks_.end());
  tidy_at_ = std::max<std::size_t>(64, 2 * checks_.size());
}

void LossGuard::start() {
  if (alarm_ < 0) alarm_ = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
  if (alarm_ < 0) return;  // no descriptor is left: as if there were no thread
  const net::AllSignalsBlocked inherited;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::exception&) {
    // Then only the loop requests lost(), and the next lease tries again.
  }
}

void LossGuard::stop() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    if (alarm_ >= 0) net::set_alarm(alarm_, engine::Instant::min());
  }
  if (thread_.joinable()) thread_.join();
}

void LossGuard::run() {
  current_guard = this;
  pthread_setname_np(pthread_self(), "redlock-guard");
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (!checks_.empty() && checks_.front().when <= BootClock::now()) {
      run_check(lock);
      continue;
    }
    if (!checks_.empty()) net::set_alarm(alarm_, checks_.front().when);
    lock.unlock();
    std::uint64_t expirations = 0;
    [[maybe_unused]] const auto done = ::read(alarm_, &expirations, sizeof expirations);
    lock.lock();
  }
}

/// Functions tied to lost() run in here, so no mutex may be locked meanwhile.
void LossGuard::run_check(std::unique_lock<std::mutex>& lock) {
  std::pop_heap(checks_.begin(), checks_.end());
  const Check check = std::move(checks_.back());
  checks_.pop_back();
  auto lease = check.lease.lock();
  if (!lease) return;
  lock.unlock();
  const auto next = lease->lose_if_unconfirmed(BootClock::now());
  lease.reset();  // perhaps the last to know it
  lock.lock();
  if (check.again && next != engine::never) add({next, check.lease, true});
}

}  // namespace redlock::client
