// SPDX-License-Identifier: MIT
#include "cli/output.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <map>
#include <numeric>
#include <sys/ioctl.h>
#include <system_error>
#include <unistd.h>

#include "cli/event_log.hpp"
#include "cli/exit_code.hpp"
#include "text/characters.hpp"

namespace redlock::cli {
namespace {

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

// Counts code points, which are near enough to columns for the text of these tables.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string first_columns(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    if (begins_character(text[end]) && width-- == 0) break;
  }
  return std::string(text.substr(0, end));
}

std::string last_columns(std::string_view text, std::size_t width) {
  const auto all = width_of(text);
  return std::string(text.substr(first_columns(text, all - std::min(all, width)).size()));
}

std::vector<std::size_t> widths_of(const Rows& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  return widths;
}

std::size_t width_of(const Rows& rows) {
  const auto widths = widths_of(rows);
  return std::accumulate(widths.begin(), widths.end(), 2 * (widths.size() - 1));
}

// Removes the last column. Its cells become lines of their own, each after its row's first cell.
std::string take_notes(Rows& rows, std::size_t limit) {
  const auto column = rows.front().size() - 1;
  std::string notes;
  for (auto& row : rows) {
    if (row.size() <= column) continue;
    if (!row[column].empty()) {
      notes += wrapped(shortened(row.front(), limit / 2) + ": " + row[column], limit, 2);
    }
    row.pop_back();
  }
  return notes;
}

void take_column(Rows& rows, std::string_view title) {
  const auto& header = rows.front();
  const auto at = std::find(header.begin(), header.end(), title) - header.begin();
  if (at == static_cast<std::ptrdiff_t>(header.size())) return;
  for (auto& row : rows) {
    if (static_cast<std::ptrdiff_t>(row.size()) > at) row.erase(row.begin() + at);
  }
}

// The widest column as long as need be; none below what a title or a number takes.
void shorten(Rows& rows, std::size_t limit) {
  constexpr std::size_t least = 12;
  auto total = width_of(rows);
  auto widths = widths_of(rows);
  while (total > limit) {
    auto& widest = *std::max_element(widths.begin(), widths.end());
    if (widest <= least) break;
    --widest;
    --total;
  }
  for (auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = shortened(row[i], widths[i]);
  }
}

}  // namespace

void add_format_option(CLI::App& app, Format& format, WithCsv with_csv) {
  std::map<std::string, Format> formats{{"table", Format::table}, {"json", Format::json}};
  if (with_csv == WithCsv::yes) formats.emplace("csv", Format::csv);
  const std::string known = with_csv == WithCsv::yes ? "table, json or csv" : "table or json";
  app.add_option_function<std::string>(
         "-o,--output",
         [&format, formats, known](const std::string& text) {
           const auto found = formats.find(text);
           if (found == formats.end()) {
             throw CLI::ValidationError("-o", fmt::format("'{}' is not {}", text, known));
           }
           format = found->second;
         },
         with_csv == WithCsv::yes ? "Output format: table (default), json, or csv (the times alone)"
                                  : "Output format: table (default) or json")
      ->option_text(with_csv == WithCsv::yes ? "table|json|csv" : "table|json");
}

std::size_t columns() {
  winsize size{};
  std::size_t found = 0;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) found = size.ws_col;
  if (const char* const variable = std::getenv("COLUMNS"); variable != nullptr) {
    const std::string_view text = variable;
    std::from_chars(text.data(), text.data() + text.size(), found);
  }
  return std::clamp<std::size_t>(found, 80, 1000);
}

std::string shortened(const std::string& text, std::size_t width) {
  if (width_of(text) <= width) return text;
  const std::size_t front = (width - 1) / 2;
  return first_columns(text, front) + "…" + last_columns(text, width - 1 - front);
}

std::string words_of(const NodeTrouble& trouble) {
  if (trouble.cause == Cause::none) return "";
  return trouble.detail.empty() ? to_string(trouble.cause) : trouble.detail;
}

Json node_as_json(const NodeReport& node, const Json& more) {
  Json json{{"node", node.node},
            {"answered", node.answered()},
            {"cause", node.answered() ? Json(nullptr) : Json(to_string(node.trouble.cause))},
            {"detail", node.trouble.detail}};
  json.update(more);
  return json;
}

std::string clipped(const std::string& text, std::size_t width) {
  std::string result;
  std::size_t end = 0;  // of what fits if "…" has to follow
  std::size_t used = 0;
  bool is_sequence = false;
  bool is_coloured = false;
  for (const char c : text) {
    const bool continues = (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
    if (c == '\x1b') is_sequence = is_coloured = true;
    if (!is_sequence && !continues && ++used == width) end = result.size();
    if (used > width) return result.substr(0, end) + "…" + (is_coloured ? "\x1b[0m" : "");
    result += c;
    if (c == 'm') is_sequence = false;
  }
  return result;
}

std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  std::string result;
  std::string line;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto word = std::min(text.find_first_not_of(' ', begin), text.size());
    const auto end = std::min(text.find(' ', word), text.size());
    const auto blanks_and_word = std::string_view(text).substr(begin, end - begin);
    if (line.empty() || width_of(line) + width_of(blanks_and_word) <= width) {
      line += blanks_and_word;
    } else {
      result += line + "\n";
      line = std::string(indent, ' ') + text.substr(word, end - word);
    }
    begin = end;
  }
  return result + line + "\n";
}

std::string painted(Colour colour, const std::string& text) {
  return painted(colour, text, STDOUT_FILENO);
}

std::string table(Rows rows, const std::vector<std::string_view>& expendable,
                  Colour (*paint)(std::string_view title, std::string_view cell)) {
  const auto limit = columns();
  std::string notes;
  if (rows.front().back().empty() && width_of(rows) > limit) notes = take_notes(rows, limit);
  for (const auto title : expendable) {
    if (width_of(rows) <= limit) break;
    take_column(rows, title);
  }
  shorten(rows, limit);
  const auto widths = widths_of(rows);
  const auto colour_of = [&](const std::vector<std::string>& row, std::size_t i) {
    const bool is_header = &row == &rows.front();
    return paint == nullptr || is_header ? Colour::none : paint(rows.front()[i], row[i]);
  };
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += painted(colour_of(row, i), row[i]);
      line.append(widths[i] - width_of(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text + notes;
}

std::string to_text(const Json& json) {
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

std::string to_line(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

std::string printable(std::string_view text) {
  return text::visible(text);
}

std::string for_shell(const std::string& word) {
  const bool plain = std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-_./").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !word.empty()) return word;
  std::string result = "'";
  for (const char c : word) c == '\'' ? result += "'\\''" : result += c;
  return result + '\'';
}

Json milliseconds_or_null(const std::optional<std::chrono::milliseconds>& duration) {
  return duration ? Json(duration->count()) : Json(nullptr);
}

Json quarantine_as_json(const std::optional<NodeQuarantine>& quarantine) {
  if (!quarantine) return nullptr;
  return {{"why", quarantine->why}, {"votes_in_s", quarantine->votes_in.count()}};
}

void print(std::string_view text) {
  // A pipe without a reader is an error to report; SIGPIPE would end the command here.
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
  note({LogLevel::info, "note", std::string(sentence)});
}

}  // namespace redlock::cli
