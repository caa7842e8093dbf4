// SPDX-License-Identifier: MIT
// The command's messages on stderr: sentences for people behind "redlock: ", or (--log json) one
// JSON object a line for programs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/output.hpp"

namespace redlock::cli {

enum class LogFormat { text, json };
enum class LogLevel { debug, info, warning, error };

/// One event.
struct LogEvent {
  LogLevel level = LogLevel::info;
  std::string name;              ///< "acquired", for programs
  std::string message;           ///< a sentence, which is all that text shows
  Json fields = Json::object();  ///< the event's fields, for programs
};

/// Adds --log.
void add_log_option(CLI::App& app);

/// Reads --log before everything else is read: an error about bad arguments is written in the log's
/// format, too.
void choose_log_format(const std::vector<std::string>& arguments);
[[nodiscard]] LogFormat log_format() noexcept;

/// In text "redlock: MESSAGE". From the thread that runs the command; once log_in_background() was
/// called, from any.
void note(const LogEvent& event);
/// The same for text that is not a line: it goes to stderr unchanged.
void write_to_stderr(std::string text);

/// From now on a separate thread writes the lines, so that a stderr that nothing reads holds up no
/// other thread: an observer's, or the one that has to kill a command when its lease is over. A
/// thousand lines wait for a stopped reader; later lines are counted, and the number is reported
/// once it reads.
void log_in_background();
/// Returns when everything has been written, or after a second: what a reader has not taken by then
/// it may never take.
void finish_log();

}  // namespace redlock::cli
