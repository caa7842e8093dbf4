// SPDX-License-Identifier: MIT
#include "accounts.hpp"

#include <sqlite3.h>
#include <stdexcept>

namespace fenced_sqlite {

namespace {

constexpr int busy_timeout_ms = 30'000;

void require(int code, sqlite3* database) {
  if (code == SQLITE_OK) return;
  throw std::runtime_error(std::string("SQLite: ") + sqlite3_errmsg(database));
}

}  // namespace

class Accounts::Statement {
 public:
  Statement(sqlite3* database, const char* sql) : database_(database) {
    require(sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr), database);
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  Statement& bind(int index, std::int64_t value) {
    require(sqlite3_bind_int64(statement_, index, value), database_);
    return *this;
  }
  Statement& bind(int index, const std::string& value) {
    require(sqlite3_bind_text(statement_, index, value.c_str(), -1, SQLITE_TRANSIENT), database_);
    return *this;
  }
  /// The first column of the next row, if there is one.
  std::optional<std::int64_t> next() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return sqlite3_column_int64(statement_, 0);
    require(code == SQLITE_DONE ? SQLITE_OK : code, database_);
    return std::nullopt;
  }
  /// Runs it to its end: how many rows it changed.
  int change() {
    next();
    return sqlite3_changes(database_);
  }

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
};

void Accounts::Close::operator()(sqlite3* database) const {
  sqlite3_close(database);
}

Accounts::Accounts(const std::string& file) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open(file.c_str(), &opened);
  database_.reset(opened);
  require(code, opened);
  sqlite3_busy_timeout(opened, busy_timeout_ms);
  run("BEGIN IMMEDIATE");
  run("CREATE TABLE IF NOT EXISTS account (id TEXT PRIMARY KEY, balance INTEGER NOT NULL)");
  if (!has_fence()) run("ALTER TABLE account ADD COLUMN fence INTEGER NOT NULL DEFAULT 0");
  run("COMMIT");
}

void Accounts::add(const std::string& account, std::int64_t balance) {
  Statement(database_.get(),
            "INSERT INTO account (id, balance) VALUES (?1, ?2) ON CONFLICT DO NOTHING")
      .bind(1, account)
      .bind(2, balance)
      .change();
}

std::optional<std::int64_t> Accounts::open(const std::string& account, std::uint64_t token) {
  // IMMEDIATE: a transaction that read first and wants to write then may find that it cannot.
  run("BEGIN IMMEDIATE");
  try {
    const int stamped =
        Statement(database_.get(), "UPDATE account SET fence = ?1 WHERE id = ?2 AND fence <= ?1")
            .bind(1, static_cast<std::int64_t>(token))
            .bind(2, account)
            .change();
    const auto balance = Statement(database_.get(), "SELECT balance FROM account WHERE id = ?1")
                             .bind(1, account)
                             .next();
    if (!balance) throw std::runtime_error("there is no account " + account);
    run("COMMIT");
    return stamped == 1 ? balance : std::nullopt;
  } catch (const std::runtime_error&) {
    sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
}

bool Accounts::write(const std::string& account, std::int64_t balance, std::uint64_t token) {
  return Statement(database_.get(), "UPDATE account SET balance = ?1 WHERE id = ?2 AND fence = ?3")
             .bind(1, balance)
             .bind(2, account)
             .bind(3, static_cast<std::int64_t>(token))
             .change() == 1;
}

void Accounts::run(const char* sql) {
  require(sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr), database_.get());
}

bool Accounts::has_fence() {
  return Statement(database_.get(),
                   "SELECT count(*) FROM pragma_table_info('account') WHERE name = 'fence'")
             .next() == 1;
}

}  // namespace fenced_sqlite
