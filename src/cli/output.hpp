// SPDX-License-Identifier: MIT
// How results are shown: a table for people, JSON for programs.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <redlock/admin.hpp>

namespace redlock::cli {

using Json = nlohmann::ordered_json;

enum class Format { table, json };

/// Adds -o.
void add_format_option(CLI::App& app, Format& format);

/// Columns as wide as their widest cell, two spaces between them. The first row is the header.
[[nodiscard]] std::string table(const std::vector<std::vector<std::string>>& rows);

/// Two spaces of indent, a final newline. Bytes that are not UTF-8 are replaced.
[[nodiscard]] std::string to_text(const Json& json);

/// The text with control characters as \xNN: a name is any bytes, and must not steer a terminal.
[[nodiscard]] std::string printable(std::string_view text);

/// A number of milliseconds, null for none.
[[nodiscard]] Json milliseconds_or_null(const std::optional<std::chrono::milliseconds>& duration);

/// {why, votes_in_s}, null for none.
[[nodiscard]] Json quarantine_as_json(const std::optional<NodeQuarantine>& quarantine);

/// To stdout, at once. Throws Exit if nobody takes it: stdout is closed, the disk is full, the pipe
/// has no reader.
void print(std::string_view text);

/// To stderr, behind "redlock: ".
void say(std::string_view sentence);

}  // namespace redlock::cli
