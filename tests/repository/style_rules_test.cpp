// SPDX-License-Identifier: MIT
// Rules of the house that a program can check, each over the whole tree.
#include <algorithm>
#include <doctest/doctest.h>
#include <functional>
#include <map>
#include <regex>
#include <set>

#include "repository/tree.hpp"

namespace redlock::repository {
namespace {

bool is_source(const File& file) {
  static const std::regex endings(
      R"(\.(h|hpp|c|cpp|lua|sh|cmake|yml|go|mjs|py|java|rs|toml)$)"
      R"(|(dev|\.ci/run|CMakeLists\.txt|pom\.xml|go\.mod|requirements\.txt)$)");
  return std::regex_search(file.path, endings);
}

/// The lines, of all files that `which` selects, in which the pattern is found.
std::vector<std::string> search(const std::regex& pattern,
                                const std::function<bool(const File&)>& which) {
  std::vector<std::string> found;
  for (const File& file : files()) {
    if (!which(file)) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      if (std::regex_search(file.lines[i], pattern)) found.push_back(at(file, i));
    }
  }
  return found;
}

std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;  // not inside a UTF-8 sequence
  }));
}

TEST_CASE("every source file names its licence once, at its top") {
  const std::string tag = std::string("SPDX-License") + "-Identifier: MIT";
  std::vector<std::string> wrong;
  for (const File& file : files()) {
    if (!is_source(file)) continue;
    const auto has_tag = [&](const std::string& line) { return line.find(tag) != line.npos; };
    const auto top = file.lines.begin() + std::min<std::ptrdiff_t>(2, std::ssize(file.lines));
    if (std::count_if(file.lines.begin(), file.lines.end(), has_tag) != 1 ||
        std::none_of(file.lines.begin(), top, has_tag)) {
      wrong.push_back(file.path);
    }
  }
  CHECK_MESSAGE(wrong.empty(), join(wrong));
}

TEST_CASE("no line of a source file has more than 100 columns") {
  std::vector<std::string> wrong;
  for (const File& file : files()) {
    if (!is_source(file)) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      if (columns(file.lines[i]) > 100) wrong.push_back(at(file, i));
    }
  }
  CHECK_MESSAGE(wrong.empty(), join(wrong));
}

TEST_CASE("the engine reads no clock") {
  const auto found = search(std::regex(R"(\bnow\(\)|(steady|system|Boot)_?[cC]lock::now)"),
                            [](const File& file) { return file.path.starts_with("src/engine/"); });
  CHECK_MESSAGE(found.empty(), join(found));
}

TEST_CASE("an operator's call waits in NodeQuery, which refuses where nobody would answer") {
  const std::regex wait(R"(#include <(semaphore|future|latch|condition_variable|thread)>)");
  const auto found =
      search(wait, [](const File& file) { return file.path.starts_with("src/admin/"); });
  CHECK_MESSAGE(found.size() == 1, join(found));
  CHECK(found.at(0).starts_with("src/admin/node_query.cpp"));
}

TEST_CASE("a planted bug switches a predicate of rules.hpp, and nothing else") {
  const std::regex use(R"(\bplanted\()");
  const std::string rules = "src/engine/rules.hpp";
  const auto found = search(use, [&](const File& file) {
    return file.path.starts_with("src/") && file.path != rules &&
           !file.path.starts_with("src/engine/planted_bug.");
  });
  CHECK_MESSAGE(found.empty(), join(found));
  // Otherwise they would be spelled in another way by now.
  CHECK_FALSE(search(use, [&](const File& file) { return file.path == rules; }).empty());
}

TEST_CASE("nothing inside the engine includes its facade") {
  const std::regex facade(R"(^\s*#\s*include\s*["<](engine/)?engine\.hpp[">])");
  const auto found = search(facade, [](const File& file) {
    return file.path.starts_with("src/engine/") && file.path != "src/engine/engine.cpp";
  });
  CHECK_MESSAGE(found.empty(), join(found));
  CHECK_FALSE(search(facade, [](const File& file) {
                return file.path == "src/engine/engine.cpp";
              }).empty());
}

