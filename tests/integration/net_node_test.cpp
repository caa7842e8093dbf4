// SPDX-License-Identifier: MIT
// A link and a real redis-server: restarts, lost connections, permissions, sockets of all kinds.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fstream>
#include <string>
#include <sys/socket.h>
#include <vector>

#include "cluster/fleet.hpp"
#include "net_link_fixture.hpp"
#include "net_server_kind.hpp"
#include "support/proxy.hpp"

using namespace redlock::net;
using namespace redlock::wire;
using redlock::Cause;
using redlock::cluster::Data;
using redlock::cluster::Fleet;
using redlock::cluster::FleetOptions;
using redlock::engine::Delivery;
using redlock::engine::Granted;
using redlock::testing::is_redis_7;
using redlock::testing::Proxy;
namespace engine = redlock::engine;

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

}  // namespace

TEST_CASE("acquire, hold and release do on a real node what they say") {
  Fleet fleet({.nodes = 1});
  LinkFixture link(fleet.uri(0));
  link.run_until_up();
  CHECK(std::get<Granted>(link.call(LinkFixture::acquire())).token == 1);
  const auto refused = std::get<engine::Refused>(link.call(LinkFixture::acquire("n", 2)));
  CHECK(*refused.expires_in > milliseconds(20'000));
  CHECK(std::get<engine::Held>(link.call(LinkFixture::hold())).fence == 1);
  CHECK(std::holds_alternative<engine::Taken>(link.call(LinkFixture::hold("n", 2))));
  CHECK(std::holds_alternative<engine::Free>(link.call(LinkFixture::hold("other"))));
  CHECK(std::holds_alternative<engine::NotHeld>(link.call(LinkFixture::release("n", 2))));
  CHECK(std::holds_alternative<engine::ReleasedHere>(link.call(LinkFixture::release())));
  CHECK(fleet.run(0, {"EXISTS", "redlock:lock:{n}"}) == "0");
  CHECK(contains(clients(fleet), "name=redlock-test"));
}

TEST_CASE("names may have any bytes that the library lets through") {
  Fleet fleet({.nodes = 1});
  LinkFixture link(fleet.uri(0));
  const std::string odd = "a b\r\n$3\r\n\xff\x01\"'*";
  CHECK(is_granted(link.call(LinkFixture::acquire(odd))));
  CHECK(fleet.run(0, {"EXISTS", "redlock:lock:{" + odd + "}"}) == "1");
}

TEST_CASE("after SCRIPT FLUSH the node says NOSCRIPT once, and the source in full mends it") {
  Fleet fleet({.nodes = 1});
  LinkFixture link(fleet.uri(0));
  link.run_until_up();
  fleet.run(0, {"SCRIPT", "FLUSH"});
  CHECK(std::holds_alternative<engine::NoScript>(link.call(LinkFixture::acquire())));
  CHECK(is_granted(link.call(LinkFixture::acquire(), engine::Form::source)));
  CHECK(std::holds_alternative<engine::AlreadyOurs>(link.call(LinkFixture::acquire())));
  CHECK(std::holds_alternative<engine::NoScript>(link.call(LinkFixture::hold())));
  CHECK(std::holds_alternative<engine::NoScript>(link.call(LinkFixture::release())));
}

TEST_CASE("a node that was restarted is connected to again, and knows the scripts again") {
  Fleet fleet({.nodes = 1});
  LinkFixture link(fleet.uri(0));
  link.run_until_up();
  CHECK(is_granted(link.call(LinkFixture::acquire())));
  fleet.kill(0);
  link.run_until_down();
  CHECK(link.downs[0].cause == Cause::connection_lost);
  fleet.restart(0, Data::empty);
  link.run_until_up();
  CHECK(is_granted(link.call(LinkFixture::acquire())));
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

TEST_CASE("what a lost connection still carries is not executed once the next one is up") {
  Fleet fleet({.nodes = 1});
  Proxy network(fleet.port(0));
  LinkFixture link(network.uri(), [](Link::Config& config) {
    config.silence = milliseconds(100);
    config.connect_timeout = milliseconds(300);
  });
  link.run_until_up();
  network.hold_requests();
  link.submit(1, LinkFixture::acquire("late"));
  link.run_until_down();  // given up by us, under way in the network
  // The network delivers again: on the old connection the acquire, on a new one the handshake. The
  // proxy serves the older connection first, so the acquire may win; it must not come after.
  network.pass();
  link.run_until_up();
  const std::string held = fleet.run(0, {"EXISTS", "redlock:lock:{late}"});
  link.question({"PING"});
  CHECK(fleet.run(0, {"EXISTS", "redlock:lock:{late}"}) == held);
  const bool counted = is_redis_7(fleet);  // and not with the other subcommands
  CHECK(contains(fleet.run(0, {"INFO", "commandstats"}),
                 counted ? "cmdstat_client|kill:calls=" : "cmdstat_client:calls="));
}

TEST_CASE("the user's own connections survive a server that numbers its clients anew") {
  Fleet fleet({.nodes = 1});
  LinkFixture link(fleet.uri(0));
  link.run_until_up();
  fleet.restart(0);
  link.run_until_up();
  CHECK_FALSE(contains(fleet.run(0, {"INFO", "commandstats"}), "cmdstat_client|kill"));
}

TEST_CASE("a wrong password is an authentication failure, and shown nowhere") {
  Fleet fleet({.nodes = 1, .password = "right-one"});
  LinkFixture link("redis://:hunter2@127.0.0.1:" + std::to_string(fleet.port(0)));
  link.submit(1, LinkFixture::acquire());
  link.run_until_down();
  CHECK(link.downs[0].cause == Cause::authentication);
  CHECK_FALSE(contains(link.downs[0].detail, "hunter2"));
  CHECK_FALSE(contains(unavailable(link.replies.at(0).second).detail, "hunter2"));
  LinkFixture none("redis://127.0.0.1:" + std::to_string(fleet.port(0)));
  none.run_until_down();
  CHECK(none.downs[0].cause == Cause::authentication);
  LinkFixture right(fleet.uri(0));
  right.run_until_up();
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

TEST_CASE("an ACL user with only what the scripts need can lock") {
  Fleet fleet({.nodes = 1,
               .settings = {"user alice on >secret ~redlock:* resetchannels -@all +hgetall +type "
                            "+hexists +pttl +get +incr +decr +set +hset +hget +hdel +pexpire +del "
                            "+exists +evalsha +eval +script|load"}});
  LinkFixture link("redis://alice:secret@127.0.0.1:" + std::to_string(fleet.port(0)));
  link.run_until_up();
  CHECK(contains(link.warnings[0], "refuses INFO"));
  CHECK(is_granted(link.call(LinkFixture::acquire())));
  CHECK(std::get<engine::Held>(link.call(LinkFixture::hold())).fence == 1);
  CHECK(std::holds_alternative<engine::ReleasedHere>(link.call(LinkFixture::release())));
}

TEST_CASE("the user of cluster/users.acl can do all that a link does") {
  std::vector<std::string> users;
  std::ifstream file(REDLOCK_SOURCE_DIR "/cluster/users.acl");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("user redlock")) users.push_back(line);
  }
  Fleet fleet({.nodes = 1, .settings = users});
  fleet.run(0, {"HSET", "redlock:node", "id", "x", "layout", "redlock-1", "nodes", "1",
                "max_lease_ms", "60000", "set", "s"});
  Proxy network(fleet.port(0));
  LinkFixture link("redis://redlock:change-me@127.0.0.1:" + std::to_string(network.port()),
                   [](Link::Config& config) { config.handshake.client = "00112233445566ff"; });
  link.run_until_up();
  const auto subscribers = [&] {
    return fleet.run(0, {"PUBSUB", "NUMSUB", "redlock:wake:00112233445566ff"});
  };
  CHECK(subscribers().ends_with("\n1"));
  engine::AcquireCommand careful = LinkFixture::acquire();
  careful.marker_wanted = true;
  CHECK(is_granted(link.call(careful)));
  network.reset_all();
  link.run_until_up();  // with CLIENT KILL for the one before
  CHECK(subscribers().ends_with("\n1"));
  CHECK(std::get<engine::Held>(link.call(LinkFixture::hold())).fence == 1);
  CHECK(std::holds_alternative<engine::ReleasedHere>(link.call(LinkFixture::release())));
  CHECK(link.warnings == std::vector<std::string>{"", ""});
}

TEST_CASE("a user without the key's permission is told so, and nothing is left on the node") {
  Fleet fleet(
      {.nodes = 1, .settings = {"user bob on >secret ~redlock:node ~redlock:lock:* +@all -hset"}});
  LinkFixture link("redis://bob:secret@127.0.0.1:" + std::to_string(fleet.port(0)));
  const auto why = unavailable(link.call(LinkFixture::acquire()));
  CHECK(why.cause == Cause::permission);
  CHECK(fleet.run(0, {"KEYS", "*"}) == "(empty array)");
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

TEST_CASE("a Unix socket works like TCP, also over a restart") {
  Fleet fleet({.nodes = 1, .unix_sockets = true});
  LinkFixture link(fleet.unix_uri(0));
  link.run_until_up();
  CHECK(is_granted(link.call(LinkFixture::acquire())));
  fleet.kill(0);
  link.run_until_down();
  fleet.restart(0);
  link.run_until_up();
  CHECK(is_granted(link.call(LinkFixture::acquire())));
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

TEST_CASE("a replica is refused, and can still be inspected") {
  Fleet fleet({.nodes = 2});
  fleet.run(1, {"REPLICAOF", "127.0.0.1", std::to_string(fleet.port(0))});
  LinkFixture link(fleet.uri(1));
  link.run_until_down();
  CHECK(link.downs[0].cause == Cause::incompatible);
  CHECK(contains(link.downs[0].detail, "replica"));
  LinkFixture inspector(fleet.uri(1),
                        [](Link::Config& config) { config.handshake.unfit = UnfitNodes::report; });
  inspector.run_until_up();
  CHECK(contains(inspector.warnings[0], "replica"));
  const Answer role = inspector.question({"ROLE"});
  CHECK(std::get<std::string>(std::get<std::vector<Value>>(role->data).at(0).data) == "slave");
}

TEST_CASE("a node that becomes a replica refuses, and is looked at anew when it is a master") {
  Fleet fleet({.nodes = 2});
  LinkFixture link(fleet.uri(1));
  link.run_until_up();
  fleet.run(1, {"REPLICAOF", "127.0.0.1", std::to_string(fleet.port(0))});
  const auto why = unavailable(link.call(LinkFixture::acquire()));
  CHECK((why.cause == Cause::read_only || why.cause == Cause::master_down));
  CHECK(why.delivery == Delivery::refused);
  link.run_until([&] { return link.downs.size() == 2; });
  CHECK(link.downs[1].cause == Cause::incompatible);
  fleet.run(1, {"REPLICAOF", "NO", "ONE"});
  link.run_until_up();
  CHECK(link.was_replica);
}

TEST_CASE("a marker that names another set is refused until it is adopted") {
  Fleet fleet({.nodes = 1});
  fleet.run(0, {"HSET", "redlock:node", "id", "x", "layout", "redlock-1", "nodes", "3",
                "max_lease_ms", "60000"});
  LinkFixture link(fleet.uri(0));
  link.run_until_down();
  CHECK(contains(link.downs[0].detail, "its marker says nodes 3, this client 1"));
  fleet.run(0, {"HSET", "redlock:node", "nodes", "1"});
  link.run_until_up();
  CHECK(link.warnings[0].empty());
}

TEST_CASE("a node at maxmemory can be connected to, and says why it grants nothing") {
  Fleet fleet({.nodes = 1});
  fleet.run(0, {"SET", "ballast", std::string(100'000, 'x')});
  fleet.run(0, {"CONFIG", "SET", "maxmemory", "1"});
  LinkFixture link(fleet.uri(0));
  link.run_until_up();
  const auto why = unavailable(link.call(LinkFixture::acquire()));
  CHECK(why.cause == Cause::out_of_memory);
  CHECK(why.delivery == Delivery::refused);
}

TEST_CASE("a node that refuses to write for a hold says why, and a replica is given up") {
  Fleet fleet({.nodes = 1, .settings = {"user bob on >secret ~* +@all"}});
  LinkFixture link("redis://bob:secret@127.0.0.1:" + std::to_string(fleet.port(0)));
  REQUIRE(is_granted(link.call(LinkFixture::acquire())));
  // There must be something to write.
  REQUIRE(fleet.run(0, {"PEXPIRE", "redlock:lock:{n}", "20000"}) == "1");
  SUBCASE("a right is missing") {
    fleet.run(0, {"ACL", "SETUSER", "bob", "-pexpire"});
    const auto why = unavailable(link.call(LinkFixture::hold()));
    CHECK(why.cause == Cause::permission);
    CHECK((contains(why.detail, "can't run this command") || contains(why.detail, "'pexpire'")));
    CHECK_FALSE(contains(why.detail, "Error running script"));
    CHECK(link.downs.empty());
  }
  SUBCASE("it has become a replica") {
    REQUIRE(fleet.run(0, {"REPLICAOF", "127.0.0.1", "1"}) == "OK");
    const auto why = unavailable(link.call(LinkFixture::hold()));
    CHECK(why.cause == Cause::read_only);
    CHECK(why.detail.starts_with("READONLY "));
    REQUIRE_FALSE(link.downs.empty());
    CHECK(link.downs[0].detail == "it has become a replica");
  }
}

TEST_CASE("a node at maxmemory confirms a hold that has everything to change") {
  Fleet fleet({.nodes = 1});
  LinkFixture link(fleet.uri(0));
  REQUIRE(is_granted(link.call(LinkFixture::acquire())));
  fleet.run(0, {"SET", "ballast", std::string(100'000, 'x')});
  fleet.run(0, {"CONFIG", "SET", "maxmemory", "1"});
  engine::HoldCommand more = LinkFixture::hold();
  more.count = 2;
  more.token = 9;
  CHECK(std::get<engine::Held>(link.call(more)).fence == 9);
}

TEST_CASE("a node that is stuck in a script is busy, for commands and for handshakes") {
  Fleet fleet({.nodes = 1, .settings = {"lua-time-limit 1"}});
  LinkFixture link(fleet.uri(0));
  link.run_until_up();
  LinkFixture stuck(fleet.uri(0));
  stuck.run_until_up();
  stuck.ask({"EVAL", "while true do end", "0"});
  stuck.run_once();
  std::optional<Cause> cause;
  link.run_until([&] {
    const engine::Reply reply = link.call(LinkFixture::acquire());
    if (const auto* why = std::get_if<engine::Unavailable>(&reply)) cause = why->cause;
    return cause.has_value();
  });
  CHECK(*cause == Cause::busy);
  LinkFixture late(fleet.uri(0));
  late.run_until_down();
  CHECK(late.downs[0].cause == Cause::busy);
  fleet.run(0, {"SCRIPT", "KILL"});
  link.run_until([&] { return is_granted(link.call(LinkFixture::acquire())); });
  late.run_until_up();
}

TEST_CASE("a node that loads its data is loading, and up when it is done") {
  // While it loads it listens every two megabytes; only Redis 7 could be told otherwise.
  std::vector<std::string> settings{"key-load-delay 1000", "rdbcompression no"};
  if (is_redis_7(Fleet({.nodes = 1}))) settings.emplace_back("enable-debug-command yes");
  Fleet fleet({.nodes = 1, .settings = settings});
  fleet.run(0, {"DEBUG", "POPULATE", "1000", "key", "20000"});
  LinkFixture reloading(fleet.uri(0));
  reloading.run_until_up();
  // Loading takes a second; a machine that stood still for that long has another try.
  for (int i = 0; i < 20; ++i) {
    reloading.ask({"DEBUG", "RELOAD"});
    reloading.run_once();
    LinkFixture link(fleet.uri(0));
    link.run_until([&] { return !link.downs.empty() || !link.warnings.empty(); });
    if (link.downs.empty()) continue;
    CHECK(link.downs[0].cause == Cause::loading);
    link.run_until_up();
    CHECK(is_granted(link.call(LinkFixture::acquire())));
    return;
  }
  FAIL("it was never seen loading");
}
