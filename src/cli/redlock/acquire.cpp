// SPDX-License-Identifier: MIT
// redlock acquire: the first of three steps (acquire, hold, release) for scripts. It prints the
// owner, which the other two steps need; no process has to run between them.
#include <fmt/core.h>
#include <memory>

#include <redlock/admin.hpp>
#include <redlock/redlock.hpp>

#include "cli/event_log.hpp"
#include "cli/exit_code.hpp"
#include "cli/invocation.hpp"
#include "cli/nodes.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/redlock/event_watch.hpp"
#include "cli/redlock/grant_output.hpp"
#include "cli/redlock/lock_wait.hpp"
#include "cli/redlock/subcommands.hpp"

namespace redlock::cli {
namespace {

using std::chrono::milliseconds;

constexpr auto* acquire_footer = R"help(
Prints owner=... token=... valid_ms=... on one line, which a shell can evaluate. Nothing renews the
lease: it ends by itself --lease after now, unless `redlock hold` makes it last longer. valid_ms is
how long the lock can be trusted, counted from before the nodes were asked; the token is the fencing
token, for the resource that you write to (see redlock exec --help). Prefer `redlock exec` to
protect a single command: it renews the lease, and ends the command when the lock is lost.

Examples:
  eval "$(redlock acquire deploy --lease 1m)" || exit
  ./deploy.sh --token "$token"
  redlock release deploy --owner "$owner"

  redlock acquire deploy --wait 10s -o json)help";

class Acquire {
 public:
  Acquire(CLI::App& app, const Invocation& invocation) : nodes_(app, invocation) {
    add_name_option(app, name_);
    add_duration_option(app, "--lease", lease_, Zero::refused, Forever::refused,
                        "How long the nodes keep the lock; default 30s");
    add_duration_option(app, "--wait", wait_, Zero::allowed, Forever::allowed,
                        "How long to wait for the lock: a duration, forever, or 0 (default): one "
                        "attempt");
    add_ordering_option(app, ordering_);
    add_label_option(app, label_);
    add_format_option(app, format_);
  }

  int run() {
    log_in_background();
    const Signals signals;
    auto options = nodes_.client_options();
    const auto watch = make_watch();
    options.observer = watch;
    options.label = label_;
    const auto length = lease_.value_or(options.lease);
    const auto client = make_client(std::move(options));
    auto lease = wait_for_lock(client, *watch, signals, name_,
                               {.lease = length,
                                .renewal = Renewal::never,
                                .wait = wait_.value_or(milliseconds(0)),
                                .ordering = ordering_},
                               IfUnreachable::go_on);
    print_or_give_back(lease);
    static_cast<void>(lease.detach());
    // A quorum has granted. Before this process ends, the acquire is to reach the other nodes too:
    // a query is sent behind it on each connection. The wait for a node that hangs is as long as in
    // an attempt.
    static_cast<void>(Admin(client).inspect(name_));
    return exit_ok;
  }

 private:
  /// For the case that the line cannot be written: without the owner in it no command could release
  /// the lock.
  void print_or_give_back(Lease& lease) const {
    try {
      print_grant(lease, format_);
    } catch (const Exit& exit) {
      const auto released = lease.release();
      const bool done = released && *released == Released::released;
      throw Exit(exit.code(),
                 fmt::format("{}; {} {}", exit.what(), name_,
                             done ? "was given back"
                                  : "is being given back, or ends with its lease at the latest"));
    }
  }

  NodeOptions nodes_;
  std::string name_;
  std::string label_;
  std::optional<milliseconds> lease_;
  std::optional<milliseconds> wait_;
  std::optional<Ordering> ordering_;
  Format format_ = Format::table;
};

}  // namespace

void add_acquire(CLI::App& app, Invocation& invocation) {
  add_command<Acquire>(app, invocation,
                       {"acquire", "Take a lock and leave it taken, for scripts",
                        "redlock acquire NAME [OPTIONS]", acquire_footer});
}

}  // namespace redlock::cli
