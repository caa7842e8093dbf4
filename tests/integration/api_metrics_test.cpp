// SPDX-License-Identifier: MIT
// What Metrics counts, on real nodes, and that its text is what Prometheus reads.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>

#include "cluster/relay.hpp"
#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

using Samples = std::map<std::string, double>;  // by name and labels, as they are written

/// Reads the text format strictly: a HELP and a TYPE before each family's lines, each family once,
/// each line once, histograms with buckets that do not sink, +Inf, a sum and a count.
Samples samples_of(const std::string& text) {
  static const std::regex help(R"(# HELP ([a-z_]+) \S.*\.)");
  static const std::regex type(R"(# TYPE ([a-z_]+) (counter|gauge|histogram))");
  static const std::string label = R"re([a-z]+="([^"\\\n]|\\["\\n])*")re";
  static const std::regex sample("([a-z_]+)(\\{" + label + "(," + label + ")*\\})? ([-+.0-9e]+)");
  Samples samples;
  std::map<std::string, std::string> types;
  std::string family;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, help)) {
      family = match[1];
      REQUIRE_MESSAGE(!types.contains(family), line);
      types[family] = "";
    } else if (std::regex_match(line, match, type)) {
      REQUIRE_MESSAGE(match[1] == family, line);
      REQUIRE_MESSAGE(types[family].empty(), line);
      types[family] = match[2];
    } else {
      REQUIRE_MESSAGE(std::regex_match(line, match, sample), line);
      const std::string suffix =
          match[1].str().substr(std::min(match[1].str().size(), family.size()));
      REQUIRE_MESSAGE(match[1].str().starts_with(family), line);
      const bool of_histogram = suffix == "_bucket" || suffix == "_sum" || suffix == "_count";
      REQUIRE_MESSAGE(of_histogram == (types[family] == "histogram"), line);
      REQUIRE_MESSAGE((of_histogram || suffix.empty()), line);
      if (types[family] == "counter") REQUIRE_MESSAGE(family.ends_with("_total"), line);
      REQUIRE_MESSAGE(samples.emplace(match[1].str() + match[2].str(), std::stod(match[6])).second,
                      line);
    }
  }
  CHECK(text.ends_with("\n"));
  return samples;
}

