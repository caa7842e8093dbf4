// SPDX-License-Identifier: MIT
// redlock hold: confirms a lock taken by `redlock acquire` and makes it last longer.
#include <fmt/core.h>
#include <memory>
#include <utility>

#include <redlock/redlock.hpp>

#include "cli/exit_code.hpp"
#include "cli/invocation.hpp"
#include "cli/nodes.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/redlock/grant_output.hpp"
#include "cli/redlock/subcommands.hpp"

namespace redlock::cli {
namespace {

using std::chrono::milliseconds;

constexpr auto* hold_footer = R"help(
A quorum of nodes must confirm that the lock is still this owner's; it then lasts --lease from now
(never shorter than it did). Prints the same line as `redlock acquire`. Exits 75 if the lock is no
longer this owner's, 69 if that is not known; either way the lease is no shorter than before.

Example:
  eval "$(redlock acquire import --lease 1m)" || exit
  for file in *.csv; do
    redlock hold import --owner "$owner" --token "$token" --lease 1m >/dev/null || exit
    ./import.sh "$file" --token "$token"
  done
  redlock release import --owner "$owner")help";

class Hold {
 public:
  Hold(CLI::App& app, const Invocation& invocation) : nodes_(app, invocation) {
    add_name_option(app, grant_.name);
    add_owner_option(app, grant_.owner);
    app.add_option("--token", grant_.token,
                   "The token that acquire printed: a node with a lower one is raised to it")
        ->check(CLI::NonNegativeNumber)
        ->option_text("TOKEN");
    add_duration_option(app, "--lease", lease_, Zero::refused, Forever::refused,
                        "How long the lock is to last from now; default 30s");
    add_label_option(app, label_);
    add_format_option(app, format_);
  }

  int run() {
    auto options = nodes_.client_options();
    options.label = label_;
    const auto client = make_client(std::move(options));
    auto lease = client.lock(grant_.name)
                     .attach(grant_, {.lease = lease_.value_or(client.options().lease),
                                      .renewal = Renewal::never});
    if (!lease) throw failure(lease.error());
    // The lock existed before this command and stays, whether or not the line is read.
    const auto line = grant_line(*lease, format_);
    static_cast<void>(lease->detach());
    try {
      print(line);
    } catch (const Exit& exit) {
      throw Exit(exit.code(),
                 fmt::format("{}; {} was held longer all the same", exit.what(), grant_.name));
    }
    return exit_ok;
  }

 private:
  NodeOptions nodes_;
  Grant grant_;
  std::string label_;
  std::optional<milliseconds> lease_;
  Format format_ = Format::table;
};

}  // namespace

void add_hold(CLI::App& app, Invocation& invocation) {
  add_command<Hold>(app, invocation,
                    {"hold", "Confirm a lock and make it last longer",
                     "redlock hold NAME --owner OWNER [OPTIONS]", hold_footer});
}

}  // namespace redlock::cli
