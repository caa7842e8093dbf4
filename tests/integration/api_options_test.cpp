// SPDX-License-Identifier: MIT
// Every mistake in options, URIs, names and leases is answered with one clear sentence, before
// anything is sent. And the sentence of an error says how each node took part: who granted, who
// refused, who could not vote and why, and how many had not answered when it was decided. No node
// runs here.
#include <cmath>
#include <limits>

#include "client/sentence.hpp"
#include "integration/api_fixture.hpp"
#include "support/temporary_directory.hpp"

namespace redlock::testing {
namespace {

ClientOptions good_options() {
  return options_for({"redis://127.0.0.1:1", "redis://127.0.0.1:2", "redis://127.0.0.1:3"});
}

/// What the factory says about good options after this change.
std::string refusal(const std::function<void(ClientOptions&)>& spoil) {
  ClientOptions options = good_options();
  spoil(options);
  const auto client = Client::create(options);
  REQUIRE(code_of(client) == Errc::invalid_argument);
  return client.error().message;
}

void check_sentence(const std::string& message) {
  CHECK_MESSAGE(message.size() > 20, message);
  CHECK_MESSAGE(message.size() < 400, message);
  CHECK_MESSAGE(message.find('\n') == std::string::npos, message);
}

TEST_CASE("a bad option is named in one sentence that says what to do") {
  struct Case {
    const char* option;
    std::function<void(ClientOptions&)> spoil;
  };
  const std::vector<Case> cases = {
      {"nodes is empty", [](auto& o) { o.nodes.clear(); }},
      {"nodes has 65", [](auto& o) { o.nodes.assign(65, "redis://h"); }},
      {"lease is 0 ms", [](auto& o) { o.lease = 0ms; }},
      {"lease is -5 ms", [](auto& o) { o.lease = -5ms; }},
      {"max_lease (60000 ms)", [](auto& o) { o.lease = 60'001ms; }},  // without quarantine
      {"max_lease (40000 ms)",
       [](auto& o) {
         o.quarantine = Quarantine::on;
         o.max_lease = 40s;
         o.lease = 41s;
       }},
      {"max_lease is -1 ms", [](auto& o) { o.max_lease = -1ms; }},
      {"max_lease is", [](auto& o) { o.max_lease = std::chrono::milliseconds::max(); }},
      {"drift allowance", [](auto& o) { o.lease = 2ms; }},
      {"drift allowance", [](auto& o) { o.min_validity = o.lease - 300ms; }},
      {"drift_factor", [](auto& o) { o.drift_factor = -0.1; }},
      {"drift_factor", [](auto& o) { o.drift_factor = 1.0; }},
      {"drift_factor", [](auto& o) { o.drift_factor = std::nan(""); }},
      {"drift_factor", [](auto& o) { o.drift_factor = std::numeric_limits<double>::infinity(); }},
      {"node_timeout", [](auto& o) { o.node_timeout = 0ms; }},
      {"resolve_timeout", [](auto& o) { o.resolve_timeout = 0ms; }},
      {"connect_timeout", [](auto& o) { o.connect_timeout = -1ms; }},
      {"min_validity", [](auto& o) { o.min_validity = -1ms; }},
      {"retry_min", [](auto& o) { o.retry_min = 0ms; }},
      {"retry_min", [](auto& o) { o.retry_min = o.retry_max + 1ms; }},
      {"retry_cap", [](auto& o) { o.retry_max = o.retry_cap + 1ms; }},
      {"client_name", [](auto& o) { o.client_name = "two words"; }},
      {"client_name", [](auto& o) { o.client_name = ""; }},
      {"client_name", [](auto& o) { o.client_name = "line\nfeed"; }},
  };
  for (const Case& wrong : cases) {
    const std::string message = refusal(wrong.spoil);
    CHECK_MESSAGE(contains(message, wrong.option), message);
    check_sentence(message);
  }
}

TEST_CASE("a node listed twice is found, however it is written") {
  for (const std::string uri :
       {"redis://127.0.0.1:1", "redis://user:word@127.0.0.1:1", "redis://127.0.0.1:1/5"}) {
    const std::string message = refusal([&](auto& o) { o.nodes.push_back(uri); });
    CHECK_MESSAGE(contains(message, "nodes[3]"), message);
    CHECK_MESSAGE(contains(message, "nodes[0]"), message);
    CHECK_MESSAGE(!contains(message, "word"), message);
    check_sentence(message);
  }
  for (const std::vector<std::string>& twins :
       {std::vector<std::string>{"redis://Redis.example", "redis://redis.EXAMPLE:6379"},
        {"unix:///tmp/a", "unix:///tmp/a?db=1"}}) {
    CHECK(contains(refusal([&](auto& o) { o.nodes = twins; }), "the same server"));
  }
}

TEST_CASE("a bad URI is named with its place in the list, without its password") {
  for (const std::string uri :
       {"", "127.0.0.1", "u:secret@127.0.0.1:6379", "redis://:secret@", "unix://relative?db=1",
        "redis://u:secret%zz@h"}) {  // all others: wire/uri_test.cpp
    const std::string message = refusal([&](auto& o) { o.nodes[1] = uri; });
    CHECK_MESSAGE(contains(message, "nodes[1]"), uri, " gives ", message);
    CHECK_MESSAGE(!contains(message, "secret"), message);
    check_sentence(message);
  }
}

TEST_CASE("a bad name is refused by every call that uses it, and cannot forge a log line") {
  const Client client = start_client(good_options());
  const std::string nul("a\0b", 3);
  for (const std::string& name : {std::string(), std::string(513, 'x'), std::string("a{b"),
                                  std::string("a}b"), nul, std::string("\n\x1b[31m{")}) {
    RedLock lock = client.lock(name);
    const Grant grant{name, std::string(32, '0'), 1};
    const auto acquired = lock.acquire();
    CHECK(code_of(acquired) == Errc::invalid_argument);
    CHECK(code_of(lock.attach(grant)) == Errc::invalid_argument);
    CHECK(code_of(lock.release(grant)) == Errc::invalid_argument);
    CHECK(code_of(Admin(client).inspect(name)) == Errc::invalid_argument);
    CHECK_THROWS_AS(lock.lock(), std::system_error);
    CHECK_THROWS_AS(static_cast<void>(lock.try_lock()), std::system_error);
    const std::string& message = acquired.error().message;
    check_sentence(message);
    CHECK(std::none_of(message.begin(), message.end(), [](char c) { return c >= 0 && c < ' '; }));
  }
}

TEST_CASE("a bad lease or time of one call is refused before anything is sent") {
  const Client client = start_client(good_options());
  RedLock lock = client.lock("x");
  struct Case {
    const char* option;
    AcquireOptions options;
  };
  const std::vector<Case> cases = {
      {"lease is 0 ms", {.lease = 0ms}},
      {"lease is -1 ms", {.lease = -1ms}},
      {"max_lease", {.lease = 60'001ms}},
      {"drift allowance", {.lease = 1ms}},
      {"drift allowance", {.lease = 1s, .min_validity = 988ms}},
      {"min_validity", {.min_validity = -1ms}},
      {"wait", {.wait = -1ms}},
      {"max_hold", {.max_hold = 0ms}},
  };
  for (const Case& wrong : cases) {
    const auto result = lock.acquire(wrong.options);
    CHECK(code_of(result) == Errc::invalid_argument);
    CHECK_MESSAGE(contains(result.error().message, wrong.option), result.error().message);
    check_sentence(result.error().message);
    CHECK(result.error().votes.empty());
  }
}

TEST_CASE("an owner that is none is refused, and so is a grant of another name") {
  const Client client = start_client(good_options());
  RedLock lock = client.lock("x");
  for (const std::string& owner : {std::string(), std::string(31, 'a'), std::string(33, 'a'),
                                   std::string(32, 'g'), std::string(32, 'A')}) {
    CHECK(code_of(lock.attach({"x", owner, 1})) == Errc::invalid_argument);
    CHECK(code_of(lock.release(Grant{"x", owner, 1})) == Errc::invalid_argument);
  }
  const auto other = lock.attach({"y", std::string(32, 'a'), 1});
  CHECK(code_of(other) == Errc::invalid_argument);
  CHECK(contains(other.error().message, "'y'"));
}

using Uris = std::vector<std::string>;

TEST_CASE("a list of nodes has commas, spaces or lines between them, and comments") {
  const auto parsed = [](std::string_view text) { return must(parse_nodes(text)); };
  const Uris three{"redis://a:1", "b:2", "unix:///c"};
  CHECK(parsed("redis://a:1,b:2,unix:///c") == three);
  CHECK(parsed(" redis://a:1 ,\tb:2,\n unix:///c\n") == three);
  CHECK(parsed("redis://a:1 b:2\tunix:///c") == three);
  CHECK(parsed("# all\r\nredis://a:1\r\n  # the second, too\nb:2 # here\n\nunix:///c") == three);
  CHECK(parsed("redis://:p%2Cw%20d@a") == Uris{"redis://:p%2Cw%20d@a"});
}

TEST_CASE("a bad list of nodes is answered with its entry, without a password") {
  for (const std::string_view text :
       {"", " \n", "# redis://a:1", "#,", "a:1,,b:2", ",a:1", "a:1,", "a:1,\n", "a:1 b", "a:1#x",
        "redis://u:secret,x@h:1", "u:secret@h:1"}) {
    const auto parsed = parse_nodes(text);
    REQUIRE_MESSAGE(code_of(parsed) == Errc::invalid_argument, text);
    check_sentence(parsed.error().message);
    CHECK_MESSAGE(!contains(parsed.error().message, "secret"), parsed.error().message);
  }
  CHECK(contains(parse_nodes("a:1,b:x").error().message, "nodes[1]: the port"));
  CHECK(contains(parse_nodes("a:1,,b:2").error().message, "nodes[1]: there is nothing"));
}

TEST_CASE("the environment names the nodes, and a list that is given goes before it") {
  const ScopedVariable nodes("REDLOCK_NODES", "redis://a:1,b:2");
  const ScopedVariable quarantine("REDLOCK_QUARANTINE", {});
  const auto options = must(ClientOptions::from_env());
  CHECK(options.nodes == Uris{"redis://a:1", "b:2"});
  CHECK(options.quarantine == Quarantine::on);
  CHECK(Client::create(options).has_value());
  CHECK(must(ClientOptions::from_env("c:3 d:4")).nodes == Uris{"c:3", "d:4"});
  const ScopedVariable off("REDLOCK_QUARANTINE", "off");
  CHECK(must(ClientOptions::from_env()).quarantine == Quarantine::off);
}

TEST_CASE("the environment names a file of nodes, and the longest lease of their set") {
  const TemporaryDirectory directory;
  const auto path = (directory.path() / "nodes").string();
  std::ofstream(path) << "a:1  # the first\nb:2\n";
  const ScopedVariable none("REDLOCK_NODES", {});
  const ScopedVariable file("REDLOCK_NODES_FILE", path);
  const ScopedVariable longest("REDLOCK_MAX_LEASE", "10s");
  const auto options = must(ClientOptions::from_env());
  CHECK(options.nodes == Uris{"a:1", "b:2"});
  CHECK(options.max_lease == 10s);
  CHECK(options.lease == 10s);
  const ScopedVariable longer("REDLOCK_MAX_LEASE", "2m");
  CHECK(must(ClientOptions::from_env("c:3")).nodes == Uris{"c:3"});
  CHECK(must(ClientOptions::from_env("c:3")).max_lease == 2min);
  CHECK(must(ClientOptions::from_env("c:3")).lease == ClientOptions{}.lease);
  const ScopedVariable list("REDLOCK_NODES", "d:4");
  CHECK(must(ClientOptions::from_env()).nodes == Uris{"d:4"});
  for (const auto* const bad : {"2", "m", "-1s", "0s", "2d", "2 m", "99999999999s", "2m "}) {
    const ScopedVariable wrong("REDLOCK_MAX_LEASE", bad);
    CAPTURE(bad);
    CHECK(
        contains(ClientOptions::from_env().error().message, "REDLOCK_MAX_LEASE is not a duration"));
  }
}

TEST_CASE("the environment names the file of a trace, which must be one that can be written") {
  const TemporaryDirectory directory;
  const auto path = (directory.path() / "trace").string();
  const ScopedVariable file("REDLOCK_TRACE", path);
  const auto options = must(ClientOptions::from_env("a:1"));
  REQUIRE(options.trace);
  options.trace("a line");
  CHECK(text_in(path) == "a line\n");
  const ScopedVariable none("REDLOCK_TRACE", "");
  CHECK_FALSE(must(ClientOptions::from_env("a:1")).trace);
  const ScopedVariable wrong("REDLOCK_TRACE", "/nowhere/trace");
  const auto refused = ClientOptions::from_env("a:1");
  REQUIRE(code_of(refused) == Errc::invalid_argument);
  check_sentence(refused.error().message);
  CHECK(contains(refused.error().message, "REDLOCK_TRACE: the trace file '/nowhere/trace'"));
}

TEST_CASE("an environment that cannot be used is said to be so, without a password") {
  const ScopedVariable no_file("REDLOCK_NODES_FILE", {});
  using Value = std::optional<std::string>;
  const auto refused = [](const Value& nodes, const Value& quarantine) {
    const ScopedVariable list("REDLOCK_NODES", nodes);
    const ScopedVariable other("REDLOCK_QUARANTINE", quarantine);
    const auto options = ClientOptions::from_env();
    REQUIRE(code_of(options) == Errc::invalid_argument);
    check_sentence(options.error().message);
    return options.error().message;
  };
  CHECK(contains(refused({}, {}), "REDLOCK_NODES is not set"));
  CHECK(contains(refused("", {}), "REDLOCK_NODES is not set"));
  const auto bad = refused("a:1,redis://u:secret@h:x", {});
  CHECK(contains(bad, "REDLOCK_NODES: nodes[1]: the port"));
  CHECK_FALSE(contains(bad, "secret"));
  CHECK(contains(refused("a:1", "maybe"), "REDLOCK_QUARANTINE"));
  for (const auto* const path : {"/", "/dev/null", "/nowhere"}) {
    const ScopedVariable file("REDLOCK_NODES_FILE", path);
    CHECK(contains(refused({}, {}), "REDLOCK_NODES_FILE: there is no such file"));
  }
  const ScopedVariable list("REDLOCK_NODES", "a:1");
  CHECK_FALSE(contains(ClientOptions::from_env("").error().message, "REDLOCK_NODES"));
}

TEST_CASE("codes are std::error_codes that compare with the standard's") {
  CHECK(std::error_code(Errc::would_deadlock) == std::errc::resource_deadlock_would_occur);
  CHECK(std::error_code(Errc::timed_out) == std::errc::timed_out);
  CHECK(std::error_code(Errc::cancelled) == std::errc::operation_canceled);
  CHECK(std::error_code(Errc::invalid_argument) == std::errc::invalid_argument);
  CHECK(std::error_code(Errc::contended) != std::errc::timed_out);
  CHECK(std::string(error_category().name()) == "redlock");
  CHECK(std::string(to_string(Errc::no_quorum)) == "no_quorum");
}

TEST_CASE("an error is one of configuration if that alone keeps a quorum from voting") {
  const NodeVote good{"a", Vote::granted, Cause::none, {}};
  const NodeVote down{"b", Vote::unavailable, Cause::timed_out, {}};
  const NodeVote locked_out{"c", Vote::unavailable, Cause::authentication, {}};
  const auto verdict = [](std::vector<NodeVote> votes) {
    return Error{Errc::no_quorum, {}, std::move(votes)}.is_configuration();
  };
  CHECK(verdict({locked_out, locked_out, good}));
  CHECK(verdict({locked_out, locked_out, down}));
  CHECK_FALSE(verdict({locked_out, down, good}));
  CHECK_FALSE(verdict({down, down, down}));
  CHECK_FALSE(verdict({}));
}

std::string sentence_of(Errc code, const std::vector<engine::Ballot>& ballots) {
  std::vector<wire::NodeAddress> nodes(ballots.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].label = "n" + std::to_string(i);
  return client::describe("seat", {code, {}, ballots}, nodes, client::Rival::somebody).message;
}

TEST_CASE("a sentence says how many nodes took part, and why the others did not") {
  const engine::Ballot yes{Vote::granted, Cause::none, {}};
  const engine::Ballot no{Vote::refused, Cause::none, {}};
  const engine::Ballot open{};
  const engine::Ballot dead{Vote::unavailable, Cause::connection_failed, {}};
  CHECK(sentence_of(Errc::no_quorum, {dead, dead, dead, open, open}) ==
        "no quorum for 'seat': 0 of 5 nodes voted (3 must), 2 not waited for; "
        "n0: could not connect; n1: could not connect; n2: could not connect");
  CHECK(sentence_of(Errc::no_quorum, {yes, dead, dead, no, dead}) ==
        "no quorum for 'seat': 2 of 5 nodes voted (3 must); "
        "n1: could not connect; n2: could not connect; n4: could not connect");
  CHECK(sentence_of(Errc::timed_out, {dead, open, open}) ==
        "'seat' was not granted in the time given: 0 of 3 nodes voted (2 must), "
        "2 had not answered; n0: could not connect");
  CHECK(sentence_of(Errc::timed_out, {no, no, open}) ==
        "'seat' was not granted in the time given: 2 of 3 nodes refused (2 must grant it)");
  CHECK(sentence_of(Errc::contended, {no, no, no, open, open}) ==
        "'seat' is held by somebody else: 3 of 5 nodes refused (3 must grant it)");
}

}  // namespace
}  // namespace redlock::testing
