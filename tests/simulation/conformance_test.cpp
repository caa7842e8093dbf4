// SPDX-License-Identifier: MIT
// What the simulator's servers and real ones have in common, said once and asked of both. Of the
// real ones it runs on whichever redis-server stands in PATH.
#include <doctest/doctest.h>
#include <functional>
#include <span>

#include "simulation/any_server.hpp"
#include "simulation/random.hpp"
#include "simulation/script_talk.hpp"
#include "simulation/sha1.hpp"
#include "wire/info_text.hpp"

using namespace redlock;
using namespace redlock::simulation;

namespace {

void on_both(const std::function<void(AnyServer&)>& scene) {
  {
    INFO("on the simulator's server");
    SimulatedServer simulated;
    scene(simulated);
    CHECK(simulated.misread == 0);
  }
  INFO("on a real server");
  RealServer real(fleet());
  scene(real);
}

/// Requests and their replies, on lines of their own in turn.
void talk(AnyServer& server, std::initializer_list<std::pair<std::string, std::string>> lines) {
  for (const auto& line : lines) {
    CAPTURE(line.first);
    CHECK(server.ask(line.first) == line.second);
  }
}

}  // namespace

TEST_CASE("keys end by the clock: PTTL, PEXPIRE, and what SET makes of them") {
  on_both([](AnyServer& server) {
    talk(server, {{"PTTL k", "-2"},
                  {"PEXPIRE k 1000", "0"},
                  {"SET k a", "'OK'"},
                  {"PTTL k", "-1"},
                  {"PEXPIRE k x", "error ERR"},
                  {"PEXPIRE k 9223372036854775807", "error ERR"},
                  {"PEXPIRE k 600000", "1"},
                  {"PEXPIRE k 0", "1"},
                  {"EXISTS k", "0"},
                  {"SET k 1", "'OK'"},
                  {"PEXPIRE k 600000", "1"},
                  {"INCR k", "2"}});
    CHECK(server.run("return redis.call('PTTL', 'k') > 500000") == "1");
    talk(server, {{"SET k 5 PX 900000", "'OK'"},
                  {"SET k 5 PX 0", "error ERR"},
                  {"SET k 5 PX x", "error ERR"},
                  {"SET k 5 PX", "error ERR"}});
    CHECK(server.run("return redis.call('PTTL', 'k') > 700000") == "1");
    CHECK(server.ask("SET k 5") == "'OK'");
    CHECK(server.ask("PTTL k") == "-1");
    talk(server, {{"HSET h a 1", "1"}, {"SET s 1 PX 3", "'OK'"}, {"PEXPIRE h 3", "1"}});
    server.pass_ms(5);
    talk(server, {{"EXISTS h s k k", "2"},
                  {"HGET h a", "nil"},
                  {"TYPE s", "'none'"},
                  {"SET s 2 GET", "nil"},
                  {"PTTL s", "-1"},
                  {"HSET h b 1", "1"},
                  {"HGETALL h", "['b' '1']"},
                  {"DEL h k nothing k", "2"}});
  });
}

TEST_CASE("a script's values become replies") {
  on_both([](AnyServer& server) {
    CHECK(server.run("return 3.99") == "3");
    CHECK(server.run("return -3.99") == "-3");
    CHECK(server.run("return '3.99'") == "'3.99'");
    CHECK(server.run("return true") == "1");
    CHECK(server.run("return false") == "nil");
    CHECK(server.run("return nil") == "nil");
    CHECK(server.run("local x = 1") == "nil");
    CHECK(server.run("return {1, 'a', {2.5}, {}, nil, 3}") == "[1 'a' [2] []]");
    CHECK(server.run("return {1, false, 3, x = 4}") == "[1 nil 3]");
    CHECK(server.run("return {ok = 'fine'}") == "'fine'");
    CHECK(server.run("return redis.status_reply('fine')") == "'fine'");
    CHECK(server.run("return redis.error_reply('MINE is wrong')") == "error MINE");
    CHECK(server.text() == "MINE is wrong");
    CHECK(server.run("return {1, redis.error_reply('MINE is wrong')}") == "[1 error MINE]");
    CHECK(server.run("return {KEYS[1], ARGV[1], ARGV[2], KEYS[2], #ARGV}", {"a"}, {"b", "c"}) ==
          "['a' 'b' 'c']");
    CHECK(server.run("return 9007199254740991") == "9007199254740991");
  });
}

