// SPDX-License-Identifier: MIT
// examples/fenced_postgres with real processes on a real server, and its table made from one that
// had no fence. Says so, and tests nothing, where the server is not installed.
#include <cstdio>
#include <doctest/doctest.h>
#include <libpq-fe.h>
#include <memory>

#include "fencing/clerk.hpp"
#include "fencing/postgres_server.hpp"

namespace redlock::testing {
namespace {

void sql(const PostgresServer& server, const char* statement) {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(
      PQconnectdb(server.connection().c_str()), PQfinish);
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection.get(), statement),
                                                             PQclear);
  REQUIRE_MESSAGE(PQresultStatus(result.get()) == PGRES_COMMAND_OK,
                  PQerrorMessage(connection.get()));
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

  // Also where the session's default is stricter.
  sql(server, "ALTER DATABASE postgres SET default_transaction_isolation = 'repeatable read'");
  CHECK(clerks.change("old", 4, "1").out == "balance 42\nnow 43\n");
  CHECK(clerks.change("old", 3, "1").status == 77);

  clerks.database = "host=/nowhere dbname=bank";
  CHECK(contains(clerks.change("a", 1, "1").err, "/nowhere"));
}

}  // namespace
}  // namespace redlock::testing
