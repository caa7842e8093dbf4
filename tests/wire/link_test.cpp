// SPDX-License-Identifier: MIT
// A link and a node that does what nodes should not do: every command gets its one reply, with the
// reason, and the link goes on.
#include "wire/rig.hpp"

using namespace redlock::wire;

namespace {

LinkRig::Script healthy_until_scripts() {
  return node_answering("");
}

const std::string a_reply = array({integer(1), integer(7)});

/// A command has been written to a node that does not answer it.
struct UnansweredRig : ConnectedRig {
  UnansweredRig() : ConnectedRig(healthy_until_scripts()) { submit_all({acquire()}); }
};

}  // namespace

TEST_CASE("commands submitted before there is a connection are sent once there is one, in order") {
  LinkRig rig;
  rig.accepts = false;
  rig.submit_all({LinkRig::acquire(), LinkRig::release()});
  CHECK(rig.replies.empty());
  rig.accepts = true;
  rig.run();
  CHECK(rig.warnings == std::vector<std::string>{""});
  CHECK(rig.answered() == Numbers{1, 2});
  CHECK(std::get<Granted>(rig.replies[0].second).token == 7);
  CHECK(rig.clocks.size() == 1);
}

TEST_CASE("a node that refuses connections fails commands at once, unsent, with the reason") {
  LinkRig rig;
  rig.submit(1, LinkRig::acquire());
  rig.refuse_connection("cannot connect: connection refused");
  rig.submit(2, LinkRig::acquire());
  REQUIRE(rig.replies.size() == 2);
  for (const std::size_t reply : {0U, 1U}) {
    CHECK(rig.fault(reply).cause == Cause::connection_failed);
    CHECK(rig.fault(reply).delivery == Delivery::not_sent);
    CHECK(rig.fault(reply).detail == "cannot connect: connection refused");
  }
}

TEST_CASE("one reason is reported once, however often connecting fails for it") {
  LinkRig rig;
  rig.accepts = false;
  for (int i = 0; i < 6; ++i) {
    rig.refuse_connection("cannot connect: connection refused");
    rig.pass(2s);
  }
  CHECK(rig.only_down().cause == Cause::connection_failed);
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
  LinkRig rig(silent);
  rig.submit(1, LinkRig::acquire());
  rig.pass(999ms);
  CHECK(rig.downs.empty());
  rig.pass(1ms);
  CHECK(rig.only_down().cause == Cause::timed_out);
  CHECK(rig.downs[0].detail == "no answer to the handshake within 1000 ms");
  CHECK(rig.fault(0).delivery == Delivery::not_sent);
  CHECK(rig.closings == std::vector{Closing::reset});
  rig.node = healthy;
  rig.pass(20ms);
  CHECK(rig.warnings.size() == 1);
}

TEST_CASE("an error reply is a node that did not vote, and the connection stays") {
  ConnectedRig rig;
  rig.node = [](const RedisCommand&) { return error("ERR something else"); };
  CHECK(unavailable(rig.call(LinkRig::acquire())).detail == "ERR something else");
  rig.node = healthy;
  CHECK(std::holds_alternative<Granted>(rig.call(LinkRig::acquire())));
  CHECK(rig.connections == 1);
}

TEST_CASE("NOSCRIPT is handed on, and the source in full can be sent instead") {
  ConnectedRig rig(node_answering(error("NOSCRIPT No matching script. Please use EVAL.")));
  CHECK(std::holds_alternative<engine::NoScript>(rig.call(LinkRig::acquire())));
  CHECK(std::holds_alternative<Granted>(rig.call(LinkRig::acquire(), engine::Form::source)));
  CHECK(rig.connections == 1);
}

TEST_CASE("rubbish ends the connection, and every outstanding command with it") {
  for (const char* rubbish :
       {"HTTP/1.1 400 Bad Request\r\n\r\n", "+OK\r\n", "*0\r\n", "$-1\r\n", "*2\r\n:1\r\n:-5\r\n",
        "*99999999999\r\n", "*2\r\n:9\r\n:9\r\n", "\x16\x03\x01\x02\x00\r\n"}) {
    CAPTURE(rubbish);
    ConnectedRig rig(healthy_until_scripts());
    rig.submit_all({LinkRig::acquire(), LinkRig::acquire()});
    rig.receive(rubbish);
    CHECK(rig.downs.size() == 1);
    CHECK(rig.closings == std::vector{Closing::reset});
    REQUIRE(rig.replies.size() == 2);
    for (const std::size_t reply : {0U, 1U}) {
      CHECK(rig.fault(reply).cause == Cause::protocol_error);
      CHECK(rig.fault(reply).delivery == Delivery::unknown);
    }
    rig.node = healthy;
    rig.pass(20ms);
    CHECK(std::holds_alternative<Granted>(rig.call(LinkRig::acquire())));
  }
}

