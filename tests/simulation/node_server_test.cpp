// SPDX-License-Identifier: MIT
// What only the simulator's servers are asked, or do.
#include "simulation/node_server.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "simulation/any_server.hpp"
#include "simulation/request_reader.hpp"
#include "wire/command_writer.hpp"
#include "wire/info_text.hpp"
#include "wire/redlock_scripts.hpp"

using namespace redlock;
using namespace redlock::simulation;

namespace {

std::string request(const Strings& arguments) {
  std::string bytes;
  wire::CommandWriter writer(bytes, arguments.size());
  for (const std::string& argument : arguments) writer.bulk(argument);
  return bytes;
}

}  // namespace

TEST_CASE("a request is read whole, wherever its bytes are cut") {
  const std::string bytes = request({"EVAL", "", "a\r\nb"}) + request({"TIME"});
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    RequestReader reader;
    std::vector<RequestReader::Request> read;
    std::vector<std::string> words;
    for (const auto& piece : {bytes.substr(0, cut), bytes.substr(cut)}) {
      reader.feed(piece);
      while (reader.next() == RequestReader::Outcome::complete) {
        for (const std::string_view word : reader.request()) words.emplace_back(word);
      }
    }
    CAPTURE(cut);
    CHECK(words == std::vector<std::string>{"EVAL", "", "a\r\nb", "TIME"});
  }
}

TEST_CASE("what is no array of bulk strings is recognised, however it is cut") {
  for (const std::string bytes : {"PING\r\n", "*0\r\n", "*1\r\n:1\r\n", "*1\r\n$x\r\n",
                                  "*1\r\n$1\r\nab\r\n", "*-1\r\n", "*1\r\n$\r\n", "*1\rx"}) {
    RequestReader reader;
    auto outcome = RequestReader::Outcome::incomplete;
    for (const char byte : bytes) {
      reader.feed({&byte, 1});
      outcome = reader.next();
      if (outcome == RequestReader::Outcome::broken) break;
    }
    CAPTURE(bytes);
    CHECK(outcome == RequestReader::Outcome::broken);
  }
}

TEST_CASE("a server that was a replica says so") {
  SimulatedServer server;
  server.ask("INFO");
  const std::string before(wire::InfoText(server.text()).promotion());
  CHECK_FALSE(wire::InfoText(server.text()).was_replica());
  server.become(Ailment::read_only);
  server.ask("INFO replication");
  CHECK(wire::InfoText(server.text()).value("role") == "slave");
  server.become(Ailment::none);
  server.server().promote();
  server.ask("INFO");
  CHECK(wire::InfoText(server.text()).was_replica());
  CHECK(wire::InfoText(server.text()).promotion() != before);
}

TEST_CASE("a demotion is known when each client was refused a write or has read INFO") {
  SimulatedServer server;
  server.server().accept(2);
  CHECK(server.server().demotion_is_known());
  server.become(Ailment::read_only);
  server.server().demote();
  CHECK(server.ask(2, "INFO").starts_with("'# Server"));
  CHECK_FALSE(server.server().demotion_is_known());
  CHECK(server.run("return redis.pcall('DEL', 'k')") == "error READONLY");
  CHECK(server.server().demotion_is_known());
}

TEST_CASE("a node that reads its data runs nothing that is about keys") {
  SimulatedServer server;
  server.become(Ailment::loading);
  CHECK(server.ask("CLIENT ID") == "1");
  CHECK(server.ask("TIME").starts_with("["));
  CHECK(server.ask("GET k") == "error LOADING");
  CHECK(server.run("return 1") == "error LOADING");
}

TEST_CASE("a request that no node can run, and a script that fails by itself, are reported") {
  SimulatedServer server;
  for (const char* const each : {"NOTHING", "GET", "GET a b", "CLIENT LIST", "SCRIPT DEBUG YES",
                                 "CONFIG SET a b", "EVAL x y", "EVAL x 2 a", "EVAL x -1"}) {
    server.misread = 0;
    CHECK_MESSAGE(server.ask(each) == "error ERR", each);
    CHECK_MESSAGE(server.misread == 1, each);
  }
  server.misread = server.executed = 0;
  CHECK(server.run("return nothing") == "error ERR");
  CHECK(server.misread == 1);
  CHECK(server.run("return redis.call('INCR', KEYS[1])", {"k"}) == "1");
  CHECK(server.run("return redis.call('HGET', KEYS[1], 'a')", {"k"}) == "error WRONGTYPE");
  CHECK(server.misread == 1);
  CHECK(server.executed == 3);
}

TEST_CASE("who gives a node its marker is told of") {
  SimulatedServer server;
  const Strings keys{"redlock:node", "redlock:node:notes"};
  const Strings marker{"", "set", "id", "redlock-3", "1", "60000", "own", "1", "id=a"};
  CHECK(server.run(wire::scripts::adopt, keys, marker) == "'written'");
  CHECK(server.run(wire::scripts::adopt, keys, marker).starts_with("['id'"));
  CHECK(server.marked == 1);
}

TEST_CASE("CLIENT KILL ends another connection of the same start, and none of an older one") {
  SimulatedServer server;
  server.server().accept(2);
  CHECK(server.ask(2, "CLIENT ID") == "2");
  CHECK(server.ask("CLIENT KILL ID 2") == "1");
  CHECK(server.killed == std::vector<StreamId>{2});
  CHECK(server.ask(2, "CLIENT ID") == "nothing");
  server.server().start("another run", 0);
  CHECK(server.ask(1, "CLIENT ID") == "nothing");
  server.server().accept(3);
  CHECK(server.ask(3, "CLIENT ID") == "1");
}

TEST_CASE("a node server asks for its password, and denies what its user may not do") {
  DeniedCommands denied;
  for (const Denied each :
       {Denied::client_kill, Denied::info, Denied::hello, Denied::subscribe, Denied::time}) {
    denied.set(static_cast<std::size_t>(each));
  }
  SimulatedServer server({.password = "secret", .denied = denied});
  CHECK(server.ask("TIME") == "error NOAUTH");
  CHECK(server.ask("AUTH wrong") == "error WRONGPASS");
  CHECK(server.ask("AUTH secret") == "'OK'");
  for (const char* const each :
       {"INFO", "CLIENT KILL ID 7", "HELLO 3", "TIME", "SUBSCRIBE redlock:wake:aaaaaaaaaaaaaaaa"}) {
    CHECK_MESSAGE(server.ask(each) == "error NOPERM", each);
  }
  CHECK(server.run("return redis.call('TIME')") == "error ERR");
  CHECK(server.misread == 0);
  CHECK(server.ask("CLIENT ID") == "1");
}