TEST_CASE("what commands reply becomes values of the script") {
  on_both([](AnyServer& server) {
    CHECK(server.run("return type(redis.call('GET', 'k'))") == "'boolean'");
    CHECK(server.run("return redis.call('SET', 'k', 'v')") == "'OK'");
    CHECK(server.run("return redis.call('SET', 'k', 'v').ok") == "'OK'");
    CHECK(server.run("return redis.call('TYPE', 'k').ok") == "'string'");
    CHECK(server.run("return type(redis.call('EXISTS', 'k'))") == "'number'");
    CHECK(server.run("return #redis.call('HMGET', 'h', 'a', 'b')") == "2");
    CHECK(server.run("return redis.call('HMGET', 'h', 'a', 'b')[2] == false") == "1");
    CHECK(server.run("redis.call('HSET', 'h', 'a', 1) return redis.call('HGETALL', 'h')") ==
          "['a' '1']");
    CHECK(server.run("return type(redis.call('TIME')[1]) .. #redis.call('TIME')") == "'string2'");
    CHECK(server.run("return tonumber(redis.call('TIME')[1]) > 1600000000") == "1");
  });
}

TEST_CASE("numbers of a script go to commands with seventeen digits") {
  on_both([](AnyServer& server) {
    const auto told = [&](const std::string& number) {
      return server.run("redis.call('SET', 'k', " + number + ") return redis.call('GET', 'k')");
    };
    CHECK(told("5") == "'5'");
    CHECK(told("-5") == "'-5'");
    CHECK(told("0.5") == "'0.5'");
    CHECK(told("9007199254740991") == "'9007199254740991'");
    CHECK(told("1795227228964050") == "'1795227228964050'");
    CHECK(server.run("return tonumber('9007199254740993') == 9007199254740992") == "1");
    CHECK(server.run("return string.format('%d %s', 1795227228964050, 'x')") ==
          "'1795227228964050 x'");
  });
}

TEST_CASE("an error of a command ends the script, unless it is caught; nothing is rolled back") {
  on_both([](AnyServer& server) {
    server.ask("SET s a");
    const bool words_first = server.is_redis_7();  // before, they are within another error
    CHECK(server.run("redis.call('SET', 'k', '1') redis.call('HGET', 's', 'a')") ==
          (words_first ? "error WRONGTYPE" : "error ERR"));
    CHECK(server.text().find("WRONGTYPE Operation against") != std::string::npos);
    CHECK(server.text().find("user_script:") != std::string::npos);
    CHECK(server.ask("GET k") == "'1'");
    CHECK(server.run("return redis.pcall('HGET', 's', 'a').err") ==
          "'WRONGTYPE Operation against a key holding the wrong kind of value'");
    CHECK(server.run("return redis.pcall('HGET', 's', 'a')") == "error WRONGTYPE");
    CHECK(server.run("local done, why = pcall(redis.call, 'HGET', 's', 'a')\n"
                     "why = type(why) == 'table' and why.err or why\n"
                     "return {done, string.find(why, 'WRONGTYPE', 1, true) ~= nil}") == "[nil 1]");
  });
}

