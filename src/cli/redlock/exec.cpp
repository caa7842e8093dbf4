// SPDX-License-Identifier: MIT
// redlock exec: holds the lock while a command runs.
#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <memory>
#include <poll.h>

#include <redlock/redlock.hpp>

#include "cli/duration.hpp"
#include "cli/event_log.hpp"
#include "cli/exit_code.hpp"
#include "cli/invocation.hpp"
#include "cli/nodes.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/redlock/child.hpp"
#include "cli/redlock/event_watch.hpp"
#include "cli/redlock/lock_wait.hpp"
#include "cli/redlock/metrics_file.hpp"
#include "cli/redlock/subcommands.hpp"
#include "cli/redlock/supervisor.hpp"

namespace redlock::cli {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t longest_poll = 3'600'000;

constexpr auto* exec_footer = R"help(
CMD gets the lock's fencing token in REDLOCK_TOKEN and its name in REDLOCK_NAME. CMD has stdin,
stdout, stderr and the terminal to itself; signals that redlock gets (INT TERM HUP QUIT USR1 USR2
WINCH CONT) are passed on to CMD's process group. The lease is renewed while CMD runs. When CMD
ends, the lock is given back, and processes that CMD left in the background run on without it.

If the lease can no longer be trusted, because too few nodes confirm it, CMD's process group gets
--signal while --grace is left of the lease, and SIGKILL when the lease is over, whatever the nodes
do; redlock then exits 79. If redlock itself is killed, even by SIGKILL, the group is killed at once
(all but processes that moved to a group of their own). But nothing can watch CMD while redlock is
stopped (SIGSTOP, a frozen virtual machine), and between CMD's last check and its write there may be
a pause of any length. That is what the token is for: hand it to the resource that you write to, and
let the resource refuse a token that is smaller than the largest it has seen.

redlock cannot kill a process that it may not signal: CMD, or a part of it, that took the rights of
another user (sudo, setuid) goes on beside the next holder. redlock warns as soon as it sees such a
process, and says which one it could not kill. Run redlock itself as root, and let CMD give up the
rights that it does not need: sudo redlock exec NAME ... -- setpriv --reuid=app --regid=app
--init-groups ./job.sh, never redlock exec NAME -- sudo ./job.sh.

Ctrl-Z stops CMD and redlock; if the lease ends before they are continued, CMD is killed instead.

While redlock waits for the lock, it says on stderr which lock, since when, for how much longer, and
how many waiters are before it (waiters are served in order, see --ordering): on a terminal in a
line that is refreshed, elsewhere at once and then ever more rarely (after 5 s, 15 s, 35 s). With
--quiet it reports no wait, nor that another holder keeps the lock; errors are still reported.
Without --wait, redlock gives up and exits 69 if no node has answered within 10 seconds.

With --log json each line that redlock writes on stderr is a JSON object: time (UTC), level (debug,
info, warning, error), event, the event's own fields, and message. Events are waiting, acquired,
renewed, renewal_failed, released, release_unconfirmed, lost, command_told_to_end, command_killed,
command_not_killed and command_out_of_reach (with the processes), guard_replaced and guard_missing
(when the process that kills CMD if redlock is killed was killed itself), node_up, node_down,
clock_moved, failed (with the exit status), dropped (with a count), and note (any other message).
CMD writes its own output to the same stderr.

A stderr that nothing reads holds up neither CMD nor its end: up to 1,000 lines wait for the reader,
later lines are dropped and counted, and redlock waits a second for the reader before CMD starts,
and at CMD's end.

--metrics FILE is for the textfile collector of Prometheus' node_exporter: name a file that ends
with .prom in the collector's directory, one for each job.

The environment of CMD has no REDLOCK_NODES if that contains a password.

Exit status: that of CMD, 128+N if signal N ended it; 126 CMD cannot be run, 127 CMD not found;
79 lease lost; 75 contended or timed out (or -E); 69 no quorum; 78 configuration; 64 usage;
125 internal. A signal N that ends the wait for the lock: 128+N. None of these is 124, the status of
timeout(1).

docs/exec.md shows the options of flock and consul lock beside these.

Examples:
  redlock exec nightly -- ./backup.sh --all       waits while the lock is held, as flock does
  redlock exec nightly --wait 0 -- ./backup.sh    only if the lock is free now; otherwise exits 75
  redlock exec nightly --wait 5m -E 0 -q -- ./backup.sh  no failure if another holder runs it
  redlock exec nightly --wait 5s --hold-for 5m -E 0 -q -- ./backup.sh    in the crontabs of many
                                                                         machines: runs once
  redlock exec nightly --log json -- ./backup.sh 2> >(jq -cR 'fromjson? | objects | .event')
  redlock exec deploy --lease 10s --signal INT --grace 4s -- ./deploy.sh
  redlock exec book-A05 -- sh -c 'psql -c "CALL book($REDLOCK_TOKEN)"')help";

