// SPDX-License-Identifier: MIT
// The command's steps for scripts (acquire, hold, release, also by force) and its look at locks
// (status, list), as real processes against real nodes.
#include "cli_process.hpp"
#include "support/proxy.hpp"

namespace redlock::testing {
namespace {

template <std::size_t count>
struct LocksOn : Nodes<count> {
  [[nodiscard]] json status(const std::string& name = "a") const {
    return this->run_json({"status", name});
  }
  /// Acquires it on every node and says for whom. The command ends once a quorum has granted, and
  /// a node that it had no connection with by then is not told of it, or is late.
  std::string everywhere(const Arguments& options = {}, const std::string& name = "a") const {
    for (int i = 0; i < 50; ++i) {
      const auto acquired = this->run(appended({"acquire", name}, options));
      if (acquired.status == 0 && status(name)["nodes_of_owner"] == count) {
        return field(acquired.out, "owner");
      }
      run_on_all(this->fleet, {"DEL", "redlock:lock:{" + name + "}"});
    }
    FAIL("never on every node");
    return {};
  }
};
using LockNode = LocksOn<1>;
using LockNodes = LocksOn<3>;

TEST_CASE_FIXTURE(LockNodes, "what acquire prints is evaluated by a shell, held and released") {
  const auto acquired = exits_with(0, run({"acquire", "a", "--lease", "20s"}));
  CHECK(acquired.err.empty());
  const auto owner = field(acquired.out, "owner");
  const auto token = field(acquired.out, "token");
  CHECK(owner.size() == 32);
  CHECK(std::stoll(field(acquired.out, "valid_ms")) <= 20'000);
  CHECK(status()["owner"] == owner);

  const auto held =
      exits_with(0, run({"hold", "a", "--owner", owner, "--token", token, "--lease", "50s"}));
  CHECK(field(held.out, "owner") == owner);
  CHECK(field(held.out, "token") == token);
  CHECK(std::stoll(field(held.out, "valid_ms")) > 20'000);

  const auto released = exits_with(0, run({"release", "a", "--owner", owner}));
  CHECK(released.out == "released\n");
  CHECK(status()["verdict"] == "free");

  // What is no longer ours.
  CHECK(run({"hold", "a", "--owner", owner}).status == 75);
  const auto again = exits_with(75, run({"release", "a", "--owner", owner}));
  CHECK(again.out == "already_gone\n");
}

TEST_CASE_FIXTURE(LocksOn<5>, "a release reaches the nodes that are farther away than a quorum") {
  const Proxies proxies = proxies_of(fleet);
  auto uris = fleet.uris();
  for (const std::size_t far : {1U, 4U}) {
    proxies[far]->delay(50ms);
    uris[far] = proxies[far]->uri();
  }
  const auto owner = everywhere({"--lease", "1m"});
  CHECK(redlock({"release", "a", "--owner", owner, "--node-timeout", "10s"}, nodes_variable(uris))
            .out == "released\n");
  // What was written to them when the command ended is on its way.
  CHECK(eventually([&] { return status("a")["nodes_of_owner"] == 0; }));
}

TEST_CASE_FIXTURE(LockNodes, "acquire, hold and release speak JSON") {
  const auto grant = run_json({"acquire", "a"});
  CHECK(grant["name"] == "a");
  CHECK(grant["token"].get<std::uint64_t>() > 0);
  CHECK(grant["valid_ms"].get<int>() > 0);
  const auto owner = grant["owner"].get<std::string>();
  CHECK(run_json({"hold", "a", "--owner", owner})["owner"] == owner);
  CHECK(run_json({"release", "a", "--owner", owner}) ==
        json{{"name", "a"}, {"result", "released"}});
}

TEST_CASE_FIXTURE(LockNodes, "a lock that is held exits 75, at once or late, or comes once free") {
  const auto owner = everywhere({"--lease", "60s"});
  const auto refused = exits_with(75, run({"acquire", "a"}));
  CHECK(refused.out.empty());
  CHECK(contains(refused.err, "by somebody else"));
  auto waited = run({"acquire", "a", "--wait", "300ms"});
  // As long as a slow machine needs for the nodes' answers.
  if (!contains(waited.err, "waiting")) waited = run({"acquire", "a", "--wait", "10s"});
  CHECK(waited.status == 75);
  check_contains(waited.err, {"waiting", " up to ", " for a, next in line (held by"});

  const auto token = status()["nodes"][0]["fence"].get<std::uint64_t>();
  Running second(fleet, {"acquire", "a", "--wait", "forever"});
  REQUIRE(second.await_err("for a, next in line (held by " + owner +
                           " on 3 of 3 nodes, taken by: redlock, pid "));
  CHECK(run({"release", "a", "--owner", owner}).status == 0);
  const auto finished = exits_with(0, second.wait());
  CHECK(std::stoull(field(finished.out, "token")) > token);
}

TEST_CASE_FIXTURE(LockNodes, "without a quorum all exits 69 and says which nodes are missing") {
  const auto owner = field(run({"acquire", "a"}).out, "owner");
  fleet.kill(0);
  fleet.kill(1);
  const Arguments no_command{"echo", "no"};
  for (const Arguments& arguments : {Arguments{"acquire", "b"},
                                     {"acquire", "b", "--wait", "200ms"},
                                     {"hold", "a", "--owner", owner},
                                     {"release", "a", "--owner", owner},
                                     {"release", "a", "--force"},
                                     {"status", "a"},
                                     {"list"},
                                     exec_a({"--wait", "300ms"}, no_command),
                                     exec_a({"--wait", "0", "-E", "3"}, no_command)}) {
    CAPTURE(arguments);
    auto with_timeout = arguments;
    with_timeout.insert(with_timeout.begin() + 1, {"--node-timeout", "1s"});
    const auto finished = exits_with(69, run(with_timeout));
    CHECK(contains(finished.out + finished.err, fleet.uri(0)));
    // No grant, and no word of the command that was not run.
    if (arguments[0] == "acquire" || arguments[0] == "exec") CHECK(finished.out.empty());
    if (arguments[0] == "release") CHECK(contains(finished.out, "unknown"));
  }
}

TEST_CASE_FIXTURE(LockNodes, "status says of each node who holds the lock, and of the quorum") {
  const auto owner = everywhere({"--lease", "50s"});
  const auto held = exits_with(0, run({"status", "a"}));
  CHECK(contains(held.out, "a is held by " + owner + " on 3 of 3 nodes"));
  // Whole in the first line; the table may have to cut it in the middle.
  CHECK(occurrences(held.out, owner.substr(owner.size() - 8)) == 4);

  const auto report = status();
  const auto holders = json::array({{{"owner", owner}, {"count", 1}}});
  check_members(report, {{"/verdict", "held"}, {"/quorum", 2}, {"/nodes/0/holders", holders}});
  CHECK(report["nodes"][0]["remaining_ms"].get<int>() > 20'000);
  CHECK(report["nodes"][0]["fence"].get<std::uint64_t>() > 0);

  fleet.run(0, {"DEL", "redlock:lock:{a}"});
  check_members(status(), {{"/verdict", "held"}, {"/nodes_of_owner", 2}});
  fleet.kill(0);
  const auto degraded = exits_with(0, run({"status", "a"}));
  check_contains(degraded.out, {"on 2 of 3 nodes", fleet.uri(0)});
}

TEST_CASE_FIXTURE(LockNodes, "status and list say who waits for a lock, in order") {
  static_cast<void>(everywhere({"--lease", "60s"}));
  CHECK_FALSE(contains(run({"status", "a"}).out, "waiting"));
  CHECK(status()["waiting"].empty());

  const auto is_waiting_on_every_node = [&](std::size_t count) {
    const auto report = status();
    return report["waiting"].size() == count &&
           std::ranges::all_of(report["nodes"], [count](const json& node) {
             return node["waiting"].size() == count;
           });
  };
  std::list<Running> waiting;
  for (const std::string label : {"one", "two", "three"}) {
    waiting.emplace_back(fleet, Arguments{"acquire", "a", "--wait", "forever", "--as", label});
    REQUIRE(eventually([&] { return is_waiting_on_every_node(waiting.size()); }));
  }
  const auto report = status();
  std::array<char, 256> host{};
  REQUIRE(::gethostname(host.data(), host.size()) == 0);
  std::size_t place = 0;
  for (const Running& running : waiting) {
    const auto& call = report["waiting"][place];
    check_members(call, {{"/who/pid", running.pid()},
                         {"/who/host", std::string(host.data()).substr(0, 64)},
                         {"/who/label", std::array{"one", "two", "three"}[place]}});
    CHECK(call["who"]["since_unix_ms"].get<std::int64_t>() > 1'600'000'000'000);
    CHECK(report["nodes"][1]["waiting"][place] == call);
    ++place;
  }

  // Who finds the nodes silent for too long, on a busy machine, enters the queue anew.
  std::string shown;
  CHECK_MESSAGE(eventually([&] {
                  shown = run({"status", "a"}).out;
                  return contains(shown, "3 waiting:\n");
                }),
                shown);
  check_contains(shown, {fmt::format("\n   1. one, pid {} on ", waiting.front().pid()),
                         fmt::format("\n   3. three, pid {} on ", waiting.back().pid())});

  CHECK(eventually([&] {
    const auto locks = run_json({"list"})["locks"];
    return locks.size() == 1 && locks[0]["waiting"] == 3;
  }));
  CHECK(contains(run({"list"}).out, "  WAITING  "));

  // It does not leave by itself any more.
  std::next(waiting.begin())->signal(SIGKILL);
  CHECK(eventually([&] { return is_waiting_on_every_node(2); }));
  CHECK(status()["waiting"][1]["who"]["label"] == "three");
}

TEST_CASE_FIXTURE(LockNodes, "status goes on without the queue where its user may not read it") {
  static_cast<void>(everywhere());
  run_on_all(fleet, {"ACL", "SETUSER", "default", "-zrange"});
  check_members(status(),
                {{"/verdict", "held"}, {"/nodes/0/waiting", nullptr}, {"/nodes/0/answered", true}});
  check_members(run_json({"list"}), {{"/locks/0/held", true}, {"/locks/0/waiting", 0}});
}

TEST_CASE_FIXTURE(LockNodes, "status tells a lock free, without a majority, or not known") {
  CHECK(status()["verdict"] == "free");
  CHECK(contains(run({"status", "a"}).out, "a is free"));

  fleet.run(0, {"HSET", "redlock:lock:{a}", "x", "1"});
  fleet.run(1, {"HSET", "redlock:lock:{a}", "y", "1"});
  CHECK(status()["verdict"] == "no_majority");
  CHECK(contains(run({"status", "a"}).out, "never ends"));

  fleet.run(2, {"SET", "redlock:lock:{a}", "foreign"});
  CHECK(status()["nodes"][2]["foreign_type"] == true);

  fleet.kill(2);
  fleet.run(1, {"DEL", "redlock:lock:{a}"});
  const auto unknown = exits_with(69, run({"status", "a"}));
  CHECK(contains(unknown.out, "too few of 3 nodes answered"));
}

TEST_CASE_FIXTURE(LockNodes, "list merges what all nodes have") {
  const auto owner = everywhere({"--lease", "50s"}, "seat-A05");
  REQUIRE(run({"acquire", "seat-A06"}).status == 0);
  REQUIRE(run({"acquire", "door"}).status == 0);
  fleet.run(1, {"HSET", "redlock:lock:{rest}", std::string(32, 'e'), "1"});
  fleet.run(1, {"SET", "redlock:lock:{", "not a lock"});

  const auto table = exits_with(0, run({"list"}));
  for (const auto& text : {std::string("NAME"), "seat-A05  " + owner + "  3/3", std::string("rest"),
                           std::string("1/3")}) {
    CHECK_MESSAGE(contains(table.out, text), text);
  }

  const auto list = run_json({"list"});
  REQUIRE(list["locks"].size() == 4);
  check_members(list, {{"/locks/0/name", "door"},
                       {"/locks/1/held", false},
                       {"/locks/2/owner", owner},
                       {"/locks/2/held", true},
                       {"/truncated", false}});
  CHECK(list["locks"][2]["remaining_ms"].get<int>() > 20'000);
  CHECK(run_json({"list", "seat-*"})["locks"].size() == 2);

  const auto limited = run({"list", "--limit", "2"});
  CHECK(contains(limited.out, "\nrest "));
  CHECK_FALSE(contains(limited.out, "seat-"));
  CHECK(contains(limited.err, "more than 2"));
}

TEST_CASE_FIXTURE(LockNode, "names and holders are shown without anything unseen, JSON is ASCII") {
  const std::string name =
      "gr\xc3\xbc\xc3\x9f"
      "e \xd8\x9c\xe2\x80\x8b\xef\xbb\xbf\xe2\x80\xae\xf3\xa0\x81\x81\x7f\x1b[2J";
  REQUIRE(run({"acquire", name, "--as", name + "\x9b"}).status == 0);
  for (const Arguments& arguments : {Arguments{"list"}, Arguments{"status", name}}) {
    const auto shown = run(arguments).out;
    check_contains(shown, {"gr\xc3\xbc\xc3\x9f", "\\x1b[2J"});
    for (const auto* unseen : {"\xd8\x9c", "\xe2\x80\x8b", "\xe2\x80\xae", "\xef\xbb\xbf",
                               "\xf3\xa0", "\x7f", "\x9b", "\x1b"}) {
      CHECK_FALSE(contains(shown, unseen));
    }
  }
  const auto list = run({"list", "-o", "json"}).out;
  CHECK(std::ranges::all_of(list, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  CHECK(contains(list, "\\u061c\\u200b\\ufeff\\u202e\\udb40\\udc41\\u007f\\u001b[2J"));
  CHECK(json::parse(list)["locks"][0]["name"] == name);
}

TEST_CASE_FIXTURE(LockNodes, "status and list say which program took a lock") {
  const auto now_ms = [] {
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::floor<std::chrono::milliseconds>(since_1970).count();
  };
  const auto before = now_ms();
  everywhere({"--as", "the nightly run"});
  const auto shown = run({"status", "a"});
  check_contains(shown.out, {"\ntaken by: the nightly run, pid ", " UTC\n"});
  const auto report = status();
  const auto& holder = report["holder"];
  CHECK(holder["label"] == "the nightly run");
  CHECK(holder["pid"].get<int>() > 0);
  CHECK_FALSE(holder["host"].get<std::string>().empty());
  CHECK(holder["since_unix_ms"] >= before);
  CHECK(holder["since_unix_ms"] <= now_ms());
  CHECK(report["nodes"][0]["holder"] == holder);
  CHECK(report["nodes"][0]["holders"].size() == 1);
  CHECK(contains(run({"list"}).out, "the nightly run, pid "));
  CHECK(run_json({"list"})["locks"][0]["holder"] == holder);
}

TEST_CASE_FIXTURE(LockNode, "a lock without a note of its holder is taken by unknown") {
  fleet.run(0, {"HSET", "redlock:lock:{a}", std::string(32, 'e'), "1"});
  CHECK(contains(run({"status", "a"}).out, "\ntaken by: unknown\n"));
  CHECK(status()["holder"].is_null());
  CHECK(run({"list"}).status == 0);
}

TEST_CASE_FIXTURE(LockNodes, "a lock that exec holds is called like its command, or as told") {
  Running plain(fleet, exec_a({}, {"/bin/sh", "-c", "echo in; read line"}));
  REQUIRE(plain.await_out("in"));
  CHECK(status()["holder"]["label"] == "sh");
  REQUIRE(plain.wait().status == 1);  // its stdin has ended
  const Holder named(fleet, {"--as", "job 7"});
  CHECK(status()["holder"]["label"] == "job 7");
}

TEST_CASE_FIXTURE(LockNodes, "release --force takes a lock from its holder, or exits 75") {
  const auto first = run({"acquire", "a"});
  auto owner = field(first.out, "owner");
  const auto said = exits_with(0, run({"release", "a", "--force"}));
  CHECK(contains(said.out, "released from " + owner + " on "));
  CHECK(said.err.empty());
  CHECK(run({"hold", "a", "--owner", owner}).status == 75);
  const auto second = exits_with(0, run({"acquire", "a", "--wait", "forever"}));
  CHECK(std::stoull(field(second.out, "token")) > std::stoull(field(first.out, "token")));

  owner = field(second.out, "owner");
  const auto forced = run_json({"release", "a", "--force"});
  check_members(forced, {{"/name", "a"},
                         {"/result", "released"},
                         {"/owner", owner},
                         {"/nodes/0/node", fleet.uri(0)},
                         {"/nodes/0/cause", nullptr}});
  CHECK(forced["confirmed"].get<int>() >= 2);
  CHECK(forced["nodes"].size() == 3);
  const auto nothing = exits_with(75, run({"release", "b", "--force", "-o", "json"}));
  check_members(json::parse(nothing.out), {{"/result", "nothing_held"}, {"/owner", nullptr}});
}

TEST_CASE_FIXTURE(LockNodes, "release --force says of every node what became of the lock there") {
  // Held by a command that goes on until every node has it; `acquire` ends once a quorum has.
  const Holder holder(fleet);
  REQUIRE(eventually([&] { return nodes_with_lock() == 3; }));
  fleet.pause(2);
  const auto forced = exits_with(0, run({"release", "a", "--force", "--node-timeout", "2s"}));
  check_contains(forced.out, {"released from ", fleet.uri(0) + ": removed\n",
                              fleet.uri(1) + ": removed\n", fleet.uri(2) + ": unreachable: "});
  fleet.resume(2);
}

}  // namespace
}  // namespace redlock::testing