double value(const Metrics& metrics, const std::string& sample) {
  const Samples samples = samples_of(metrics.text());
  const auto found = samples.find(sample);
  return found == samples.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

bool soon(const Metrics& metrics, const std::string& sample, double expected) {
  return eventually([&] { return value(metrics, sample) == expected; });
}

/// With `more` labels behind that of the node.
std::string label_of(const Fleet& fleet, std::size_t node, const std::string& more = {}) {
  return "{node=\"" + fleet.uri(node) + "\"" + more + "}";
}

TEST_CASE("metrics of nothing are families without calls") {
  const Metrics metrics;
  const Samples samples = samples_of(metrics.text());
  CHECK(samples.at(R"(redlock_attempts_total{result="granted"})") == 0);
  CHECK(samples.at(R"(redlock_attempts_total{result="no_quorum"})") == 0);
  CHECK(samples.at(R"(redlock_leases_lost_total{reason="taken"})") == 0);
  CHECK(samples.at("redlock_acquire_duration_seconds_count") == 0);
  CHECK(samples.at(R"(redlock_hold_duration_seconds_bucket{le="+Inf"})") == 0);
}

TEST_CASE("metrics count grants, waits, holds and the answers of every node") {
  const auto metrics = std::make_shared<Metrics>();
  const Client client = start_observed(three_nodes(), metrics);
  for (int i = 0; i < 3; ++i) {
    Lease lease = must(client.lock("measured").acquire({.wait = patience}));
    REQUIRE(soon_locked_everywhere(three_nodes(), "measured"));
    CHECK(must(lease.release()) == Released::released);
  }
  CHECK(soon(*metrics, R"(redlock_attempts_total{result="granted"})", 3));
  CHECK(soon(*metrics, "redlock_acquire_duration_seconds_count", 3));
  CHECK(soon(*metrics, "redlock_hold_duration_seconds_count", 3));
  CHECK(value(*metrics, "redlock_hold_duration_seconds_sum") > 0);
  CHECK(value(*metrics, "redlock_handoff_duration_seconds_count") == 0);
  for (std::size_t node = 0; node < 3; ++node) {
    CHECK(soon(*metrics, "redlock_node_up" + label_of(three_nodes(), node), 1));
    CHECK(soon(*metrics,
               "redlock_node_round_trip_seconds_count" +
                   label_of(three_nodes(), node, R"(,command="release")"),
               3));
  }
  const Samples samples = samples_of(metrics->text());
  double votes = 0;
  for (const auto& [sample, count] : samples) {
    if (sample.starts_with("redlock_votes_total{")) votes += count;
  }
  CHECK(votes == 9);
}

TEST_CASE("metrics tell contention and hand-offs within the program") {
  const auto metrics = std::make_shared<Metrics>();
  const Client client = start_observed(three_nodes(), metrics);
  Lease held = must(client.lock("handed on").acquire({.wait = patience}));
  CHECK(code_of(client.lock("handed on").acquire()) == Errc::contended);
  CHECK(soon(*metrics, R"(redlock_attempts_total{result="contended"})", 1));
  auto waiting = client.lock("handed on").async_acquire({.wait = patience}).as_future();
  // An attempt is counted when it begins to wait.
  REQUIRE(eventually(
      [&] { return value(*metrics, R"(redlock_attempts_total{result="contended"})") >= 2; }));
  must(held.release());
  const Lease next = must(get_soon(waiting));
  CHECK(soon(*metrics, "redlock_handoff_duration_seconds_count", 1));
}

TEST_CASE("metrics tell why a connected node does not vote, and that it does without being asked") {
  const Fleet fleet({.nodes = 3});
  const auto metrics = std::make_shared<Metrics>();
  const Client client = start_client(fleet, [&](ClientOptions& options) {
    options.lease = options.max_lease = 3s;  // by which it knows how often to ask
    options.observer = metrics;
  });
  warm_up(client, fleet);
  const std::string label = label_of(fleet, 2);
  fleet.run(2, {"CONFIG", "SET", "maxmemory", "1"});
  must(client.lock("n").acquire({.wait = patience}));
  CHECK(soon(*metrics, "redlock_node_up" + label, 0));
  CHECK(soon(*metrics, "redlock_node_down" + label_of(fleet, 2, R"(,cause="out_of_memory")"), 1));
  fleet.run(2, {"CONFIG", "SET", "maxmemory", "0"});
  CHECK(soon(*metrics, "redlock_node_up" + label, 1));
  CHECK(fleet.run(2, {"EXISTS", "redlock:node:nothing"}) == "0");
}

TEST_CASE("an attempt that is made before the nodes are connected with is not one without quorum") {
  const Fleet fleet({.nodes = 1});
  cluster::Relay relay(cluster::listen_on_loopback(),
                       [&] { return cluster::connect_to_loopback(fleet.port(0)); });
  relay.hold();
  const auto metrics = std::make_shared<Metrics>();
  ClientOptions options =
      options_for({"127.0.0.1:" + std::to_string(cluster::port_of(relay.listener()))});
  options.node_timeout = 50ms;
  options.connect_timeout = patience;
  options.observer = metrics;
  const Client client = start_client(std::move(options));
  const auto early = client.lock("early").acquire();
  REQUIRE(code_of(early) == Errc::no_quorum);
  CHECK(early.error().votes.at(0).cause == Cause::connecting);
  CHECK(contains(early.error().message, "its first connection is still being made"));
  CHECK(value(*metrics, R"(redlock_attempts_total{result="connecting"})") == 1);
  relay.pass();
  must(client.lock("early").acquire({.wait = patience}));
  CHECK(value(*metrics, R"(redlock_calls_total{result="no_quorum"})") == 1);
  relay.refuse();
  CHECK(eventually([&] {
    static_cast<void>(client.lock("late").acquire());
    return value(*metrics, R"(redlock_attempts_total{result="no_quorum"})") > 0;
  }));
}

TEST_CASE("metrics count calls by what their callers were given") {
  const auto metrics = std::make_shared<Metrics>();
  Client client = start_observed(three_nodes(), metrics);
  const auto calls = [&](const std::string& result) {
    return value(*metrics, "redlock_calls_total{result=\"" + result + "\"}");
  };
  Lease held = must(client.lock("called").acquire({.wait = patience}));
  CHECK(calls("granted") == 1);
  CHECK(code_of(client.lock("called").acquire()) == Errc::contended);
  CHECK(calls("contended") == 1);
  CHECK(code_of(client.lock("called").acquire({.wait = 1ms})) == Errc::timed_out);
  CHECK(calls("timed_out") == 1);
  std::stop_source stop;
  auto waiting =
      client.lock("called").async_acquire({.wait = patience}, stop.get_token()).as_future();
  stop.request_stop();
  CHECK(code_of(get_soon(waiting)) == Errc::cancelled);
  CHECK(calls("cancelled") == 1);
  // Ended before it began.
  CHECK(code_of(client.lock("called").acquire({}, stop.get_token())) == Errc::cancelled);
  CHECK(soon(*metrics, R"(redlock_calls_total{result="cancelled"})", 2));
  RedLock taken = client.lock("taken");
  REQUIRE(taken.try_lock());
  taken.unlock();
  CHECK(calls("granted") == 2);
  // What can never work asks nobody, and other operations are no calls for a lock.
  CHECK(code_of(client.lock("").acquire()) == Errc::invalid_argument);
  must(held.extend(40s));
  must(held.release());
  held = must(client.lock("called").acquire({.wait = patience}));
  auto last = client.lock("called").async_acquire({.wait = patience}).as_future();
  must(client.close());
  CHECK(code_of(get_soon(last)) == Errc::closed);
  CHECK(calls("closed") == 1);
  CHECK(calls("granted") == 3);
}

TEST_CASE("what a client told of its nodes is not shown after its end") {
  const auto metrics = std::make_shared<Metrics>();
  const std::string up = "redlock_node_up" + label_of(three_nodes(), 0);
  Client first = start_observed(three_nodes(), metrics);
  Client second = start_observed(three_nodes(), metrics);
  REQUIRE(soon(*metrics, up, 1));
  must(first.close());
  CHECK(value(*metrics, up) == 1);  // the second one still tells of it
  must(second.close());
  CHECK_FALSE(samples_of(metrics->text()).contains(up));
}

TEST_CASE("metrics may be read while they are written") {
  const auto metrics = std::make_shared<Metrics>();
  const Client client = start_observed(three_nodes(), metrics);
  std::thread writer([&] {
    for (int i = 0; i < 100; ++i) {
      const Lease lease = must(client.lock("read beside").acquire({.wait = patience}));
    }
  });
  double last = 0;
  for (int i = 0; i < 20; ++i) {
    const double now = value(*metrics, "redlock_acquire_duration_seconds_count");
    CHECK(now >= last);
    last = now;
  }
  writer.join();
  CHECK(soon(*metrics, "redlock_acquire_duration_seconds_count", 100));
}

TEST_CASE("metrics count each thing that an observer is told, and nothing else") {
  Metrics metrics;
  const auto change = [&](const auto& tell) {
    const Samples was = samples_of(metrics.text());
    tell();
    std::vector<std::string> changed;
    for (const auto& [sample, now] : samples_of(metrics.text())) {
      const auto found = was.find(sample);
      if ((found == was.end() ? 0 : found->second) != now) changed.push_back(sample);
    }
    return changed;
  };
  using Names = std::vector<std::string>;
  CHECK(change([&] { metrics.on_renewal("x", true, 1s); }) ==
        Names{R"(redlock_renewals_total{result="confirmed"})"});
  CHECK(change([&] { metrics.on_renewal("x", false, 1s); }) ==
        Names{R"(redlock_renewals_total{result="unconfirmed"})"});
  CHECK(change([&] { metrics.on_clock_moved("n", 1s, true); }) ==
        Names{R"(redlock_clock_moves_total{node=""})"});
  CHECK(change([&] { metrics.on_clock_moved("n", 1s, false); }) ==
        Names{R"(redlock_clock_moves_total{node="n"})"});
  CHECK(change([&] { metrics.on_release_failed("x", Error{}); }) ==
        Names{"redlock_failed_releases_total"});
  CHECK(change([&] { metrics.on_waiting("x", 3); }) == Names{"redlock_waiting_place"});
  CHECK(change([&] { metrics.on_call("another", nullptr); }) ==
        Names{R"(redlock_calls_total{result="granted"})"});
  constexpr Errc timed_out = Errc::timed_out;
  CHECK(change([&] { metrics.on_call("x", &timed_out); }) ==
        Names{R"(redlock_calls_total{result="timed_out"})", "redlock_waiting_place"});
  CHECK(change([&] { metrics.on_node_added("n"); }).empty());
  CHECK(change([&] { metrics.on_node_up("n", "unsafe"); }) ==
        Names{R"(redlock_node_up{node="n"})", R"(redlock_node_warning{node="n"})"});
  CHECK(change([&] { metrics.on_node_down("n", Cause::loading, ""); }) ==
        Names{R"(redlock_node_downs_total{node="n",cause="loading"})",
              R"(redlock_node_down{node="n",cause="loading"})", R"(redlock_node_up{node="n"})",
              R"(redlock_node_warning{node="n"})"});
  CHECK(change([&] { metrics.on_node_up("n", ""); }) ==
        Names{R"(redlock_node_down{node="n",cause="loading"})", R"(redlock_node_up{node="n"})"});
  CHECK(change([&] { metrics.on_lost("x", 1, LossReason::taken); }) ==
        Names{R"(redlock_leases_lost_total{reason="taken"})"});
  CHECK(change([&] { metrics.on_lost("x", 1, LossReason::closed); }) ==
        Names{R"(redlock_leases_lost_total{reason="closed"})"});
  CHECK(change([&] { metrics.on_closed({.released = 1, .already_gone = 2, .unconfirmed = 0}); }) ==
        Names{R"(redlock_closed_leases_total{result="already_gone"})",
              R"(redlock_closed_leases_total{result="released"})"});

  for (const std::uint64_t attempt : {7U, 7U, 7U, 8U}) {
    metrics.on_answer({"n", NodeCommand::acquire, attempt + 2, 1ms});
    metrics.on_answer({"n", NodeCommand::settle, attempt, 1ms});
  }
  CHECK(value(metrics, "redlock_second_round_trips_total") == 2);
  CHECK(value(metrics, R"(redlock_node_round_trip_seconds_count{node="n",command="settle"})") == 4);
}

TEST_CASE("labels are escaped as the text format has it") {
  Metrics metrics;
  metrics.on_node_up("a\"b\\c\nd\x1b", "");
  CHECK(value(metrics, R"(redlock_node_up{node="a\"b\\c\nd?"})") == 1);
}

std::set<std::string> families_in(const std::string& text, const std::regex& mention) {
  std::set<std::string> families;
  for (std::sregex_iterator match(text.begin(), text.end(), mention), end; match != end; ++match) {
    families.insert((*match)[1].str());
  }
  return families;
}

TEST_CASE("alerts, dashboard and document name the families that there are") {
  const auto families = families_in(Metrics().text(), std::regex("# TYPE ([a-z_]+)"));
  CHECK(families ==
        families_in(text_in(std::filesystem::path(REDLOCK_SOURCE_DIR) / "docs/metrics.md"),
                    std::regex(R"(\| `(redlock_[a-z_]+)` \|)")));
  const std::regex mention("(redlock_[a-z_]+?)(_bucket|_sum|_count)?\\b");
  for (const char* const file :
       {"cluster/monitoring/redlock.rules.yml", "cluster/monitoring/dashboard.json"}) {
    const auto named =
        families_in(text_in(std::filesystem::path(REDLOCK_SOURCE_DIR) / file), mention);
    CHECK(named.size() > 4);
    for (const std::string& family : named) CHECK_MESSAGE(families.contains(family), file, family);
  }
  const auto dashboard = nlohmann::json::parse(
      text_in(std::filesystem::path(REDLOCK_SOURCE_DIR) / "cluster/monitoring/dashboard.json"));
  for (const auto& panel : dashboard.at("panels")) CHECK_FALSE(panel.at("targets").empty());
}

TEST_CASE("a histogram counts what is within its bounds") {
  using std::chrono::nanoseconds;
  Metrics metrics;
  metrics.on_acquired("x", 1, nanoseconds(-5));
  metrics.on_acquired("x", 2, nanoseconds(500us));
  metrics.on_acquired("x", 3, nanoseconds(500us) + nanoseconds(1));
  metrics.on_acquired("x", 4, std::chrono::hours(2));
  const auto bucket = [&](const std::string& bound) {
    return value(metrics, R"(redlock_acquire_duration_seconds_bucket{le=")" + bound + R"("})");
  };
  CHECK(bucket("5e-04") == 2);
  CHECK(bucket("0.001") == 3);
  CHECK(bucket("3600") == 3);
  CHECK(bucket("+Inf") == 4);
  CHECK(value(metrics, "redlock_acquire_duration_seconds_count") == 4);
  CHECK(std::abs(value(metrics, "redlock_acquire_duration_seconds_sum") - 7200.001) < 1e-3);
}

}  // namespace
}  // namespace redlock::testing