TEST_CASE("what a script cannot call") {
  on_both([](AnyServer& server) {
    for (const char* const call : {"'NOTHING'", "'EVAL', 'return 1', '0'", "'SUBSCRIBE', 'x'",
                                   "'HELLO', '3'", "'AUTH', 'x'", "'GET'", "'GET', 'a', 'b'",
                                   "'SET', 'a', {}", "'SET', 'a', true", "'SCRIPT', 'LOAD', 'x'"}) {
      CAPTURE(call);
      CHECK(server.run("return redis.pcall(" + std::string(call) + ").err ~= nil") == "1");
      CHECK(server.run("redis.call(" + std::string(call) + ") return 1") == "error ERR");
    }
  });
}

TEST_CASE("a script that is wrong by itself is an error") {
  const auto wrong = [](AnyServer& server) {
    for (const char* const script :
         {"return 1 + nil", "local x = nil return x.y", "x = 1", "return x", "error('no')",
          "return redis.call('GET', 'a', nothing)", "return 1 +"}) {
      CAPTURE(script);
      CHECK(server.run(script) == "error ERR");
    }
    CHECK(server.run("return pcall(function() error('no') end)") == "nil");
    CHECK(server.run("local _, why = pcall(error, {a = 1}) return why.a") == "1");
  };
  SimulatedServer simulated;
  wrong(simulated);
  CHECK(simulated.misread == 7);
  RealServer real(fleet());
  wrong(real);
}

TEST_CASE("scripts are called by their digest, and told by EVAL as well") {
  on_both([](AnyServer& server) {
    const std::string digest = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";  // of "return 1"
    CHECK(server.ask("EVALSHA " + digest + " 0") == "error NOSCRIPT");
    CHECK(server.ask({"SCRIPT", "LOAD", "return 1"}) == "'" + digest + "'");
    CHECK(server.ask("EVALSHA " + digest + " 0") == "1");
    CHECK(server.ask("SCRIPT FLUSH SYNC") == "'OK'");
    CHECK(server.ask("EVALSHA " + digest + " 0") == "error NOSCRIPT");
    CHECK(server.run("return 1") == "1");
    CHECK(server.ask("EVALSHA " + digest + " 0") == "1");
    CHECK(server.run("return 2") == "2");
    CHECK(server.run("return KEYS[1] .. #KEYS", {"k"}, {"k"}) == "'k1'");
    const std::string long_one = "return '" + std::string(200, 'x') + "'";
    const std::string its_digest = server.ask({"SCRIPT", "LOAD", long_one});
    CHECK(its_digest.size() == 42);
    CHECK(server.ask("EVALSHA " + server.text() + " 0").size() == 202);
  });
}

TEST_CASE("at maxmemory nothing may grow, unless the script has written or says so beforehand") {
  on_both([](AnyServer& server) {
    talk(server, {{"HSET h a 1 b 2", "2"}, {"SET k 1", "'OK'"}});
    const bool begins = server.is_redis_7();
    const char* const oom = begins ? "error OOM" : "error ERR";
    const char* const refused = begins ? "error OOM" : "error @user_script:";
    server.become(Ailment::full);
    CHECK(server.ask("SET k 2") == "error OOM");
    CHECK(server.ask("HSET h a 2") == "error OOM");
    CHECK(server.ask("ZADD z 1 a") == "error OOM");
    CHECK(server.ask("INCR k") == "error OOM");
    talk(server, {{"GET k", "'1'"}, {"PEXPIRE k 100000", "1"}, {"HDEL h b", "1"}});
    CHECK(server.run("return redis.call('SET', 'k', '2')") == oom);
    CHECK(server.run("return redis.pcall('SET', 'k', '2')") == refused);
    CHECK(server.run("redis.call('GET', 'k') return redis.pcall('SET', 'k', '2')") == refused);
    CHECK(server.run("redis.call('HDEL', 'h', '') return redis.call('SET', 'k', '2')") == "'OK'");
    CHECK(server.run("redis.pcall('INCR', 'k') redis.call('DEL', 'h')\n"
                     "return redis.call('INCR', 'k')") == "3");
    if (begins) {
      CHECK(server.run("#!lua flags=allow-oom\nreturn redis.call('INCR', 'k')") == "4");
      CHECK(server.run("#!lua\nreturn 1") == "error OOM");
    }
    server.become(Ailment::none);
    CHECK(server.ask("INCR k") == (begins ? "5" : "4"));
  });
}

