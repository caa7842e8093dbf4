// SPDX-License-Identifier: MIT
// examples/fenced_postgres with real processes on a real server, and its table made from one that
// had no fence. Says so, and tests nothing, where the server is not installed.
#include <cstdio>
#include <cstdlib>
#include <doctest/doctest.h>
#include <libpq-fe.h>
#include <memory>
#include <string>

#include "fencing/clerk.hpp"
#include "fencing/postgres_server.hpp"

namespace redlock::testing {
namespace {

/// A connection that has done one statement, or several.
class Session {
 public:
  Session(const PostgresServer& server, const char* statements)
      : connection_(PQconnectdb(server.connection().c_str()), PQfinish) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(
        PQexec(connection_.get(), statements), PQclear);
    REQUIRE_MESSAGE(PQresultStatus(result.get()) == PGRES_COMMAND_OK,
                    PQerrorMessage(connection_.get()));
  }

 private:
  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
};

void sql(const PostgresServer& server, const char* statement) {
  const Session done(server, statement);
}

void documented_sql_fences_in(const PostgresServer& server) {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(
      PQconnectdb(server.connection().c_str()), PQfinish);
  documented_sql_fences([&](const std::string& text, const std::vector<std::string>& values) {
    std::vector<const char*> given;
    for (const std::string& value : values) given.push_back(value.c_str());
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(
        PQexecParams(connection.get(), text.c_str(), static_cast<int>(given.size()), nullptr,
                     given.data(), nullptr, nullptr, 0),
        PQclear);
    const auto status = PQresultStatus(result.get());
    REQUIRE_MESSAGE((status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK), text, ": ",
                    PQerrorMessage(connection.get()));
    return std::atoi(PQcmdTuples(result.get()));
  });
}

TEST_CASE("PostgreSQL refuses old tokens, gives late writers zero rows and loses nothing") {
  if (!PostgresServer::is_installed()) {
    std::puts(
        "SKIPPED: the server of PostgreSQL is not installed, so nothing of it was tested "
        "(on Debian: apt install postgresql)");
    return;
  }
  const PostgresServer server;
  Clerks clerks{"fenced_postgres", server.connection()};
  older_tokens_are_refused(clerks);
  late_writes_are_refused(clerks);
  clerks_at_once_lose_nothing(clerks);
  bad_input_is_told(clerks);

  // A table that had no fence gets one, and keeps what is in it.
  sql(server, "DROP TABLE account");
  sql(server, "CREATE TABLE account (id text PRIMARY KEY, balance bigint NOT NULL)");
  sql(server, "INSERT INTO account VALUES ('old', 40)");
  CHECK(clerks.change("old", 3, "2").out == "balance 40\nnow 42\n");
  CHECK(clerks.change("old", 2, "2").status == 77);
  {
    // Somebody who reads for long keeps no clerk from the table.
    const Session reader(server, "BEGIN; DECLARE all_of_it CURSOR FOR SELECT * FROM account");
    CHECK(clerks.change("old", 3, "0").status == 0);
  }

  // Also where the session's default is stricter.
  sql(server, "ALTER DATABASE postgres SET default_transaction_isolation = 'repeatable read'");
  CHECK(clerks.change("old", 4, "1").out == "balance 42\nnow 43\n");
  CHECK(clerks.change("old", 3, "1").status == 77);
  clerks_at_once_lose_nothing(clerks, "strict");

  sql(server, "DROP TABLE account");
  documented_sql_fences_in(server);

  clerks.database = "host=/nowhere dbname=bank";
  CHECK(contains(clerks.change("a", 1, "1").err, "/nowhere"));
}

}  // namespace
}  // namespace redlock::testing
