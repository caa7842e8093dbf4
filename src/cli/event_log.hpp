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
/// The same for what is no line: it goes to stderr as it is.
void write_to_stderr(std::string text);

/// From now on lines are written by a thread of their own, so that a stderr that nobody reads holds
/// up no other: an observer's, or the one that has to kill a command when its lease is over. Such a
/// reader is sent a thousand lines; later ones are counted, and the number is said once it reads.
void log_in_background();
/// Returns when everything has been written, or after a second: what a reader has not taken by then
/// it may never take.
void finish_log();

}  // namespace redlock::cli
