// SPDX-License-Identifier: MIT
// What is the same for every database. The example programs as real processes: a clerk opens an
// account under a token, thinks, and writes. And the statements of docs/fencing.md.
#pragma once

#include <doctest/doctest.h>
#include <fstream>
#include <functional>
#include <list>
#include <regex>
#include <string>
#include <vector>

#include "integration/cli_process.hpp"

namespace redlock::testing {

/// A program and its database.
struct Clerks {
  std::string program;   // in the directory of programs
  std::string database;  // its first argument

  [[nodiscard]] Arguments arguments(const std::string& account) const {
    return {database, account};
  }
  [[nodiscard]] std::string path() const { return std::string(REDLOCK_BIN_DIR) + "/" + program; }
  static Variables token(std::uint64_t number) {
    return {{"REDLOCK_TOKEN", std::to_string(number)}};
  }
  /// One that does not think.
  [[nodiscard]] Finished change(const std::string& account, std::uint64_t number,
                                const std::string& amount) const {
    Running clerk(arguments(account), token(number), path());
    clerk.write(amount + "\n");
    return clerk.wait();
  }
};

/// Older tokens get no balance, the same may come again, accounts stand for themselves.
inline void older_tokens_are_refused(const Clerks& clerks) {
  CHECK(clerks.change("a", 7, "100").out == "balance 0\nnow 100\n");
  const auto refused = clerks.change("a", 6, "50");
  CHECK(refused.status == 77);
  CHECK(refused.out == "");
  CHECK(contains(refused.err, "newer token"));
  CHECK(clerks.change("a", 7, "1").out == "balance 100\nnow 101\n");
  CHECK(clerks.change("a", 8, "-1").out == "balance 101\nnow 100\n");
  CHECK(clerks.change("b", 1, "5").out == "balance 0\nnow 5\n");
  CHECK(clerks.change("a", 9'007'199'254'740'991, "0").status == 0);
  CHECK(clerks.change("a", 9'007'199'254'740'990, "0").status == 77);
}

/// A clerk who was thinking while another one came writes nothing.
inline void late_writes_are_refused(const Clerks& clerks) {
  Running late(clerks.arguments("c"), Clerks::token(5), clerks.path());
  REQUIRE(late.await_out("balance 0\n"));
  // The other one has opened it, and not yet written: that is enough.
  Running other(clerks.arguments("c"), Clerks::token(6), clerks.path());
  REQUIRE(other.await_out("balance 0\n"));
  late.write("10\n");
  const auto refused = late.wait();
  CHECK(refused.status == 77);
  CHECK(refused.out == "balance 0\n");
  other.write("20\n");
  CHECK(other.wait().out == "balance 0\nnow 20\n");
  CHECK(clerks.change("c", 6, "0").out == "balance 20\nnow 20\n");
}

/// Many at once, each with a token of its own: what was acknowledged is in the balance, and nothing
/// else.
inline void clerks_at_once_lose_nothing(const Clerks& clerks, const std::string& account = "d") {
  std::list<Running> all;
  for (std::uint64_t number = 1; number <= 8; ++number) {
    all.emplace_back(clerks.arguments(account), Clerks::token(number), clerks.path());
    all.back().write("1\n");
  }
  int done = 0;
  for (Running& clerk : all) {
    const int status = clerk.wait().status;
    CHECK((status == 0 || status == 77));
    done += status == 0 ? 1 : 0;
  }
  CHECK(done > 0);  // nobody comes after token 8
  CHECK(clerks.change(account, 9, "0").out ==
        "balance " + std::to_string(done) + "\nnow " + std::to_string(done) + "\n");
}

inline void bad_input_is_told(const Clerks& clerks) {
  CHECK(Running({clerks.database}, Clerks::token(1), clerks.path()).wait().status == 64);
  CHECK(Running(clerks.arguments("e"), {}, clerks.path()).wait().status == 64);
  for (const auto* token : {"", "0", "-1", "5x", " 5", "9007199254740992"}) {
    CAPTURE(token);
    CHECK(Running(clerks.arguments("e"), {{"REDLOCK_TOKEN", token}}, clerks.path()).wait().status ==
          64);
  }
  CHECK(clerks.change("e", 1, "much").status == 1);
}

/// The statements of docs/fencing.md, in its order, as a program would run them.
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