class Exec {
 public:
  Exec(CLI::App& app, const Invocation& invocation)
      : nodes_(app, invocation), invocation_(invocation) {
    add_name_option(app, name_);
    add_duration_option(app, "--lease", lease_, Zero::refused, Forever::refused,
                        "How long nodes keep the lock if redlock vanishes; default 30s");
    add_duration_option(app, "--wait", wait_, Zero::allowed, Forever::allowed,
                        "How long to wait for the lock: a duration, forever, or 0: one attempt. "
                        "Default: forever, once a node has answered, and 10s until then");
    add_duration_option(app, "--grace", grace_, Zero::allowed, Forever::refused,
                        "How much of the lease is left when CMD is told to end; less than half, "
                        "default a sixth");
    app.add_option_function<std::string>(
           "--signal", [this](const std::string& text) { set_signal(text); },
           "The signal that tells CMD to end when the lock is lost; default TERM")
        ->option_text("SIG");
    add_ordering_option(app, ordering_);
    add_label_option(app, label_);
    app.add_option("--metrics", metrics_,
                   "Write metrics, as Prometheus text, to this file: at once, every 10 "
                   "seconds and at the end")
        ->option_text("FILE");
    app.add_option("-E,--conflict-exit-code", conflict_code_, "Exit with this code in place of 75")
        ->check(CLI::Range(0, 255))
        ->option_text("CODE");
    app.add_flag("-q,--quiet", quiet_,
                 "Do not report a wait, nor a lock that another holder keeps");
    add_duration_option(app, "--hold-for", hold_for_, Zero::allowed, Forever::refused,
                        "Keep the lock for at least this long from the grant on, even if CMD ends "
                        "sooner");
  }

  int run() {
    // Before the first message: a stderr that nothing reads must not hold up the command.
    log_in_background();
    check();
    auto options = nodes_.client_options();
    const auto lease = lease_.value_or(options.lease);
    termination_.grace = grace_.value_or(lease / 6);
    if (termination_.grace * 2 >= lease) {
      throw Exit(exit_usage,
                 fmt::format("--grace {} is half the lease ({}) or more; make it shorter, or the "
                             "lease longer",
                             format_duration(termination_.grace), format_duration(lease)));
    }
    try {
      return hold_and_run(std::move(options), lease);
    } catch (const Exit& exit) {
      if (exit.code() != exit_contended) throw;
      throw Exit(conflict_code_.value_or(exit_contended), quiet_ ? "" : exit.what());
    }
  }

 private:
  void set_signal(const std::string& text) {
    const auto number = parse_signal(text);
    if (!number) {
      throw CLI::ValidationError("--signal", fmt::format("there is no signal {}; say TERM, INT, "
                                                         "HUP or a number",
                                                         text));
    }
    termination_.signal = *number;
  }

  void check() const {
    if (invocation_.command && !invocation_.command->empty()) return;
    throw Exit(exit_usage, fmt::format("which command? Put it behind --, for example: redlock exec "
                                       "{} -- ./job.sh",
                                       printable(name_)));
  }

