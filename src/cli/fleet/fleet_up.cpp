// SPDX-License-Identifier: MIT
// redlock fleet up: starts a fleet, or says where the running one is.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fmt/core.h>
#include <optional>
#include <string>
#include <utility>

#include <redlock/admin.hpp>

#include "cli/exit_code.hpp"
#include "cli/fleet/fleet_command.hpp"
#include "cli/nodes.hpp"
#include "cli/output.hpp"
#include "cluster/fleet_error.hpp"

namespace redlock::cli {
namespace {

namespace fs = std::filesystem;
using cluster::Fleet;
using cluster::NodeState;
using cluster::Persistence;

class Up : public FleetCommand {
 public:
  Up(CLI::App& app, const Invocation& invocation) : FleetCommand(app, invocation) {
    app.add_option("-n,--nodes", nodes_, "Number of nodes; default 5")
        ->check(CLI::Range(1, 64))
        ->option_text("N");
    app.add_option("--port", port_,
                   "The port of the first node; the others take the next ones; default: free ports")
        ->check(CLI::Range(1, 65'535))
        ->option_text("PORT");
    app.add_option("--persistence", persistence_,
                   "always (default): every write is on disk before its reply; none: a "
                   "restarted node has forgotten everything, and so a node votes when it has run "
                   "for a minute (at once, for tests: REDLOCK_QUARANTINE=off, here and later)")
        ->check(CLI::IsMember({"always", "none"}))
        ->option_text("none|always");
  }

  int run() {
    const auto place = directory();
    if (print_if_up(place)) return exit_ok;
    const auto fleet = start(place);
    if (!fleet) return print_if_up(place) ? exit_ok : exit_internal;
    try {
      // A client without quarantine refuses nodes that have markers.
      auto options = options_for(*fleet);
      if (options.quarantine == Quarantine::on) adopt(std::move(options));
      print(export_line(*fleet));
    } catch (...) {
      Fleet::down(place);
      throw;
    }
    return exit_ok;
  }

 private:
  [[nodiscard]] Persistence persistence() const {
    return persistence_ == "none" ? Persistence::none : Persistence::always;
  }

  /// Nothing if another command has started it in the meantime.
  [[nodiscard]] std::optional<Fleet> start(const fs::path& place) const {
    try {
      return Fleet::start_detached(place, {.nodes = nodes_.value_or(5),
                                           .persistence = persistence(),
                                           .first_port = port_.value_or(0)});
    } catch (const cluster::FleetError&) {
      if (running_fleet(place)) return std::nullopt;
      throw;
    }
  }

  /// The fleet recorded there, if any of its nodes is alive.
  static std::optional<Fleet> running_fleet(const fs::path& place) {
    if (!fs::exists(place / "fleet")) return std::nullopt;
    auto fleet = Fleet::open(place);
    for (std::size_t i = 0; i < fleet.size(); ++i) {
      if (fleet.state(i) != NodeState::ended) return fleet;
    }
    return std::nullopt;
  }

  [[nodiscard]] bool print_if_up(const fs::path& place) const {
    const auto fleet = running_fleet(place);
    if (!fleet) return false;
    check_options(*fleet);
    print(export_line(*fleet));
    say(fmt::format("{} nodes run already, in {}", fleet->size(), place.string()));
    for (std::size_t i = 0; i < fleet->size(); ++i) {
      const auto state = fleet->state(i);
      if (state == NodeState::running) continue;
      const bool paused = state == NodeState::paused;
      say(fmt::format("node {} {}; redlock fleet {} {}{}", i + 1,
                      paused ? "is paused" : "has ended", paused ? "resume" : "restart", i + 1,
                      option()));
    }
    return true;
  }

  void check_options(const Fleet& fleet) const {
    std::string other;
    if (nodes_ && *nodes_ != fleet.size()) other = fmt::format("{} nodes", fleet.size());
    if (port_ && *port_ != fleet.port(0)) {
      other = fmt::format("port {} for its first node", fleet.port(0));
    }
    if (persistence_ && persistence() != fleet.persistence()) {
      other =
          fleet.persistence() == Persistence::none ? "--persistence none" : "--persistence always";
    }
    if (other.empty()) return;
    throw Exit(exit_usage,
               fmt::format("the fleet runs already, with {}; end it first (redlock fleet down{}), "
                           "or give the new fleet another --name",
                           other, option()));
  }

  static ClientOptions options_for(const Fleet& fleet) {
    std::string list;
    for (const auto& uri : fleet.uris()) list += uri + '\n';
    auto options = ClientOptions::from_env(list);
    if (!options) throw Exit(exit_usage, options.error().message);
    return std::move(*options);
  }

  static void adopt(ClientOptions options) {
    // The nodes have just answered; a slow reply here comes from a slow machine.
    options.node_timeout = options.connect_timeout = std::chrono::seconds(10);
    const auto client = make_client(std::move(options));
    const auto adoptions = Admin(client).adopt();
    if (!adoptions) throw failure(adoptions.error());
    for (const auto& node : *adoptions) {
      if (node.adoption == Adoption::written || node.adoption == Adoption::already_there) continue;
      throw Exit(exit_internal, fmt::format("could not adopt {}: {}", node.node, node.detail));
    }
  }

  std::optional<std::size_t> nodes_;
  std::optional<std::uint16_t> port_;
  std::optional<std::string> persistence_;
};

}  // namespace

void add_fleet_up(CLI::App& fleet, Invocation& invocation, const std::string& footer) {
  add_command<Up>(fleet, invocation,
                  {"up", "Start nodes and adopt them, unless they run; print their export line",
                   "redlock fleet up [OPTIONS]", footer});
}

}  // namespace redlock::cli
