// SPDX-License-Identifier: MIT
// A table of accounts in SQLite whose rows refuse old tokens. Each row keeps, in its column
// `fence`, the largest token that has touched it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

struct sqlite3;

namespace fenced_sqlite {

/// Every call throws std::runtime_error with SQLite's own words when the database refuses.
class Accounts {
 public:
  /// Opens the database. Makes the table if it is not there, and adds the column `fence` to a table
  /// that lacks it.
  explicit Accounts(const std::string& file);

  /// A new account; does nothing if it is there already.
  void add(const std::string& account, std::int64_t balance);

  /// Stamps the account with the token, then reads its balance. Nothing if the token is too old:
  /// the lease behind it is over.
  std::optional<std::int64_t> open(const std::string& account, std::uint64_t token);

  /// Changes the balance of an account that was opened with this token. False if a clerk with a
  /// larger token has opened the account since: nothing was written.
  bool write(const std::string& account, std::int64_t balance, std::uint64_t token);

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  class Statement;

  void run(const char* sql);
  bool has_fence();

  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace fenced_sqlite
