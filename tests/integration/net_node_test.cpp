// SPDX-License-Identifier: MIT
// A link and a real redis-server: restarts, lost connections, permissions, sockets of all kinds,
// and the holds or releases of one turn, which travel in one call.
#include <arpa/inet.h>
#include <sys/socket.h>

#include "net_link_fixture.hpp"

using namespace redlock::net;

namespace {

bool has_ipv6() {
  const int probe = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool bound = ::bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(probe);
  return bound;
}

// The ids of the clients of that name, in the words of CLIENT LIST.
std::string clients(const Fleet& fleet) {
  return fleet.run(0, {"CLIENT", "LIST"});
}

bool is_granted(const engine::Reply& reply) {
  return std::holds_alternative<Granted>(reply);
}

std::string name_of(std::uint64_t number) {
  return fmt::format("n{}", number);
}

}  // namespace

TEST_CASE("names may have any bytes that the library lets through") {
  Fleet fleet({.nodes = 1});
  LinkFixture link(fleet.uri(0));
  const std::string odd = "a b\r\n$3\r\n\xff\x01\"'*";
  CHECK(is_granted(link.call(LinkFixture::acquire(odd))));
  CHECK(fleet.run(0, {"EXISTS", "redlock:lock:{" + odd + "}"}) == "1");
}

TEST_CASE("a node that was restarted is connected to again, by TCP or a Unix socket") {
  for (const bool unix_socket : {false, true}) {
    Fleet fleet({.nodes = 1, .unix_sockets = true});
    LinkFixture link(unix_socket ? fleet.unix_uri(0) : fleet.uri(0));
    link.run_until_up();
    CHECK(is_granted(link.call(LinkFixture::acquire())));
    fleet.kill(0);
    link.run_until_down();
    CHECK(link.downs[0].cause == Cause::connection_lost);
    fleet.restart(0, Data::empty);
    link.run_until_up();
    CHECK(is_granted(link.call(LinkFixture::acquire())));  // it knows the scripts again
    // It numbers its clients anew: the connection of before may be somebody else's.
    CHECK_FALSE(contains(fleet.run(0, {"INFO", "commandstats"}), "cmdstat_client|kill"));
  }
}

TEST_CASE("a paused node is given up, and the connection that it still has is closed on return") {
  Fleet fleet({.nodes = 1});
  LinkFixture link(fleet.uri(0), [](Link::Config& config) {
    config.silence = milliseconds(100);
    config.connect_timeout = milliseconds(200);
  });
  link.run_until_up();
  fleet.pause(0);
  link.submit(1, LinkFixture::acquire());
  link.run_until_down();
  CHECK(unavailable(link.replies.at(0).second).cause == Cause::timed_out);
  fleet.resume(0);
  link.run_until_up();
  link.question({"PING"});
  const std::string list = clients(fleet);
  const std::size_t first = list.find("name=redlock-test");
  CHECK(first != std::string::npos);
  CHECK(list.find("name=redlock-test", first + 1) == std::string::npos);
}

TEST_CASE("a connection that was reset to a stranger's is replaced by one that logs in") {
  Fleet fleet({.nodes = 1, .password = "sesame"});
  LinkFixture link(fleet.uri(0));
  REQUIRE(is_granted(link.call(LinkFixture::acquire())));
  REQUIRE(link.question({"RESET"}));
  const auto why = unavailable(link.call(LinkFixture::hold()));
  CHECK(why.cause == Cause::authentication);
  CHECK(why.delivery == Delivery::refused);
  link.run_until_up();
  CHECK(std::holds_alternative<engine::Held>(link.call(LinkFixture::hold())));
}

TEST_CASE("a database other than 0 is where the locks are") {
  Fleet fleet({.nodes = 1});
  LinkFixture link(fleet.uri(0) + "/2");
  CHECK(is_granted(link.call(LinkFixture::acquire())));
  CHECK(fleet.run(0, {"EXISTS", "redlock:lock:{n}"}) == "0");
  CHECK(contains(fleet.run(0, {"INFO", "keyspace"}), "db2:keys=2"));
  LinkFixture none(fleet.uri(0) + "/9999");
  none.run_until_down();
  CHECK(contains(none.downs[0].detail, "DB index is out of range"));
}

TEST_CASE("a Unix socket that does not exist is a failure to connect") {
  LinkFixture link("unix:///no/such/socket");
  link.run_until_down();
  CHECK(link.downs[0].cause == Cause::connection_failed);
}

TEST_CASE("IPv6 works like IPv4, where the machine has it") {
  if (!has_ipv6()) {
    MESSAGE("no IPv6 on this machine: not tested");
    return;
  }
  Fleet fleet({.nodes = 1});
  if (fleet.run(0, {"CONFIG", "SET", "bind", "127.0.0.1 ::1"}) != "OK") {
    MESSAGE("the node cannot listen on ::1: not tested");
    return;
  }
  LinkFixture link("redis://[::1]:" + std::to_string(fleet.port(0)));
  link.run_until_up();
  CHECK(is_granted(link.call(LinkFixture::acquire())));
}

TEST_CASE("a node that has become a replica refuses a hold, says so, and is given up") {
  const Fleet fleet({.nodes = 1});
  LinkFixture link(fleet.uri(0));
  REQUIRE(is_granted(link.call(LinkFixture::acquire())));
  // There must be something to write.
  REQUIRE(fleet.run(0, {"PEXPIRE", "redlock:lock:{n}", "20000"}) == "1");
  REQUIRE(fleet.run(0, {"REPLICAOF", "127.0.0.1", "1"}) == "OK");
  const auto why = unavailable(link.call(LinkFixture::hold()));
  CHECK(why.cause == Cause::read_only);
  CHECK(why.detail.starts_with("READONLY "));
  REQUIRE_FALSE(link.downs.empty());
  CHECK(link.downs[0].detail == "it has become a replica");
}

