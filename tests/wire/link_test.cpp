// SPDX-License-Identifier: MIT
// A link and a node that does what nodes should not do: every command gets its one reply, with the
// reason, and the link goes on.
#include "wire/rig.hpp"

using namespace redlock::wire;

namespace {

// Healthy but for its answers to the scripts.
LinkRig::Script node_answering(const std::string& reply) {
  return [reply](const RedisCommand& command) {
    return is(command, "EVALSHA") ? reply : healthy(command);
  };
}

LinkRig::Script healthy_until_scripts() {
  return node_answering("");
}

}  // namespace

TEST_CASE("commands submitted before there is a connection are sent once there is one, in order") {
  LinkRig rig;
  rig.accepts = false;
  rig.submit(1, LinkRig::acquire());
  rig.submit(2, LinkRig::release());
  rig.run();
  CHECK(rig.replies.empty());
  rig.accepts = true;
  rig.run();
  CHECK(rig.warnings == std::vector<std::string>{""});
  REQUIRE(rig.replies.size() == 2);
  CHECK(rig.replies[0].first == 1);
  CHECK(std::get<Granted>(rig.replies[0].second).token == 7);
  CHECK(rig.replies[1].first == 2);
  CHECK(rig.clocks.size() == 1);
}

TEST_CASE("an uptime that cannot be is taken for none, or for a century") {
  const std::pair<const char*, std::chrono::seconds> cases[] = {
      {"-86400", 0s},
      {"9223372036854775807", std::chrono::years(100)},
      {"99999999999999999999", 0s},
      {"a day", 0s}};
  for (const auto& entry : cases) {
    const std::string info =
        std::string("redis_version:7.0.15\r\nrole:master\r\nuptime_in_seconds:") + entry.first;
    LinkRig rig([info](const RedisCommand& command) {
      return is(command, "INFO") ? bulk(info) : healthy(command);
    });
    rig.run();
    REQUIRE(rig.facts);
    CHECK(rig.facts->uptime == entry.second);
  }
}

TEST_CASE("a node that refuses connections fails commands at once, unsent, with the reason") {
  LinkRig rig;
  rig.submit(1, LinkRig::acquire());
  rig.refuse_connection("cannot connect: connection refused");
  REQUIRE(rig.replies.size() == 1);
  const auto& why = unavailable(rig.replies[0].second);
  CHECK(why.cause == Cause::connection_failed);
  CHECK(why.delivery == Delivery::not_sent);
  CHECK(why.detail == "cannot connect: connection refused");
  rig.submit(2, LinkRig::acquire());
  REQUIRE(rig.replies.size() == 2);
  CHECK(unavailable(rig.replies[1].second).delivery == Delivery::not_sent);
}

TEST_CASE("one reason is reported once, however often connecting fails for it") {
  LinkRig rig;
  rig.accepts = false;
  for (int i = 0; i < 6; ++i) {
    rig.refuse_connection("cannot connect: connection refused");
    rig.pass(2s);
  }
  REQUIRE(rig.downs.size() == 1);
  CHECK(rig.downs[0].cause == Cause::connection_failed);
  rig.refuse_connection("cannot resolve its name");
  CHECK(rig.downs.size() == 2);
}

