// SPDX-License-Identifier: MIT
// The handshake without a network: what it says, and what it makes of each answer. The commands of
// each round are read back from what it wrote.
#include "wire/handshake.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/commands_in.hpp"
#include "support/text.hpp"
#include "wire/healthy_node.hpp"

using namespace redlock::wire;
using namespace redlock::testing;
using redlock::Cause;
using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Progress = Handshake::Progress;
namespace engine = redlock::engine;

namespace {

using Answers = std::function<std::string(const RedisCommand&)>;

std::vector<RedisCommand> parsed(const std::string& bytes) {
  ReplyReader reader;
  return commands_in(bytes, reader);
}

struct Meeting {
  Meeting(const std::string& uri, const Answers& answers,
          std::optional<LostConnection> lost = std::nullopt, UnfitNodes unfit = UnfitNodes::refuse,
          Passwords known = Passwords({}), std::string identity_key = {})
      : address(*parse_node_uri(uri)),
        passwords(address.password.empty() ? std::move(known) : Passwords(address.password)),
        config{.set = {.max_lease = milliseconds(60'000)},
               .client_name = "redlock-test",
               .unfit = unfit},
        handshake(address, passwords, config, std::move(lost), std::move(identity_key)) {
    std::string out;
    handshake.start(out);
    while (!out.empty() && progress == Progress::going_on) {
      rounds.push_back(parsed(std::exchange(out, "")));
      for (const RedisCommand& command : rounds.back()) {
        ReplyReader reader;
        reader.feed(answers(command));
        REQUIRE(reader.next(1'000'000) == ReplyReader::Outcome::complete);
        if (progress == Progress::going_on) progress = handshake.on_reply(reader.reply(), out);
      }
    }
  }

  [[nodiscard]] bool said(std::string_view name) const {
    return std::any_of(rounds.begin(), rounds.end(), [&](const auto& round) {
      return std::any_of(round.begin(), round.end(),
                         [&](const RedisCommand& command) { return is(command, name); });
    });
  }

  NodeAddress address;
  Passwords passwords;
  Handshake::Config config;
  Handshake handshake;
  std::vector<std::vector<RedisCommand>> rounds;
  Progress progress = Progress::going_on;
};

// Healthy but for one command.
Answers but(const std::string& name, const std::string& answer) {
  return [=](const RedisCommand& command) { return is(command, name) ? answer : healthy(command); };
}

std::string info(const std::string& lines) {
  return bulk("# Server\r\n" + lines + "\r\n");
}

std::string marker(const std::string& layout, const std::string& nodes, const std::string& lease) {
  return array({bulk("layout"), bulk(layout), bulk("nodes"), bulk(nodes), bulk("max_lease_ms"),
                bulk(lease), bulk("set"), bulk("own"), bulk("added-later"), bulk("x")});
}

redlock::engine::Unavailable refusal(const Answers& answers,
                                     const std::string& uri = "redis://host") {
  Meeting meeting(uri, answers);
  REQUIRE(meeting.progress == Progress::failed);
  CHECK(meeting.handshake.failure().delivery == redlock::engine::Delivery::not_sent);
  return meeting.handshake.failure();
}

std::string warnings(const Answers& answers) {
  Meeting meeting("redis://host", answers);
  REQUIRE(meeting.progress == Progress::complete);
  return meeting.handshake.facts().warnings;
}

}  // namespace

TEST_CASE("a healthy node is met in two round trips, without a warning") {
  Meeting meeting("redis://host", healthy);
  CHECK(meeting.progress == Progress::complete);
  CHECK(meeting.rounds.size() == 2);
  const ServerFacts& facts = meeting.handshake.facts();
  CHECK(facts.warnings.empty());
  CHECK(facts.client_id == 7);
  CHECK(facts.run_id.size() == 40);
  CHECK(facts.unix_us > 1'700'000'000'000'000);
  CHECK(facts.durable == true);
  constexpr auto hold = script_for<engine::HoldCommand>;
  CHECK(facts.scripts.digest(hold) == stub_digest(facts.scripts.source(hold)));
  CHECK_FALSE(facts.subscribed);  // where nobody is to be woken
  for (const char* name : {"AUTH", "SELECT", "CLIENT KILL", "HELLO", "SUBSCRIBE"}) {
    CHECK_FALSE(meeting.said(name));
  }
}

TEST_CASE("user, password and database are given before anything else") {
  Meeting meeting("redis://alice:secret@host/3", healthy);
  CHECK(meeting.rounds[0][0] == RedisCommand{"AUTH", "alice", "secret"});
  CHECK(meeting.rounds[0][1] == RedisCommand{"SELECT", "3"});
  CHECK(meeting.rounds[0][2] == RedisCommand{"CLIENT", "SETNAME", "redlock-test"});
  Meeting without_user("redis://:secret@host", healthy);
  CHECK(without_user.rounds[0][0] == RedisCommand{"AUTH", "secret"});
}

TEST_CASE("a new password that a node does not take yet is followed by the one that it took last") {
  Passwords passwords{{}};
  passwords.offer("old-one");
  passwords.on_accepted("old-one");
  passwords.offer("old-one-and-more");
  const auto takes = [](const std::string& right) {
    return [=, in = std::make_shared<bool>(false)](const RedisCommand& command) -> std::string {
      if (is(command, "AUTH")) *in = command.at(2) == right;
      if (*in) return is(command, "AUTH") ? "+OK\r\n" : healthy(command);
      return is(command, "AUTH") ? error("WRONGPASS invalid username-password pair " + command[2])
                                 : error("NOAUTH Authentication required.");
    };
  };
  Meeting later("redis://ann:@host", takes("old-one"), {}, UnfitNodes::refuse, passwords);
  CHECK(later.progress == Progress::complete);
  CHECK(later.rounds.size() == 3);
  CHECK(later.rounds[0][0] == RedisCommand{"AUTH", "ann", "old-one-and-more"});
  CHECK(later.rounds[1][0] == RedisCommand{"AUTH", "ann", "old-one"});
  CHECK(later.rounds[0].size() == later.rounds[1].size());

  Meeting at_once("redis://ann:@host", takes("old-one-and-more"), {}, UnfitNodes::refuse,
                  passwords);
  CHECK(at_once.progress == Progress::complete);
  CHECK(at_once.rounds.size() == 2);
  CHECK(at_once.passwords.to_try() == std::vector<std::string>{"old-one-and-more"});

  Meeting never("redis://ann:@host", takes("third"), {}, UnfitNodes::refuse, passwords);
  CHECK(never.progress == Progress::failed);
  CHECK(never.rounds.size() == 2);  // each is tried once
  CHECK(never.handshake.failure().cause == Cause::authentication);
  CHECK(never.handshake.failure().detail ==
        "WRONGPASS invalid username-password pair ***; correct the URI or the password file");
}

TEST_CASE("scripts say that they may run at maxmemory only to servers that understand it") {
  Meeting newer("redis://host", healthy);
  const auto flagged = [](const RedisCommand& load) { return load[2].starts_with("#!lua flags="); };
  const auto& loads = newer.rounds[1];
  CHECK_FALSE(flagged(loads[0]));
  CHECK(flagged(loads[1]));
  CHECK(flagged(loads[2]));
  Meeting older("redis://host", but("INFO", info("redis_version:6.2.14\r\nrole:master")));
  REQUIRE(older.progress == Progress::complete);
  for (const RedisCommand& load : older.rounds[1]) {
    if (is(load, "SCRIPT LOAD")) CHECK_FALSE(flagged(load));
  }
}

TEST_CASE("a lost connection is killed before the scripts are loaded, if it is on this server") {
  const std::string run_id = Meeting("redis://host", healthy).handshake.facts().run_id;
  Meeting same("redis://host", healthy, LostConnection{run_id, 42});
  CHECK(same.rounds[1][0] == RedisCommand{"CLIENT", "KILL", "ID", "42"});
  CHECK(same.progress == Progress::complete);
  for (const LostConnection& other : {LostConnection{"other", 42}, LostConnection{run_id, 0}}) {
    CHECK_FALSE(Meeting("redis://host", healthy, other).said("CLIENT KILL"));
  }
}

TEST_CASE("a key of the identity check is read where there is one, and a refusal is kept") {
  const auto reading = [](const Answers& answers) {
    return Meeting("redis://host", answers, std::nullopt, UnfitNodes::refuse, Passwords({}), "key");
  };
  CHECK_FALSE(Meeting("redis://host", healthy).said("GET"));
  Meeting found = reading(but("GET", bulk("value")));
  CHECK(found.said("GET"));
  CHECK(found.handshake.facts().identity == "value");
  CHECK(reading(but("GET", nil())).handshake.facts().identity == "");
  Meeting denied = reading(but("GET", error("NOPERM this user has no permissions")));
  CHECK(denied.progress == Progress::complete);
  CHECK(denied.handshake.facts().identity == std::nullopt);
  CHECK(contains(denied.handshake.facts().identity_refusal, "NOPERM"));
  CHECK(reading(but("GET", integer(1))).progress == Progress::failed);
}

TEST_CASE("nodes that no quorum may count on are refused, with the reason") {
  const std::pair<Answers, std::string> cases[] = {
      {but("INFO", info("redis_version:6.0.16\r\nrole:master")), "version is 6.0.16"},
      {but("INFO", info("redis_version:5.0.7\r\nrole:master")), "6.2 or newer is needed"},
      {but("INFO", info("role:master")), "version is unknown"},
      {but("INFO", info("redis_version:7.0.15\r\nrole:slave")), "replica"},
      {but("INFO", info("redis_version:7.0.15\r\nredis_mode:sentinel")), "sentinel"},
      {but("INFO", info("redis_version:7.2.4\r\nserver_mode:sentinel")), "sentinel"},
      {but("INFO", info("redis_version:7.2.4\r\nredict_mode:sentinel")), "sentinel"},
      {but("INFO", info("redis_version:7.0.15\r\ncluster_enabled:1")), "Redis Cluster"},
      {but("HGETALL", marker("redlock-3", "5", "60000")), "does not list 5 members and itself"},
      {but("HGETALL", marker("redlock-3", "1", "30000")), "max_lease_ms 30000"},
      {but("HGETALL", marker("other", "1", "60000")), "layout other"},
      {but("HGETALL", array({bulk("id"), bulk("x")})), "layout nothing"},
      {but("HGETALL", marker("redlock-3", "1", "60000")), "does not list 1 members and itself"},
      {but("HGETALL", marker_of("1", "y=redis://host:6379")), "does not list 1 members and itself"},
      {but("HGETALL", marker_of("1", "x=a", "x", "02")), "does not list 1 members and itself"},
      {but("HGETALL", marker_of("1", "x=a\x1b")), "does not list 1 members and itself"},
      {but("HGETALL", marker_of("1", "x=a", "x", "18446744073709551615")),
       "does not list 1 members"},
  };
  for (const auto& entry : cases) {
    const auto& answers = entry.first;
    const auto& part = entry.second;
    const auto why = refusal(answers);
    CHECK(why.cause == Cause::incompatible);
    CHECK_MESSAGE(contains(why.detail, part), why.detail);
    Meeting inspection("redis://host", answers, std::nullopt, UnfitNodes::report);
    CHECK(inspection.progress == Progress::complete);
    CHECK_MESSAGE(contains(inspection.handshake.facts().warnings, part), part);
  }
}

TEST_CASE("forks of Redis that report a version of 7 are met like it") {
  for (const char* version : {"redis_version:7.2.4\r\nvalkey_version:8.0.1", "redis_version:7.3.1",
                              "redis_version:255.255.255", "redis_version:8.2"}) {
    Meeting meeting("redis://host", but("INFO", info(std::string(version) + "\r\nrole:master")));
    CHECK(meeting.progress == Progress::complete);
    CHECK(meeting.rounds[1][1][2].starts_with("#!lua"));
  }
}

TEST_CASE("an uptime that cannot be is taken for none, or for a century") {
  const std::pair<std::string, std::chrono::seconds> cases[] = {
      {"-86400", 0s},
      {"9223372036854775807", std::chrono::years(100)},
      {"99999999999999999999", 0s},
      {"a day", 0s}};
  for (const auto& entry : cases) {
    const std::string lines = "redis_version:7.0.15\r\nuptime_in_seconds:" + entry.first;
    Meeting meeting("redis://host", but("INFO", info(lines)));
    CHECK(meeting.handshake.facts().uptime == entry.second);
  }
}

TEST_CASE("a node is durable if it appends every write, and to the disk before it answers") {
  const auto with = [](const std::string& setting, const std::string& value) {
    Meeting meeting("redis://host", [=](const RedisCommand& command) {
      return is(command, "CONFIG GET") && command[2] == setting
                 ? array({bulk(setting), bulk(value)})
                 : healthy(command);
    });
    return meeting.handshake.facts().durable;
  };
  CHECK(with("appendfsync", "always") == true);
  CHECK(with("appendfsync", "everysec") == false);
  CHECK(with("appendonly", "no") == false);
}

TEST_CASE("what is unsafe but works, or the user may not run, is a warning") {
  const auto evicting = [](const RedisCommand& command) {
    return is(command, "CONFIG GET") && command[2] == "maxmemory-policy"
               ? array({bulk("maxmemory-policy"), bulk("allkeys-lru")})
               : healthy(command);
  };
  CHECK(contains(warnings(evicting), "maxmemory-policy is allkeys-lru"));
  const std::string denied = error("NOPERM this user has no permissions");
  const std::string unknown = error("ERR unknown command 'INFO', with args beginning with: ");
  CHECK(contains(warnings(but("CONFIG", denied)), "refuses CONFIG GET"));
  CHECK(contains(warnings(but("CLIENT SETNAME", denied)), "refuses CLIENT SETNAME"));
  CHECK(contains(warnings(but("TIME", denied)), "a jump of its clock goes unnoticed"));
  CHECK(contains(warnings(but("PTTL", denied)), "that another client saw goes unnoticed"));
  CHECK(contains(warnings(but("CLIENT ID", denied)), "refuses CLIENT ID"));
  for (const auto& no : {denied, unknown})
    CHECK(contains(warnings(but("INFO", no)), "refuses INFO"));
  CHECK(contains(warnings(but("CONFIG", error("ERR unknown command 'CONFIG'"))),
                 "not known whether it is durable (ERR unknown command 'CONFIG'; do not rename"));
  Meeting no_config("redis://host", but("CONFIG", denied));
  CHECK_FALSE(no_config.handshake.facts().durable);
  const std::string run_id = Meeting("redis://host", healthy).handshake.facts().run_id;
  Meeting no_kill("redis://host", but("CLIENT KILL", denied), LostConnection{run_id, 42});
  CHECK(no_kill.progress == Progress::complete);
  CHECK(contains(no_kill.handshake.facts().warnings, "refuses CLIENT KILL"));
  Meeting gone("redis://host", but("CLIENT KILL", error("ERR No such client")),
               LostConnection{run_id, 42});
  CHECK(gone.handshake.facts().warnings.empty());
}

TEST_CASE("what the lock cannot do without is a refusal, which says what to do") {
  const std::string denied = error("NOPERM this user has no permissions");
  const std::string uri = "redis://alice:hunter2@host";
  struct Refusal {
    Answers answers;
    Cause cause;
    std::string says;
    std::string uri = "redis://host";
  };
  const std::string needless =
      "ERR AUTH <password> called without any password configured for the default user.";
  const Refusal refusals[] = {
      {but("SCRIPT", denied), Cause::permission, "NOPERM"},
      {but("HGETALL", denied), Cause::permission, "NOPERM"},
      {but("HGETALL", error("WRONGTYPE a key")), Cause::server_error, "WRONGTYPE"},
      {but("HGETALL", error("LOADING")), Cause::loading, "; wait: it votes when it has read"},
      {but("CLIENT", error("ERR max number of clients reached")), Cause::server_error,
       "max number of clients reached; raise maxclients"},
      {but("SELECT", error("ERR DB index")), Cause::incompatible, "DB index", "redis://host/99"},
      {but("CLIENT", error("NOAUTH")), Cause::authentication, "; give its user and password in"},
      {but("AUTH", error("WRONGPASS")), Cause::authentication, "; correct the URI or the", uri},
      {but("AUTH", error(needless)), Cause::authentication,
       "a password was given, but its user has none; leave the password out", uri},
  };
  for (const Refusal& entry : refusals) {
    const auto why = refusal(entry.answers, entry.uri);
    CHECK_MESSAGE(why.cause == entry.cause, entry.says);
    CHECK_MESSAGE(contains(why.detail, entry.says), why.detail);
  }
}

TEST_CASE("what is shown of a node never has the password, wherever the node puts it, or cut off") {
  const std::string uri = "redis://alice:hunter2-and-more@host";
  for (const char* reply :
       {"ERR unknown command 'AUTH', with args beginning with: 'alice' 'hunter2-",
        "WRONGPASS hunter2-and-more is wrong", "hunter2-and-more"}) {
    const auto why = refusal(but("AUTH", error(reply)), uri);
    CHECK(why.cause == Cause::authentication);
    CHECK_MESSAGE(!contains(why.detail, "hunter2"), why.detail);
  }
  const std::string password = "hunter2-and-more";
  for (const Answers& answers :
       {but("INFO", info("redis_version:" + password)), but("HGETALL", marker(password, "1", "1")),
        but("HGETALL", marker("redlock-3", password, "60000"))}) {
    CHECK(contains(refusal(answers, uri).detail, "***"));
    CHECK_FALSE(contains(refusal(answers, uri).detail, "hunter2"));
  }
}

TEST_CASE("answers of another shape are not those of Redis") {
  for (const char* name : {"CLIENT ID", "INFO", "HGETALL", "PTTL", "CONFIG", "SCRIPT", "TIME"}) {
    for (const std::string& odd : {std::string("*1\r\n*0\r\n"), nil()}) {
      Meeting meeting("redis://host", but(name, odd));
      if (std::string(name) == "CONFIG" && odd != nil()) continue;  // an empty list: not known
      CHECK_MESSAGE(meeting.progress == Progress::failed, name, odd);
      CHECK(meeting.handshake.failure().cause == Cause::protocol_error);
    }
  }
  // A server that sends every request back.
  Meeting echo("redis://:hunter2@host", [](const RedisCommand& command) {
    std::vector<std::string> words;
    for (const auto& word : command) words.push_back(bulk(word));
    return array(words);
  });
  CHECK(echo.progress == Progress::failed);
  CHECK(echo.handshake.failure().cause == Cause::protocol_error);
  CHECK_FALSE(contains(echo.handshake.failure().detail, "hunter2"));
}
