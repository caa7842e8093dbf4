// SPDX-License-Identifier: MIT
// One look at the nodes, or (--watch) one after the other: on a terminal redrawn in place,
// elsewhere in blocks one after the other, each with its time, or (-o json) one JSON object per
// line.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/output.hpp"

namespace redlock::cli {

/// The findings of a look, and how they are shown.
struct Look {
  std::function<std::string()> text;  ///< for people; made anew when the terminal's width changes
  Json json;
  int status = 0;  ///< of a command that looks once
  /// Each node, and why it could not be asked; empty if it could.
  std::vector<std::pair<std::string, std::string>> nodes;
};

/// The options -o and --watch.
class LookOptions {
 public:
  explicit LookOptions(CLI::App& app);

  /// Prepares, looks and shows the look. Without --watch it does so once: the result is the look's
  /// status. With --watch it goes on until a signal N asks the command to end, and then ends it
  /// here, with 128 + N. Every look is taken on a thread of its own. To be called before there is
  /// another thread: `prepare`, which may make some, is called when signals are blocked.
  int show(const std::function<std::function<Look()>()>& prepare) const;

 private:
  Format format_ = Format::table;
  std::optional<std::chrono::milliseconds> interval_;
};

/// `--watch` has a value only if the next argument begins with a digit; the parser would take a
/// lock's name for the value. Gives the default to a `--watch` without a value.
void complete_watch_option(std::vector<std::string>& arguments);

}  // namespace redlock::cli
