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
  return appended(all, more);
}

Finished bench(const Arguments& more, const Fleet& fleet = bench_nodes()) {
  return redlock(bench_arguments(more), variables_of(fleet));
}

json bench_json(const Arguments& more) {
  const auto finished = bench(appended(more, {"-o", "json"}));
  CHECK_MESSAGE(finished.status == 0, finished.err);
  return json::parse(finished.out);
}

/// Names of locks, lines and whatever else the bench has on any node; the fences are all names'.
std::string keys_left(const Fleet& fleet = bench_nodes()) {
  std::string all;
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    const auto keys = fleet.run(node, {"KEYS", "*redlock-bench*"});
    if (keys != "(empty array)") all += keys;
  }
  return all;
}

std::uint64_t sum_of(const json& counts) {
  std::uint64_t sum = 0;
  for (const auto& [name, count] : counts.items()) sum += count.get<std::uint64_t>();
  return sum;
}

std::uint64_t all_cycles(const json& result) {
  return result["cycles"].get<std::uint64_t>() + result["unstarted"].get<std::uint64_t>() +
         sum_of(result["failures"]);
}

/// Over all nodes.
std::uint64_t votes(const json& result, const char* vote) {
  std::uint64_t sum = 0;
  for (const auto& node : result["nodes"]) sum += node["votes"][vote].get<std::uint64_t>();
  return sum;
}

std::uint64_t unavailable_votes(const json& node) {
  return sum_of(node["votes"]["unavailable"]);
}

