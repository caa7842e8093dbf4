// SPDX-License-Identifier: MIT
#include "cli/event_log.hpp"

#include <chrono>
#include <cstddef>
#include <fmt/core.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "cli/line_queue.hpp"
#include "cli/timestamp.hpp"

namespace redlock::cli {
namespace {

LogFormat chosen_format = LogFormat::text;

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      break;
  }
  return "error";
}

std::string line_of(const LogEvent& event) {
  if (chosen_format == LogFormat::text) {
    const auto colour = event.level == LogLevel::error ? Colour::red : Colour::none;
    return fmt::format("{} {}\n", painted(colour, "redlock:", STDERR_FILENO),
                       printable(event.message));
  }
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  Json line{{"time", iso_8601(now)}, {"level", name_of(event.level)}, {"event", event.name}};
  line.update(event.fields);
  line["message"] = event.message;
  return to_line(line);
}

std::string count_line(std::size_t count) {
  return line_of({LogLevel::warning,
                  "dropped",
                  fmt::format("{} events were dropped, because nothing read stderr", count),
                  {{"count", count}}});
}

// Never destroyed, because its thread ends with the process.
LineQueue* line_queue = nullptr;

// A live reader takes all lines in far less time.
constexpr std::chrono::seconds patience{1};

}  // namespace

void add_log_option(CLI::App& app) {
  // choose_log_format() has read it.
  app.add_option_function<std::string>(
         "--log", [](const std::string& /*text*/) {},
         "Format of the messages on stderr: text (default), or json: one object per line with "
         "time, level, "
         "event, the event's own fields, and message")
      ->check(CLI::IsMember({"text", "json"}))
      ->option_text("text|json");
}

void choose_log_format(const std::vector<std::string>& arguments) {
  for (std::size_t i = 1; i < arguments.size() && arguments[i] != "--"; ++i) {
    const bool apart = arguments[i] == "--log" && i + 1 < arguments.size();
    const auto& value = apart ? arguments[i + 1] : arguments[i];
    if (value == (apart ? "json" : "--log=json")) chosen_format = LogFormat::json;
  }
}

LogFormat log_format() noexcept {
  return chosen_format;
}

void note(const LogEvent& event) {
  write_to_stderr(line_of(event));
}

void write_to_stderr(std::string text) {
  if (line_queue != nullptr) return line_queue->push(std::move(text));
  write_whole(STDERR_FILENO, text);
}

void log_in_background() {
  if (line_queue != nullptr) return;
  try {
    line_queue = new LineQueue(STDERR_FILENO, count_line);
  } catch (const std::system_error&) {
    // No thread is left: lines are written where they are made.
  }
}

void finish_log() {
  if (line_queue != nullptr) line_queue->drain(patience);
}

}  // namespace redlock::cli
