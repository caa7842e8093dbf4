// SPDX-License-Identifier: MIT
// redlock fleet: lock nodes on this machine without Docker, for trying things out and for tests.
// They are recorded in a directory and outlive the command.
#include <cluster/fleet.hpp>
#include <cstdlib>
#include <filesystem>
#include <fmt/core.h>
#include <memory>

#include <redlock/admin.hpp>

#include "cli/exit_code.hpp"
#include "cli/invocation.hpp"
#include "cli/nodes.hpp"
#include "cli/output.hpp"

namespace redlock::cli {
namespace {

namespace fs = std::filesystem;
using cluster::Fleet;
using cluster::NodeState;

constexpr auto* fleet_footer = R"help(
Nodes are numbered from 1. They are redis-server processes on free ports of the loopback interface,
and keep running until `fleet down`.

Examples:
  eval "$(redlock fleet up)"        five nodes, and REDLOCK_NODES set for the commands that follow
  redlock fleet status
  redlock fleet pause 2             hung: it accepts connections and answers nobody (SIGSTOP)
  redlock fleet kill 3              crashed (SIGKILL)
  redlock exec demo -- echo "still works"
  redlock fleet resume 2
  redlock fleet restart 3 --empty   back without its data: it votes again in about a minute, or
                                    after `redlock adopt`, if you know that no lease lives
  redlock fleet down

Exit status: 64 usage, 125 if it cannot be done; the sentence says why.)help";

fs::path default_directory() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/') {
    return fs::path(state) / "redlock" / "fleet";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return fs::path(home) / ".local" / "state" / "redlock" / "fleet";
  }
  throw Exit(exit_usage, "HOME is not set; say where with --dir DIR");
}

/// What all actions of the fleet share: its directory.
class FleetCommand {
 public:
  FleetCommand(CLI::App& app, const Invocation& /*invocation*/) {
    app.add_option("--dir", directory_,
                   "Where the fleet is recorded; default $XDG_STATE_HOME/redlock/fleet or "
                   "~/.local/state/redlock/fleet")
        ->option_text("DIR");
  }

 protected:
  [[nodiscard]] fs::path directory() const {
    return directory_.empty() ? default_directory() : fs::path(directory_);
  }
  [[nodiscard]] Fleet open() const { return Fleet::open(directory()); }

 private:
  std::string directory_;
};

std::string export_line(const Fleet& fleet) {
  std::string nodes;
  for (const auto& uri : fleet.uris()) nodes += (nodes.empty() ? "" : ",") + uri;
  return "export REDLOCK_NODES=" + nodes + "\n";
}

class Up : public FleetCommand {
 public:
  Up(CLI::App& app, const Invocation& invocation) : FleetCommand(app, invocation) {
    app.add_option("-n", nodes_, "How many; default 5")->check(CLI::Range(1, 64))->option_text("N");
    app.add_option("--persistence", persistence_,
                   "always (default): every write is on disk before it is answered; none: a "
                   "restarted node has forgotten everything, and so a node votes when it has run "
                   "for a minute (REDLOCK_QUARANTINE=off: at once, for tests)")
        ->check(CLI::IsMember({"always", "none"}))
        ->option_text("none|always");
  }

  int run() {
    const auto persistence =
        persistence_ == "none" ? cluster::Persistence::none : cluster::Persistence::always;
    const auto place = directory();
    const auto fleet = Fleet::start_detached(place, {.nodes = nodes_, .persistence = persistence});
    try {
      adopt(fleet);
      print(export_line(fleet));
    } catch (...) {
      Fleet::down(place);
      throw;
    }
    return exit_ok;
  }

 private:
  static void adopt(const Fleet& fleet) {
    ClientOptions options;
    options.nodes = fleet.uris();
    // They have just answered; what is slow here is this machine.
    options.node_timeout = std::chrono::seconds(10);
    const auto client = make_client(std::move(options));
    const auto adoptions = Admin(client).adopt();
    if (!adoptions) throw failure(adoptions.error());
    for (const auto& node : *adoptions) {
      if (node.adoption == Adoption::written || node.adoption == Adoption::already_there) continue;
      throw Exit(exit_internal, fmt::format("could not adopt {}: {}", node.node, node.detail));
    }
  }

  std::size_t nodes_ = 5;
  std::string persistence_ = "always";
};

const char* to_string(NodeState state) {
  switch (state) {
    case NodeState::running:
      return "running";
    case NodeState::paused:
      return "paused";
    case NodeState::ended:
      break;
  }
  return "ended";
}

class FleetStatus : public FleetCommand {
 public:
  FleetStatus(CLI::App& app, const Invocation& invocation) : FleetCommand(app, invocation) {
    add_format_option(app, format_);
  }

  int run() {
    const auto fleet = open();
    print(format_ == Format::json ? as_json(fleet) : as_table(fleet));
    return exit_ok;
  }