TEST_CASE("a reply that nobody asked for ends the connection, and an error says its words") {
  for (const bool says_why : {false, true}) {
    ConnectedRig rig;
    CHECK(std::holds_alternative<Granted>(rig.call(LinkRig::acquire())));
    rig.receive(says_why ? "-ERR max number of clients reached\r\n" : "+surprise\r\n");
    CHECK(rig.only_down().cause == Cause::protocol_error);
    CHECK(rig.downs[0].detail == std::string("it sent a reply to no command") +
                                     (says_why ? ": ERR max number of clients reached" : ""));
  }
}

TEST_CASE("a silent node is given up after the silence, and replaced") {
  ConnectedRig rig(healthy_until_scripts());
  rig.pass(10s);
  rig.submit(1, LinkRig::acquire());
  rig.submit(2, LinkRig::release());
  rig.pass(1'000ms);
  CHECK(rig.downs.empty());  // it is looked at once more, for what may have arrived unread
  rig.pass(1ms);
  REQUIRE(rig.replies.size() == 2);
  CHECK(rig.replies[0].first == 1);
  CHECK(rig.fault(0).cause == Cause::timed_out);
  CHECK(rig.fault(0).delivery == Delivery::unknown);
  CHECK(rig.downs.at(0).detail == "silent for 1000 ms; the connection was given up");
  CHECK(rig.closings == std::vector{Closing::reset});
  rig.node = healthy;
  rig.pass(20ms);
  CHECK(rig.warnings.size() == 2);
}

TEST_CASE(
    "an answer that arrived while this process did not run is read before the node is judged") {
  UnansweredRig rig;
  SUBCASE("for a moment") {
    rig.stand_still(1'500ms);
    rig.link().on_deadline(rig.now);
  }
  SUBCASE("for long, and the answer is still on its way") {
    rig.stand_still(1h);
    rig.link().on_deadline(rig.now);
    rig.pass(999ms);
  }
  SUBCASE("for long, and no answer is on its way") {
    rig.stand_still(1h);
    rig.pass(1s);
    CHECK(rig.downs.size() == 1);
    return;
  }
  CHECK(rig.downs.empty());
  rig.receive(a_reply);
  rig.pass(2s);
  CHECK(std::holds_alternative<Granted>(rig.replies.at(0).second));
  CHECK(rig.downs.empty());
}

TEST_CASE("the time that it takes to write is not counted as the node's silence") {
  ConnectedRig rig(healthy_until_scripts());
  rig.submit(1, LinkRig::acquire());
  rig.flush();
  rig.stand_still(1'500ms);  // in the midst of the write, say
  rig.flushed();
  rig.pass(999ms);
  CHECK(rig.downs.empty());
  rig.receive(a_reply);
  CHECK(rig.replies.size() == 1);
}

TEST_CASE("a node that drips bytes and never ends a reply is given up as a silent one is") {
  UnansweredRig rig;
  rig.receive("*2\r\n$900000\r\n");
  for (int i = 0; i < 9; ++i) {
    rig.pass(100ms);
    rig.receive("x");
  }
  CHECK(rig.downs.empty());
  rig.pass(101ms);
  CHECK(rig.only_down().cause == Cause::timed_out);
  REQUIRE(rig.replies.size() == 1);
  CHECK(rig.fault(0).delivery == Delivery::unknown);
}

TEST_CASE("a node that does not read is given up after the silence, however much waits for it") {
  ConnectedRig rig;
  rig.room = 100'000;
  for (std::uint64_t number = 1; number <= 2'000; ++number) {
    rig.submit(number, LinkRig::acquire(std::string(1'000, 'x')));
  }
  rig.delivers = false;
  rig.pass(1'001ms);
  CHECK(rig.only_down().detail == "silent for 1000 ms; the connection was given up");
  REQUIRE(rig.replies.size() == 2'000);
  CHECK(unavailable(rig.replies.front().second).delivery == Delivery::unknown);
  CHECK(unavailable(rig.replies.back().second).delivery == Delivery::not_sent);
}

TEST_CASE("a node that does not read is given up before its output grows without end") {
  std::size_t room = 100'000;
  SUBCASE("here") {}
  SUBCASE("where the stream took it and keeps it in memory") {
    room = SIZE_MAX;
  }
  ConnectedRig rig(healthy, [](Link::Config& config) { config.unsent_limit = 1'000'000; });
  rig.room = room;
  rig.delivers = false;
  std::uint64_t sent = 0;
  while (rig.downs.empty() && sent < 20'000) {
    rig.submit(++sent, LinkRig::acquire(std::string(512, 'x')));
    rig.run();
  }
  REQUIRE_FALSE(rig.downs.empty());
  CHECK(contains(rig.downs[0].detail, "does not read"));
  CHECK(rig.replies.size() == sent);
  CHECK(rig.fault(0).delivery == Delivery::unknown);
  const bool all_taken = room == SIZE_MAX;
  CHECK(rig.fault(sent - 1).delivery == (all_taken ? Delivery::unknown : Delivery::not_sent));
  if (all_taken) CHECK(sent * 512 <= 1'000'000);
}

TEST_CASE("what the stream did not take goes out when it takes bytes again") {
  ConnectedRig rig;
  rig.room = 10;
  rig.submit_all({LinkRig::acquire(), LinkRig::acquire()});
  CHECK(rig.replies.empty());
  rig.writable();
  CHECK(rig.replies.size() == 2);
}

TEST_CASE("a command of which the stream took one byte may have arrived, the next one has not") {
  ConnectedRig rig;
  const std::size_t before = rig.bytes_taken;
  rig.call(LinkRig::acquire());
  const std::size_t length = rig.bytes_taken - before;
  rig.replies.clear();
  rig.delivers = false;
  SUBCASE("one byte") {
    rig.room = 1;
  }
  std::string_view reply;
  SUBCASE("all of it") {
    rig.room = length;
    SUBCASE("") {}
    SUBCASE("and half a reply has come") {
      reply = "*2\r\n:1\r\n";
    }
  }
  rig.submit_all({LinkRig::acquire(), LinkRig::acquire()});
  rig.submit(3, LinkRig::release());  // not even offered
  rig.receive(reply);
  rig.break_stream();
  REQUIRE(rig.replies.size() == 3);
  CHECK(rig.fault(0).cause == Cause::connection_lost);
  CHECK(rig.fault(0).delivery == Delivery::unknown);
  CHECK(rig.fault(1).delivery == Delivery::not_sent);
  CHECK(rig.fault(2).delivery == Delivery::not_sent);
}

TEST_CASE("what is submitted in one turn is one write") {
  ConnectedRig rig;
  const int before = rig.writes;
  rig.submit(1, LinkRig::acquire("a"));
  rig.submit(2, LinkRig::hold("b"));
  rig.submit(3, LinkRig::release("c"));
  rig.ask({"PING"});
  rig.run();
  CHECK(rig.writes == before + 1);
}

TEST_CASE("questions are answered with values, errors and reasons, each once") {
  LinkRig rig;  // before there is a connection
  CHECK(std::get<std::string>(rig.answer_to({"PING"})->data) == "PONG");
  const Answer& nonsense = rig.answer_to({"NONSENSE"});
  CHECK(contains(std::get<Value::ErrorText>(nonsense->data).text, "unknown command"));
  rig.node = silent;
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
  ConnectedRig rig;
  rig.node = silent;
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
  LinkRig rig(silent);
  rig.ask({"PING"}, milliseconds::max());
  rig.pass(1ms);
  CHECK(rig.answers.empty());
  rig.ask({"PING"}, milliseconds::min());
  rig.pass(0ms);
  CHECK(rig.answers.size() == 1);
}

TEST_CASE("questions that are answered are not kept until their timeouts") {
  ConnectedRig rig;
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
  CHECK(rig.said("PING") == 0);
}

TEST_CASE("a question may be answered at length, a command may not") {
  const std::string long_text = bulk(std::string(3'000'000, 'x'));
  ConnectedRig rig;
  rig.node = [&](const RedisCommand&) { return long_text; };
  CHECK(std::get<std::string>(rig.answer_to({"KEYS", "*"})->data).size() == 3'000'000);
  rig.submit_all({LinkRig::acquire()});
  CHECK(rig.downs.at(0).cause == Cause::protocol_error);
}

TEST_CASE("a question asked from within an answer is answered too") {
  ConnectedRig rig;
  rig.on_answer = [&] {
    if (rig.answers.size() == 1) rig.ask({"PING"});
  };
  rig.answer_to({"PING"});
  CHECK(rig.answers.size() == 2);
}

TEST_CASE("stopping answers the questions, and only once, and lets what was written arrive") {
  LinkRig rig(silent);
  rig.ask({"PING"});
  rig.run();
  rig.ask({"PING"});
  rig.stop();
  REQUIRE(rig.answers.size() == 2);
  for (const Answer& answer : rig.answers) {
    CHECK(answer.error().detail == "the client was closed");
  }
  CHECK(rig.closings == std::vector{Closing::deliver});
  CHECK(rig.link().deadline() == engine::never);
}

TEST_CASE("an objection refuses a node as incompatible, with the sentence") {
  LinkRig rig;
  rig.objection = "it is the same server as another";
  rig.submit_all({LinkRig::acquire()});
  CHECK(rig.only_down().cause == Cause::incompatible);
  CHECK(rig.downs[0].detail == "it is the same server as another");
  CHECK(rig.fault(0).delivery == Delivery::not_sent);
  rig.objection.reset();
  rig.pass(20ms);
  CHECK(rig.warnings.size() == 1);
}

TEST_CASE("what waited for a node that may not be asked is answered, but for acquires it is sent") {
  LinkRig rig;
  rig.unfit = engine::Unavailable{Cause::quarantined, Delivery::not_sent, "it may have forgotten"};
  rig.submit_all({LinkRig::acquire(), LinkRig::hold()});
  CHECK(rig.fault(0).detail == "it may have forgotten");
  CHECK(call_in(rig.commands.back()) == "hold 1");
}

TEST_CASE("the connection after a lost one kills that, and one that was never up kills nothing") {
  ConnectedRig rig;
  rig.break_stream();
  rig.node = silent;
  rig.pass(2s);  // a handshake that is not answered
  CHECK(rig.said("CLIENT KILL") == 0);
  rig.node = healthy;
  rig.pass(2s);
  CHECK(rig.said("CLIENT KILL") == 1);
  CHECK(rig.warnings.size() == 2);
}

TEST_CASE("looking anew makes a new connection soon, however many there were") {
  ConnectedRig rig;
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
struct SlowNode : ConnectedRig {
  SlowNode() : ConnectedRig(healthy_until_scripts(), impatient) {}

  /// One more than may wait for answers.
  void submit_too_many() {
    for (std::uint64_t number = 0; number <= 1'000; ++number) submit(number, acquire());
    run();
  }
};

}  // namespace

TEST_CASE(
    "a node that answers now and then, and ever later, is cut off when one answer is too late") {
  SlowNode rig;
  std::uint64_t sent = 0;
  for (int step = 0; rig.downs.empty() && step < 100; ++step) {
    for (int i = 0; i < 20; ++i) rig.submit(++sent, LinkRig::acquire());
    rig.pass(500ms);
    if (rig.downs.empty()) rig.receive(a_reply);
  }
  CHECK(rig.only_down().cause == Cause::timed_out);
  CHECK(contains(rig.downs[0].detail, "answers behind, the first of them for 5000 ms"));
  CHECK(sent <= 20 * 2 * 11);
  CHECK(rig.replies.size() == sent);  // each is told
}

TEST_CASE("a node that is slow and keeps up is left alone, however long it goes on") {
  SlowNode rig;
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
  SlowNode rig;
  rig.node = silent;
  rig.ask({"KEYS", "*"}, 60s);
  rig.submit_all({LinkRig::acquire()});
  rig.receive("*40\r\n");
  for (int i = 0; i < 40; ++i) {
    rig.pass(900ms);
    REQUIRE(rig.downs.empty());
    rig.receive(bulk("key"));
  }
  rig.receive(a_reply);
  CHECK(rig.answers.size() == 1);
  CHECK(rig.replies.size() == 1);
}

TEST_CASE("a process that did not run reads what came meanwhile before it judges the node") {
  SlowNode rig;
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
  SlowNode rig;
  for (std::uint64_t sent = 0; sent < 1'000; ++sent) rig.submit(sent, LinkRig::acquire());
  rig.run();
  CHECK(rig.downs.empty());
  rig.submit_all({LinkRig::acquire()});
  CHECK(rig.only_down().cause == Cause::timed_out);
  CHECK(rig.downs[0].detail ==
        "it leaves more than 1000 commands unanswered; the connection was given up");
  CHECK(rig.replies.size() == 1'001);
  CHECK(rig.link().deadline() - rig.now >= 1s);
}

TEST_CASE("the pause after a connection that exceeded a bound doubles up to half a minute") {
  SlowNode rig;
  milliseconds longest = 2'000ms;
  for (int i = 0; i < 7; ++i) {
    rig.run();
    const std::size_t before = rig.downs.size();
    rig.submit_too_many();
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
    rig.submit_too_many();
    CHECK(rig.link().deadline() - rig.now <= 2s);
  }
}