TEST_CASE("each cycle that was due is measured, and nothing is left") {
  const auto result = bench_json({"--rate", "100"});
  const auto cycles = result["cycles"].get<std::uint64_t>();
  REQUIRE(cycles > 0);
  check_members(result, {{"/settings/scenario", "healthy"},
                         {"/settings/concurrency", 4},
                         {"/settings/names", 4},
                         {"/settings/lease_ms", 10'000},
                         {"/times/acquire/count", 30},
                         {"/times/hold/count", cycles},
                         {"/times/release/count", cycles},
                         {"/times/late/count", cycles},
                         {"/times/hand-off/count", 0},
                         {"/grants", cycles},
                         {"/quorum", 3},
                         {"/failures", json::object()},
                         {"/fault", nullptr},
                         {"/interrupted", false}});
  CHECK(all_cycles(result) == 30);
  CHECK(result["over_time"].size() == 60);
  std::uint64_t acquired_over_time = 0;
  for (const auto& part : result["over_time"]) {
    acquired_over_time += part["count"].get<std::uint64_t>();
  }
  CHECK(acquired_over_time == 30);
  CHECK(result["times"]["quorum"]["count"].get<std::uint64_t>() >= cycles - 4);
  REQUIRE(result["nodes"].size() == 5);
  double slowest = 0;
  for (std::size_t node = 0; node < 5; ++node) {
    const auto& of_node = result["nodes"][node];
    slowest = std::max(slowest, of_node["round_trip"]["max_us"].get<double>());
    check_members(of_node, {{"/node", bench_nodes().uri(node)}, {"/relayed", false}});
    CHECK(of_node["round_trip"]["count"].get<std::uint64_t>() > 0);
  }
  CHECK(result["times"]["quorum"]["max_us"].get<double>() <= slowest);
  CHECK(votes(result, "granted") >= 3 * cycles);
  CHECK(keys_left() == "");
}

TEST_CASE("a rate beyond what callers can do is not hidden: what was due counts, begun or not") {
  const Arguments too_much{"--rate", "100000", "--concurrency", "1"};
  const auto result = bench_json(too_much);
  CHECK(all_cycles(result) == 30'000);
  CHECK(result["unstarted"].get<std::uint64_t>() > 0);
  CHECK(result["times"]["acquire"]["count"] == 30'000);
  // Those that were due first waited for nearly all of the time by its end.
  CHECK(result["times"]["acquire"]["max_us"].get<double>() >= 10'000);
  const auto finished = exits_with(3, bench(appended(too_much, {"--assert", "unstarted<=0"})));
  CHECK(contains(finished.out, "were due and not begun"));
}

TEST_CASE("the table has all rows, and says beforehand what is done") {
  const auto finished = exits_with(0, bench({}));
  for (const auto* text : {"healthy: ", "4 callers, 200 cycles/s", "no errors", "MILLISECONDS",
                           "acquire", "hold", "release", "hand-off", "late", "quorum (3rd of 5)",
                           "P99.9", "VOTES", "GRANTED", "settled in one round trip"}) {
    CAPTURE(text);
    CHECK(contains(finished.out, text));
  }
  CHECK(occurrences(finished.out, bench_nodes().uri(4)) == 2);
  check_contains(finished.err, {"bench: 4 callers, 200 cycles a second for 300ms on 5 nodes",
                                "no other lock is touched, and none is left"});
  CHECK_MESSAGE(!contains(finished.err, "\r"), "the live line is for terminals only");
}

TEST_CASE("csv is a row of numbers for each operation and each node") {
  const auto finished = exits_with(0, bench({"-o", "csv"}));
  const auto lines = lines_of(finished.out);
  REQUIRE(lines.size() == 12);
  CHECK(lines[0] == "what,count,p50_us,p90_us,p99_us,p99_9_us,max_us");
  for (const auto& line : lines) CHECK_MESSAGE(occurrences(line, ",") == 6, line);
  CHECK(lines[1].starts_with("\"acquire\","));
  CHECK(lines[6].starts_with("\"quorum\","));
  CHECK(lines[11].starts_with("\"" + bench_nodes().uri(4) + "\","));
}

TEST_CASE("what is asserted and holds ends with 0; what does not is said, and ends with 3") {
  const auto result = bench_json(
      {"--assert", "p99 < 60s", "--assert", "release.max<=60000ms", "--assert", "hold.p50>0us",
       "--assert", "errors<=0", "--assert", "errors<1%", "--assert", "throughput>=0.1", "--assert",
       "one-round-trip>=0%", "--assert", "quorum.p99.9<60s", "--assert", "late.mean<60s"});
  CHECK(result["assertions"].size() == 9);
  for (const auto& assertion : result["assertions"]) {
    CHECK_MESSAGE(assertion["holds"].get<bool>(), assertion.dump());
  }
  const auto finished = exits_with(
      3, bench({"--assert", "p50<1us", "--assert", "errors<=0", "--assert", "hand-off.p99<60s"}));
  check_contains(finished.err, {"p50<1us does not hold: ",
                                "hand-off.p99<60s does not hold: no hand-off was measured"});
  CHECK_FALSE(contains(finished.err, "errors"));
  CHECK(occurrences(finished.out, "DOES NOT HOLD") == 2);
  CHECK(keys_left() == "");
}

TEST_CASE("callers who contend hand the lock over, and so do more callers than names") {
  const auto contended =
      bench_json({"--scenario", "contended", "--rate", "max", "--duration", "1s"});
  const auto crowded =
      bench_json({"--names", "2", "--rate", "max", "--concurrency", "16", "--duration", "1s"});
  check_members(contended, {{"/settings/names", 1}, {"/settings/rate", nullptr}});
  CHECK(crowded["settings"]["names"] == 2);
  for (const auto& result : {contended, crowded}) {
    CHECK(result["failures"].empty());
    REQUIRE(result["times"]["hand-off"]["count"].get<std::uint64_t>() > 0);
    CHECK(result["times"]["hand-off"]["max_us"].get<double>() > 0);
  }
  CHECK(votes(contended, "refused") > 0);
  CHECK(keys_left() == "");
}

/// A scenario with a fault, in a directory of its own for the relays, which must be gone.
json with_fault(const std::string& scenario, const Arguments& more = {},
                const Fleet& fleet = bench_nodes()) {
  const TemporaryDirectory place;
  const auto finished = redlock(bench_arguments(appended(more, {"--scenario", scenario, "-o",
                                                                "json", "--duration", "1500ms"})),
                                variables_of(fleet, {{"TMPDIR", place.path().string()}}));
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

TEST_CASE("nodes that are down from the middle on cost their votes, and are not touched") {
  const auto result = with_fault("minority-down");
  CHECK(result["fault"]["what"] == "nodes 4 and 5 are down");
  for (const std::size_t node : {2U, 3U, 4U}) {
    const auto& of_node = result["nodes"][node];
    CHECK(of_node["relayed"] == (node > 2));
    CHECK((unavailable_votes(of_node) > 0) == (node > 2));
    CHECK(of_node["round_trip"]["count"].get<int>() > 0);
  }
}

TEST_CASE("nodes that hang from the middle on answer nothing any more") {
  const auto result = with_fault("minority-hung", {"--rate", "100"});
  CHECK(result["fault"]["what"] == "nodes 4 and 5 hang");
  for (const std::size_t node : {3U, 4U}) {
    CHECK(result["nodes"][node]["round_trip"]["count"] < result["nodes"][0]["round_trip"]["count"]);
  }
}

TEST_CASE("one node that is slow answers that much later, and is alone with it") {
  const Fleet three({.nodes = 3});
  const auto result = with_fault("one-slow", {}, three);
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
    const auto third = json::parse(finished.out)["nodes"][2];
    CHECK(third["node"] == label);
    CHECK(third["round_trip"]["count"].get<int>() > 0);
    CHECK(unavailable_votes(third) > 0);
  }
}

/// How many calls of scripts a node has executed.
int script_calls(std::size_t node = 0) {
  return calls_of(bench_nodes(), node, "evalsha");
}

TEST_CASE("an interrupt ends it with what was measured until then, and nothing is left") {
  for (const auto* scenario : {"healthy", "minority-hung", "contended"}) {
    CAPTURE(scenario);
    const TemporaryDirectory place;
    const auto before = script_calls();
    Running running(bench_arguments({"--duration", "1m", "--rate", "max", "--scenario", scenario}),
                    variables_of(bench_nodes(), {{"TMPDIR", place.path().string()}}));
    REQUIRE(eventually([&] { return script_calls() > before + 300; }));
    running.signal(SIGINT);
    const auto finished = exits_with(128 + SIGINT, running.wait());
    CHECK(keys_left() == "");
    CHECK(contains(finished.out, "(interrupted)"));
    CHECK(std::filesystem::is_empty(place.path()));
  }
}

/// Until the last node has executed nothing for a while in which the first one did; false if the
/// process ended before.
bool await_hang(const Running& running) {
  const ProcessWatch process(running.pid());
  int last_there = script_calls(4);
  int since = script_calls();
  REQUIRE(eventually([&] { return !process.is_running() || script_calls(4) > last_there; }));
  REQUIRE(eventually([&] {
    const int here = script_calls();
    const int there = script_calls(4);
    if (std::exchange(last_there, there) != there) since = here;
    return !process.is_running() || here > since + 100;
  }));
  return process.is_running();
}

TEST_CASE("an interrupt amid a fault ends the fault, and the figures are there") {
  const TemporaryDirectory place;
  Finished finished;
  // The fault begins half-way; a slow machine may notice only when all is over.
  for (const auto* duration : {"4s", "20s", "50s"}) {
    Running running(
        bench_arguments({"--duration", duration, "--scenario", "minority-hung", "-o", "json"}),
        variables_of(bench_nodes(), {{"TMPDIR", place.path().string()}}));
    const bool interrupted = await_hang(running);
    if (interrupted) running.signal(SIGINT);
    finished = running.wait();
    if (interrupted) break;
  }
  CHECK(finished.status == 128 + SIGINT);
  CHECK_FALSE(contains(finished.err, "not all nodes answer"));
  const auto result = json::parse(finished.out);
  check_members(result, {{"/interrupted", true}, {"/fault/what", "nodes 4 and 5 hang"}});
  CHECK(result["cycles"].get<int>() > 0);
  CHECK(std::filesystem::is_empty(place.path()));
  CHECK(keys_left() == "");
  // By way of the nodes that hung: the three others are asked for nothing.
  const auto hung = nodes_variable({bench_nodes().uri(3), bench_nodes().uri(4)});
  CHECK(redlock(patient(exec_a({"--wait", "0"}, {"true"})), hung).status == 0);
}

TEST_CASE("a node that is dead from the start is measured as that; without a quorum nothing is") {
  Fleet fleet({.nodes = 3});
  fleet.kill(2);
  const auto finished = bench({"--lease", "1s", "-o", "json"}, fleet);
  REQUIRE_MESSAGE(finished.status == 0, finished.err);
  CHECK(contains(finished.err, "not all nodes answer; a lock "));
  const auto dead = json::parse(finished.out)["nodes"][2];
  CHECK(dead["round_trip"]["count"] == 0);
  CHECK(unavailable_votes(dead) > 0);
  fleet.kill(1);
  const auto without_quorum = exits_with(
      69, redlock({"bench", "--lease", "100ms", "--duration", "200ms"}, variables_of(fleet)));
  CHECK(contains(without_quorum.err, "no quorum"));
  CHECK(without_quorum.out.empty());
}

TEST_CASE("a rate slower than a clock can count is one cycle, and no flood") {
  for (const auto* rate : {"0.001", "1e-9", "1e-300"}) {
    CAPTURE(rate);
    CHECK(all_cycles(bench_json({"--rate", rate})) == 1);
  }
}

TEST_CASE("without room for the relays' sockets it says what to do, and leaves nothing") {
  const TemporaryDirectory place;
  const auto deep = place.path() / std::string(100, 'x');
  std::filesystem::create_directory(deep);
  for (const auto& directory : {deep, place.path() / "missing"}) {
    CAPTURE(directory.string());
    const auto finished =
        exits_with(125, redlock(bench_arguments({"--scenario", "one-slow"}),
                                variables_of(bench_nodes(), {{"TMPDIR", directory.string()}})));
    check_contains(finished.err, {"--scenario one-slow needs a directory for Unix sockets: ",
                                  "name another one in TMPDIR"});
    CHECK(finished.out.empty());
  }
  CHECK(std::filesystem::is_empty(deep));
}

TEST_CASE("what it cannot do is said in a sentence, before anything is begun") {
  struct BadInput {
    const char* option;
    const char* value;
    const char* sentence;
  };
  const auto refuses = [](const BadInput& input, const Fleet& fleet = bench_nodes()) {
    CAPTURE(input.sentence);
    const auto finished = exits_with(64, bench({input.option, input.value}, fleet));
    CHECK_MESSAGE(contains(finished.err, input.sentence), finished.err);
    CHECK(finished.out.empty());
  };
  for (const BadInput& input : {
           BadInput{"--rate", "0", "--rate: '0' is no number of cycles a second"},
           BadInput{"--rate", "fast", "or write max"},
           BadInput{"--rate", "1e9", "up to 100000"},
           BadInput{"--concurrency", "0", "--concurrency: 0 is not between 1 and 256"},
           BadInput{"--concurrency", "300", "--concurrency: 300 is not between"},
           BadInput{"--concurrency", "-1", "--concurrency: '-1' is not between 1 and 256"},
           BadInput{"--concurrency", "1e2", "--concurrency: '1e2' is not between 1 and 256"},
           BadInput{"--names", "1000", "--names: 1000 is not between 1 and 100"},
           BadInput{"--names", "all", "--names: 'all' is not between 1 and 100"},
           BadInput{"--lease", "1m", "--lease 1m is not between 100ms and 10s"},
           BadInput{"--duration", "10ms", "--duration 10ms is not between 100ms and 1h"},
           BadInput{"--scenario", "storm",
                    "there is no scenario 'storm'; there are healthy, minority-down"},
           BadInput{"--assert", "p99=5ms", "there is no <, <=, > or >= in it"},
           BadInput{"--assert", "p98<5ms", "'p98' is not measured"},
           BadInput{"--assert", "p99<5", "the limit of a time needs a unit"},
           BadInput{"--assert", "p99<soon", "the limit is not a number"},
           BadInput{"--assert", "p99<infms", "the limit is not a number"},
           BadInput{"--assert", "throughput>5ms", "the limit is a number"},
           BadInput{"--assert", "one-round-trip>0.9", "the limit is a percentage"},
           BadInput{"-o", "xml", "'xml' is not table, json or csv"},
       }) {
    refuses(input);
  }
  refuses({"--scenario", "minority-down", "--scenario minority-down needs three nodes or more"},
          Fleet({.nodes = 2}));
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
