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

#include "cli/screen.hpp"

namespace redlock::cli {

using Json = nlohmann::ordered_json;

enum class Format { table, json, csv };
enum class WithCsv { no, yes };

/// Adds -o.
void add_format_option(CLI::App& app, Format& format, WithCsv with_csv = WithCsv::no);

using Rows = std::vector<std::vector<std::string>>;

/// The width of text for people: the terminal's width (or $COLUMNS), 80 at least.
[[nodiscard]] std::size_t columns();

/// Columns as wide as their widest cell, two spaces between them. The first row is the header.
/// Where that is wider than columns(): the last column, if it has no title (words on the row), goes
/// into lines of its own behind the table; then the columns of these titles are left out, the first
/// of them first, as many as need be; then the longest cells are shortened.
/// `paint` gives each cell, by its column's title, a colour.
[[nodiscard]] std::string table(Rows rows, const std::vector<std::string_view>& expendable = {},
                                Colour (*paint)(std::string_view title,
                                                std::string_view cell) = nullptr);

/// In colour, if stdout is to show any.
[[nodiscard]] std::string painted(Colour colour, const std::string& text);

/// Cut in the middle to this many columns, with "…" in its place: both ends of a node's URI tell it
/// from the others.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t width);

/// Why a node could not be asked: in words, or the kind of reason. Empty if it could.
[[nodiscard]] std::string words_of(const NodeTrouble& trouble);

/// {node, answered, cause, detail}, which every report on all nodes says of each; and `more`.
[[nodiscard]] Json node_as_json(const NodeReport& node, const Json& more = Json::object());

/// The first columns of a line, with "…" for what is missing. Colours in it take no room.
[[nodiscard]] std::string clipped(const std::string& text, std::size_t width);

/// The words in lines of this width, all but the first indented; a longer word stays whole.
[[nodiscard]] std::string wrapped(const std::string& text, std::size_t width, std::size_t indent);

/// Two spaces of indent, a final newline. ASCII: other characters are \uXXXX, and U+FFFD stands for
/// bytes that are not UTF-8.
[[nodiscard]] std::string to_text(const Json& json);

/// On one line, for JSON Lines.
[[nodiscard]] std::string to_line(const Json& json);

/// The text with control and invisible characters (characters.hpp), and bytes that are not UTF-8,
/// as \xNN: a name may be any bytes, and must neither steer a terminal nor look like another name.
[[nodiscard]] std::string printable(std::string_view text);

/// As a shell reads it back: in quotes, if it needs them.
[[nodiscard]] std::string for_shell(const std::string& word);

/// A number of milliseconds, null for none.
[[nodiscard]] Json milliseconds_or_null(const std::optional<std::chrono::milliseconds>& duration);

/// {why, votes_in_s}, null for none.
[[nodiscard]] Json quarantine_as_json(const std::optional<NodeQuarantine>& quarantine);

/// To stdout, at once. Throws Exit if the text cannot be written: stdout is closed, the disk is
/// full, the pipe has no reader.
void print(std::string_view text);

/// To stderr, behind "redlock: ", or as a "note" of the log (event_log.hpp).
void say(std::string_view sentence);

}  // namespace redlock::cli
