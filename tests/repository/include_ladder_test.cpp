// SPDX-License-Identifier: MIT
// Includes point only down the ladder client -> net -> wire -> engine -> include, hiredis is known
// to wire and libuv to net alone, and the fleet stands apart. One row of the table below for each
// part of the tree.
#include <algorithm>
#include <doctest/doctest.h>
#include <optional>
#include <regex>

#include "repository/tree.hpp"

namespace redlock::repository {
namespace {

/// What the files under `folder` may include beyond the standard and the system's own headers, by
/// the beginning of the name.
struct Rule {
  std::string folder;
  std::vector<std::string> allowed;
  bool only_std = false;  // not even the system's
};

// The first row that matches a file is its rule.
const std::vector<Rule> ladder = {
    {"include/redlock/fenced_redis_hiredis.hpp", {"redlock/", "tl/expected.hpp", "hiredis/"}, true},
    {"include/redlock/asio.hpp", {"redlock/", "tl/expected.hpp", "asio/", "boost/asio/"}, true},
    {"include/redlock/", {"redlock/", "tl/expected.hpp"}, true},
    {"src/text/", {"text/"}, true},
    {"src/engine/", {"engine/", "redlock/", "tl/expected.hpp"}, true},
    {"src/wire/", {"wire/", "engine/", "text/", "redlock/", "tl/", "hiredis/"}},
    {"src/tls/openssl/", {"tls/", "redlock/", "tl/", "openssl/"}},
    {"src/tls/", {"tls/", "redlock/", "tl/"}},
    {"src/net/", {"net/", "tls/", "wire/", "engine/", "redlock/", "tl/", "uv.h"}},
    {"src/client/", {"text/", "client/", "net/", "tls/", "wire/", "engine/", "redlock/", "tl/"}},
    {"src/admin/", {"admin/", "client/", "net/", "wire/", "engine/", "redlock/", "tl/"}},
    {"src/fencing/", {"client/", "net/", "wire/", "engine/", "redlock/", "tl/"}},
    {"src/metrics/", {"metrics/", "redlock/", "tl/"}},
    {"src/c/", {"text/", "c/", "redlock/", "tl/"}},
    {"src/cli/bench/", {"cli/bench/", "cli/", "cluster/", "redlock/", "CLI/", "fmt/"}},
    {"src/cli/fleet/", {"cli/fleet/", "cli/", "cluster/", "redlock/", "CLI/", "fmt/"}},
    {"src/cli/", {"text/", "cli/", "redlock/", "tl/", "CLI/", "nlohmann/", "fmt/"}},
    {"cluster/certificate_authority.cpp", {"cluster/", "fmt/", "openssl/"}},
    {"cluster/", {"cluster/", "fmt/"}},
    {"examples/asio_service.cpp", {"redlock/", "asio.hpp", "asio/"}},
    {"examples/fenced_sqlite/", {"redlock/", "fmt/", "sqlite3.h"}},
    {"examples/fenced_postgres/", {"redlock/", "fmt/", "libpq-fe.h"}},
    {"examples/own_loop/", {"redlock/", "uv.h"}},
    {"examples/metrics_http.cpp", {"redlock/", "httplib.h"}},
    {"examples/", {"redlock/", "cluster/", "fmt/"}},
    {"bench/memory_nodes.hpp", {"wire/", "engine/", "support/", "redlock/"}},
    {"bench/micro.cpp", {"bench/", "support/", "wire/", "engine/", "benchmark/"}},
    {"bench/",
     {"redlock/", "cluster/", "fmt/", "benchmark/", "bench/", "support/", "hiredis/", "nlohmann/",
      "sw/", "CLI/"}},
    {"tests/consumer/", {"redlock/"}},
    {"tests/fuzz/options.cpp", {"fuzz/", "client/options_check.hpp", "redlock/", "doctest/"}},
    {"tests/fuzz/", {"fuzz/", "wire/", "redlock/", "doctest/"}},
    {"tests/net/", {"net/loop_seat.hpp", "doctest/"}},
    {"tests/tls/", {"tls/", "cluster/", "support/", "redlock/", "doctest/", "openssl/"}},
    {"tests/engine/",
     {"engine/", "support/failing_new.hpp", "redlock/", "tl/", "doctest/", "fmt/"}},
    {"tests/text/", {"text/", "doctest/"}},
    {"tests/wire/", {"wire/", "engine/", "support/", "redlock/", "tl/", "doctest/", "fmt/"}},
    {"tests/simulation/interpreter.cpp", {"wire/", "simulation/", "lua.hpp"}},
    {"tests/simulation/sha1.cpp", {"simulation/", "openssl/", "fmt/"}},
    {"tests/simulation/",
     {"wire/", "engine/", "simulation/", "support/documented_keys.hpp", "cluster/", "redlock/",
      "tl/", "doctest/", "fmt/", "CLI/"}},
    {"tests/soak/", {"redlock/", "soak/", "support/own_use.hpp", "cluster/", "CLI/", "fmt/"}},
    {"tests/support/commands_in.hpp", {"wire/", "support/"}},
    {"tests/support/", {"support/", "cluster/", "redlock/", "fmt/", "tl/"}},
    {"tests/integration/net_linear_test.cpp", {"net/", "wire/", "doctest/", "hiredis/"}},
    {"tests/integration/net_",
     {"net/", "tls/", "wire/", "engine/", "redlock/", "integration/", "support/", "cluster/", "tl/",
      "doctest/", "fmt/", "uv.h"}},
    {"tests/integration/c_api_test.cpp",
     {"c/", "redlock/", "integration/", "support/", "cluster/", "doctest/", "nlohmann/"}},
    {"tests/integration/cli_parts_test.cpp", {"cli/bench/", "cli/line_queue.hpp", "doctest/"}},
    {"tests/integration/fencing_test.cpp",
     {"redlock/", "support/", "cluster/", "doctest/", "hiredis/"}},
    {"tests/integration/api_options_test.cpp",
     {"client/", "wire/", "engine/", "redlock/", "integration/", "support/", "doctest/"}},
    {"tests/integration/",
     {"redlock/", "integration/", "support/", "cluster/", "tl/", "doctest/", "fmt/", "nlohmann/",
      "uv.h"}},
    {"tests/fencing/",
     {"redlock/", "fencing/", "integration/api_", "integration/cli_process.hpp", "support/",
      "cluster/", "examples/", "doctest/", "fmt/", "CLI/", "sqlite3.h", "libpq-fe.h", "hiredis/"}},
    {"tests/monitoring/",
     {"redlock/", "monitoring/", "fencing/clock_shim.hpp", "integration/api_fixture.hpp",
      "integration/cli_process.hpp", "support/", "cluster/", "doctest/", "fmt/", "httplib.h",
      "nlohmann/"}},
    {"tests/with_asio/",
     {"redlock/", "with_asio/", "integration/api_", "support/", "cluster/", "doctest/", "asio.hpp",
      "asio/", "boost/asio.hpp", "boost/asio/"}},
    {"tests/examples/", {"integration/cli_process.hpp", "support/", "cluster/", "doctest/"}},
    {"tests/repository/", {"repository/", "support/", "cluster/", "doctest/", "fmt/"}},
    {"tests/doctest_main.cpp", {"doctest/"}},
};

/// A header that some part of the tree may include and others, therefore, may not.
bool is_restricted(const std::string& name) {
  return std::any_of(ladder.begin(), ladder.end(),
                     [&](const Rule& rule) { return starts_with_any(name, rule.allowed); });
}

bool is_std_header(const std::string& name) {
  static const std::regex plain_word("[a-z_0-9]+");
  return std::regex_match(name, plain_word);
}

/// The engine decides; it neither waits nor looks at the world.
bool is_impure(const std::string& name) {
  static const std::vector<std::string> impure = {
      "thread",    "mutex",  "condition_variable", "future", "fstream", "iostream",
      "random",    "atomic", "semaphore",          "ctime",  "cstdio",  "filesystem",
      "stop_token"};
  return std::find(impure.begin(), impure.end(), name) != impure.end();
}

struct Include {
  std::string name;
  bool quoted = false;
};

std::optional<Include> parse_include(const std::string& line) {
  static const std::regex form(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)");
  std::smatch match;
  if (!std::regex_match(line, match, form)) return std::nullopt;
  return Include{match[2], match[1] == "\""};
}

/// The fleet and the programs name a header of their own folder without the folder.
bool is_neighbour(const File& file, const std::string& name) {
  const std::string path = file.path.substr(0, file.path.rfind('/') + 1) + name;
  return std::any_of(files().begin(), files().end(),
                     [&](const File& other) { return other.path == path; });
}

bool may_include(const Rule& rule, const File& file, const Include& include) {
  if (starts_with_any(include.name, rule.allowed)) return true;
  if (include.quoted) return is_neighbour(file, include.name);
  if (is_restricted(include.name)) return false;
  if (rule.folder == "src/engine/" && is_impure(include.name)) return false;
  return !rule.only_std || is_std_header(include.name);
}

const Rule* rule_of(const File& file) {
  for (const Rule& rule : ladder) {
    if (file.path.starts_with(rule.folder)) return &rule;
  }
  return nullptr;
}

TEST_CASE("every C++ file belongs to a part of the tree that the include ladder knows") {
  std::vector<std::string> strangers;
  for (const File& file : cpp_files()) {
    if (rule_of(file) == nullptr) strangers.push_back(file.path);
  }
  CHECK_MESSAGE(strangers.empty(), join(strangers));
}

TEST_CASE("includes point only down the ladder") {
  std::vector<std::string> wrong;
  for (const File& file : cpp_files()) {
    const Rule* const rule = rule_of(file);
    if (rule == nullptr) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const auto include = parse_include(file.lines[i]);
      if (include && !may_include(*rule, file, *include)) wrong.push_back(at(file, i));
    }
  }
  CHECK_MESSAGE(wrong.empty(), join(wrong));
}

}  // namespace
}  // namespace redlock::repository
