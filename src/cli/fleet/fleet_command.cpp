// SPDX-License-Identifier: MIT
#include "cli/fleet/fleet_command.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fmt/core.h>
#include <string_view>

#include "cli/exit_code.hpp"
#include "cli/output.hpp"

namespace redlock::cli {

namespace fs = std::filesystem;
using cluster::Fleet;

namespace {

std::string checked_name(const std::string& name, const char* where) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  if (plain && !name.empty() && name.size() <= 64 && name.front() != '.') return name;
  throw Exit(exit_usage,
             fmt::format(
                 "{} cannot be the name of a fleet: use 1 to 64 letters, digits, '-', '_' and '.', "
                 "and no '.' at the beginning",
                 where));
}

}  // namespace

fs::path fleets_directory() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/') {
    return fs::path(state) / "redlock" / "fleet";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return fs::path(home) / ".local" / "state" / "redlock" / "fleet";
  }
  throw Exit(exit_usage, "HOME is not set; say where with --dir DIR");
}

FleetCommand::FleetCommand(CLI::App& app, const Invocation& /*invocation*/) {
  auto* const name =
      app.add_option("--name", name_, "Which fleet; default $REDLOCK_FLEET, or \"default\"")
          ->option_text("NAME");
  app.add_option("--dir", directory_,
                 "Where the fleet is recorded; default $XDG_STATE_HOME/redlock/fleet/NAME or "
                 "~/.local/state/redlock/fleet/NAME")
      ->option_text("DIR")
      ->excludes(name);
}

fs::path FleetCommand::directory() const {
  return directory_ ? fs::path(*directory_) : fleets_directory() / name();
}

Fleet FleetCommand::open() const {
  return Fleet::open(directory());
}

std::string FleetCommand::option() const {
  if (directory_) return " --dir " + for_shell(*directory_);
  return name_ ? " --name " + *name_ : "";
}

std::string FleetCommand::name() const {
  if (name_) return checked_name(*name_, "--name");
  const char* const variable = std::getenv("REDLOCK_FLEET");
  const bool set = variable != nullptr && *variable != '\0';
  return set ? checked_name(variable, "REDLOCK_FLEET") : "default";
}

std::string export_line(const Fleet& fleet) {
  std::string nodes;
  for (const auto& uri : fleet.uris()) nodes += (nodes.empty() ? "" : ",") + uri;
  return "export REDLOCK_NODES=" + nodes + "\n";
}

}  // namespace redlock::cli