TEST_CASE("a replica, and a node that cannot save, let read and not write") {
  on_both([](AnyServer& server) {
    const bool begins = server.is_redis_7();
    for (const auto ailment : {Ailment::read_only, Ailment::misconf}) {
      const std::string word = ailment == Ailment::read_only ? "READONLY" : "MISCONF";
      CAPTURE(word);
      server.ask("SET k 1");
      server.ask("SCRIPT FLUSH SYNC");
      const std::string digest = server.ask({"SCRIPT", "LOAD", "return redis.call('GET', 'k')"});
      server.become(ailment);
      const std::string error = "error " + word;
      for (const char* const request :
           {"SET k 2", "SET nothing 1 XX", "DEL nothing", "PEXPIRE k 1", "HDEL h a", "INCR k"}) {
        CAPTURE(request);
        CHECK(server.ask(request) == error);
      }
      CHECK(server.run("return redis.call('GET', 'k')") == "'1'");
      CHECK(server.run("return redis.pcall('DEL', 'nothing')") ==
            (begins ? error : "error @user_script:"));
      CHECK(server.run("redis.call('DEL', 'k')") == (begins ? error : "error ERR"));
      CHECK(server.run("return redis.pcall('PUBLISH', 'x', 'y')") == "0");
      if (begins) {
        const std::string flagged = "#!lua flags=allow-oom\nreturn redis.call('GET', 'k')";
        CHECK(server.run(flagged) == error);
        CHECK(server.ask("EVALSHA " + sha1(flagged) + " 0") == "error NOSCRIPT");
      }
      CHECK(server.ask("GET k") == "'1'");
      server.become(Ailment::none);
    }
  });
}

TEST_CASE("a node in an endless script refuses everything") {
  on_both([](AnyServer& server) {
    server.become(Ailment::busy);
    for (const char* const request :
         {"GET k", "SET k 1", "TIME", "PING", "INFO", "CLIENT ID", "CONFIG GET appendonly",
          "EVALSHA 0123456789012345678901234567890123456789 0"}) {
      CAPTURE(request);
      CHECK(server.ask(request) == "error BUSY");
    }
    CHECK(server.run("return 1") == "error BUSY");
    server.become(Ailment::none);
    CHECK(server.run("return 1") == "1");
  });
}

TEST_CASE("who is subscribed is told, and counted") {
  on_both([](AnyServer& server) {
    CHECK(server.run("return redis.call('PUBLISH', 'redlock:wake:a', 'x')") == "0");
    server.subscribe("redlock:wake:a");
    CHECK(server.run("redis.call('PUBLISH', 'redlock:wake:b', '0')\n"
                     "redis.call('PUBLISH', 'redlock:wake:a', '1 20')\n"
                     "return redis.call('PUBLISH', 'redlock:wake:a', 2)") == "1");
    CHECK(server.told() == "[redlock:wake:a 1 20][redlock:wake:a 2]");
    server.permit_publish(false);
    const std::string caught = server.run("return redis.pcall('PUBLISH', 'x', 'y').err ~= nil");
    const std::string refused = server.run("redis.call('PUBLISH', 'x', 'y')");
    server.permit_publish(true);
    CHECK(caught == "1");
    CHECK(refused.starts_with("error "));
    CHECK(server.told().empty());
  });
}

