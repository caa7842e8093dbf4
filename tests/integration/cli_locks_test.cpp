// SPDX-License-Identifier: MIT
// The command's steps for scripts (acquire, hold, release) and its look at locks (status, list), as
// real processes against real nodes.
#include "cli_process.hpp"
#include "support/proxy.hpp"

namespace redlock::testing {
namespace {

/// Commands against one fleet. A busy machine must not look like a node that is gone.
struct LockNodes {
  explicit LockNodes(std::size_t count) : fleet({.nodes = count}) {}

  Finished run(Arguments arguments, const std::string& timeout = "10s") const {
    arguments.insert(arguments.end(), {"--node-timeout", timeout});
    return redlock(arguments, nodes_variable(fleet.uris()));
  }
  std::string owner_of(const std::string& name) const {
    return json::parse(run({"status", name, "-o", "json"}).out)["owner"].get<std::string>();
  }
  /// Acquires it on every node and says for whom. The command ends once a quorum has granted, and
  /// a node that it had no connection with by then is not told of it, or is late.
  std::string everywhere(const Arguments& options = {}, const std::string& name = "a") const {
    Arguments acquire{"acquire", name};
    acquire.insert(acquire.end(), options.begin(), options.end());
    for (int i = 0; i < 50; ++i) {
      const auto acquired = run(acquire);
      if (acquired.status == 0 && status(name)["nodes_of_owner"] == fleet.size()) {
        return field(acquired.out, "owner");
      }
      for (std::size_t node = 0; node < fleet.size(); ++node) {
        fleet.run(node, {"DEL", "redlock:lock:{" + name + "}"});
      }
    }
    FAIL("never on every node");
    return {};
  }
  json status(const std::string& name) const {
    return json::parse(run({"status", name, "-o", "json"}).out);
  }

