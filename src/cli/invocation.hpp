// SPDX-License-Identifier: MIT
// The input and the result of every subcommand. Each subcommand has a file of its own, which adds
// its options to the parser and sets what to run when the subcommand is chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace redlock::cli {

struct Invocation {
  /// The words behind `--`; none if there is no `--`.
  std::optional<std::vector<std::string>> command;
  /// REDLOCK_NODES as it was before its passwords were overwritten.
  std::string nodes_variable;
  /// Set by the subcommand that was parsed; its result is the exit status.
  std::function<int()> run;
};

/// How a subcommand presents itself. The footer ends its help: explanations and examples.
struct Presentation {
  std::string name;
  std::string description;
  std::string usage;
  std::string footer;
};

/// A raw string literal without the line break that it begins with.
[[nodiscard]] std::string text_of(const std::string& literal);

CLI::App& add_subcommand(CLI::App& app, const Presentation& presentation);

/// Adds a subcommand made of a class: its constructor adds options to the parser, run() does the
/// work. A subcommand that is not chosen is never run.
template <typename Command>
void add_command(CLI::App& app, Invocation& invocation, const Presentation& presentation) {
  auto& subcommand = add_subcommand(app, presentation);
  const auto command = std::make_shared<Command>(subcommand, invocation);
  subcommand.callback(
      [&invocation, command] { invocation.run = [command] { return command->run(); }; });
}

}  // namespace redlock::cli
