// SPDX-License-Identifier: MIT
#include "cli/bench/load.hpp"

#include <algorithm>
#include <sys/prctl.h>
#include <utility>

namespace redlock::cli {
namespace {

using std::chrono::nanoseconds;

/// For how long a call tries; a longer one is a failure.
constexpr std::chrono::seconds longest_call(5);

}  // namespace

Load::Load(const BenchSettings& settings, const std::vector<Client>& clients,
           const std::vector<std::string>& names, Recorder& recorder)
    : settings_(settings), clients_(clients), names_(names), recorder_(recorder) {
  for (std::size_t i = 0; i < names_.size(); ++i) turns_.push_back(std::make_unique<GivenBack>());
}

Load::~Load() {
  stop();
}

void Load::start() {
  const std::size_t callers = settings_.concurrency;
  running_ = callers;
  began_ = BootClock::now();
  end_ = began_ + settings_.duration;
  for (std::size_t caller = 0; caller < callers; ++caller) {
    try {
      threads_.emplace_back([this, caller] {
        call(caller);
        if (--running_ == 0) ended_.notify();
      });
    } catch (...) {
      running_ -= callers - caller;
      throw;
    }
  }
}

void Load::stop() {
  stop_.request_stop();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void Load::call(std::size_t caller) {
  // The moments are to be kept to the microsecond; the kernel groups wake-ups of 50 otherwise.
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  for (std::uint64_t round = 0; !stop_.stop_requested(); ++round) {
    const auto intended = settings_.rate ? due(next_++) : BootClock::now();
    if (intended >= end_) return;
    const auto now = BootClock::now();
    if (now >= end_) {
      recorder_.unstarted(intended, now - intended);
    } else if (sleep_until(intended)) {
      cycle(caller, round, intended);
    }
  }
}

BootClock::time_point Load::due(std::uint64_t number) const {
  // Contending callers begin together.
  const auto group = settings_.scenario == Scenario::contended ? settings_.concurrency : 1;
  const auto before = static_cast<double>(number - number % group);
  // A slow rate has its next moment after more than a clock can count.
  using Seconds = std::chrono::duration<double>;
  const Seconds at = std::min(Seconds(before / *settings_.rate), Seconds(end_ - began_));
  return began_ + std::chrono::ceil<nanoseconds>(at);
}

// False: it was stopped first.
bool Load::sleep_until(BootClock::time_point when) {
  const auto left = when - BootClock::now();
  if (left <= nanoseconds::zero()) return true;
  std::unique_lock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + left;
  stopped_.wait_until(lock, stop_.get_token(), until, [] { return false; });
  return !stop_.stop_requested();
}

void Load::cycle(std::size_t caller, std::uint64_t round, BootClock::time_point intended) {
  // As long as there are enough, no name is another caller's.
  const auto own = std::max<std::size_t>(names_.size() / settings_.concurrency, 1);
  const auto number = (caller + (round % own) * settings_.concurrency) % names_.size();
  GivenBack& turn = *turns_[number];
  RedLock lock = clients_[caller % clients_.size()].lock(names_[number]);
  const auto failed = [&](Errc code) {
    if (!stop_.stop_requested()) recorder_.failed(intended, code);
  };

  const auto began = BootClock::now();
  auto lease =
      lock.acquire({.lease = settings_.lease, .renewal = Renewal::never, .wait = longest_call},
                   stop_.get_token());
  const auto granted = BootClock::now();
  if (!lease) return failed(lease.error().code);
  recorder_.time(Timed::late, began - intended);
  recorder_.acquired(intended, granted - intended);
  note_grant(turn, began, granted);

  const auto held = lease->extend(settings_.lease);
  const auto released_from = BootClock::now();
  if (held) {
    recorder_.time(Timed::hold, released_from - granted);
  } else {
    failed(held.error().code);
  }
  {
    const std::scoped_lock guard(turn.mutex);
    turn.given_back = released_from;
  }
  const auto released = lease->release();
  if (!released) return failed(released.error().code);
  if (*released == Released::released) {
    recorder_.time(Timed::release, BootClock::now() - released_from);
  } else {
    failed(*released == Released::unknown ? Errc::no_quorum : Errc::lost);
  }
}

// The lock was handed over if it was given back while this call waited.
void Load::note_grant(GivenBack& turn, BootClock::time_point began, BootClock::time_point granted) {
  const std::scoped_lock lock(turn.mutex);
  const auto given_back = std::exchange(turn.given_back, std::nullopt);
  if (given_back && *given_back > began) recorder_.time(Timed::hand_off, granted - *given_back);
}

}  // namespace redlock::cli
