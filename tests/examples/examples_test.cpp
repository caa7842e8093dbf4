// SPDX-License-Identifier: MIT
// The small examples as real processes, with nodes in their environment as a user gives them.
#include <doctest/doctest.h>
#include <string>

#include "cluster/fleet.hpp"
#include "integration/cli_process.hpp"

namespace redlock::testing {
namespace {

Finished run_example(const std::string& name) {
  const cluster::Fleet fleet({.nodes = 3});
  std::string nodes;
  for (const std::string& uri : fleet.uris()) nodes += (nodes.empty() ? "" : ",") + uri;
  return Running({}, {{"REDLOCK_NODES", nodes}, {"REDLOCK_QUARANTINE", "off"}},
                 std::string(REDLOCK_BIN_DIR) + "/" + name)
      .wait();
}

/// Without nodes it says what is missing.
void needs_nodes(const std::string& name) {
  const auto finished = Running({}, {}, std::string(REDLOCK_BIN_DIR) + "/" + name).wait();
  CHECK(finished.status == 1);
  CHECK(contains(finished.out, "REDLOCK_NODES"));
}

TEST_CASE("asio_service: a request that cannot have the lock in time is answered without it") {
  const auto finished = run_example("asio_service");
  CHECK_MESSAGE(finished.status == 0, finished.err);
  // What request 1 says of its release, a busy machine decides: the nodes may confirm too late.
  CHECK(finished.out.starts_with("request 1: writes the report\nrequest 2: busy\nrequest 1: "));
  CHECK(finished.out.ends_with("\nrequest 3: writes the report\n"));
  needs_nodes("asio_service");
}

TEST_CASE("job_runner: jobs that take turns lose no deposit") {
  const auto finished = run_example("job_runner");
  CHECK_MESSAGE(finished.status == 0, finished.err);
  CHECK(finished.out == "3 jobs made 4 deposits each: balance 12\n");
  needs_nodes("job_runner");
}

TEST_CASE("thread_pool: callbacks run in the pool, one at a time") {
  const auto finished = run_example("thread_pool");
  CHECK_MESSAGE(finished.status == 0, finished.err);
  CHECK(finished.out == "12 jobs counted to 12, 12 of them in the pool\n");
  needs_nodes("thread_pool");
}

}  // namespace
}  // namespace redlock::testing
