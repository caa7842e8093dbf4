// SPDX-License-Identifier: MIT
// examples/fenced_sqlite with real processes, and its table made from one that had no fence.
#include <doctest/doctest.h>
#include <memory>
#include <sqlite3.h>

#include "fencing/clerk.hpp"
#include "support/temporary_directory.hpp"

namespace redlock::testing {
namespace {

using Database = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;

Database opened(const std::string& path) {
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &database) == SQLITE_OK);
  return {database, sqlite3_close};
}

struct Bank {
  Bank() : clerks{"fenced_sqlite", (place.path() / "bank.db").string()} {}
  TemporaryDirectory place;
  Clerks clerks;
};

TEST_CASE_FIXTURE(Bank, "SQLite refuses old tokens, gives late writers zero rows, loses nothing") {
  older_tokens_are_refused(clerks);
  late_writes_are_refused(clerks);
  clerks_at_once_lose_nothing(clerks);
}

TEST_CASE_FIXTURE(Bank, "bad input is told of") {
  bad_input_is_told(clerks);
  clerks.database = "/nowhere/bank.db";
  CHECK(contains(clerks.change("a", 1, "1").err, "unable to open"));
}

TEST_CASE_FIXTURE(Bank, "a table that had no fence gets one, and keeps what is in it") {
  const Database database = opened(clerks.database);
  REQUIRE(sqlite3_exec(database.get(),
                       "CREATE TABLE account (id TEXT PRIMARY KEY, balance INTEGER NOT NULL);"
                       "INSERT INTO account VALUES ('old', 40)",
                       nullptr, nullptr, nullptr) == SQLITE_OK);
  CHECK(clerks.change("old", 3, "2").out == "balance 40\nnow 42\n");
  CHECK(clerks.change("old", 2, "2").status == 77);
}

TEST_CASE("the statements of docs/fencing.md fence in SQLite") {
  const Database database = opened(":memory:");
  documented_sql_fences([&](const std::string& text, const std::vector<std::string>& values) {
    CAPTURE(text);
    sqlite3_stmt* made = nullptr;
    REQUIRE(sqlite3_prepare_v2(database.get(), text.c_str(), -1, &made, nullptr) == SQLITE_OK);
    const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement(made,
                                                                               sqlite3_finalize);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const int index = sqlite3_bind_parameter_index(made, ("$" + std::to_string(i + 1)).c_str());
      REQUIRE(sqlite3_bind_text(made, index, values[i].c_str(), -1, SQLITE_STATIC) == SQLITE_OK);
    }
    const int status = sqlite3_step(made);
    if (status == SQLITE_ROW) return 1;
    REQUIRE_MESSAGE(status == SQLITE_DONE, sqlite3_errmsg(database.get()));
    return sqlite3_changes(database.get());
  });
}

}  // namespace
}  // namespace redlock::testing