TEST_CASE("nothing is left for later in the code") {
  const auto found = search(std::regex("\\b(TO"
                                       "DO|FIX"
                                       "ME|XX"
                                       "X|HA"
                                       "CK)\\b"),
                            is_source);
  CHECK_MESSAGE(found.empty(), join(found));
}

/// Words of people, for what machines receive, record, mark and end. Not "know", "say" or "ask",
/// which a reader of Redis' own documents is used to.
const std::regex personification(R"(\b(hears?|heard|doubt(s|ed)?|farewell|ears)\b)"
                                 R"(|\bgives? (its|their) word\b|\btakes? back its word\b)"
                                 R"(|\bstands? in (a )?line\b)",
                                 std::regex::icase);

TEST_CASE("machines do not hear, doubt or say farewell") {
  const auto found = search(personification, [](const File& file) {
    return (is_source(file) || file.path.ends_with(".md")) &&
           file.path != "tests/repository/style_rules_test.cpp";
  });
  CHECK_MESSAGE(found.empty(), join(found));
}

TEST_CASE("a public function whose Result a program needs is [[nodiscard]]") {
  // What was given back or closed is so whether or not the caller looks at the answer.
  const std::regex result(R"(^\s*(\w+ )*Result<(?!Released>|CloseReport>|T>))");
  const auto found =
      search(result, [](const File& file) { return file.path.starts_with("include/redlock/"); });
  CHECK_MESSAGE(found.empty(), join(found));
}

TEST_CASE("no file names a path of somebody's machine") {
  const auto found = search(std::regex(R"((^|[^\w.*}])/(home|work|root|Users)/)"),
                            [](const File&) { return true; });
  CHECK_MESSAGE(found.empty(), join(found));
}

/// One name, one thing. Names that say what a type is to the class around it. Several classes may
/// have one inside.
const std::set<std::string> generic_names = {"Clock",    "Close",  "Config", "Entry",
                                             "Hash",     "Kind",   "Node",   "Plan",
                                             "Progress", "Reason", "State",  "Step"};

struct TypeDefinition {
  std::string name;
  bool is_nested = false;
};

/// What the line defines, if it begins the definition of a type. The tree is formatted, so what is
/// in a namespace begins in the first column, and what is in a class does not.
std::vector<TypeDefinition> definitions_in(const std::string& line) {
  static const std::regex definition(
      R"(^( *)(?:struct|class|enum class|enum|union) (?:[A-Z_]+ |\[\[\w+\]\] |alignas\(\w+\) )*)"
      R"(([A-Z]\w*)(?: final)?(?: :[^:].*| \{.*|$))");
  // Not `using Why = FenceRefusal::Why;`, which is the same thing by the same name.
  static const std::regex alias(R"(^( *)using ([A-Z]\w*) =(?!.*\b\2;).*)");
  std::smatch match;
  if (std::regex_match(line, match, definition) || std::regex_match(line, match, alias)) {
    return {{match[2], match[1].length() > 0}};
  }
  return {};
}

bool is_judged(const File& file) {
  return starts_with_any(file.path, {"src/", "include/", "cluster/", "tests/support/"});
}

TEST_CASE("no two types share a name") {
  std::map<std::string, std::vector<std::string>> places;
  for (const File& file : cpp_files()) {
    if (!is_judged(file)) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      for (const TypeDefinition& type : definitions_in(file.lines[i])) {
        if (type.is_nested && generic_names.contains(type.name)) continue;
        places[type.name].push_back(at(file, i));
      }
    }
  }
  CHECK(places.size() > 200);
  std::vector<std::string> shared;
  for (const auto& [name, where] : places) {
    if (where.size() == 1) continue;
    shared.insert(shared.end(), where.begin(), where.end());
  }
  CHECK_MESSAGE(shared.empty(), join(shared));
}

}  // namespace
}  // namespace redlock::repository
