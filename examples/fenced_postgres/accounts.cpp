// SPDX-License-Identifier: MIT
#include "accounts.hpp"

#include <cstring>
#include <libpq-fe.h>
#include <stdexcept>

namespace fenced_postgres {

void Accounts::Finish::operator()(pg_conn* connection) const {
  PQfinish(connection);
}

void Accounts::Clear::operator()(pg_result* result) const {
  PQclear(result);
}

Accounts::Accounts(const std::string& connection) : connection_(PQconnectdb(connection.c_str())) {
  if (PQstatus(connection_.get()) != CONNECTION_OK) {
    throw std::runtime_error(PQerrorMessage(connection_.get()));
  }
  // Keeps the notice that the table exists off stderr.
  run("SET client_min_messages = warning");
  run("BEGIN");
  // Programs that start at once must not make the table twice.
  run("SELECT pg_advisory_xact_lock(hashtext('account'))");
  run("CREATE TABLE IF NOT EXISTS account (id text PRIMARY KEY, balance bigint NOT NULL)");
  if (!has_fence()) run("ALTER TABLE account ADD COLUMN fence bigint NOT NULL DEFAULT 0");
  run("COMMIT");
  // Where the default is stricter, a transaction that has to wait for a row would fail instead.
  run("SET default_transaction_isolation = 'read committed'");
}

void Accounts::add(const std::string& account, std::int64_t balance) {
  run("INSERT INTO account (id, balance) VALUES ($1, $2) ON CONFLICT DO NOTHING",
      {account, std::to_string(balance)});
}

std::optional<std::int64_t> Accounts::open(const std::string& account, std::uint64_t token) {
  run("BEGIN");
  try {
    // It waits for the transaction that is changing the row, and then looks at the fence that this
    // left.
    const bool stamped = changes_one("UPDATE account SET fence = $1 WHERE id = $2 AND fence <= $1",
                                     {std::to_string(token), account});
    const Rows rows = run("SELECT balance FROM account WHERE id = $1", {account});
    if (PQntuples(rows.get()) == 0) throw std::runtime_error("there is no account " + account);
    run("COMMIT");
    if (!stamped) return std::nullopt;
    return std::stoll(PQgetvalue(rows.get(), 0, 0));
  } catch (const std::runtime_error&) {
    PQclear(PQexec(connection_.get(), "ROLLBACK"));
    throw;
  }
}

bool Accounts::write(const std::string& account, std::int64_t balance, std::uint64_t token) {
  return changes_one("UPDATE account SET balance = $1 WHERE id = $2 AND fence = $3",
                     {std::to_string(balance), account, std::to_string(token)});
}

Accounts::Rows Accounts::run(const char* sql, const std::vector<std::string>& parameters) {
  std::vector<const char*> texts;
  for (const std::string& parameter : parameters) texts.push_back(parameter.c_str());
  Rows rows(PQexecParams(connection_.get(), sql, static_cast<int>(texts.size()), nullptr,
                         texts.data(), nullptr, nullptr, 0));
  const auto status = PQresultStatus(rows.get());
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return rows;
  throw std::runtime_error(PQerrorMessage(connection_.get()));
}

// Asked first, because ALTER TABLE waits for every reader of the table, even if it has nothing to
// do.
bool Accounts::has_fence() {
  const Rows rows =
      run("SELECT FROM pg_attribute "
          "WHERE attrelid = 'account'::regclass AND attname = 'fence' AND NOT attisdropped");
  return PQntuples(rows.get()) == 1;
}

bool Accounts::changes_one(const char* sql, const std::vector<std::string>& parameters) {
  const Rows rows = run(sql, parameters);
  return std::strcmp(PQcmdTuples(rows.get()), "1") == 0;
}

}  // namespace fenced_postgres
