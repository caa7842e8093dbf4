// SPDX-License-Identifier: MIT
// redlock fleet: lock nodes on this machine without Docker, for trying things out and for tests.
// They are recorded in a directory and outlive the command.
#include <cluster/fleet.hpp>
#include <filesystem>
#include <fmt/core.h>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include "cli/exit_code.hpp"
#include "cli/fleet/fleet_command.hpp"
#include "cli/invocation.hpp"
#include "cli/output.hpp"
#include "cli/program.hpp"
#include "cluster/fleet_error.hpp"

namespace redlock::cli {
namespace {

namespace fs = std::filesystem;
using cluster::Fleet;
using cluster::NodeState;

constexpr auto* fleet_footer = R"help(
Nodes are numbered from 1. They are redis-server processes on ports of the loopback interface, and
keep running until `fleet down`. `fleet up` prints the line that sets REDLOCK_NODES; if the fleet
runs already, it prints the same line again and says so on stderr, and which nodes do not run. A
fleet without a running node is replaced by a new one, and its data is deleted.

`fleet add` starts one more node, empty, with the persistence of the others, and prints its address.
`redlock set add` or `redlock set replace` makes it a member of the set. `fleet up` and `fleet env`
print all nodes of the fleet: with members replaced or removed, take those of `redlock set show`.

Fleets have names, so that several can run side by side: --name, or REDLOCK_FLEET, or "default".

Examples:
  eval "$(redlock fleet up)"        five nodes, and REDLOCK_NODES set for the commands that follow
  eval "$(redlock fleet env)"       the same for another terminal, when the nodes run already
  redlock fleet up --name other -n 3 --port 7001
  redlock fleet list
  redlock fleet status
  redlock fleet pause 2             hung: it accepts connections and answers nobody (SIGSTOP)
  redlock fleet kill 3              crashed (SIGKILL)
  redlock exec demo -- echo "still works"
  redlock fleet resume 2
  redlock fleet restart 3 --empty   back without its data: it votes again in about a minute, or
                                    after `redlock adopt --replaced NODE`, if no lease lives
  redlock set add "$(redlock fleet add)"
                                    one node more, and one member more
  redlock fleet down

Exit status: 64 usage, also for options that a running fleet does not have; 125 if it cannot be
done; the sentence says why.)help";

class Env : public FleetCommand {
 public:
  using FleetCommand::FleetCommand;
  int run() {
    print(export_line(open()));
    return exit_ok;
  }
};

class FleetList {
 public:
  FleetList(CLI::App& app, const Invocation& /*invocation*/) { add_format_option(app, format_); }

  int run() {
    Rows rows{{"NAME", "NODES", "RUNNING", "DIRECTORY"}};
    Json list = Json::array();
    for (const auto& [name, place] : recorded()) {
      try {
        add(rows, list, name, place);
      } catch (const cluster::FleetError& error) {
        // Damaged, or ended in this moment: no reason to be silent about the others.
        say(error.what());
      }
    }
    print(format_ == Format::json ? to_text({{"fleets", list}}) : table(rows));
    return exit_ok;
  }

 private:
  static void add(Rows& rows, Json& list, const std::string& name, const fs::path& place) {
    const auto fleet = Fleet::open(place);
    std::size_t running = 0;
    for (std::size_t i = 0; i < fleet.size(); ++i) {
      running += fleet.state(i) == NodeState::running ? 1 : 0;
    }
    rows.push_back({printable(name), std::to_string(fleet.size()), std::to_string(running),
                    printable(place.string())});
    list.push_back({{"name", name},
                    {"nodes", fleet.size()},
                    {"running", running},
                    {"directory", place.string()}});
  }

  static std::map<std::string, fs::path> recorded() {
    std::map<std::string, fs::path> found;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(fleets_directory(), none)) {
      if (!fs::exists(entry.path() / "fleet", none)) continue;
      found.emplace(entry.path().filename().string(), entry.path());
    }
    return found;
  }

  Format format_ = Format::table;
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
    app.add_flag("--empty", empty_, "Start it without its data, as a node that was wiped");
  }
  int run() {
    auto fleet = open();
    fleet.restart(index_in(fleet), empty_ ? cluster::Data::empty : cluster::Data::kept);
    return exit_ok;
  }

 private:
  bool empty_ = false;
};

class Add : public FleetCommand {
 public:
  using FleetCommand::FleetCommand;
  int run() {
    auto fleet = open();
    print(fleet.uri(fleet.add()) + "\n");
    return exit_ok;
  }
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

void add_fleet(CLI::App& app, Invocation& invocation) {
  auto& fleet = add_subcommand(app, {fleet_command.name, fleet_command.description,
                                     "redlock fleet ACTION [OPTIONS]", fleet_footer});
  fleet.require_subcommand(1);
  const auto add = [&]<typename Action>(std::type_identity<Action> /*action*/,
                                        const std::string& name, const std::string& arguments,
                                        const std::string& description) {
    add_command<Action>(
        fleet, invocation,
        {name, description, "redlock fleet " + name + arguments + " [OPTIONS]", fleet_footer});
  };
  add_fleet_up(fleet, invocation, fleet_footer);
  add(std::type_identity<Env>{}, "env", "", "Print the export line of a fleet that was started");
  add(std::type_identity<FleetList>{}, "list", "", "Show the fleets of this user, by name");
  add(std::type_identity<FleetStatus>{}, "status", "", "Show the nodes of the fleet");
  add(std::type_identity<Kill>{}, "kill", " I", "End a node as a crash would (SIGKILL)");
  add(std::type_identity<Pause>{}, "pause", " I", "Let a node hang (SIGSTOP)");
  add(std::type_identity<Resume>{}, "resume", " I", "Let a paused node go on");
  add(std::type_identity<Restart>{}, "restart", " I", "Start a node again on its port");
  add(std::type_identity<Add>{}, "add", "", "Start one more node, empty; print its address");
  add(std::type_identity<Down>{}, "down", "", "End all nodes and delete their data");
}

}  // namespace
}  // namespace redlock::cli

int main(int argc, char** argv) {
  using namespace redlock::cli;
  return external_main(fleet_command, &add_fleet, argc, argv);
}
