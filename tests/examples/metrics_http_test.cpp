// SPDX-License-Identifier: MIT
// examples/metrics_http as a process: what it answers to a scrape.
#include <charconv>
#include <csignal>
#include <doctest/doctest.h>
#include <string>

#include "cluster/fleet.hpp"
#include "cluster/sockets.hpp"
#include "integration/cli_process.hpp"

namespace redlock::testing {
namespace {

const std::string program = std::string(REDLOCK_BIN_DIR) + "/metrics_http";

/// What the server answers to a GET, head and body; empty if it does not listen.
std::string get(std::uint16_t port, const std::string& path) {
  const cluster::UniqueFd connection = cluster::connect_to_loopback(port);
  if (!connection) return {};
  std::string request = "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  REQUIRE(::write(connection.get(), request.data(), request.size()) ==
          static_cast<ssize_t>(request.size()));
  std::string answer;
  while (true) {
    char bytes[4096];
    const auto count = ::read(connection.get(), bytes, sizeof bytes);
    if (count <= 0) return answer;
    answer.append(bytes, static_cast<std::size_t>(count));
  }
}

TEST_CASE("a scrape has what the job did, and SIGTERM ends the server") {
  const cluster::Fleet fleet({.nodes = 3});
  Running running({}, nodes_variable(fleet.uris()), program);
  REQUIRE(running.await_out("/metrics\n"));
  const std::string out = running.out();
  const auto colon = out.rfind(':');
  std::uint16_t port = 0;
  std::from_chars(out.data() + colon + 1, out.data() + out.size(), port);

  std::string answer;
  CHECK(eventually([&] {
    answer = get(port, "/metrics");
    return contains(answer, "\nredlock_attempts_total{result=\"granted\"} ");
  }));
  CHECK(answer.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(contains(answer, "Content-Type: text/plain; version=0.0.4\r\n"));
  CHECK(get(port, "/").starts_with("HTTP/1.1 404 "));
  running.signal(SIGTERM);
  CHECK(running.wait().status == 0);
}

TEST_CASE("without nodes, or with a port that is none, it says so") {
  const Finished none = Running({}, {}, program).wait();
  CHECK(none.status == 1);
  CHECK(contains(none.out, "REDLOCK_NODES"));
  const Finished bad = Running({"70000"}, nodes_variable({"redis://127.0.0.1:1"}), program).wait();
  CHECK(bad.status == 1);
  CHECK(contains(bad.out, "cannot listen"));
}

}  // namespace
}  // namespace redlock::testing
