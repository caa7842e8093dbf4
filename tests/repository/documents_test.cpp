// SPDX-License-Identifier: MIT
// What the documents point to is there: files behind links, steps of ./dev, presets. (Links to
// headings are followed by `./dev docs`.)
#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <set>

#include "repository/tree.hpp"

namespace redlock::repository {
namespace {

namespace fs = std::filesystem;

/// Calls `use` with the first group of every match in every document, and where it stands.
void for_each_match(
    const std::regex& pattern,
    const std::function<void(const File&, std::size_t line_index, const std::string&)>& use) {
  for (const File& file : files()) {
    if (!file.path.ends_with(".md")) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      for (std::sregex_iterator match(line.begin(), line.end(), pattern), end; match != end;
           ++match) {
        use(file, i, (*match)[1]);
      }
    }
  }
}

TEST_CASE("every link in a document leads to a file of the repository") {
  std::vector<std::string> broken;
  for_each_match(std::regex(R"(\]\(([^)#: ]+)(#[^)]*)?\))"),
                 [&](const File& file, std::size_t i, const std::string& target) {
                   const fs::path tree = REDLOCK_SOURCE_DIR;
                   if (!fs::exists(tree / fs::path(file.path).parent_path() / target)) {
                     broken.push_back(at(file, i));
                   }
                 });
  CHECK_MESSAGE(broken.empty(), join(broken));
}

/// Those of a file of the tree, or none if it has no such file.
std::vector<std::string> lines_of(const std::string& path) {
  for (const File& file : files()) {
    if (file.path == path) return file.lines;
  }
  return {};
}
std::string text_of(const std::string& path) {
  return join(lines_of(path));
}

/// What the pattern captures of the paths that match it.
std::set<std::string> in_paths(const std::string& pattern) {
  std::set<std::string> result;
  const std::regex wanted(pattern);
  for (const File& file : files()) {
    std::smatch match;
    if (std::regex_match(file.path, match, wanted)) result.insert(match[1]);
  }
  return result;
}

/// A line for bash, in the tree.
bool succeeds(const std::string& line) {
  return std::system(("cd '" REDLOCK_SOURCE_DIR "' && " + line).c_str()) == 0;
}

/// What is named behind a link in this part of a line, [file](../path), `name`, and is not there.
std::vector<std::string> unresolved(const std::string& cell) {
  static const std::regex part(R"(\]\(\.\./([^)]+)\)|`(\w+)`)");
  std::vector<std::string> missing;
  std::string text;
  for (std::sregex_iterator match(cell.begin(), cell.end(), part), end; match != end; ++match) {
    if ((*match)[1].matched) text = text_of((*match)[1]);
    const std::string name = (*match)[2];
    if (!name.empty() && !std::regex_search(text, std::regex("\\b" + name + "\\b"))) {
      missing.push_back(name);
    }
  }
  return missing;
}

/// What `wanted` captures in the lines of a file below one that begins with `head`, as long as they
/// begin with `body`.
std::vector<std::string> listed_below(const std::string& path, const std::string& head,
                                      const std::string& body, const std::regex& wanted) {
  std::vector<std::string> result;
  bool inside = false;
  for (const std::string& line : lines_of(path)) {
    std::smatch match;
    if (inside && line.starts_with(body) && std::regex_search(line, match, wanted)) {
      result.push_back(match[1]);
    }
    inside = line.starts_with(head) || (inside && line.starts_with(body));
  }
  return result;
}

TEST_CASE("docs/errors.md says of every error, loss and cause what to do") {
  const std::map<std::string, std::string> headers = {
      {"Errc", "error.hpp"}, {"Cause", "error.hpp"}, {"LossReason", "observer.hpp"}};
  for (const auto& entry : headers) {
    const std::string& name = entry.first;
    const auto listed = listed_below("include/redlock/" + entry.second, "enum class " + name + " ",
                                     "  ", std::regex(R"(^  (\w+)( = \d+)?,)"));
    const auto rows =
        listed_below("docs/errors.md", "| `" + name + "` ", "|", std::regex(R"(^\| `(\w+)` \|)"));
    CHECK(listed.size() > 4);
    CHECK_MESSAGE(rows == listed, name, ":\n", join(listed));
  }
}

TEST_CASE("the glossary is sorted, and has every word that ARCHITECTURE.md explains") {
  std::vector<std::string> words;
  for_each_match(std::regex(R"(^\| ([a-z ]+) \|)"),
                 [&](const File& file, std::size_t, const std::string& word) {
                   if (file.path == "docs/glossary.md" && word != "word") words.push_back(word);
                 });
  CHECK(std::is_sorted(words.begin(), words.end()));
  std::size_t explained = 0;
  for_each_match(std::regex(R"((?:: |· )?\*\*([a-z ]+)\*\* \()"),
                 [&](const File& file, std::size_t, const std::string& word) {
                   if (file.path != "ARCHITECTURE.md") return;
                   ++explained;
                   CHECK_MESSAGE(std::count(words.begin(), words.end(), word) == 1, word);
                 });
  CHECK(explained > 10);
}

TEST_CASE("the code and the planted bugs that the tables of docs/safety.md name exist") {
  const std::regex row(R"(\| [^|]+ \| ([^|]+) \| ([^|]+) \|)");
  const std::string in_code = text_of("src/engine/planted_bug.hpp");
  const std::string in_scripts = text_of("tests/simulation/script_bugs.hpp");
  std::vector<std::string> missing;
  std::size_t names = 0;
  for (const std::string& line : lines_of("docs/safety.md")) {
    std::smatch cells;
    if (!std::regex_match(line, cells, row)) continue;
    const std::string code = cells[1];
    const std::string without = cells[2];
    names += static_cast<std::size_t>(std::count(code.begin(), code.end(), '`')) / 2;
    for (const std::string& name : unresolved(code)) missing.push_back(name + " of " + code);
    std::smatch listed;
    if (!std::regex_search(without, listed, std::regex(R"(planted bugs? ((`\w+`(, )?)+))")))
      continue;
    const std::string list = listed[1];
    const std::regex word(R"(\w+)");
    for (std::sregex_iterator bug(list.begin(), list.end(), word), end; bug != end; ++bug) {
      const bool is_known = in_code.find("  " + bug->str() + ",") != in_code.npos ||
                            in_scripts.find("{\"" + bug->str() + "\",") != in_scripts.npos;
      if (!is_known) missing.push_back(bug->str());
    }
  }
  CHECK(names > 20);
  CHECK_MESSAGE(missing.empty(), join(missing));
}

TEST_CASE("every drawing is what its script draws") {
  const auto drawings = in_paths(R"(docs/draw_(\w+)\.sh)");
  CHECK(!drawings.empty());
  for (const std::string& name : drawings) {
    CHECK_MESSAGE(succeeds("bash docs/draw_" + name + ".sh | cmp - docs/" + name + ".svg"), name);
  }
}

TEST_CASE("documents show the figures that were recorded") {
  CHECK(succeeds("bash docs/write_tables.sh --check"));
}

TEST_CASE("what a peer says of itself is text in the documents, and no markup") {
  CHECK(
      succeeds("record=$(mktemp) && printf 'note\\ta\\t<script> & more\\n' >\"$record\" && "
               "bash docs/write_tables.sh --print \"$record\" | "
               "grep -qxF -- '- a: &lt;script> &amp; more'; "
               "found=$?; rm -f \"$record\"; exit $found"));
}

TEST_CASE("each script has a link in docs/protocol.md") {
  const auto scripts = in_paths(R"((src/wire/scripts/\w+\.lua))");
  CHECK(scripts.size() > 10);
  const std::string protocol = text_of("docs/protocol.md");
  for (const std::string& script : scripts) {
    CHECK_MESSAGE(protocol.find("](../" + script + ")") != protocol.npos, script);
  }
}

TEST_CASE("every ./dev step that a document names exists") {
  std::set<std::string> steps;
  for (const std::string& line : lines_of("dev")) {
    std::smatch match;
    if (std::regex_match(line, match, std::regex(R"(cmd_(\w+)\(\) \{)"))) steps.insert(match[1]);
  }
  std::vector<std::string> unknown;
  for_each_match(std::regex(R"(\./dev (\w+))"),
                 [&](const File& file, std::size_t i, const std::string& step) {
                   if (!steps.contains(step)) unknown.push_back(at(file, i));
                 });
  CHECK_MESSAGE(unknown.empty(), join(unknown));
}

TEST_CASE("every page with code or commands is run by a test, but what measures for half an hour") {
  const std::string tests = text_of("tests/repository/CMakeLists.txt");
  const std::regex block("```(c|cpp|console|python|sh)");
  std::vector<std::string> untested;
  for (const std::string& page : in_paths(R"(docs/([\w-]+)\.md)")) {
    const auto is_block = [&](const auto& line) { return std::regex_match(line, block); };
    if (std::ranges::none_of(lines_of("docs/" + page + ".md"), is_block)) continue;
    const std::regex listed("( IN ITEMS .*\\b|document_)" + page + "\\b");
    if (page != "performance" && !std::regex_search(tests, listed)) untested.push_back(page);
  }
  CHECK_MESSAGE(untested.empty(), join(untested));
}

TEST_CASE("each change stands under its version and kind, as Keep a Changelog has them") {
  const std::regex version(R"(## (Unreleased|\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d))");
  const std::regex kind("### (Added|Changed|Deprecated|Removed|Fixed|Security)");
  std::vector<std::string> wrong;
  std::string heading;
  for (const std::string& line : lines_of("CHANGELOG.md")) {
    if (line.starts_with("## ") && !std::regex_match(line, version)) wrong.push_back(line);
    if (line.starts_with("### ") && !std::regex_match(line, kind)) wrong.push_back(line);
    if (line.starts_with("#")) heading = line;
    if (line.starts_with("- ") && !heading.starts_with("### ")) wrong.push_back(line);
  }
  CHECK(heading.starts_with("### "));
  CHECK_MESSAGE(wrong.empty(), join(wrong));
}

TEST_CASE("every example has a line in the README") {
  const std::string readme = text_of("README.md");
  const auto examples = in_paths(R"(examples/(\w+)(\.cpp|/).*)");
  CHECK(examples.size() > 8);
  for (const std::string& example : examples) {
    CHECK_MESSAGE(readme.find("\n| [" + example + "](examples/") != readme.npos, example);
  }
}

TEST_CASE("every option of the build is named in the README") {
  const std::string readme = text_of("README.md");
  std::vector<std::string> options;
  for (const std::string& line : lines_of("CMakeLists.txt")) {
    std::smatch match;
    if (std::regex_search(line, match, std::regex(R"(^\s*option\((\w+))"))) {
      options.push_back(match[1]);
    }
  }
  CHECK(options.size() > 4);
  for (const std::string& option : options) {
    CHECK_MESSAGE(readme.find("`" + option + "`") != readme.npos, option);
  }
}

}  // namespace
}  // namespace redlock::repository
