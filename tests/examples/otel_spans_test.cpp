// SPDX-License-Identifier: MIT
// examples/otel_spans as a process: the spans that it writes, and how they hang together.
#include <doctest/doctest.h>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cluster/fleet.hpp"
#include "integration/cli_process.hpp"

namespace redlock::testing {
namespace {

const std::string program = std::string(REDLOCK_BIN_DIR) + "/otel_spans";

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

TEST_CASE("spans have the parents that they would have on one thread") {
  const cluster::Fleet fleet({.nodes = 3});
  const Finished finished = Running({}, nodes_variable(fleet.uris()), program).wait();
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
}

TEST_CASE("without nodes it says what is missing") {
  const Finished none = Running({}, {}, program).wait();
  CHECK(none.status == 1);
  CHECK(contains(none.out, "REDLOCK_NODES"));
}

}  // namespace
}  // namespace redlock::testing
