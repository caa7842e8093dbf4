// SPDX-License-Identifier: MIT
#include "cli/output.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fmt/core.h>
#include <map>
#include <system_error>

#include "cli/exit_code.hpp"

namespace redlock::cli {
namespace {

// Code points: near enough to columns for what stands in these tables.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

}  // namespace

void add_format_option(CLI::App& app, Format& format) {
  static const std::map<std::string, Format> formats{{"table", Format::table},
                                                     {"json", Format::json}};
  app.add_option_function<std::string>(
         "-o,--output",
         [&format](const std::string& text) {
           const auto found = formats.find(text);
           if (found == formats.end()) {
             throw CLI::ValidationError("-o", fmt::format("'{}' is not table or json", text));
           }
           format = found->second;
         },
         "How to print: table (default) or json")
      ->option_text("table|json");
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(widths[i] - width(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string to_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result;
}

Json milliseconds_or_null(const std::optional<std::chrono::milliseconds>& duration) {
  return duration ? Json(duration->count()) : Json(nullptr);
}

Json quarantine_as_json(const std::optional<NodeQuarantine>& quarantine) {
  if (!quarantine) return nullptr;
  return {{"why", quarantine->why}, {"votes_in_s", quarantine->votes_in.count()}};
}

void print(std::string_view text) {
  // A pipe without a reader is to be told of, too, and not to end the command here and now.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  struct sigaction before {};
  ::sigaction(SIGPIPE, &ignore, &before);
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  const int why = errno;
  ::sigaction(SIGPIPE, &before, nullptr);
  if (written) return;
  throw Exit(exit_internal,
             fmt::format("cannot write to stdout: {}", std::generic_category().message(why)));
}

void say(std::string_view sentence) {
  // One write, so that lines of several commands on one terminal do not mix.
  const auto line = fmt::format("redlock: {}\n", printable(sentence));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace redlock::cli
