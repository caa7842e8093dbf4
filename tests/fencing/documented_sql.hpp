// SPDX-License-Identifier: MIT
// The statements of docs/fencing.md, in its order, as a program would run them.
#pragma once

#include <doctest/doctest.h>
#include <fstream>
#include <functional>
#include <regex>
#include <string>
#include <vector>

namespace redlock::testing {

inline std::vector<std::string> documented_sql() {
  std::ifstream page(REDLOCK_SOURCE_DIR "/docs/fencing.md");
  std::string text;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```")) {
      inside = line == "```sql";
    } else if (inside) {
      text += line.substr(0, line.find("--")) + ' ';
    }
  }
  std::vector<std::string> statements;
  const std::regex statement(R"(\s*([^;]+);)");
  for (std::sregex_iterator it(text.begin(), text.end(), statement), end; it != end; ++it) {
    statements.push_back((*it)[1]);
  }
  return statements;
}

/// Runs a statement with the values of $1, $2 and so on; how many rows it changed or found.
using RunSql = std::function<int(const std::string& statement, std::vector<std::string> values)>;

/// In a database that has no table yet.
inline void documented_sql_fences(const RunSql& run) {
  run("CREATE TABLE account (id TEXT PRIMARY KEY, balance BIGINT NOT NULL)", {});
  const auto sql = documented_sql();
  REQUIRE(sql.size() == 8);
  const std::string &add_column = sql[0], &begin = sql[1], &stamp = sql[2], &read = sql[3],
                    &commit = sql[4], &write = sql[5], &change = sql[6], &insert = sql[7];
  run(add_column, {});
  CHECK(run(insert, {"seven"}) == 1);
  CHECK(run(insert, {"seven"}) == 0);
  run(begin, {});
  CHECK(run(stamp, {"33", "seven"}) == 1);
  CHECK(run(read, {"seven"}) == 1);
  run(commit, {});
  CHECK(run(write, {"100", "seven", "33"}) == 1);
  CHECK(run(change, {"5", "34", "seven"}) == 1);
  // Too late, each of them.
  CHECK(run(stamp, {"33", "seven"}) == 0);
  CHECK(run(write, {"1", "seven", "33"}) == 0);
  CHECK(run(change, {"1", "33", "seven"}) == 0);
}

}  // namespace redlock::testing
