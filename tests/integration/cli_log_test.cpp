// SPDX-License-Identifier: MIT
// --log json: every line on stderr is an object, and says what happened. --trace: every message.
#include "cli_process.hpp"

namespace redlock::testing {
namespace {

/// What was said, every line of it checked.
std::vector<json> events_in(const std::string& text) {
  std::vector<json> events;
  for (const auto& line : lines_of(text)) {
    CAPTURE(line);
    events.push_back(json::parse(line));
    const auto& event = events.back();
    CHECK(std::regex_match(event["time"].get<std::string>(),
                           std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)")));
    CHECK(std::regex_match(event["level"].get<std::string>(),
                           std::regex("debug|info|warning|error")));
    CHECK_FALSE(event["event"].get<std::string>().empty());
    CHECK_FALSE(event["message"].get<std::string>().empty());
  }
  return events;
}

/// The first of this name.
json event_of(const std::vector<json>& events, const std::string& name) {
  const auto found =
      std::ranges::find_if(events, [&name](const json& event) { return event["event"] == name; });
  REQUIRE_MESSAGE(found != events.end(), name, " is not among ", json(events).dump());
  return *found;
}

/// redlock exec with a log in JSON.
Arguments logged(const Arguments& options, const Arguments& command) {
  return exec_a(appended({"--log", "json"}, options), command);
}

TEST_CASE_FIXTURE(ThreeNodes, "exec logs nodes, the grant and the release") {
  const auto finished = exits_with(0, run(logged({}, {"sh", "-c", "echo $REDLOCK_TOKEN"})));
  const auto events = events_in(finished.err);
  const auto up = event_of(events, "node_up");
  CHECK(std::ranges::count(fleet.uris(), up["node"].get<std::string>()) == 1);
  CHECK((up["level"] == "info") == up["warning"].is_null());
  const auto acquired = event_of(events, "acquired");
  CHECK(acquired["name"] == "a");
  CHECK(std::to_string(acquired["token"].get<std::uint64_t>()) + "\n" == finished.out);
  CHECK(acquired["waited_ms"].is_number());
  const auto released = event_of(events, "released");
  CHECK(released["token"] == acquired["token"]);
  CHECK(released["held_ms"].is_number());
}

TEST_CASE_FIXTURE(ThreeNodes, "a wait is an event") {
  const Holder holder(fleet);
  Running exec(fleet, logged({"--wait", "60s"}, {"true"}));
  REQUIRE(exec.await_err("\"waiting\""));
  exec.signal(SIGTERM);
  const auto finished = exits_with(128 + SIGTERM, exec.wait());
  const auto waiting = event_of(events_in(finished.err), "waiting");
  CHECK(waiting["name"] == "a");
  CHECK(waiting["left_ms"].get<int>() <= 60'000);
  CHECK_FALSE(waiting["reason"].get<std::string>().empty());
  CHECK(contains(waiting["message"].get<std::string>(), "waiting"));
}

TEST_CASE_FIXTURE(ThreeNodes, "a failure is the last event, with its status; not with -E 0") {
  const Holder holder(fleet);
  const auto failed = exits_with(75, run(logged({"--wait", "0"}, {"true"})));
  check_members(events_in(failed.err).back(),
                {{"/event", "failed"}, {"/level", "error"}, {"/status", 75}});
  const auto passed = exits_with(0, run(logged({"--wait", "0", "-E", "0"}, {"true"})));
  CHECK(events_in(passed.err).back()["level"] == "info");
}

TEST_CASE_FIXTURE(ThreeNodes, "a loss is logged with its reason, and what became of the command") {
  Running exec(fleet, logged({"--lease", "12s"}, {"sleep", "1000"}));
  REQUIRE(exec.await_err("\"acquired\""));
  REQUIRE(run({"release", "a", "--force"}).status == 0);
  const auto finished = exits_with(79, exec.wait());
  const auto events = events_in(finished.err);
  check_members(event_of(events, "lost"), {{"/level", "error"}, {"/reason", "forced"}});
  const auto told = event_of(events, "command_told_to_end");
  check_members(told, {{"/name", "a"}, {"/signal", "SIGTERM"}});
  CHECK(contains(told["message"].get<std::string>(), "the lock was released by force"));
}

TEST_CASE_FIXTURE(ThreeNodes, "nodes that go away are events") {
  Running exec(fleet, logged({}, {"sh", "-c", "read line"}));
  REQUIRE(exec.await_err("\"acquired\""));
  fleet.kill(1);
  REQUIRE(exec.await_err("\"node_down\""));
  const auto finished = exec.wait();
  const auto down = event_of(events_in(finished.err), "node_down");
  CHECK(down["node"] == fleet.uri(1));
  CHECK(down["level"] == "warning");
  CHECK_FALSE(down["cause"].get<std::string>().empty());
}

TEST_CASE("what is wrong with the arguments is an event as well, and text stays as it is") {
  const Variables nodes{{"REDLOCK_NODES", "redis://127.0.0.1:1"}};
  for (const Arguments& bad : {Arguments{"exec", "a", "--log", "json"},
                               Arguments{"exec", "a", "--log=json", "--bogus", "--", "true"},
                               Arguments{"status", "--log", "json"}}) {
    const auto refused = redlock(bad, nodes);
    const auto events = events_in(refused.err);
    REQUIRE(events.size() == 1);
    check_members(events[0], {{"/event", "failed"}, {"/status", 64}});
  }
  CHECK(redlock({"exec", "a", "--log", "text"}, nodes).err.starts_with("redlock: which command?"));
  CHECK(redlock({"exec", "a"}, nodes).err.starts_with("redlock: which command?"));
  const auto unknown = exits_with(64, redlock({"status", "a", "--log", "xml"}, nodes));
  CHECK(contains(unknown.err, "--log"));
}

TEST_CASE_FIXTURE(ThreeNodes, "commands trace into one file, by an option or by the environment") {
  const TemporaryDirectory place;
  const auto file = (place.path() / "trace").string();
  const auto traced = exits_with(0, run(exec_a({"--trace", file}, {"true"})));
  CHECK(traced.err.empty());
  const auto first = text_in(file);
  check_contains(first, {"(" + fleet.uri(0) + ") <- acquire for grant 1: 'a', ",
                         "attempt for 'a' decided: won ["});
  CHECK(run({"acquire", "b"}, {{"REDLOCK_TRACE", file}}).status == 0);
  const auto both = text_in(file);
  CHECK(both.starts_with(first));
  CHECK(contains(both.substr(first.size()), "attempt for 'b' decided: won ["));
}

/// A shell's line that runs redlock while its stderr is full, and nobody reads.
Running with_full_stderr(const Fleet& fleet, const std::string& arguments) {
  static constexpr auto* fill = R"(python3 -c '
import os
os.set_blocking(2, False)
try:
    while True: os.write(2, bytes(4096))
except BlockingIOError: os.set_blocking(2, True)
'; exec )";
  return in_shell(fleet, fill + command_path() + " " + arguments);
}

TEST_CASE_FIXTURE(ThreeNodes, "a stderr that is full holds up neither the command nor its end") {
  for (const std::string format : {"text", "json"}) {
    CAPTURE(format);
    const auto options = " --node-timeout 10s --log " + format;
    // Another has the lock at first, so that there is something to say.
    Holder holder(fleet);
    const TemporaryDirectory place;
    const auto file = (place.path() / "ran").string();
    for (const auto& arguments :
         {"exec a --wait 0" + options + " -- true", "acquire a --wait 2s" + options}) {
      auto refused = with_full_stderr(fleet, arguments);
      CHECK(ProcessWatch(refused.pid()).await_end());
      CHECK(refused.wait().status == 75);
    }
    auto waits = with_full_stderr(fleet, "exec a" + options + " -- touch " + file);
    // Its first line, of the wait, cannot be written.
    REQUIRE(eventually([&] { return contains(run({"waiters", "a"}).out, "touch"); }));
    holder.let_go();
    CHECK(ProcessWatch(waits.pid()).await_end());
    CHECK(waits.wait().status == 0);
    CHECK(std::filesystem::exists(file));
  }
}

}  // namespace
}  // namespace redlock::testing
