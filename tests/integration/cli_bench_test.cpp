// SPDX-License-Identifier: MIT
// redlock bench on real nodes: what it measures and prints, what it asserts, and that neither a
// fault, an interrupt nor an error leaves anything on the nodes.
#include "cli_process.hpp"
#include "on_terminal.hpp"

namespace redlock::testing {
namespace {

const Fleet& bench_nodes() {
  static const Fleet fleet({.nodes = 5});
  return fleet;
}

/// A short run that a busy machine does not disturb, but for what `more` says.
Arguments bench_arguments(const Arguments& more) {
  Arguments all{"bench"};
  for (const auto& [option, value] :
       {std::pair{"--node-timeout", "10s"}, std::pair{"--lease", "10s"},
        std::pair{"--duration", "300ms"}, std::pair{"--concurrency", "4"}}) {
    if (std::find(more.begin(), more.end(), option) != more.end()) continue;
    all.insert(all.end(), {option, value});
  }
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Finished bench(const Fleet& fleet, const Arguments& more) {
  return redlock(bench_arguments(more), nodes_variable(fleet.uris()));
}

json bench_json(const Fleet& fleet, Arguments more, int status = 0) {
  more.insert(more.end(), {"-o", "json"});
  const auto finished = bench(fleet, more);
  CHECK_MESSAGE(finished.status == status, finished.err);
  return json::parse(finished.out);
}

/// Names of locks, lines and whatever else the bench has on any node; the fences are all names'.
std::string keys_left(const Fleet& fleet) {
  std::string all;
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    const auto keys = fleet.run(node, {"KEYS", "*redlock-bench*"});
    if (keys != "(empty array)") all += keys;
  }
  return all;
}

std::uint64_t all_cycles(const json& result) {
  std::uint64_t failed = 0;
  for (const auto& [code, count] : result["failures"].items()) failed += count.get<std::uint64_t>();
  return result["cycles"].get<std::uint64_t>() + result["unstarted"].get<std::uint64_t>() + failed;
}

TEST_CASE("each cycle that was due is measured, and nothing is left") {
  const auto result = bench_json(bench_nodes(), {"--rate", "100"});
  CHECK(result["settings"]["scenario"] == "healthy");
  CHECK(result["settings"]["concurrency"] == 4);
  CHECK(result["settings"]["names"] == 4);
  CHECK(result["settings"]["lease_ms"] == 10'000);
  CHECK(all_cycles(result) == 30);
  CHECK(result["times"]["acquire"]["count"] == 30);
  CHECK(result["failures"].empty());
  const auto cycles = result["cycles"].get<std::uint64_t>();
  REQUIRE(cycles > 0);
  for (const auto* what : {"hold", "release", "late"}) {
    CAPTURE(what);
    CHECK(result["times"][what]["count"] == cycles);
  }
  CHECK(result["times"]["hand-off"]["count"] == 0);
  CHECK(result["over_time"].size() == 60);
  std::uint64_t acquired_over_time = 0;
  for (const auto& part : result["over_time"]) {
    acquired_over_time += part["count"].get<std::uint64_t>();
  }
  CHECK(acquired_over_time == 30);
  CHECK(result["grants"] == cycles);
  CHECK(result["quorum"] == 3);
  CHECK(result["times"]["quorum"]["count"].get<std::uint64_t>() >= cycles - 4);
  CHECK(result["fault"].is_null());
  CHECK_FALSE(result["interrupted"].get<bool>());
  REQUIRE(result["nodes"].size() == 5);
  std::uint64_t granted = 0;
  for (std::size_t node = 0; node < 5; ++node) {
    const auto& of_node = result["nodes"][node];
    CHECK(of_node["node"] == bench_nodes().uri(node));
    CHECK_FALSE(of_node["relayed"].get<bool>());
    CHECK(of_node["round_trip"]["count"].get<std::uint64_t>() > 0);
    granted += of_node["votes"]["granted"].get<std::uint64_t>();
  }
  CHECK(granted >= 3 * cycles);
  CHECK(keys_left(bench_nodes()) == "");
}

TEST_CASE("quantiles rise, and the quorum is no slower than its slowest node") {
  const auto result = bench_json(bench_nodes(), {"--rate", "max"});
  for (const auto& entry : result["times"].items()) {
    const json& times = entry.value();
    if (times["count"] == 0) continue;
    CAPTURE(entry.key());
    double before = 0;
    for (const auto* quantile : {"p50_us", "p90_us", "p99_us", "p99_9_us", "max_us"}) {
      CHECK(times[quantile].get<double>() >= before);
      before = times[quantile].get<double>();
    }
  }
  double slowest = 0;
  for (const auto& node : result["nodes"]) {
    slowest = std::max(slowest, node["round_trip"]["max_us"].get<double>());
  }
  CHECK(result["times"]["quorum"]["max_us"].get<double>() <= slowest);
  CHECK(result["settings"]["rate"].is_null());
}

TEST_CASE("a rate beyond what callers can do is not hidden: what was due counts, begun or not") {
  const auto result = bench_json(bench_nodes(), {"--rate", "100000", "--concurrency", "1"});
  CHECK(all_cycles(result) == 30'000);
  CHECK(result["unstarted"].get<std::uint64_t>() > 0);
  CHECK(result["times"]["acquire"]["count"] == 30'000);
  // Those that were due first waited for nearly all of the time by its end.
  CHECK(result["times"]["acquire"]["max_us"].get<double>() >= 10'000);
  const auto finished =
      bench(bench_nodes(), {"--rate", "100000", "--concurrency", "1", "--assert", "unstarted<=0"});
  CHECK(finished.status == 3);
  CHECK(contains(finished.out, "were due and not begun"));
}

TEST_CASE("the table has all rows, and says beforehand what is done") {
  const auto finished = bench(bench_nodes(), {});
  CHECK(finished.status == 0);
  for (const auto* text : {"healthy: ", "4 callers, 200 cycles/s", "no errors", "MILLISECONDS",
                           "acquire", "hold", "release", "hand-off", "late", "quorum (3rd of 5)",
                           "P99.9", "VOTES", "GRANTED", "settled in one round trip"}) {
    CAPTURE(text);
    CHECK(contains(finished.out, text));
  }
  CHECK(occurrences(finished.out, bench_nodes().uri(4)) == 2);
  CHECK(contains(finished.err, "bench: 4 callers, 200 cycles a second for 300ms on 5 nodes"));
  CHECK(contains(finished.err, "no other lock is touched, and none is left"));
  CHECK_MESSAGE(!contains(finished.err, "\r"), "the live line is for terminals only");
}

TEST_CASE("csv is a row of numbers for each operation and each node") {
  const auto finished = bench(bench_nodes(), {"-o", "csv"});
  CHECK(finished.status == 0);
  std::istringstream lines(finished.out);
  std::string line;
  std::getline(lines, line);
  CHECK(line == "what,count,p50_us,p90_us,p99_us,p99_9_us,max_us");
  std::vector<std::string> names;
  while (std::getline(lines, line)) {
    CAPTURE(line);
    CHECK(std::count(line.begin(), line.end(), ',') == 6);
    names.push_back(line.substr(0, line.find(',')));
  }
  REQUIRE(names.size() == 11);
  CHECK(names[0] == "\"acquire\"");
  CHECK(names[5] == "\"quorum\"");
  CHECK(names[10] == "\"" + bench_nodes().uri(4) + "\"");
}

TEST_CASE("what is asserted and holds ends with 0") {
  const auto result = bench_json(
      bench_nodes(),
      {"--assert", "p99 < 60s", "--assert", "release.max<=60000ms", "--assert", "hold.p50>0us",
       "--assert", "errors<=0", "--assert", "errors<1%", "--assert", "throughput>=0.1", "--assert",
       "one-round-trip>=0%", "--assert", "quorum.p99.9<60s", "--assert", "late.mean<60s"});
  CHECK(result["assertions"].size() == 9);
  for (const auto& assertion : result["assertions"]) {
    CAPTURE(assertion.dump());
    CHECK(assertion["holds"].get<bool>());
  }
}

TEST_CASE("what is asserted and does not hold ends with 3, and is said") {
  const auto finished = bench(bench_nodes(), {"--assert", "p50<1us", "--assert", "errors<=0",
                                              "--assert", "hand-off.p99<60s"});
  CHECK(finished.status == 3);
  CHECK(contains(finished.err, "p50<1us does not hold: "));
  CHECK(contains(finished.err, "hand-off.p99<60s does not hold: no hand-off was measured"));
  CHECK_FALSE(contains(finished.err, "errors"));
  CHECK(occurrences(finished.out, "DOES NOT HOLD") == 2);
  CHECK(keys_left(bench_nodes()) == "");
}

TEST_CASE("callers who contend hand the lock over, between clients") {
  const auto result =
      bench_json(bench_nodes(), {"--scenario", "contended", "--rate", "max", "--duration", "1s"});
  CHECK(result["settings"]["names"] == 1);
  CHECK(result["failures"].empty());
  REQUIRE(result["times"]["hand-off"]["count"].get<std::uint64_t>() > 0);
  CHECK(result["times"]["hand-off"]["max_us"].get<double>() > 0);
  std::uint64_t refused = 0;
  for (const auto& node : result["nodes"]) refused += node["votes"]["refused"].get<std::uint64_t>();
  CHECK(refused > 0);
  CHECK(keys_left(bench_nodes()) == "");
}

TEST_CASE("fewer names than callers make them wait for each other as well") {
  const auto result = bench_json(
      bench_nodes(), {"--names", "2", "--rate", "max", "--concurrency", "16", "--duration", "1s"});
  CHECK(result["settings"]["names"] == 2);
  CHECK(result["times"]["hand-off"]["count"].get<std::uint64_t>() > 0);
}

/// A scenario with a fault, in a directory of its own for the relays, which must be gone.
json with_fault(const Fleet& fleet, const std::string& scenario, Arguments more = {}) {
  const TemporaryDirectory place;
  auto variables = nodes_variable(fleet.uris());
  variables["TMPDIR"] = place.path().string();
  more.insert(more.end(), {"--scenario", scenario, "-o", "json", "--duration", "1500ms"});
  const auto finished = redlock(bench_arguments(more), variables);
  CHECK_MESSAGE(finished.status == 0, finished.err);
  CHECK(std::filesystem::is_empty(place.path()));
  CHECK(keys_left(fleet) == "");
  auto result = json::parse(finished.out);
  CHECK(result["failures"].empty());
  REQUIRE_FALSE(result["fault"].is_null());
  CHECK(result["fault"]["at_s"].get<double>() >= 0.75);
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    CHECK(fleet.run(node, {"PING"}) == "PONG");
    CHECK(result["nodes"][node]["node"] == fleet.uri(node));
  }
  return result;
}

std::uint64_t unavailable_votes(const json& node) {
  std::uint64_t sum = 0;
  for (const auto& [cause, count] : node["votes"]["unavailable"].items()) {
    sum += count.get<std::uint64_t>();
  }
  return sum;
}

TEST_CASE("nodes that are down from the middle on cost their votes, and are not touched") {
  const auto result = with_fault(bench_nodes(), "minority-down");
  CHECK(result["fault"]["what"] == "nodes 4 and 5 are down");
  for (const auto& [node, relayed] :
       {std::pair{2, false}, std::pair{3, true}, std::pair{4, true}}) {
    const auto& of_node = result["nodes"][static_cast<std::size_t>(node)];
    CHECK(of_node["relayed"] == relayed);
    CHECK((unavailable_votes(of_node) > 0) == relayed);
    CHECK(of_node["round_trip"]["count"].get<int>() > 0);
  }
}

TEST_CASE("nodes that hang from the middle on answer nothing any more") {
  const auto result = with_fault(bench_nodes(), "minority-hung", {"--rate", "100"});
  CHECK(result["fault"]["what"] == "nodes 4 and 5 hang");
  const auto answers = [&](std::size_t node) {
    return result["nodes"][node]["round_trip"]["count"].get<int>();
  };
  for (const std::size_t node : {3U, 4U}) CHECK(answers(node) < answers(0));
}

TEST_CASE("one node that is slow answers that much later, and is alone with it") {
  const Fleet three({.nodes = 3});
  const auto result = with_fault(three, "one-slow");
  CHECK(result["fault"]["what"] == "node 3 answers 20 ms later");
  CHECK(result["nodes"][2]["relayed"].get<bool>());
  CHECK(result["nodes"][2]["round_trip"]["max_us"].get<double>() >= 20'000);
}

TEST_CASE("nodes with passwords, databases and Unix sockets are reached through relays, too") {
  const Fleet fleet({.nodes = 3, .unix_sockets = true});
  const auto uri = fleet.unix_uri(2) + "?db=3";
  fleet.run(1, {"CONFIG", "SET", "requirepass", "secret"});
  const auto host_and_port = fleet.uri(1).substr(std::string("redis://").size());
  for (const auto& [nodes, label] :
       {std::pair{fleet.uri(0) + "," + fleet.uri(2) + ",redis://:secret@" + host_and_port + "/2",
                  "redis://" + host_and_port + "/2"},
        std::pair{fleet.uri(0) + ",redis://:secret@" + host_and_port + "," + uri, uri}}) {
    const auto finished =
        redlock(bench_arguments({"--scenario", "minority-down", "-o", "json", "--duration", "1s"}),
                {{"REDLOCK_NODES", nodes}, {"REDLOCK_QUARANTINE", "off"}});
    REQUIRE_MESSAGE(finished.status == 0, finished.err);
    CHECK_FALSE(contains(finished.out + finished.err, "secret"));
    const auto result = json::parse(finished.out);
    CHECK(result["nodes"][2]["node"] == label);
    CHECK(result["nodes"][2]["round_trip"]["count"].get<int>() > 0);
    CHECK(unavailable_votes(result["nodes"][2]) > 0);
  }
}

/// How many calls of scripts a node has executed.
int script_calls(const Fleet& fleet, std::size_t node = 0) {
  const auto statistics = fleet.run(node, {"INFO", "commandstats"});
  const std::string before_number = "cmdstat_evalsha:calls=";
  const auto at = statistics.find(before_number);
  return at == std::string::npos ? 0 : std::stoi(statistics.substr(at + before_number.size()));
}

TEST_CASE("an interrupt ends it with what was measured until then, and nothing is left") {
  for (const auto* scenario : {"healthy", "minority-hung", "contended"}) {
    CAPTURE(scenario);
    const TemporaryDirectory place;
    auto variables = nodes_variable(bench_nodes().uris());
    variables["TMPDIR"] = place.path().string();
    const auto before = script_calls(bench_nodes());
    Running running(bench_arguments({"--duration", "1m", "--rate", "max", "--scenario", scenario}),
                    variables);
    REQUIRE(eventually([&] { return script_calls(bench_nodes()) > before + 300; }));
    running.signal(SIGINT);
    const auto finished = running.wait();
    CHECK(finished.status == 128 + SIGINT);
    CHECK(keys_left(bench_nodes()) == "");
    CHECK(contains(finished.out, "(interrupted)"));
    CHECK(std::filesystem::is_empty(place.path()));
  }
}

/// Until the last node has executed nothing for a while in which the first one did; false if the
/// process ended before.
bool await_hang(const Fleet& fleet, const Running& running) {
  const ProcessWatch process(running.pid());
  int last_there = script_calls(fleet, fleet.size() - 1);
  int since = script_calls(fleet);
  const bool begun_there = eventually(
      [&] { return !process.is_running() || script_calls(fleet, fleet.size() - 1) > last_there; });
  REQUIRE(begun_there);
  REQUIRE(eventually([&] {
    const int here = script_calls(fleet);
    const int there = script_calls(fleet, fleet.size() - 1);
    if (std::exchange(last_there, there) != there) since = here;
    return !process.is_running() || here > since + 100;
  }));
  return process.is_running();
}

TEST_CASE(
    "an interrupt amid a fault ends the fault: its nodes can be used, and the figures are there") {
  const TemporaryDirectory place;
  auto variables = nodes_variable(bench_nodes().uris());
  variables["TMPDIR"] = place.path().string();
  Finished finished;
  // The fault begins half-way; a slow machine may notice only when all is over.
  for (const auto* duration : {"4s", "20s", "50s"}) {
    Running running(
        bench_arguments({"--duration", duration, "--scenario", "minority-hung", "-o", "json"}),
        variables);
    const bool interrupted = await_hang(bench_nodes(), running);
    if (interrupted) running.signal(SIGINT);
    finished = running.wait();
    if (interrupted) break;
  }
  CHECK(finished.status == 128 + SIGINT);
  CHECK_FALSE(contains(finished.err, "not all nodes answer"));
  const auto result = json::parse(finished.out);
  CHECK(result["interrupted"].get<bool>());
  CHECK(result["cycles"].get<int>() > 0);
  REQUIRE_FALSE(result["fault"].is_null());
  CHECK(result["fault"]["what"] == "nodes 4 and 5 hang");
  CHECK(std::filesystem::is_empty(place.path()));
  CHECK(keys_left(bench_nodes()) == "");
  // By way of the nodes that hung: the three others are asked for nothing.
  const std::vector<std::string> hung{bench_nodes().uri(3), bench_nodes().uri(4)};
  CHECK(redlock({"exec", "afterwards", "--node-timeout", "10s", "--wait", "0", "--", "true"},
                nodes_variable(hung))
            .status == 0);
}

TEST_CASE("output that cannot be written leaves nothing on the nodes either") {
  const auto script = command_path() + " bench --duration 200ms --node-timeout 10s >/dev/full";
  const auto finished =
      Running({"-c", script}, nodes_variable(bench_nodes().uris()), "/bin/sh").wait();
  CHECK(finished.status == 125);
  CHECK(contains(finished.err, "cannot write to stdout"));
  CHECK(keys_left(bench_nodes()) == "");
}

TEST_CASE("without a quorum it says so, and measures nothing") {
  Fleet fleet({.nodes = 3});
  fleet.kill(1);
  fleet.kill(2);
  const auto finished =
      redlock({"bench", "--lease", "100ms", "--duration", "200ms"}, nodes_variable(fleet.uris()));
  CHECK(finished.status == 69);
  CHECK(contains(finished.err, "no quorum"));
  CHECK(finished.out.empty());
}

TEST_CASE("a rate slower than a clock can count is one cycle, and no flood") {
  for (const auto* rate : {"0.001", "1e-9", "1e-300"}) {
    CAPTURE(rate);
    CHECK(all_cycles(bench_json(bench_nodes(), {"--rate", rate})) == 1);
  }
}

TEST_CASE("without room for the relays' sockets it says what to do, and leaves nothing") {
  const TemporaryDirectory place;
  const auto deep = place.path() / std::string(100, 'x');
  std::filesystem::create_directory(deep);
  for (const auto& directory : {deep, place.path() / "missing"}) {
    CAPTURE(directory.string());
    auto variables = nodes_variable(bench_nodes().uris());
    variables["TMPDIR"] = directory.string();
    const auto finished = redlock(bench_arguments({"--scenario", "one-slow"}), variables);
    CHECK(finished.status == 125);
    CHECK(contains(finished.err, "--scenario one-slow needs a directory for Unix sockets: "));
    CHECK(contains(finished.err, "name another one in TMPDIR"));
    CHECK(finished.out.empty());
  }
  CHECK(std::filesystem::is_empty(deep));
}

TEST_CASE("a node that is dead from the start is measured as that") {
  Fleet fleet({.nodes = 3});
  fleet.kill(2);
  const auto finished = redlock(
      {"bench", "--lease", "1s", "--duration", "300ms", "--node-timeout", "10s", "-o", "json"},
      nodes_variable(fleet.uris()));
  REQUIRE_MESSAGE(finished.status == 0, finished.err);
  CHECK(contains(finished.err, "not all nodes answer; a lock "));
  const auto result = json::parse(finished.out);
  CHECK(result["nodes"][2]["round_trip"]["count"] == 0);
  CHECK(unavailable_votes(result["nodes"][2]) > 0);
}

TEST_CASE("what it cannot do is said in a sentence, before anything is begun") {
  struct BadInput {
    Arguments arguments;
    const char* sentence;
  };
  for (const BadInput& input : {
           BadInput{{"--rate", "0"}, "--rate: '0' is no number of cycles a second"},
           BadInput{{"--rate", "fast"}, "or write max"},
           BadInput{{"--rate", "1e9"}, "up to 100000"},
           BadInput{{"--concurrency", "0"}, "--concurrency: 0 is not between 1 and 256"},
           BadInput{{"--concurrency", "300"}, "--concurrency: 300 is not between"},
           BadInput{{"--concurrency", "-1"}, "--concurrency: '-1' is not between 1 and 256"},
           BadInput{{"--concurrency", "1e2"}, "--concurrency: '1e2' is not between 1 and 256"},
           BadInput{{"--names", "1000"}, "--names: 1000 is not between 1 and 100"},
           BadInput{{"--names", "all"}, "--names: 'all' is not between 1 and 100"},
           BadInput{{"--lease", "1m"}, "--lease 1m is not between 100ms and 10s"},
           BadInput{{"--duration", "10ms"}, "--duration 10ms is not between 100ms and 1h"},
           BadInput{{"--scenario", "storm"},
                    "there is no scenario 'storm'; there are healthy, minority-down"},
           BadInput{{"--assert", "p99=5ms"}, "there is no <, <=, > or >= in it"},
           BadInput{{"--assert", "p98<5ms"}, "'p98' is not measured"},
           BadInput{{"--assert", "p99<5"}, "the limit of a time needs a unit"},
           BadInput{{"--assert", "p99<soon"}, "the limit is not a number"},
           BadInput{{"--assert", "p99<infms"}, "the limit is not a number"},
           BadInput{{"--assert", "throughput>5ms"}, "the limit is a number"},
           BadInput{{"--assert", "one-round-trip>0.9"}, "the limit is a percentage"},
           BadInput{{"-o", "xml"}, "'xml' is not table, json or csv"},
       }) {
    CAPTURE(input.sentence);
    const auto finished = bench(bench_nodes(), input.arguments);
    CHECK(finished.status == 64);
    CHECK_MESSAGE(contains(finished.err, input.sentence), finished.err);
    CHECK(finished.out.empty());
  }
  const Fleet two({.nodes = 2});
  const auto finished = bench(two, {"--scenario", "minority-down"});
  CHECK(finished.status == 64);
  CHECK(contains(finished.err, "--scenario minority-down needs three nodes or more"));
}

TEST_CASE("on a terminal a line shows how far it is, and goes away") {
  OnTerminal session(bench_nodes(),
                     "$REDLOCK bench --duration 3s --node-timeout 10s; echo status $?");
  CHECK(session.await(" of 3 s, "));
  CHECK(session.await("\r\x1b[K"));
  CHECK(session.await("status 0"));
  // At once and every second, unless the machine stood still meanwhile.
  static const std::regex line(R"(bench: (\d+) of 3 s, )");
  std::vector<int> seconds_done;
  const std::string& shown = session.shown();
  for (std::sregex_iterator match(shown.begin(), shown.end(), line), end; match != end; ++match) {
    seconds_done.push_back(std::stoi((*match)[1]));
  }
  CHECK(seconds_done.size() >= 2);
  CHECK(std::ranges::is_sorted(seconds_done, std::ranges::less_equal()));
}

}  // namespace
}  // namespace redlock::testing