TEST_CASE("what a handshake asks") {
  on_both([](AnyServer& server) {
    talk(server, {{"CLIENT SETNAME me", "'OK'"},
                  {"SELECT 0", "'OK'"},
                  {"HGETALL redlock:node", "[]"},
                  {"CONFIG GET maxmemory-policy", "['maxmemory-policy' 'noeviction']"},
                  {"CONFIG GET nothing-of-the-kind", "[]"},
                  {"EXISTS redlock:node redlock:node:notes", "0"},
                  {"SET redlock:node:nothing x XX", "nil"},
                  {"CLIENT KILL ID 123456789", "0"},
                  {"AUTH x", "error ERR"}});
    CHECK(server.ask("TIME").starts_with("['1"));
    server.ask("INFO");
    const wire::InfoText info(server.text());
    CHECK(info.value("role") == "master");
    CHECK_FALSE(info.is_sentinel());
    CHECK_FALSE(info.is_in_cluster());
    CHECK(info.value("cluster_enabled") == "0");
    CHECK(server.ask("HELLO 3").starts_with("['server' '"));
    CHECK(server.ask("GET nothing") == "nil");
  });
}

namespace {

// Words divided by | are as many possible ones, and those in capitals that no command has stand for
// any below.
const char* const requests[] = {
    "SET KEY NUMBER",
    "SET KEY WORD GET|XX|xx|GETT",
    "SET KEY WORD px 0|1|-1|600000|x",
    "set KEY WORD XX get",
    "GET|TYPE|EXISTS KEY",
    "INCR KEY",
    "DEL KEY",
    "HSET KEY WORD NUMBER",
    "HSET KEY WORD 1 WORD 2",
    "HGET|HEXISTS|HDEL KEY WORD",
    "HMGET KEY WORD WORD",
    "HGETALL KEY",
    "ZADD KEY NUMBER WORD",
    "ZADD KEY NUMBER WORD",
    "ZADD KEY LT|lt NUMBER WORD",
    "ZADD KEY LT|1 NUMBER WORD 2",
    "ZRANK|ZREM KEY WORD",
    "ZRANGE KEY NUMBER NUMBER",
    "ZREM|HDEL|HSET KEY a b 7",
    "PEXPIRE KEY NUMBER",
};
const Strings keys = split("s h z k");
const Strings texts = split("a b '' 7 'x y'");
const Strings numbers =
    split("0 1 2 -1 -5 01 3.5 600000 1795227228964050 9223372036854775807 nan x");

Strings any_request(Random& random) {
  Strings request = split(random.pick(requests));
  for (std::string& word : request) {
    const Strings possible = word == "KEY"      ? keys
                             : word == "WORD"   ? texts
                             : word == "NUMBER" ? numbers
                                                : split(word, '|');
    word = random.pick(std::span(possible));
  }
  return request;
}

}  // namespace

TEST_CASE("whatever is asked, both servers reply the same, to a client and to a script") {
  // A millisecond later a lease of one would be over.
  const std::string state =
      "local key, left = KEYS[1], redis.call('PTTL', KEYS[1])\n"
      "if left >= 0 and left < 100000 then redis.call('DEL', key) end\n"
      "local kind = redis.call('TYPE', key).ok\n"
      "local value = kind == 'string' and redis.call('GET', key)\n"
      "  or kind == 'hash' and redis.call('HGETALL', key)\n"
      "  or kind == 'zset' and redis.call('ZRANGE', key, '0', '-1')\n"
      "return {kind, left < 100000, value}";
  SimulatedServer simulated;
  RealServer real(fleet());
  for (std::uint64_t seed = 1; seed <= 4'000; ++seed) {
    Random random(seed);
    Strings words = any_request(random);
    std::string request;
    for (const std::string& word : words) request += " '" + word + "'";
    CAPTURE(seed);
    CAPTURE(request);
    if (random.chance(500)) {
      const std::string text = words.front() == "HGETALL"
                                   ? "return redis.pcall(unpack(ARGV))"
                                   : "local r = redis.pcall(unpack(ARGV)) return {r, type(r)}";
      words.insert(words.begin(), {"EVAL", text, "0"});
    }
    REQUIRE(simulated.ask(words) == real.ask(words));
    for (const std::string& key : keys) {
      REQUIRE(simulated.run(state, {key}) == real.run(state, {key}));
    }
  }
}
