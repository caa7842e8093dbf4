// SPDX-License-Identifier: MIT
// Shared by the actions of `redlock fleet`: which fleet is meant, and how its nodes are exported.
#pragma once

#include <CLI/CLI.hpp>
#include <cluster/fleet.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/invocation.hpp"

namespace redlock::cli {

/// The directory with a subdirectory for every fleet. Throws Exit if the environment names none.
[[nodiscard]] std::filesystem::path fleets_directory();

/// An action on one fleet: --name and --dir.
class FleetCommand {
 public:
  FleetCommand(CLI::App& app, const Invocation& invocation);

 protected:
  [[nodiscard]] std::filesystem::path directory() const;
  [[nodiscard]] cluster::Fleet open() const;
  /// The options that name the fleet: " --name NAME" or " --dir DIR", or nothing for the default.
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