TEST_CASE("what a lost connection still carries is not run once the next one is up") {
  const Fleet fleet({.nodes = 1});
  Proxy network(fleet.port(0));
  LinkFixture link(network.uri(), [](Link::Config& config) { config.silence = milliseconds(50); });
  link.run_until_up();
  network.strand();
  const std::size_t before = network.request_bytes();
  link.submit(1, LinkFixture::acquire());
  link.run_until([&] { return network.request_bytes() > before && !link.replies.empty(); });
  CHECK(unavailable(link.replies[0].second).delivery == Delivery::unknown);
  link.run_until([&] {
    return !link.replies.empty() &&
           std::holds_alternative<engine::NotHeld>(link.call(LinkFixture::release()));
  });
  network.deliver_late();
  REQUIRE(network.await_late());
  CHECK(fleet.run(0, {"EXISTS", "redlock:lock:{n}"}) == "0");
}

TEST_CASE("a user who may not ask for INFO keeps the connection, and is not refused again") {
  const auto often = [](Link::Config& config) { config.probe_interval = milliseconds(20); };
  const auto run_for_probes = [](LinkFixture& link) {
    const std::size_t before = link.clocks.size();
    link.run_until([&] { return link.clocks.size() >= before + 3; });
  };
  const Fleet fleet(
      {.nodes = 1,
       .settings = {"user alice on >secret ~redlock:* resetchannels -@all +hgetall +evalsha +eval "
                    "+script|load +time",
                    "user bob on >secret ~redlock:* resetchannels +@all"}});
  const std::string at = ":secret@127.0.0.1:" + std::to_string(fleet.port(0));
  LinkFixture never("redis://alice" + at, often);
  LinkFixture no_more("redis://bob" + at, often);
  never.run_until_up();
  run_for_probes(never);
  CHECK(contains(info_of(fleet, 0, "commandstats", "cmdstat_info"), "rejected_calls=1,"));
  no_more.run_until_up();
  fleet.run(0, {"ACL", "SETUSER", "bob", "-info"});
  run_for_probes(no_more);
  CHECK(never.downs.empty());
  CHECK(no_more.downs.empty());
}

TEST_CASE("one name that the user may not touch fails none of the other holds of its call") {
  Fleet fleet({.nodes = 1,
               .settings = {"user alice on >secret ~redlock:fence:* ~redlock:node* "
                            "~redlock:lock:{n* ~redlock:forced:{n* resetchannels +@all"}});
  LinkFixture owner(fleet.uri(0));
  owner.run_until_up();
  LinkFixture link("redis://alice:secret@127.0.0.1:" + std::to_string(fleet.port(0)));
  link.run_until_up();
  constexpr std::uint64_t names = 99;
  for (std::uint64_t i = 1; i <= names; ++i) owner.call(LinkFixture::acquire(name_of(i)));
  // As the engine does: what is answered so is said again at once, in full.
  const auto hold_all = [&] {
    link.replies.clear();
    link.submit(0, LinkFixture::hold("forbidden"));
    for (std::uint64_t i = 1; i <= names; ++i) link.submit(i, LinkFixture::hold(name_of(i)));
    std::map<std::uint64_t, engine::Reply> said;
    link.run_until([&] {
      for (const auto& [number, reply] : std::exchange(link.replies, {})) {
        if (std::holds_alternative<engine::NoScript>(reply)) {
          link.submit(number, LinkFixture::hold(number == 0 ? "forbidden" : name_of(number)),
                      Form::source);
        } else {
          said.emplace(number, reply);
        }
      }
      return said.size() == names + 1;
    });
    return said;
  };
  for (int round = 0; round < 2; ++round) {
    const auto said = hold_all();
    CHECK(unavailable(said.at(0)).cause == Cause::permission);
    for (std::uint64_t i = 1; i <= names; ++i) {
      CHECK(std::holds_alternative<engine::Held>(said.at(i)));
    }
  }
  // From then on that name goes alone, and the others together: 1 and 99 in the first round,
  // refused ones apart, 1 in the second; and the acquires.
  CHECK(calls_of(fleet, 0, "evalsha") == names + names + 1);
}

TEST_CASE("on a real node, a lock that may not be released is refused together with others") {
  Fleet fleet({.nodes = 1, .settings = {"user ann on >pw ~* +@all"}});
  const std::string login = "redis://ann:pw@127.0.0.1:" + std::to_string(fleet.port(0));
  LinkFixture link(login);
  link.run_until_up();
  link.call(LinkFixture::acquire("a"));
  link.call(LinkFixture::acquire("b"));
  const std::size_t before = link.replies.size();
  fleet.run(0, {"ACL", "SETUSER", "ann", "resetkeys", "~redlock:*:{a}"});
  link.submit(1, LinkFixture::release("a"));
  link.submit(2, LinkFixture::release("b"));
  link.run_until([&] { return link.replies.size() == before + 2; });
  CHECK(unavailable(link.replies[before].second).cause == Cause::permission);
  CHECK(unavailable(link.replies[before + 1].second).cause == Cause::permission);
  auto alone = LinkFixture::release("a");
  alone.alone = true;
  CHECK(std::holds_alternative<engine::ReleasedHere>(link.call(alone)));
}
