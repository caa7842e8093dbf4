// SPDX-License-Identifier: MIT
// A table of accounts in PostgreSQL whose rows refuse old tokens. Each row keeps, in its column
// `fence`, the largest token that has touched it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct pg_conn;
struct pg_result;

namespace fenced_postgres {

/// Every call throws std::runtime_error with the server's own words when it refuses.
class Accounts {
 public:
  /// Connects (libpq's connection string, such as "host=db dbname=bank"). Makes the table if it is
  /// not there, and adds the column `fence` to a table that lacks it.
  explicit Accounts(const std::string& connection);

  /// A new account; does nothing if it is there already.
  void add(const std::string& account, std::int64_t balance);

  /// Stamps the account with the token, then reads its balance. Nothing if the token is too old:
  /// the lease behind it is over.
  std::optional<std::int64_t> open(const std::string& account, std::uint64_t token);

  /// Changes the balance of an account that was opened with this token. False if a clerk with a
  /// larger token has opened the account since: nothing was written.
  bool write(const std::string& account, std::int64_t balance, std::uint64_t token);

 private:
  struct Finish {
    void operator()(pg_conn* connection) const;
  };
  struct Clear {
    void operator()(pg_result* result) const;
  };
  using Rows = std::unique_ptr<pg_result, Clear>;

  Rows run(const char* sql, const std::vector<std::string>& parameters = {});
  bool has_fence();
  bool changes_one(const char* sql, const std::vector<std::string>& parameters);

  std::unique_ptr<pg_conn, Finish> connection_;
};

}  // namespace fenced_postgres
