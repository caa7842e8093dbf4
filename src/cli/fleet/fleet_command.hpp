// SPDX-License-Identifier: MIT
// What the actions of `redlock fleet` share: which fleet is meant, and how its nodes are exported.
#pragma once

#include <CLI/CLI.hpp>
#include <cluster/fleet.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/invocation.hpp"

namespace redlock::cli {

/// The directory that has one of its own for every name. Throws Exit if the environment says none.
[[nodiscard]] std::filesystem::path fleets_directory();

/// An action on one fleet: --name and --dir.
class FleetCommand {
 public:
  FleetCommand(CLI::App& app, const Invocation& invocation);

 protected:
  [[nodiscard]] std::filesystem::path directory() const;
  [[nodiscard]] cluster::Fleet open() const;
  /// How the user says which: " --name NAME" or " --dir DIR", or nothing for the default.
  [[nodiscard]] std::string option() const;

 private:
  [[nodiscard]] std::string name() const;

  std::optional<std::string> name_;
  std::optional<std::string> directory_;
};

/// "export REDLOCK_NODES=..." with the nodes' addresses, on a line.
[[nodiscard]] std::string export_line(const cluster::Fleet& fleet);

/// Adds the action `up`; its help ends with `footer`.
void add_fleet_up(CLI::App& fleet, Invocation& invocation, const std::string& footer);

}  // namespace redlock::cli