  int hold_and_run(ClientOptions options, milliseconds length) {
    Signals signals;
    const auto watch = make_watch();
    options.observer = watch;
    // The label names the command, because that redlock has the lock is known.
    const std::string& command = invocation_.command->front();
    options.label = label_.empty() ? command.substr(command.rfind('/') + 1) : label_;
    std::optional<MetricsFile> metrics;
    if (!metrics_.empty()) metrics.emplace(metrics_, watch);
    const auto client = make_client(std::move(options));
    auto lease = wait_for_lock(client, *watch, signals, name_,
                               {.lease = length,
                                .renewal = Renewal::always,
                                .wait = wait_.value_or(forever),
                                .ordering = ordering_},
                               wait_ ? IfUnreachable::go_on : IfUnreachable::give_up,
                               quiet_ ? Progress::silent : Progress::shown);
    const auto granted = BootClock::now();
    const Ended ended = run_command(lease, signals, granted);
    const bool is_confirmed = give_back(lease, ended.loss_was_reported);
    if (metrics) metrics->finish();
    if (is_confirmed) leave_at_once(ended.status);
    return ended.status;
  }

  struct Ended {
    int status = 0;
    bool loss_was_reported = false;
  };

  Ended run_command(const Lease& lease, Signals& signals, BootClock::time_point granted) {
    Terminal terminal;
    finish_log();  // messages from before CMD come before CMD's output
    // Before the command runs: redlock alone would be stopped otherwise, and not renew the lease.
    signals.take_stop_requests();
    Child child(
        {*invocation_.command, child_environment(name_, lease.token(), invocation_.nodes_variable)},
        signals, terminal);
    Supervisor supervisor(child, lease, signals, terminal, termination_);
    const int status = supervisor.run();
    if (hold_for_ && !supervisor.lost() && !supervisor.asked_to_end()) {
      keep_lock(lease, signals, granted + *hold_for_);
    }
    return {status, supervisor.lost()};
  }

  /// For --hold-for, until the lease is lost or a signal asks to end.
  static void keep_lock(const Lease& lease, Signals& signals, BootClock::time_point until) {
    Event lost;
    const std::stop_callback on_loss(lease.lost(), [&lost] { lost.notify(); });
    while (lease.valid()) {
      const auto left = std::chrono::ceil<milliseconds>(until - BootClock::now()).count();
      if (left <= 0) return;
      std::array<pollfd, 2> waiting{{{lost.fd(), POLLIN, 0}, {signals.fd(), POLLIN, 0}}};
      ::poll(waiting.data(), waiting.size(), static_cast<int>(std::min(left, longest_poll)));
      if ((waiting[0].revents & POLLIN) != 0) return;
      while (const auto signal = signals.take()) {
        if (asks_to_end(*signal)) return;
        if (*signal == SIGTSTP) signals.stop_self();
      }
    }
  }

  // Waits for a quorum of replies; true if the quorum confirmed the release.
  bool give_back(Lease& lease, bool loss_was_reported) const {
    const auto released = lease.release();
    if (released && *released == Released::released) return true;
    if (!loss_was_reported) {
      const std::string why = released ? to_string(*released) : released.error().message;
      note({LogLevel::warning,
            "release_unconfirmed",
            fmt::format("giving back {}: {}", name_, why),
            {{"name", name_}, {"why", why}}});
    }
    return false;
  }

  NodeOptions nodes_;
  const Invocation& invocation_;
  std::string name_;
  std::string label_;
  std::string metrics_;
  std::optional<milliseconds> lease_;
  std::optional<milliseconds> wait_;
  std::optional<Ordering> ordering_;
  std::optional<milliseconds> grace_;
  std::optional<milliseconds> hold_for_;
  std::optional<int> conflict_code_;
  bool quiet_ = false;
  TerminationPolicy termination_;
};

}  // namespace

void add_exec(CLI::App& app, Invocation& invocation) {
  add_command<Exec>(app, invocation,
                    {"exec", "Hold a lock while a command runs",
                     "redlock exec NAME [OPTIONS] -- CMD [ARG...]", exec_footer});
}

}  // namespace redlock::cli
