// SPDX-License-Identifier: MIT
// Just enough Markdown for our own documents.
#include "repository/document.hpp"

#include <regex>
#include <sstream>

namespace redlock::repository {
namespace {

/// Lines of a console block, each with whether it is typed or printed.
struct ConsoleLine {
  std::string text;
  bool typed = false;
};

std::vector<ConsoleLine> split_console(const Block& block) {
  std::vector<ConsoleLine> result;
  bool continued = false;
  for (const std::string& line : block.lines) {
    const bool prompt = line.starts_with("$ ");
    result.push_back({prompt ? line.substr(2) : line, prompt || continued});
    continued = result.back().typed && line.ends_with('\\');
  }
  return result;
}

std::string quoted_for_regex(const std::string& text) {
  static const std::regex special(R"([.^$|()\[\]{}*+?\\])");
  return std::regex_replace(text, special, R"(\$&)");
}

}  // namespace

std::vector<Block> read_blocks(std::istream& in) {
  static const std::regex fence(R"(^```\s*(\S*).*$)");
  static const std::regex mark(R"(^<!-- not run: (.*\S) -->$)");
  static const std::regex name(R"(^<!-- file: ([\w.-]+) -->$)");
  std::vector<Block> blocks;
  Block next;
  bool inside = false;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::smatch match;
    if (std::regex_match(line, match, fence)) {
      if (inside) {
        blocks.push_back(next);
        next = {};
      } else {
        next.language = match[1];
        next.line = number + 1;
      }
      inside = !inside;
    } else if (inside) {
      next.lines.push_back(line);
    } else if (std::regex_match(line, match, mark)) {
      next.run = false;
      next.reason = match[1];
    } else if (std::regex_match(line, match, name)) {
      next.file = match[1];
    }
  }
  return blocks;
}

std::vector<std::string> commands(const Block& block) {
  std::vector<std::string> result;
  if (block.language == "console") {
    for (const ConsoleLine& line : split_console(block)) {
      if (line.typed) result.push_back(line.text);
    }
  } else {
    result = block.lines;
  }
  std::erase_if(result, [](const std::string& line) { return line.starts_with("./dev test"); });
  return result;
}

std::vector<std::string> expected_output(const Block& block) {
  std::vector<std::string> result;
  if (block.language != "console") return result;
  for (const ConsoleLine& line : split_console(block)) {
    if (!line.typed) result.push_back(line.text);
  }
  return result;
}

std::string missing_output(const std::vector<std::string>& expected, const std::string& output) {
  static const std::regex anything("…");
  std::istringstream in(output);
  std::string line;
  for (const std::string& text : expected) {
    const std::regex pattern(std::regex_replace(quoted_for_regex(text), anything, ".*"));
    bool found = false;
    while (!found && std::getline(in, line)) found = std::regex_match(line, pattern);
    if (!found) return text;
  }
  return {};
}

}  // namespace redlock::repository
