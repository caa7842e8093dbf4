// SPDX-License-Identifier: MIT
// What the command says on stderr: sentences for people behind "redlock: ", or (--log json) one
// JSON object a line for programs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/output.hpp"

namespace redlock::cli {

enum class LogFormat { text, json };
enum class LogLevel { debug, info, warning, error };

/// One thing that happened.
struct LogEvent {
  LogLevel level = LogLevel::info;
  std::string name;              ///< "acquired", for programs
  std::string message;           ///< a sentence, which is all that text shows
  Json fields = Json::object();  ///< what belongs to it, for programs
};

/// Adds --log.
void add_log_option(CLI::App& app);

/// Reads --log before everything else is read: of the arguments that are bad one is told as the log
/// has it, too.
void choose_log_format(const std::vector<std::string>& arguments);
[[nodiscard]] LogFormat log_format() noexcept;

/// In text "redlock: MESSAGE". From the thread that runs the command; once log_in_background() was
/// called, from any.
void note(const LogEvent& event);

/// From now on lines are written by a thread of their own, so that a stderr that nobody reads holds
/// up no other: an observer's, or the one that has to kill a command when its lease is over.
void log_in_background();
/// Returns when everything has been written.
void finish_log();

}  // namespace redlock::cli
