// SPDX-License-Identifier: MIT
// examples/fenced_sqlite with real processes, and its table made from one that had no fence.
#include <doctest/doctest.h>
#include <memory>
#include <sqlite3.h>

#include "fencing/clerk.hpp"
#include "support/temporary_directory.hpp"

namespace redlock::testing {
namespace {

struct Bank {
  Bank() : clerks{"fenced_sqlite", (place.path() / "bank.db").string()} {}
  TemporaryDirectory place;
  Clerks clerks;
};

TEST_CASE_FIXTURE(Bank, "SQLite refuses older tokens") {
  older_tokens_are_refused(clerks);
}

TEST_CASE_FIXTURE(Bank, "SQLite gives a late writer zero rows") {
  late_writes_are_refused(clerks);
}

TEST_CASE_FIXTURE(Bank, "clerks at once lose nothing in SQLite") {
  clerks_at_once_lose_nothing(clerks);
}

TEST_CASE_FIXTURE(Bank, "bad input is told of") {
  bad_input_is_told(clerks);
  clerks.database = "/nowhere/bank.db";
  CHECK(contains(clerks.change("a", 1, "1").err, "unable to open"));
}

TEST_CASE_FIXTURE(Bank, "a table that had no fence gets one, and keeps what is in it") {
  sqlite3* opened = nullptr;
  REQUIRE(sqlite3_open(clerks.database.c_str(), &opened) == SQLITE_OK);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> database(opened, sqlite3_close);
  REQUIRE(sqlite3_exec(opened,
                       "CREATE TABLE account (id TEXT PRIMARY KEY, balance INTEGER NOT NULL);"
                       "INSERT INTO account VALUES ('old', 40)",
                       nullptr, nullptr, nullptr) == SQLITE_OK);
  CHECK(clerks.change("old", 3, "2").out == "balance 40\nnow 42\n");
  CHECK(clerks.change("old", 2, "2").status == 77);
}

}  // namespace
}  // namespace redlock::testing
