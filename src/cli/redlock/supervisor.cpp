// SPDX-License-Identifier: MIT
#include "cli/redlock/supervisor.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <utility>

#include "cli/event_log.hpp"
#include "cli/exit_code.hpp"
#include "cli/output.hpp"

namespace redlock::cli {
namespace {

using std::chrono::nanoseconds;

std::string reason_of(const Lease& lease) {
  const auto reason = lease.loss_reason();
  if (reason == LossReason::forced) return "the lock was released by force";
  if (reason == LossReason::taken) return "too few nodes still have the lock for this owner";
  return "too few nodes confirmed a renewal in time";
}

// A process that may not be signalled now may end, or return to our rights.
constexpr std::chrono::seconds between_kills{1};
constexpr std::chrono::seconds longest_reach_pause{30};

}  // namespace

Supervisor::Supervisor(Child& child, const Lease& lease, Signals& signals, Terminal& terminal,
                       TerminationPolicy termination)
    : child_(child),
      lease_(lease),
      signals_(signals),
      terminal_(terminal),
      termination_(termination),
      // The validity can shrink, when a node no longer confirms the lease. lost() is requested
      // while more than this is left of it.
      longest_sleep_(
          std::max<BootClock::duration>(lease.remaining() / 20, std::chrono::milliseconds(10))),
      timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timer") {}

int Supervisor::run() {
  const std::stop_callback on_loss(lease_.lost(), [this] { lost_.notify(); });
  for (;;) {
    // The lease first: after a pause of any length the child must not be continued without it.
    watch_lease(BootClock::now());
    if (child_ended()) return conclude();
    forward_signals();
    watch_reach(BootClock::now());
    watch_guard();
    sleep_until(next_look(BootClock::now()));
  }
}

void Supervisor::watch_lease(BootClock::time_point now) {
  if (!kill_at_) {
    const auto over = lease_.valid_until();
    const auto loss = lease_.loss_reason();
    const bool gone = loss == LossReason::taken || loss == LossReason::forced;
    if (gone || now >= over - termination_.grace) begin_termination(now, over);
  }
  if (kill_at_ && now >= *kill_at_ && !killed_) kill_child(now);
}

void Supervisor::kill_child(BootClock::time_point now) {
  kill_tried_ = true;
  child_.signal(SIGKILL);
  report_survivors();
  killed_ = survivors_.empty();
  if (!killed_) {
    kill_at_ = now + between_kills;
    return;
  }
  if (survived_) return;  // it ended in another way
  note({LogLevel::error,
        "command_killed",
        "the lease is over; killed the command",
        {{"name", lease_.name()}}});
}

void Supervisor::report_survivors() {
  auto found = child_.out_of_reach();
  if (found == std::exchange(survivors_, found) || found.empty()) return;
  survived_ = true;
  note({LogLevel::error,
        "command_not_killed",
        fmt::format("the lease on {} is over, and {} goes on beside the next holder: redlock may "
                    "not kill processes of another user; end them by hand",
                    lease_.name(), found),
        {{"name", lease_.name()}, {"processes", found}}});
}

void Supervisor::watch_reach(BootClock::time_point now) {
  if (is_out_of_reach_ || kill_at_ || now < reach_due_) return;
  reach_due_ = now + reach_pause_;
  reach_pause_ = std::min<BootClock::duration>(2 * reach_pause_, longest_reach_pause);
  const auto found = child_.out_of_reach();
  if (found.empty()) return;
  is_out_of_reach_ = true;
  note({LogLevel::warning,
        "command_out_of_reach",
        fmt::format("{} runs as another user, so redlock may neither signal nor kill it: it would "
                    "go on after a loss of {}; run redlock as root, and let the command give up "
                    "the rights that it does not need",
                    found, lease_.name()),
        {{"name", lease_.name()}, {"processes", found}}});
}

void Supervisor::watch_guard() {
  if (kill_tried_) return;
  const auto before = std::exchange(guard_, child_.tend_guard());
  const bool replaced = guard_ == Child::Guard::replaced;
  if (!replaced && (guard_ == before || guard_ == Child::Guard::watches)) return;
  note({LogLevel::warning,
        replaced ? "guard_replaced" : "guard_missing",
        fmt::format("the guard, which kills the command if redlock is killed, has ended; {}",
                    replaced ? "another has been started"
                             : "another cannot be started yet, so do not kill redlock now"),
        {{"name", lease_.name()}}});
}

void Supervisor::begin_termination(BootClock::time_point now, BootClock::time_point over) {
  reach_due_ = now;
  watch_reach(now);
  kill_at_ = over;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(over - now);
  if (left.count() <= 0) return;
  note({LogLevel::warning,
        "command_told_to_end",
        fmt::format(
            "the lock on {} can no longer be trusted ({}); told {} to end ({}), killing it "
            "in {} ms",
            lease_.name(), reason_of(lease_),
            is_out_of_reach_ ? "those processes of the command that it may signal" : "the command",
            signal_name(termination_.signal), left.count()),
        {{"name", lease_.name()},
         {"signal", signal_name(termination_.signal)},
         {"killed_in_ms", left.count()}}});
  child_.signal(termination_.signal);
  // A stopped process handles the signal only once it is continued.
  child_.signal(SIGCONT);
}

bool Supervisor::child_ended() {
  switch (child_.poll()) {
    case Child::State::running:
      return false;
    case Child::State::ended:
      return true;
    case Child::State::stopped:
      follow_stop();
      return false;
  }
  return false;
}

// As a shell does: a child that needs the terminal (SIGTTIN, SIGTTOU) gets it. One that was stopped
// from the keyboard, or needs the terminal while we are in the background, makes us stop as well,
// so that the shell sees a stopped job, which its fg continues.
void Supervisor::follow_stop() {
  if (kill_at_) {
    child_.signal(SIGCONT);
    return;
  }
  const int why = child_.stop_signal();
  const bool asks = (why == SIGTTIN || why == SIGTTOU) && terminal_.present();
  if (asks && !terminal_.given() && terminal_.give_to(child_.group())) {
    child_.signal(SIGCONT);
    return;
  }
  if (!terminal_.given() && !stops_with_child_ && !asks) return;
  const bool wants_terminal = asks || terminal_.given();
  terminal_.take_back();
  stops_with_child_ = false;
  // If redlock cannot be stopped, nothing will continue it, and the child would be stopped again
  // and again.
  if (!signals_.stop_self() && asks) return;
  // We were continued, perhaps long after the lease expired.
  watch_lease(BootClock::now());
  if (kill_tried_) return;
  if (wants_terminal) terminal_.give_to(child_.group());
  child_.signal(SIGCONT);
}

void Supervisor::forward_signals() {
  while (const auto signal = signals_.take()) {
    if (*signal == SIGCHLD) continue;
    if (*signal == SIGTSTP) stops_with_child_ = true;
    child_.signal(*signal);
    // A stopped process handles the signal only once it is continued.
    if (!asks_to_end(*signal)) continue;
    child_.signal(SIGCONT);
    asked_to_end_ = true;
    reach_due_ = {};  // if it cannot be signalled, say so now
  }
}

BootClock::time_point Supervisor::next_look(BootClock::time_point now) const {
  if (killed_) return now + std::chrono::hours(1);  // only its end is left to come
  if (kill_at_) return *kill_at_;
  const auto look = std::min(lease_.valid_until() - termination_.grace, now + longest_sleep_);
  return is_out_of_reach_ ? look : std::min(look, reach_due_);
}

void Supervisor::sleep_until(BootClock::time_point when) {
  // poll's timeout does not advance while the machine is suspended; this timer does.
  const auto since_boot = std::max(when.time_since_epoch(), nanoseconds(1));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
  itimerspec at{};
  at.it_value.tv_sec = seconds.count();
  at.it_value.tv_nsec = (since_boot - seconds).count();
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
  std::array<pollfd, 3> waiting{
      {{timer_.get(), POLLIN, 0}, {lost_.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
  ::poll(waiting.data(), waiting.size(), -1);
  lost_.clear();
}

int Supervisor::conclude() {
  terminal_.take_back();
  if (child_.killed()) terminal_.restore_settings();
  if (!kill_at_) return child_.exit_status();
  // Processes that the command left running have no lock either.
  child_.signal(SIGKILL);
  report_survivors();
  return exit_lost;
}

}  // namespace redlock::cli