 private:
  // The password that an address may have is for the export line only.
  static std::string address(const Fleet& fleet, std::size_t node) {
    return fmt::format("redis://127.0.0.1:{}", fleet.port(node));
  }

  static std::string pid(const Fleet& fleet, std::size_t node) {
    return fleet.state(node) == NodeState::ended ? "-" : std::to_string(fleet.pid(node));
  }

  [[nodiscard]] std::string as_table(const Fleet& fleet) const {
    std::vector<std::vector<std::string>> rows{{"NODE", "ADDRESS", "STATE", "PROCESS"}};
    for (std::size_t i = 0; i < fleet.size(); ++i) {
      rows.push_back(
          {std::to_string(i + 1), address(fleet, i), to_string(fleet.state(i)), pid(fleet, i)});
    }
    return table(rows) + "\n" + export_line(fleet);
  }

  [[nodiscard]] std::string as_json(const Fleet& fleet) const {
    Json nodes = Json::array();
    for (std::size_t i = 0; i < fleet.size(); ++i) {
      const bool ended = fleet.state(i) == NodeState::ended;
      nodes.push_back({{"node", i + 1},
                       {"address", address(fleet, i)},
                       {"state", to_string(fleet.state(i))},
                       {"pid", ended ? Json(nullptr) : Json(fleet.pid(i))}});
    }
    return to_text({{"directory", directory().string()}, {"nodes", nodes}});
  }

  Format format_ = Format::table;
};

/// An action on one node.
class OnNode : public FleetCommand {
 public:
  OnNode(CLI::App& app, const Invocation& invocation) : FleetCommand(app, invocation) {
    app.add_option("I", number_, "Which node, from 1")->required()->check(CLI::PositiveNumber);
  }

 protected:
  /// The node's place, counted from 0.
  [[nodiscard]] std::size_t index_in(const Fleet& fleet) const {
    if (number_ >= 1 && number_ <= fleet.size()) return number_ - 1;
    throw Exit(exit_usage, fmt::format("there is no node {}; the fleet has nodes 1 to {}", number_,
                                       fleet.size()));
  }

 private:
  std::size_t number_ = 0;
};

class Kill : public OnNode {
 public:
  using OnNode::OnNode;
  int run() {
    auto fleet = open();
    fleet.kill(index_in(fleet));
    return exit_ok;
  }
};

class Pause : public OnNode {
 public:
  using OnNode::OnNode;
  int run() {
    auto fleet = open();
    fleet.pause(index_in(fleet));
    return exit_ok;
  }
};

class Resume : public OnNode {
 public:
  using OnNode::OnNode;
  int run() {
    auto fleet = open();
    fleet.resume(index_in(fleet));
    return exit_ok;
  }
};

class Restart : public OnNode {
 public:
  Restart(CLI::App& app, const Invocation& invocation) : OnNode(app, invocation) {
    app.add_flag("--empty", empty_, "Without its data, as a node that was wiped");
  }
  int run() {
    auto fleet = open();
    fleet.restart(index_in(fleet), empty_ ? cluster::Data::empty : cluster::Data::kept);
    return exit_ok;
  }

 private:
  bool empty_ = false;
};

class Down : public FleetCommand {
 public:
  using FleetCommand::FleetCommand;
  int run() {
    if (!Fleet::down(directory())) {
      say("no fleet is recorded in " + directory().string() + "; nothing to do");
    }
    return exit_ok;
  }
};

}  // namespace

void add_fleet(CLI::App& app, Invocation& invocation) {
  auto& fleet = add_subcommand(app, {"fleet", "Run lock nodes on this machine, without Docker",
                                     "redlock fleet ACTION [OPTIONS]", fleet_footer});
  fleet.require_subcommand(1);
  const auto add = [&]<typename Action>(std::type_identity<Action> /*action*/,
                                        const std::string& name, const std::string& arguments,
                                        const std::string& description) {
    add_command<Action>(
        fleet, invocation,
        {name, description, "redlock fleet " + name + arguments + " [OPTIONS]", fleet_footer});
  };
  add(std::type_identity<Up>{}, "up", "", "Start nodes, adopt them, print their export line");
  add(std::type_identity<FleetStatus>{}, "status", "", "Show the nodes of the fleet");
  add(std::type_identity<Kill>{}, "kill", " I", "End a node as a crash would (SIGKILL)");
  add(std::type_identity<Pause>{}, "pause", " I", "Let a node hang (SIGSTOP)");
  add(std::type_identity<Resume>{}, "resume", " I", "Let a paused node go on");
  add(std::type_identity<Restart>{}, "restart", " I", "Start a node again on its port");
  add(std::type_identity<Down>{}, "down", "", "End all nodes and delete their data");
}

}  // namespace redlock::cli
