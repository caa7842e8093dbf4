// SPDX-License-Identifier: MIT
// The examples as real processes, with nodes in their environment as a user gives them.
#include <charconv>
#include <csignal>
#include <doctest/doctest.h>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cluster/fleet.hpp"
#include "cluster/sockets.hpp"
#include "integration/cli_process.hpp"

namespace redlock::testing {
namespace {

std::string path_of(const std::string& example) {
  return std::string(REDLOCK_BIN_DIR) + "/" + example;
}

Running start(const std::string& example, const Fleet& fleet, const Arguments& arguments = {}) {
  return Running(arguments, nodes_variable(fleet.uris()), path_of(example));
}

Finished run(const std::string& example) {
  const Fleet fleet({.nodes = 3});
  return start(example, fleet).wait();
}

/// Without nodes it says what is missing.
void needs_nodes(const std::string& example, const Arguments& arguments = {}, int status = 1) {
  const Finished finished = Running(arguments, {}, path_of(example)).wait();
  CHECK(finished.status == status);
  CHECK(contains(finished.out + finished.err, "REDLOCK_NODES"));
}

TEST_CASE("asio_service: a request that cannot have the lock in time is answered without it") {
  const Finished finished = run("asio_service");
  CHECK_MESSAGE(finished.status == 0, finished.err);
  // What request 1 says of its release, a busy machine decides: the nodes may confirm too late.
  CHECK(finished.out.starts_with("request 1: writes the report\nrequest 2: busy\nrequest 1: "));
  CHECK(finished.out.ends_with("\nrequest 3: writes the report\n"));
  needs_nodes("asio_service");
}

TEST_CASE("job_runner: jobs that take turns lose no deposit") {
  const Finished finished = run("job_runner");
  CHECK_MESSAGE(finished.status == 0, finished.err);
  CHECK(finished.out == "3 jobs made 4 deposits each: balance 12\n");
  needs_nodes("job_runner");
}

TEST_CASE("thread_pool: callbacks run in the pool, one at a time") {
  const Finished finished = run("thread_pool");
  CHECK_MESSAGE(finished.status == 0, finished.err);
  CHECK(finished.out == "12 jobs counted to 12, 12 of them in the pool\n");
  needs_nodes("thread_pool");
}

TEST_CASE(
    "own_loop: it takes the lock with a callback and a coroutine, and gives it back at its end") {
  const Fleet fleet({.nodes = 3});
  Running running = start("own_loop", fleet, {"the door"});
  REQUIRE(running.await_out("tick, ours for"));
  CHECK(contains(running.out(), "taken with a callback, token "));
  CHECK(contains(running.out(), "taken with a coroutine, token "));
  CHECK(eventually([&] { return fleet.run(0, {"EXISTS", "redlock:lock:{the door}"}) == "1"; }));
  running.signal(SIGTERM);
  const Finished finished = running.wait();
  CHECK(finished.status == 0);
  CHECK(finished.err.empty());
  // How many it says, a busy machine decides: the nodes may confirm too late.
  CHECK(contains(finished.out, "given back at the end: "));
  CHECK(finished.out.ends_with("\nthe loop is closed\n"));
  CHECK(eventually([&] { return fleet.run(0, {"EXISTS", "redlock:lock:{the door}"}) == "0"; }));
}

TEST_CASE("own_loop: it says what is wrong, and leaves the loop") {
  const Fleet fleet({.nodes = 1});
  needs_nodes("own_loop", {"x"}, 64);
  CHECK(start("own_loop", fleet).wait().status == 64);
  const Finished bad = start("own_loop", fleet, {"{}"}).wait();
  CHECK(bad.status == 1);
  CHECK(contains(bad.out, "the loop is closed"));
}

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

TEST_CASE("metrics_http: a scrape has what the job did, and SIGTERM ends the server") {
  const Fleet fleet({.nodes = 3});
  Running running = start("metrics_http", fleet);
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

  needs_nodes("metrics_http");
  const Finished bad = start("metrics_http", fleet, {"70000"}).wait();
  CHECK(bad.status == 1);
  CHECK(contains(bad.out, "cannot listen"));
}

std::string node_field(const Fleet& fleet, std::size_t node) {
  return " node=\"" + fleet.uri(node) + "\"";
}

TEST_CASE(
    "spdlog_observer: the log has nodes that go and come, and the lease that is lost with them") {
  Fleet fleet({.nodes = 3});
  Running running = start("spdlog_observer", fleet);
  REQUIRE(running.await_err(" level=info event=working name=\"report\" token="));
  CHECK(running.await_err(" event=node_up" + node_field(fleet, 0)));
  fleet.kill(0);
  CHECK(running.await_err(" level=warning event=node_down" + node_field(fleet, 0) + " cause="));
  fleet.kill(1);
  CHECK(running.await_err(" level=warning event=node_down" + node_field(fleet, 1) + " cause="));
  CHECK(running.await_err(" level=warning event=renewal_failed name=\"report\" "));
  CHECK(running.await_err(" level=error event=lost name=\"report\" token="));
  running.signal(SIGTERM);
  const Finished finished = running.wait();
  CHECK(finished.status == 0);
  CHECK(finished.err.starts_with("time=20"));
  CHECK(contains(finished.err, " reason=nodes_unavailable\n"));
}

TEST_CASE("spdlog_observer: a name with quotes and a line break is one field of one line") {
  const Fleet fleet({.nodes = 1});
  Running running = start("spdlog_observer", fleet, {"a \"b\"\nlevel=c"});
  CHECK(running.await_err(R"( event=working name="a \"b\"\x0alevel=c" token=)"));
  running.signal(SIGTERM);
  CHECK(running.wait().status == 0);
  needs_nodes("spdlog_observer");
}

/// A span as the exporter writes it: "field : value" for each line between braces.
struct WrittenSpan {
  std::map<std::string, std::string> fields;
  std::string text;

  [[nodiscard]] std::string operator[](const std::string& field) const {
    const auto found = fields.find(field);
    return found == fields.end() ? "" : found->second;
  }
};

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

std::vector<WrittenSpan> spans_in(const std::string& out) {
  std::vector<WrittenSpan> spans;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (line == "{") spans.emplace_back();
    if (spans.empty()) continue;
    spans.back().text += line + "\n";
    const auto colon = line.find(": ");
    if (colon != line.npos) {
      spans.back().fields.emplace(trimmed(line.substr(0, colon)), line.substr(colon + 2));
    }
  }
  return spans;
}

std::vector<WrittenSpan> named(const std::vector<WrittenSpan>& spans, const std::string& name) {
  std::vector<WrittenSpan> result;
  for (const WrittenSpan& span : spans) {
    if (span["name"] == name) result.push_back(span);
  }
  return result;
}

TEST_CASE("otel_spans: spans have the parents that they would have on one thread") {
  const Fleet fleet({.nodes = 3});
  const Finished finished = start("otel_spans", fleet).wait();
  REQUIRE_MESSAGE(finished.status == 0, finished.out);
  const auto spans = spans_in(finished.out);
  const auto jobs = named(spans, "nightly report");
  const auto acquisitions = named(spans, "redlock.acquire");
  const auto holds = named(spans, "redlock.hold");
  const auto writings = named(spans, "write report");
  REQUIRE(jobs.size() == 1);
  REQUIRE(acquisitions.size() == 4);
  REQUIRE(holds.size() == 3);
  REQUIRE(writings.size() == 2);

  for (const auto& span : spans) CHECK(span["trace_id"] == jobs[0]["trace_id"]);
  CHECK(jobs[0]["parent_span_id"] == "0000000000000000");
  std::set<std::string> hold_ids;
  for (const auto& span : holds) {
    CHECK_MESSAGE(span["parent_span_id"] == jobs[0]["span_id"], span.text);
    CHECK(contains(span.text, "redlock.token: "));
    hold_ids.insert(span["span_id"]);
  }
  for (const auto& span : writings) {
    CHECK_MESSAGE(hold_ids.erase(span["parent_span_id"]) == 1, span.text);
  }
  std::size_t failed = 0;
  for (const auto& span : acquisitions) {
    CHECK_MESSAGE(span["parent_span_id"] == jobs[0]["span_id"], span.text);
    CHECK(span["span kind"] == "Client");
    CHECK(contains(span.text, "redlock.name: report\n"));
    if (span["status"] == "Error") {
      ++failed;
      CHECK(contains(span["description"], "'report'"));
      for (const auto& uri : fleet.uris()) CHECK(contains(span.text, "redlock.node: " + uri));
      CHECK_FALSE(contains(span.text, "redlock.token"));
    } else {
      CHECK(contains(span.text, "redlock.token: "));
    }
  }
  CHECK(failed == 1);
  REQUIRE(hold_ids.size() == 1);  // the one that nothing is written in is lost
  for (const auto& span : holds) {
    CHECK(contains(span.text, "name          : lost\n") == hold_ids.contains(span["span_id"]));
  }
  needs_nodes("otel_spans");
}

}  // namespace
}  // namespace redlock::testing
