// SPDX-License-Identifier: MIT
// Options that several subcommands share.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <string>

#include <redlock/options.hpp>

#include "cli/duration.hpp"

namespace redlock::cli {

/// The argument NAME, required.
void add_name_option(CLI::App& app, std::string& name);

/// --owner, required.
CLI::Option* add_owner_option(CLI::App& app, std::string& owner);

/// --as: ClientOptions::label.
void add_label_option(CLI::App& app, std::string& label);

/// --ordering: AcquireOptions::ordering; stays empty if it is not given.
void add_ordering_option(CLI::App& app, std::optional<Ordering>& ordering);

/// An option that takes a duration; the value stays empty if it is not given.
CLI::Option* add_duration_option(CLI::App& app, const std::string& option,
                                 std::optional<std::chrono::milliseconds>& value, Zero zero,
                                 Forever endless, const std::string& description);

}  // namespace redlock::cli