TEST_CASE("the pause before the next attempt to connect doubles up to a second") {
  LinkRig rig;
  rig.accepts = false;
  milliseconds longest = 100ms;
  for (int i = 0; i < 10; ++i) {
    rig.refuse_connection("no");
    const auto pause = rig.link().deadline() - rig.now;
    CHECK(pause >= (i == 0 ? 10ms : longest / 2));
    CHECK(pause <= longest);
    longest = std::min<milliseconds>(2 * longest, 1'000ms);
    rig.pass(pause);
  }
  SUBCASE("a connection that lasts a second makes the next pause short") {
    rig.accepts = true;
    rig.pass(1s);
    rig.break_stream();
    CHECK(rig.link().deadline() - rig.now <= 100ms);
  }
  SUBCASE("one that ends sooner does not") {
    rig.accepts = true;
    rig.pass(999ms);
    rig.break_stream();
    CHECK(rig.link().deadline() - rig.now >= 500ms);
  }
}

TEST_CASE("a node that accepts and never answers is given up at the connect timeout") {
  LinkRig rig([](const RedisCommand&) { return ""; });
  rig.submit(1, LinkRig::acquire());
  rig.pass(999ms);
  CHECK(rig.downs.empty());
  rig.pass(1ms);
  REQUIRE(rig.downs.size() == 1);
  CHECK(rig.downs[0].cause == Cause::timed_out);
  CHECK(rig.downs[0].detail == "no answer to the handshake within 1000 ms");
  CHECK(unavailable(rig.replies.at(0).second).delivery == Delivery::not_sent);
  CHECK(rig.closings == std::vector{Closing::reset});
  rig.node = healthy;
  rig.pass(20ms);
  CHECK(rig.warnings.size() == 1);
}

TEST_CASE("an error reply is a node that did not vote, and the connection stays") {
  const std::pair<const char*, Cause> cases[] = {
      {"LOADING Redis is loading the dataset in memory", Cause::loading},
      {"BUSY Redis is busy running a script", Cause::busy},
      {"OOM command not allowed when used memory > 'maxmemory'", Cause::out_of_memory},
      {"MISCONF Errors writing to the AOF file", Cause::write_error},
      {"NOPERM this user has no permissions", Cause::permission},
      {"ERR something else", Cause::server_error},
  };
  LinkRig rig;
  rig.run();
  for (const auto& entry : cases) {
    rig.node = [answer = error(entry.first)](const RedisCommand&) { return answer; };
    const auto why = unavailable(rig.call(LinkRig::acquire()));
    CHECK(why.cause == entry.second);
    CHECK(why.detail.starts_with(entry.first));
  }
  rig.node = healthy;
  CHECK(std::holds_alternative<Granted>(rig.call(LinkRig::acquire())));
  CHECK(rig.connections == 1);
}

TEST_CASE("NOSCRIPT is handed on, and the source in full can be sent instead") {
  LinkRig rig(node_answering(error("NOSCRIPT No matching script. Please use EVAL.")));
  rig.run();
  CHECK(std::holds_alternative<engine::NoScript>(rig.call(LinkRig::acquire())));
  CHECK(std::holds_alternative<Granted>(rig.call(LinkRig::acquire(), engine::Form::source)));
  CHECK(rig.connections == 1);
}

TEST_CASE("rubbish ends the connection, and every outstanding command with it") {
  for (const char* rubbish :
       {"HTTP/1.1 400 Bad Request\r\n\r\n", "+OK\r\n", "*0\r\n", "$-1\r\n", "*2\r\n:1\r\n:-5\r\n",
        "*99999999999\r\n", "*2\r\n:9\r\n:9\r\n", "\x16\x03\x01\x02\x00\r\n"}) {
    CAPTURE(rubbish);
    LinkRig rig(healthy_until_scripts());
    rig.run();
    rig.submit(1, LinkRig::acquire());
    rig.submit(2, LinkRig::acquire());
    rig.run();
    rig.receive(rubbish);
    CHECK(rig.downs.size() == 1);
    CHECK(rig.closings == std::vector{Closing::reset});
    REQUIRE(rig.replies.size() == 2);
    for (const auto& entry : rig.replies) {
      CHECK(unavailable(entry.second).cause == Cause::protocol_error);
      CHECK(unavailable(entry.second).delivery == Delivery::unknown);
    }
    rig.node = healthy;
    rig.pass(20ms);
    CHECK(std::holds_alternative<Granted>(rig.call(LinkRig::acquire())));
  }
}

TEST_CASE("a reply that nobody asked for ends the connection, and an error says its words") {
  LinkRig rig;
  rig.run();
  CHECK(std::holds_alternative<Granted>(rig.call(LinkRig::acquire())));
  SUBCASE("a text") {
    rig.receive("+surprise\r\n");
    CHECK(rig.downs.at(0).detail == "it sent a reply to no command");
  }
  SUBCASE("an error") {
    rig.receive("-ERR max number of clients reached\r\n");
    CHECK(rig.downs.at(0).detail ==
          "it sent a reply to no command: ERR max number of clients reached");
  }
  CHECK(rig.downs.at(0).cause == Cause::protocol_error);
}

TEST_CASE("half a reply and then the end leaves open what the node did") {
  LinkRig rig(healthy_until_scripts());
  rig.run();
  rig.submit(1, LinkRig::acquire());
  rig.run();
  rig.receive("*2\r\n:1\r\n");
  rig.break_stream();
  REQUIRE(rig.replies.size() == 1);
  CHECK(unavailable(rig.replies[0].second).cause == Cause::connection_lost);
  CHECK(unavailable(rig.replies[0].second).delivery == Delivery::unknown);
}

TEST_CASE("a silent node is given up after the silence, and replaced") {
  LinkRig rig(healthy_until_scripts());
  rig.run();
  rig.pass(10s);
  rig.submit(1, LinkRig::acquire());
  rig.submit(2, LinkRig::release());
  rig.pass(1'000ms);
  CHECK(rig.downs.empty());  // it is looked at once more, for what may have arrived unread
  rig.pass(1ms);
  REQUIRE(rig.replies.size() == 2);
  CHECK(rig.replies[0].first == 1);
  CHECK(unavailable(rig.replies[0].second).cause == Cause::timed_out);
  CHECK(unavailable(rig.replies[0].second).delivery == Delivery::unknown);
  CHECK(rig.downs.at(0).detail == "silent for 1000 ms; the connection was given up");
  CHECK(rig.closings == std::vector{Closing::reset});
  rig.node = healthy;
  rig.pass(20ms);
  CHECK(rig.warnings.size() == 2);
}

TEST_CASE(
    "an answer that arrived while this process did not run is read before the node is judged") {
  LinkRig rig(healthy_until_scripts());
  rig.run();
  rig.submit(1, LinkRig::acquire());
  rig.run();
  SUBCASE("for a moment") {
    rig.stand_still(1'500ms);
    rig.link().on_deadline(rig.now);
  }
  SUBCASE("for long, and the answer is still on its way") {
    rig.stand_still(1h);
    rig.link().on_deadline(rig.now);
    rig.pass(999ms);
  }
  CHECK(rig.downs.empty());
  rig.receive(array({integer(1), integer(7)}));
  rig.pass(2s);
  CHECK(std::holds_alternative<Granted>(rig.replies.at(0).second));
  CHECK(rig.downs.empty());
}

TEST_CASE("a node that stays silent after this process did not run for long is given up") {
  LinkRig rig(healthy_until_scripts());
  rig.run();
  rig.submit(1, LinkRig::acquire());
  rig.run();
  rig.stand_still(1h);
  rig.pass(1s);
  CHECK(rig.downs.size() == 1);
}

TEST_CASE("silence is counted anew from each reply") {
  LinkRig rig(healthy_until_scripts());
  rig.run();
  for (std::uint64_t i = 1; i <= 5; ++i) rig.submit(i, LinkRig::acquire());
  for (int i = 0; i < 4; ++i) {
    rig.pass(900ms);
    rig.receive(array({integer(1), integer(7)}));
  }
  CHECK(rig.downs.empty());
  rig.pass(1'002ms);
  CHECK(rig.downs.size() == 1);
}

TEST_CASE("the time that it takes to write is not counted as the node's silence") {
  LinkRig rig(healthy_until_scripts());
  rig.run();
  rig.submit(1, LinkRig::acquire());
  rig.flush();
  rig.stand_still(1'500ms);  // in the midst of the write, say
  rig.flushed();
  rig.pass(999ms);
  CHECK(rig.downs.empty());
  rig.receive(array({integer(1), integer(7)}));
  CHECK(rig.replies.size() == 1);
}

TEST_CASE("a node that drips bytes and never ends a reply is given up as a silent one is") {
  LinkRig rig(healthy_until_scripts());
  rig.run();
  rig.submit(1, LinkRig::acquire());
  rig.run();
  rig.receive("*2\r\n$900000\r\n");
  for (int i = 0; i < 9; ++i) {
    rig.pass(100ms);
    rig.receive("x");
  }
  CHECK(rig.downs.empty());
  rig.pass(101ms);
  REQUIRE(rig.downs.size() == 1);
  CHECK(rig.downs[0].cause == Cause::timed_out);
  REQUIRE(rig.replies.size() == 1);
  CHECK(unavailable(rig.replies[0].second).delivery == Delivery::unknown);
}

TEST_CASE("a long answer to a question may arrive as slowly as it does") {
  LinkRig rig;
  rig.run();
  rig.node = [](const RedisCommand&) { return ""; };
  rig.ask({"KEYS", "*"}, 1h);
  rig.run();
  rig.receive("$30\r\n");
  for (int i = 0; i < 30; ++i) {
    rig.pass(900ms);
    rig.receive("x");
  }
  rig.receive("\r\n");
  CHECK(std::get<std::string>(rig.answers.at(0)->data) == std::string(30, 'x'));
}

TEST_CASE("a node that does not read is given up after the silence, however much waits for it") {
  LinkRig rig;
  rig.run();
  rig.room = 100'000;
  for (std::uint64_t number = 1; number <= 2'000; ++number) {
    rig.submit(number, LinkRig::acquire(std::string(1'000, 'x')));
  }
  rig.delivers = false;
  rig.pass(1'001ms);
  REQUIRE(rig.downs.size() == 1);
  CHECK(rig.downs[0].detail == "silent for 1000 ms; the connection was given up");
  REQUIRE(rig.replies.size() == 2'000);
  CHECK(unavailable(rig.replies.front().second).delivery == Delivery::unknown);
  CHECK(unavailable(rig.replies.back().second).delivery == Delivery::not_sent);
}

TEST_CASE("a node that does not read is given up before its output grows without end") {
  LinkRig rig(healthy, [](Link::Config& config) { config.unsent_limit = 1'000'000; });
  rig.run();
  rig.room = 100'000;
  rig.delivers = false;
  std::uint64_t sent = 0;
  while (rig.downs.empty() && sent < 20'000) {
    rig.submit(++sent, LinkRig::acquire(std::string(512, 'x')));
    rig.run();
  }
  REQUIRE_FALSE(rig.downs.empty());
  CHECK(contains(rig.downs[0].detail, "does not read"));
  REQUIRE(rig.replies.size() == sent);
  CHECK(unavailable(rig.replies.front().second).delivery == Delivery::unknown);
  CHECK(unavailable(rig.replies.back().second).delivery == Delivery::not_sent);
}

TEST_CASE("what the stream took and keeps in memory counts as output that waits") {
  LinkRig rig(healthy, [](Link::Config& config) { config.unsent_limit = 1'000'000; });
  rig.run();
  rig.delivers = false;
  std::uint64_t sent = 0;
  while (rig.downs.empty() && sent < 20'000) {
    rig.submit(++sent, LinkRig::acquire(std::string(512, 'x')));
    rig.run();
  }
  REQUIRE_FALSE(rig.downs.empty());
  CHECK(contains(rig.downs[0].detail, "does not read"));
  CHECK(sent * 512 <= 1'000'000);
  CHECK(unavailable(rig.replies.back().second).delivery == Delivery::unknown);
}

TEST_CASE("what the stream did not take goes out when it takes bytes again") {
  LinkRig rig;
  rig.run();
  rig.room = 10;
  rig.submit(1, LinkRig::acquire());
  rig.submit(2, LinkRig::acquire());
  rig.run();
  CHECK(rig.replies.empty());
  rig.writable();
  CHECK(rig.replies.size() == 2);
}

TEST_CASE("a command of which the stream took one byte may have arrived, the next one has not") {
  LinkRig rig;
  rig.run();
  const std::size_t before = rig.bytes_taken;
  rig.call(LinkRig::acquire());
  const std::size_t length = rig.bytes_taken - before;
  rig.replies.clear();
  rig.delivers = false;
  SUBCASE("one byte") {
    rig.room = 1;
  }
  SUBCASE("all of it") {
    rig.room = length;
  }
  rig.submit(1, LinkRig::acquire());
  rig.submit(2, LinkRig::acquire());
  rig.run();
  rig.submit(3, LinkRig::release());  // not even offered
  rig.break_stream();
  REQUIRE(rig.replies.size() == 3);
  CHECK(unavailable(rig.replies[0].second).delivery == Delivery::unknown);
  CHECK(unavailable(rig.replies[1].second).delivery == Delivery::not_sent);
  CHECK(unavailable(rig.replies[2].second).delivery == Delivery::not_sent);
}

TEST_CASE("what is submitted in one turn is one write") {
  LinkRig rig;
  rig.run();
  const int before = rig.writes;
  rig.submit(1, LinkRig::acquire("a"));
  rig.submit(2, LinkRig::hold("b"));
  rig.submit(3, LinkRig::release("c"));
  rig.ask({"PING"});
  rig.run();
  CHECK(rig.writes == before + 1);
}

TEST_CASE("questions are answered with values, errors and reasons, each once") {
  LinkRig rig;
  rig.ask({"PING"});  // before there is a connection
  rig.run();
  REQUIRE(rig.answers.size() == 1);
  CHECK(std::get<std::string>(rig.answers[0]->data) == "PONG");
  rig.ask({"NONSENSE"});
  rig.run();
  CHECK(contains(std::get<Value::ErrorText>(rig.answers.at(1)->data).text, "unknown command"));
  rig.node = [](const RedisCommand&) { return ""; };
  rig.ask({"PING"});
  rig.run();
  rig.break_stream();
  REQUIRE(rig.answers.size() == 3);
  CHECK(rig.answers[2].error().cause == Cause::connection_lost);
  rig.ask({"PING"});
  REQUIRE(rig.answers.size() == 4);
  CHECK_FALSE(rig.answers[3]);
}

TEST_CASE("a question ends at its timeout, and its late answer disturbs nothing") {
  LinkRig rig;
  rig.run();
  rig.node = [](const RedisCommand&) { return ""; };
  rig.ask({"PING"}, 500ms);
  rig.ask({"PING"}, 10ms);
  rig.pass(9ms);
  CHECK(rig.answers.empty());
  rig.pass(1ms);
  REQUIRE(rig.answers.size() == 1);
  CHECK(rig.answers[0].error().cause == Cause::timed_out);
  CHECK(rig.answers[0].error().detail == "no answer within 10 ms");
  rig.pass(490ms);
  CHECK(rig.answers.size() == 2);
  rig.receive("+PONG\r\n+PONG\r\n");
  rig.node = healthy;
  CHECK(std::holds_alternative<Granted>(rig.call(LinkRig::acquire())));
  CHECK(rig.answers.size() == 2);
  CHECK(rig.downs.empty());
}

TEST_CASE("a question may have any timeout that the type has") {
  LinkRig rig([](const RedisCommand&) { return ""; });
  rig.ask({"PING"}, milliseconds::max());
  rig.pass(1ms);
  CHECK(rig.answers.empty());
  rig.ask({"PING"}, milliseconds::min());
  rig.pass(0ms);
  CHECK(rig.answers.size() == 1);
}

TEST_CASE("questions that are answered are not kept until their timeouts") {
  LinkRig rig;
  rig.run();
  std::vector<std::weak_ptr<Question>> asked;
  for (int i = 0; i < 1'000; ++i) {
    auto question = std::make_shared<Question>(rig.now, std::vector<std::string>{"PING"}, 1h,
                                               [](engine::Instant, const Answer&) {});
    asked.emplace_back(question);
    rig.link().ask(rig.now, std::move(question));
    rig.run();
  }
  CHECK(std::ranges::count_if(asked, [](const auto& one) { return !one.expired(); }) < 50);
}

TEST_CASE("a question whose time ends before there is a connection is not sent any more") {
  LinkRig rig;
  rig.accepts = false;
  rig.ask({"PING"}, 10ms);
  rig.pass(10ms);
  CHECK(rig.answers.size() == 1);
  rig.accepts = true;
  rig.run();
  for (const RedisCommand& command : rig.commands) CHECK_FALSE(is(command, "PING"));
}

TEST_CASE("a question may be answered at length, a command may not") {
  const std::string long_text = bulk(std::string(3'000'000, 'x'));
  LinkRig rig;
  rig.run();
  rig.node = [&](const RedisCommand&) { return long_text; };
  rig.ask({"KEYS", "*"});
  rig.run();
  CHECK(std::get<std::string>(rig.answers.at(0)->data).size() == 3'000'000);
  rig.submit(1, LinkRig::acquire());
  rig.run();
  CHECK(rig.downs.at(0).cause == Cause::protocol_error);
}

TEST_CASE("a question asked from within an answer is answered too") {
  LinkRig rig;
  rig.run();
  rig.on_answer = [&] {
    if (rig.answers.size() == 1) rig.ask({"PING"});
  };
  rig.ask({"PING"});
  rig.run();
  CHECK(rig.answers.size() == 2);
}

TEST_CASE("stopping answers the questions, and only once, and lets what was written arrive") {
  LinkRig rig([](const RedisCommand&) { return ""; });
  rig.ask({"PING"});
  rig.run();
  rig.ask({"PING"});
  rig.stop();
  REQUIRE(rig.answers.size() == 2);
  CHECK_FALSE(rig.answers[0]);
  CHECK_FALSE(rig.answers[1]);
  CHECK(rig.closings == std::vector{Closing::deliver});
  CHECK(rig.link().deadline() == engine::never);
}

TEST_CASE("an objection refuses a node as incompatible, with the sentence") {
  LinkRig rig;
  rig.objection = "it is the same server as another";
  rig.submit(1, LinkRig::acquire());
  rig.run();
  REQUIRE(rig.downs.size() == 1);
  CHECK(rig.downs[0].cause == Cause::incompatible);
  CHECK(rig.downs[0].detail == "it is the same server as another");
  CHECK(unavailable(rig.replies.at(0).second).delivery == Delivery::not_sent);
  rig.objection.reset();
  rig.pass(20ms);
  CHECK(rig.warnings.size() == 1);
}

TEST_CASE("what waited for a node that may not be asked is answered, but for acquires it is sent") {
  LinkRig rig;
  rig.unfit = engine::Unavailable{Cause::quarantined, Delivery::not_sent, "it may have forgotten"};
  rig.submit(1, LinkRig::acquire());
  rig.submit(2, LinkRig::hold());
  rig.run();
  CHECK(unavailable(rig.replies.at(0).second).detail == "it may have forgotten");
  CHECK(call_in(rig.commands.back()) == "hold 1");
}

TEST_CASE("the connection after a lost one kills that, and one that was never up kills nothing") {
  LinkRig rig;
  rig.run();
  const auto kills = [&] {
    int count = 0;
    for (const RedisCommand& command : rig.commands) count += is(command, "CLIENT KILL") ? 1 : 0;
    return count;
  };
  rig.break_stream();
  rig.node = [](const RedisCommand&) { return ""; };
  rig.pass(2s);  // a handshake that is not answered
  CHECK(kills() == 0);
  rig.node = healthy;
  rig.pass(2s);
  CHECK(kills() == 1);
  CHECK(rig.warnings.size() == 2);
}

TEST_CASE("looking anew makes a new connection soon, however many there were") {
  LinkRig rig;
  rig.run();
  for (int i = 2; i <= 9; ++i) {
    rig.link().reconnect(rig.now, "its marker was written");
    rig.pass(20ms);
    CHECK(rig.connections == i);
  }
  CHECK(rig.downs.at(0).detail == "its marker was written");
}

namespace {

void impatient(Link::Config& config) {
  config.unanswered_limit = 1'000;
  config.unanswered_for = 5'000ms;
}

/// Answers none but those of the handshake; the test does, one by one.
LinkRig slow_node() {
  return LinkRig(healthy_until_scripts(), impatient);
}

const std::string a_reply = array({integer(1), integer(7)});

}  // namespace

TEST_CASE(
    "a node that answers now and then, and ever later, is cut off when one answer is too late") {
  LinkRig rig = slow_node();
  rig.run();
  std::uint64_t sent = 0;
  for (int step = 0; rig.downs.empty() && step < 100; ++step) {
    for (int i = 0; i < 20; ++i) rig.submit(++sent, LinkRig::acquire());
    rig.pass(500ms);
    if (rig.downs.empty()) rig.receive(a_reply);
  }
  REQUIRE(rig.downs.size() == 1);
  CHECK(rig.downs[0].cause == Cause::timed_out);
  CHECK(contains(rig.downs[0].detail, "answers behind, the first of them for 5000 ms"));
  CHECK(sent <= 20 * 2 * 11);
  CHECK(rig.replies.size() == sent);  // each is told
}

TEST_CASE("a node that is slow and keeps up is left alone, however long it goes on") {
  LinkRig rig = slow_node();
  rig.run();
  std::uint64_t sent = 0;
  for (; sent < 8; ++sent) rig.submit(sent, LinkRig::acquire());
  for (int step = 0; step < 100; ++step) {  // the oldest is some 4 s old all the time
    rig.pass(500ms);
    rig.receive(a_reply);
    rig.submit(++sent, LinkRig::acquire());
  }
  CHECK(rig.downs.empty());
}

TEST_CASE("a question may be answered for longer than a command") {
  LinkRig rig = slow_node();
  rig.run();
  rig.node = [](const RedisCommand&) { return ""; };
  rig.ask({"KEYS", "*"}, 60s);
  rig.submit(1, LinkRig::acquire());
  rig.run();
  rig.receive("*40\r\n");
  for (int i = 0; i < 40; ++i) {
    rig.pass(500ms);
    REQUIRE(rig.downs.empty());
    rig.receive(bulk("key"));
  }
  rig.receive(a_reply);
  CHECK(rig.answers.size() == 1);
  CHECK(rig.replies.size() == 1);
}

TEST_CASE("a process that did not run reads what came meanwhile before it judges the node") {
  LinkRig rig = slow_node();
  rig.run();
  for (std::uint64_t i = 0; i < 100; ++i) rig.submit(i, LinkRig::acquire());
  rig.run();
  rig.stand_still(1h);
  rig.pass(500ms);
  for (int i = 0; i < 100; ++i) rig.receive(a_reply);
  rig.pass(10s);
  CHECK(rig.downs.empty());
  CHECK(rig.replies.size() == 100);
}

TEST_CASE("a node that leaves too many commands unanswered is cut off") {
  LinkRig rig = slow_node();
  rig.run();
  std::uint64_t sent = 0;
  for (; sent < 1'000; ++sent) rig.submit(sent, LinkRig::acquire());
  rig.run();
  CHECK(rig.downs.empty());
  rig.submit(sent, LinkRig::acquire());
  rig.run();
  REQUIRE(rig.downs.size() == 1);
  CHECK(rig.downs[0].cause == Cause::timed_out);
  CHECK(rig.downs[0].detail ==
        "it leaves more than 1000 commands unanswered; the connection was given up");
  CHECK(rig.replies.size() == 1'001);
  CHECK(rig.link().deadline() - rig.now >= 1s);
}

TEST_CASE("the pause after a connection that exceeded a bound doubles up to half a minute") {
  LinkRig rig = slow_node();
  milliseconds longest = 2'000ms;
  for (int i = 0; i < 7; ++i) {
    rig.run();
    const std::size_t before = rig.downs.size();
    for (std::uint64_t sent = 0; sent <= 1'000; ++sent) rig.submit(sent, LinkRig::acquire());
    rig.run();
    REQUIRE(rig.downs.size() == before + 1);
    const auto pause = rig.link().deadline() - rig.now;
    CHECK(pause >= longest / 2);
    CHECK(pause <= longest);
    longest = std::min<milliseconds>(2 * longest, 32'000ms);
    rig.pass(pause);
  }
  SUBCASE("an attempt to connect that fails has a pause as always") {
    rig.break_stream();
    CHECK(rig.link().deadline() - rig.now <= 1s);
  }
  SUBCASE("a minute with a connection makes the next one short again") {
    rig.node = healthy;
    rig.pass(60s);
    rig.node = healthy_until_scripts();
    for (std::uint64_t sent = 0; sent <= 1'000; ++sent) rig.submit(sent, LinkRig::acquire());
    rig.run();
    CHECK(rig.link().deadline() - rig.now <= 2s);
  }
}
