// SPDX-License-Identifier: MIT
#include "cli/supervisor.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cli/exit_code.hpp"
#include "cli/output.hpp"

namespace redlock::cli {
namespace {

using std::chrono::nanoseconds;

std::string reason_of(const Lease& lease) {
  const auto reason = lease.loss_reason();
  if (reason == LossReason::forced) return "somebody released it by force";
  if (reason == LossReason::taken) return "too few nodes still have it for this owner";
  return "too few nodes confirmed a renewal in time";
}

}  // namespace

Supervisor::Supervisor(Child& child, const Lease& lease, Signals& signals, Terminal& terminal,
                       Farewell farewell)
    : child_(child),
      lease_(lease),
      signals_(signals),
      terminal_(terminal),
      farewell_(farewell),
      // The validity can shrink, when a node takes back its word. lost() tells when it becomes
      // short; what is left after that is longer than this.
      longest_sleep_(
          std::max<BootClock::duration>(lease.remaining() / 20, std::chrono::milliseconds(10))),
      timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timer") {
  signals_.take_stop_requests();
}

int Supervisor::run() {
  const std::stop_callback on_loss(lease_.lost(), [this] { lost_.notify(); });
  for (;;) {
    // The lease first: after a pause of any length the child must not be continued without it.
    watch_lease(BootClock::now());
    if (hear_child()) return conclude();
    hear_signals();
    sleep_until(next_look(BootClock::now()));
  }
}

void Supervisor::watch_lease(Instant now) {
  if (!kill_at_) {
    const auto over = lease_.valid_until();
    const auto loss = lease_.loss_reason();
    const bool gone = loss == LossReason::taken || loss == LossReason::forced;
    if (gone || now >= over - farewell_.grace) part_with_child(now, over);
  }
  if (kill_at_ && now >= *kill_at_ && !killed_) {
    killed_ = true;
    say("the lease is over; killed the command");
    child_.signal(SIGKILL);
  }
}

void Supervisor::part_with_child(Instant now, Instant over) {
  kill_at_ = over;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(over - now);
  if (left.count() <= 0) return;
  say(
      fmt::format("the lock on {} can no longer be trusted ({}); told the command to end ({}), "
                  "killing it in {} ms",
                  lease_.name(), reason_of(lease_), signal_name(farewell_.signal), left.count()));
  child_.signal(farewell_.signal);
  // A stopped process hears of it only when it runs.
  child_.signal(SIGCONT);
}

bool Supervisor::hear_child() {
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

// As a shell would: a child that asks for the terminal gets it; one that was stopped from the
// keyboard, or asks while we are in the background, makes us stop as well, so that the shell sees
// its job stopped and its fg continues it.
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
  // Where we cannot be stopped nobody will continue us, and a child that asks would ask for ever.
  if (!signals_.stop_self() && asks) return;
  // Somebody continued us, perhaps long after the lease was over.
  watch_lease(BootClock::now());
  if (killed_) return;
  if (wants_terminal) terminal_.give_to(child_.group());
  child_.signal(SIGCONT);
}

void Supervisor::hear_signals() {
  while (const auto signal = signals_.take()) {
    if (*signal == SIGCHLD) continue;
    if (*signal == SIGTSTP) stops_with_child_ = true;
    child_.signal(*signal);
    // A stopped process hears of it only when it runs.
    if (asks_to_end(*signal)) child_.signal(SIGCONT);
  }
}

Supervisor::Instant Supervisor::next_look(Instant now) const {
  if (killed_) return now + std::chrono::hours(1);  // only its end is left to come
  if (kill_at_) return *kill_at_;
  return std::min(lease_.valid_until() - farewell_.grace, now + longest_sleep_);
}

void Supervisor::sleep_until(Instant when) {
  // poll's own timeout stands still while the machine sleeps; this timer does not.
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
  // What the command left running has no lock either.
  child_.signal(SIGKILL);
  return exit_lost;
}

}  // namespace redlock::cli
