// SPDX-License-Identifier: MIT
// One name, one thing: no two types of the project share a name, in whichever namespaces they are.
#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <regex>
#include <set>

#include "repository/tree.hpp"

namespace redlock::repository {
namespace {

/// Names that say what a type is to the class around it. Several classes may have one inside.
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
