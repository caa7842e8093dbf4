// SPDX-License-Identifier: MIT
// Subcommands that are programs of their own, found beside `redlock`: `redlock fleet` is
// redlock-fleet. So a process that only locks has neither a test fleet nor a load generator in it.
#pragma once

#include <array>

namespace redlock::cli {

struct ExternalCommand {
  const char* name;
  const char* description;
};

inline constexpr ExternalCommand bench_command{
    "bench", "Measure locks on these nodes, in health and with faults"};
inline constexpr ExternalCommand fleet_command{"fleet",
                                               "Run lock nodes on this machine, without Docker"};
inline constexpr std::array external_commands{bench_command, fleet_command};

/// By this option such a program prints its part of the command tree (command_tree.hpp).
inline constexpr const char* describe_option = "--describe";

}  // namespace redlock::cli