  Fleet fleet;
};

TEST_CASE("what acquire prints is evaluated by a shell, held longer and released") {
  const LockNodes nodes(3);
  const auto acquired = nodes.run({"acquire", "a", "--lease", "20s"});
  CHECK(acquired.status == 0);
  CHECK(acquired.err.empty());
  const auto owner = field(acquired.out, "owner");
  const auto token = field(acquired.out, "token");
  CHECK(owner.size() == 32);
  CHECK(std::stoll(field(acquired.out, "valid_ms")) <= 20'000);
  CHECK(nodes.owner_of("a") == owner);

  const auto held = nodes.run({"hold", "a", "--owner", owner, "--token", token, "--lease", "50s"});
  CHECK(held.status == 0);
  CHECK(field(held.out, "owner") == owner);
  CHECK(field(held.out, "token") == token);
  CHECK(std::stoll(field(held.out, "valid_ms")) > 20'000);

  const auto released = nodes.run({"release", "a", "--owner", owner});
  CHECK(released.status == 0);
  CHECK(released.out == "released\n");
  CHECK(nodes.status("a")["verdict"] == "free");
}

TEST_CASE("a release reaches the nodes that are farther away than a quorum") {
  const LockNodes nodes(5);
  const Proxies proxies = proxies_of(nodes.fleet);
  auto uris = nodes.fleet.uris();
  for (const std::size_t far : {1U, 4U}) {
    proxies[far]->delay(50ms);
    uris[far] = proxies[far]->uri();
  }
  const auto owner = nodes.everywhere({"--lease", "1m"});
  CHECK(redlock({"release", "a", "--owner", owner, "--node-timeout", "10s"}, nodes_variable(uris))
            .out == "released\n");
  // What was written to them when the command ended is on its way.
  CHECK(eventually([&] { return nodes.status("a")["nodes_of_owner"] == 0; }));
}

TEST_CASE("acquire, hold and release speak JSON") {
  const LockNodes nodes(3);
  const auto grant = json::parse(nodes.run({"acquire", "a", "-o", "json"}).out);
  CHECK(grant["name"] == "a");
  CHECK(grant["token"].get<std::uint64_t>() > 0);
  CHECK(grant["valid_ms"].get<int>() > 0);
  const auto owner = grant["owner"].get<std::string>();
  const auto held = json::parse(nodes.run({"hold", "a", "--owner", owner, "-o", "json"}).out);
  CHECK(held["owner"] == owner);
  const auto released =
      json::parse(nodes.run({"release", "a", "--owner", owner, "-o", "json"}).out);
  CHECK(released == json{{"name", "a"}, {"result", "released"}});
}

TEST_CASE("a lock that somebody holds exits 75 at once, and 75 when the wait is over") {
  const LockNodes nodes(3);
  REQUIRE(nodes.run({"acquire", "a", "--lease", "60s"}).status == 0);
  const auto refused = nodes.run({"acquire", "a"});
  CHECK(refused.status == 75);
  CHECK(refused.out.empty());
  CHECK(contains(refused.err, "by somebody else"));
  auto waited = nodes.run({"acquire", "a", "--wait", "300ms"});
  // As long as a slow machine needs for the nodes' answers.
  if (!contains(waited.err, "waiting")) waited = nodes.run({"acquire", "a", "--wait", "10s"});
  CHECK(waited.status == 75);
  CHECK(contains(waited.err, "waiting"));
  CHECK(contains(waited.err, " up to "));
  CHECK(contains(waited.err, " for a, next in line (held by"));
}

TEST_CASE("waiting for a lock ends when it is released") {
  const LockNodes nodes(3);
  const auto owner = nodes.everywhere();
  const auto token = nodes.status("a")["nodes"][0]["fence"].get<std::uint64_t>();
  Running second({"acquire", "a", "--wait", "forever", "--node-timeout", "10s"},
                 nodes_variable(nodes.fleet.uris()));
  REQUIRE(second.await_err("for a, next in line (held by " + owner +
                           " on 3 of 3 nodes, taken by: redlock, pid "));
  CHECK(nodes.run({"release", "a", "--owner", owner}).status == 0);
  const auto finished = second.wait();
  CHECK(finished.status == 0);
  CHECK(std::stoull(field(finished.out, "token")) > token);
}

TEST_CASE("holding or releasing what is no longer ours exits 75") {
  const LockNodes nodes(3);
  const auto owner = field(nodes.run({"acquire", "a"}).out, "owner");
  REQUIRE(nodes.run({"release", "a", "--owner", owner}).status == 0);
  CHECK(nodes.run({"hold", "a", "--owner", owner}).status == 75);
  const auto released = nodes.run({"release", "a", "--owner", owner});
  CHECK(released.status == 75);
  CHECK(released.out == "already_gone\n");
}

TEST_CASE("without a quorum of nodes everything exits 69 and says which nodes are missing") {
  LockNodes nodes(3);
  const auto owner = field(nodes.run({"acquire", "a"}).out, "owner");
  nodes.fleet.kill(0);
  nodes.fleet.kill(1);
  const auto missing = nodes.fleet.uri(0);
  const auto acquired = nodes.run({"acquire", "b"}, "1s");
  CHECK(acquired.status == 69);
  CHECK(contains(acquired.err, missing));
  CHECK(nodes.run({"acquire", "b", "--wait", "200ms"}, "1s").status == 69);
  CHECK(nodes.run({"hold", "a", "--owner", owner}, "1s").status == 69);
  CHECK(nodes.run({"release", "a", "--owner", owner}, "1s").status == 69);
  const auto status = nodes.run({"status", "a"}, "1s");
  CHECK(status.status == 69);
  CHECK(contains(status.out, missing));
  const auto list = nodes.run({"list"}, "1s");
  CHECK(list.status == 69);
  CHECK(contains(list.err, missing));
}

TEST_CASE("status says for each node who holds the lock, and what a quorum makes of it") {
  LockNodes nodes(3);
  const auto owner = nodes.everywhere({"--lease", "50s"});

  const auto held = nodes.run({"status", "a"});
  CHECK(held.status == 0);
  CHECK(contains(held.out, "a is held by " + owner + " on 3 of 3 nodes"));
  // Whole in the first line; the table may have to cut it in the middle.
  CHECK(occurrences(held.out, owner.substr(owner.size() - 8)) == 4);

  const auto report = nodes.status("a");
  CHECK(report["verdict"] == "held");
  CHECK(report["quorum"] == 2);
  const auto& node = report["nodes"][0];
  CHECK(node["holders"] == json::array({{{"owner", owner}, {"count", 1}}}));
  CHECK(node["remaining_ms"].get<int>() > 20'000);
  CHECK(node["fence"].get<std::uint64_t>() > 0);

  nodes.fleet.run(0, {"DEL", "redlock:lock:{a}"});
  CHECK(nodes.status("a")["verdict"] == "held");
  CHECK(nodes.status("a")["nodes_of_owner"] == 2);
  nodes.fleet.kill(0);
  const auto degraded = nodes.run({"status", "a"});
  CHECK(degraded.status == 0);
  CHECK(contains(degraded.out, "on 2 of 3 nodes"));
  CHECK(contains(degraded.out, nodes.fleet.uri(0)));
}

TEST_CASE("status and list say who waits for a lock, in order") {
  const LockNodes nodes(3);
  static_cast<void>(nodes.everywhere({"--lease", "60s"}));
  CHECK_FALSE(contains(nodes.run({"status", "a"}).out, "waiting"));
  CHECK(nodes.status("a")["waiting"].empty());

  const auto begin_to_wait = [&](const std::string& label) {
    return std::make_unique<Running>(
        Arguments{"acquire", "a", "--wait", "forever", "--node-timeout", "10s", "--as", label},
        nodes_variable(nodes.fleet.uris()));
  };
  const auto is_waiting_on_every_node = [&](std::size_t count) {
    const auto report = nodes.status("a");
    for (const auto& node : report["nodes"]) {
      if (node["waiting"].size() != count) return false;
    }
    return report["waiting"].size() == count;
  };
  std::vector<std::unique_ptr<Running>> waiting;
  for (const std::string label : {"one", "two", "three"}) {
    waiting.push_back(begin_to_wait(label));
    REQUIRE(eventually([&] { return is_waiting_on_every_node(waiting.size()); }));
  }
  const auto report = nodes.status("a");
  std::array<char, 256> host{};
  REQUIRE(::gethostname(host.data(), host.size()) == 0);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& call = report["waiting"][i];
    CHECK(call["who"]["pid"] == waiting[i]->pid());
    CHECK(call["who"]["host"] == std::string(host.data()).substr(0, 64));
    CHECK(call["who"]["since_unix_ms"].get<std::int64_t>() > 1'600'000'000'000);
    CHECK(report["nodes"][1]["waiting"][i] == call);
  }
  CHECK(report["waiting"][0]["who"]["label"] == "one");
  CHECK(report["waiting"][2]["who"]["label"] == "three");

  // Who finds the nodes silent for too long, on a busy machine, enters the queue anew.
  std::string shown;
  CHECK_MESSAGE(eventually([&] {
                  shown = nodes.run({"status", "a"}).out;
                  return contains(shown, "3 waiting:\n");
                }),
                shown);
  CHECK(contains(shown, "\n   1. one, pid " + std::to_string(waiting[0]->pid()) + " on "));
  CHECK(contains(shown, "\n   3. three, pid " + std::to_string(waiting[2]->pid()) + " on "));

  CHECK(eventually([&] {
    const auto list = json::parse(nodes.run({"list", "-o", "json"}).out);
    return list["locks"].size() == 1 && list["locks"][0]["waiting"] == 3;
  }));
  CHECK(contains(nodes.run({"list"}).out, "  WAITING  "));

  // It does not leave by itself any more.
  waiting[1]->signal(SIGKILL);
  CHECK(eventually([&] { return is_waiting_on_every_node(2); }));
  CHECK(nodes.status("a")["waiting"][1]["who"]["label"] == "three");
}

TEST_CASE("status goes on without the queue where its user may not read it") {
  const LockNodes nodes(3);
  static_cast<void>(nodes.everywhere());
  for (std::size_t node = 0; node < nodes.fleet.size(); ++node) {
    nodes.fleet.run(node, {"ACL", "SETUSER", "default", "-zrange"});
  }
  const auto report = nodes.status("a");
  CHECK(report["verdict"] == "held");
  CHECK(report["nodes"][0]["waiting"].is_null());
  CHECK(report["nodes"][0]["answered"] == true);
  const auto list = json::parse(nodes.run({"list", "-o", "json"}).out);
  CHECK(list["locks"][0]["held"] == true);
  CHECK(list["locks"][0]["waiting"] == 0);
}

TEST_CASE("status tells a free lock, one without a majority and one that is not known") {
  LockNodes nodes(3);
  CHECK(nodes.status("a")["verdict"] == "free");
  CHECK(contains(nodes.run({"status", "a"}).out, "a is free"));

  nodes.fleet.run(0, {"HSET", "redlock:lock:{a}", "x", "1"});
  nodes.fleet.run(1, {"HSET", "redlock:lock:{a}", "y", "1"});
  CHECK(nodes.status("a")["verdict"] == "no_majority");
  CHECK(contains(nodes.run({"status", "a"}).out, "never ends"));

  nodes.fleet.run(2, {"SET", "redlock:lock:{a}", "foreign"});
  CHECK(nodes.status("a")["nodes"][2]["foreign_type"] == true);

  nodes.fleet.kill(2);
  nodes.fleet.run(1, {"DEL", "redlock:lock:{a}"});
  const auto unknown = nodes.run({"status", "a"});
  CHECK(unknown.status == 69);
  CHECK(contains(unknown.out, "too few of 3 nodes answered"));
}

TEST_CASE("list merges what all nodes have") {
  LockNodes nodes(3);
  const auto owner = nodes.everywhere({"--lease", "50s"}, "seat-A05");
  REQUIRE(nodes.run({"acquire", "seat-A06"}).status == 0);
  REQUIRE(nodes.run({"acquire", "door"}).status == 0);
  nodes.fleet.run(1, {"HSET", "redlock:lock:{rest}", std::string(32, 'e'), "1"});
  nodes.fleet.run(1, {"SET", "redlock:lock:{", "not a lock"});

  const auto table = nodes.run({"list"});
  CHECK(table.status == 0);
  CHECK(contains(table.out, "NAME"));
  CHECK(contains(table.out, "seat-A05  " + owner + "  3/3"));
  CHECK(contains(table.out, "rest"));
  CHECK(contains(table.out, "1/3"));

  const auto list = json::parse(nodes.run({"list", "-o", "json"}).out);
  REQUIRE(list["locks"].size() == 4);
  CHECK(list["locks"][0]["name"] == "door");
  CHECK(list["locks"][1]["held"] == false);
  CHECK(list["locks"][2]["owner"] == owner);
  CHECK(list["locks"][2]["held"] == true);
  CHECK(list["locks"][2]["remaining_ms"].get<int>() > 20'000);
  CHECK(list["truncated"] == false);

  const auto seats = json::parse(nodes.run({"list", "seat-*", "-o", "json"}).out);
  CHECK(seats["locks"].size() == 2);

  const auto limited = nodes.run({"list", "--limit", "2"});
  CHECK(contains(limited.out, "\nrest "));
  CHECK_FALSE(contains(limited.out, "seat-"));
  CHECK(contains(limited.err, "more than 2"));
}

TEST_CASE("a name cannot steer the terminal") {
  const LockNodes nodes(1);
  REQUIRE(nodes.run({"acquire", "a\x1b[2J"}).status == 0);
  const auto list = nodes.run({"list"});
  CHECK(contains(list.out, "a\\x1b[2J"));
  CHECK_FALSE(contains(list.out, "\x1b"));
}

TEST_CASE("a command that is started without stdin, stdout or stderr works all the same") {
  const LockNodes nodes(1);
  for (const auto* closed : {"<&-", ">&-", "2>&-", "<&- >&- 2>&-"}) {
    CAPTURE(closed);
    const auto script = command_path() + " exec a -- true " + closed + "; echo $?";
    const auto finished =
        Running({"-c", script}, nodes_variable(nodes.fleet.uris()), "/bin/sh").wait();
    CHECK(finished.out == "0\n");
    CHECK(finished.err.empty());
  }
}

TEST_CASE("status and list say which program took a lock") {
  const LockNodes nodes(3);
  nodes.everywhere({"--as", "the nightly run"});
  const auto shown = nodes.run({"status", "a"});
  CHECK(contains(shown.out, "\ntaken by: the nightly run, pid "));
  CHECK(contains(shown.out, " UTC\n"));
  const auto report = nodes.status("a");
  CHECK(report["holder"]["label"] == "the nightly run");
  CHECK(report["holder"]["pid"].get<int>() > 0);
  CHECK(report["holder"]["since_unix_ms"].get<std::int64_t>() > 1'700'000'000'000);
  CHECK(report["nodes"][0]["holder"] == report["holder"]);
  CHECK(report["nodes"][0]["holders"].size() == 1);
  CHECK(contains(nodes.run({"list"}).out, "the nightly run, pid "));
  const auto list = json::parse(nodes.run({"list", "-o", "json"}).out);
  CHECK(list["locks"][0]["holder"] == report["holder"]);
}

TEST_CASE("names and holders are shown without anything unseen, and JSON tells them in ASCII") {
  const LockNodes nodes(1);
  const std::string name =
      "gr\xc3\xbc\xc3\x9f"
      "e \xd8\x9c\xe2\x80\x8b\xef\xbb\xbf\xe2\x80\xae\xf3\xa0\x81\x81\x7f";
  REQUIRE(nodes.run({"acquire", name, "--as", name + "\x9b"}).status == 0);
  for (const Arguments& arguments : {Arguments{"list"}, Arguments{"status", name}}) {
    const auto shown = nodes.run(arguments).out;
    CHECK(contains(shown, "gr\xc3\xbc\xc3\x9f"));
    for (const auto* unseen :
         {"\xd8\x9c", "\xe2\x80\x8b", "\xe2\x80\xae", "\xef\xbb\xbf", "\xf3\xa0", "\x7f", "\x9b"}) {
      CHECK_FALSE(contains(shown, unseen));
    }
  }
  const auto list = nodes.run({"list", "-o", "json"}).out;
  CHECK(std::ranges::all_of(list, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  CHECK(contains(list, "\\u061c\\u200b\\ufeff\\u202e\\udb40\\udc41\\u007f"));
  CHECK(json::parse(list)["locks"][0]["name"] == name);
}

TEST_CASE("a lock without a note of its holder is taken by unknown") {
  const LockNodes nodes(1);
  nodes.fleet.run(0, {"HSET", "redlock:lock:{a}", std::string(32, 'e'), "1"});
  CHECK(contains(nodes.run({"status", "a"}).out, "\ntaken by: unknown\n"));
  CHECK(nodes.status("a")["holder"].is_null());
  CHECK(nodes.run({"list"}).status == 0);
}

TEST_CASE("a lock that exec holds is called like its command, or as it is told") {
  const LockNodes nodes(3);
  const auto variables = nodes_variable(nodes.fleet.uris());
  Running plain({"exec", "a", "--node-timeout", "10s", "--", "/bin/sh", "-c", "echo in; read line"},
                variables);
  REQUIRE(plain.await_out("in"));
  CHECK(nodes.status("a")["holder"]["label"] == "sh");
  Running named({"exec", "b", "--as", "job 7", "--node-timeout", "10s", "--", "sh", "-c",
                 "echo in; read line"},
                variables);
  REQUIRE(named.await_out("in"));
  CHECK(nodes.status("b")["holder"]["label"] == "job 7");
}

}  // namespace
}  // namespace redlock::testing
