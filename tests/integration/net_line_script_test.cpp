// SPDX-License-Identifier: MIT
// What the scripts make of those that wait for a lock on one node (line.lua), on a real server, in
// the form for Redis 7 and in the form for 6.2. The node's clock is a number of the test, and its
// user may touch no key but those that a call names.
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "cluster/fleet.hpp"
#include "net_narrow_user.hpp"
#include "net_server_kind.hpp"
#include "support/text.hpp"
#include "wire/script_set.hpp"

namespace redlock::testing::line_script {
namespace {

using cluster::Fleet;
using cluster::NodeClient;
using wire::Script;
using wire::script_for;
using wire::ScriptSet;

const LockKeys keys("n");

Fleet& fleet() {
  static Fleet one({.nodes = 1});
  return one;
}
const ScriptForms both_forms(fleet);

std::string redis(const Words& command) {
  return fleet().run(0, command);
}

NarrowUser& narrow_user() {
  static NarrowUser one(fleet());
  return one;
}

/// The client aa, bb or cc, on the connection where it is told.
class Subscribed {
 public:
  explicit Subscribed(const std::string& client) : connection_(fleet().port(0)) {
    REQUIRE(contains(connection_.command({"SUBSCRIBE", "redlock:wake:" + client}), "subscribe"));
  }

  /// Since the last call, one a line.
  std::string messages() {
    const std::string last = "ping " + std::to_string(++pings_);
    std::string all;
    for (;;) {
      // One command reads one reply; an older one may be first.
      const std::string reply = connection_.command({"PING", last});
      if (reply.ends_with(last)) return all;
      const std::size_t text = reply.rfind('\n') + 1;
      if (reply.starts_with("message\n")) all += (all.empty() ? "" : "\n") + reply.substr(text);
    }
  }

 private:
  NodeClient connection_;
  int pings_ = 0;
};

/// What a call that waits says of itself. Its place is `waited` before the node's clock.
struct Waiting {
  std::string id;
  int waited_ms = 0;
  std::string how = "w";
  std::string turn = "20";
  std::string next_waited_us = {};  ///< empty: its client has no next call
};

std::string in_us(int ms) {
  return std::to_string(ms) + "000";
}

class LineNode {
 public:
  explicit LineNode(ScriptSet::Flags flags) : scripts_(flags) {
    REQUIRE(redis({"CONFIG", "SET", "maxmemory", "0"}) == "OK");
    REQUIRE(redis({"FLUSHALL"}) == "OK");
  }
  ~LineNode() { redis({"CONFIG", "SET", "maxmemory", "0"}); }
  LineNode(const LineNode&) = delete;
  LineNode& operator=(const LineNode&) = delete;

  /// Out of turn; in order "0": without waiting, and behind those that wait.
  [[nodiscard]] std::string acquire(const std::string& owner, const std::string& order = "") const {
    return run<engine::AcquireCommand>(keys.of_acquire(owner), arguments(owner, order));
  }
  [[nodiscard]] std::string acquire(const std::string& owner, const Waiting& waiting,
                                    const std::string& text = "") const {
    return run<engine::AcquireCommand>(keys.of_acquire(owner), arguments(owner, waiting, text));
  }
  /// `told`: 1, the first one; 2, the second, too.
  [[nodiscard]] std::string release(const std::string& owner, const std::string& told = "2") const {
    return run<engine::ReleaseCommand>(keys.of_release(), {owner, told});
  }
  /// The waiter keeps its place.
  [[nodiscard]] std::string release(const std::string& owner, const Waiting& waiting,
                                    const std::string& told = "2",
                                    const std::string& text = "") const {
    return run<engine::ReleaseCommand>(
        keys.of_release(),
        {owner, told, waiting.id, waiting.how, in_us(waiting.waited_ms), waiting.turn, text});
  }
  /// Another call of its client stands there.
  [[nodiscard]] std::string release_to(const std::string& owner, const Waiting& next) const {
    return run<engine::ReleaseCommand>(
        keys.of_release(),
        {owner, "2", next.id, next.how, in_us(next.waited_ms), next.turn, "", "1"});
  }
  [[nodiscard]] std::string leave(const std::string& waiter) const {
    return run<engine::LeaveCommand>(keys.of_leave(), {waiter});
  }
  /// And another call of its client stands there.
  [[nodiscard]] std::string leave_to(const Waiting& next) const {
    return run<engine::LeaveCommand>(
        keys.of_leave(), {next.id, next.how, in_us(next.waited_ms), next.turn, "about it"});
  }
  /// A release and an acquire in one call.
  template <typename How>
  [[nodiscard]] std::string pass(const std::string& owner, const std::string& next,
                                 const How& how) const {
    return run(wire::pass_script, keys.of_pass(next), joined({owner, "2"}, arguments(next, how)));
  }
  [[nodiscard]] std::string force(const std::string& owner) const {
    return run<engine::ForceCommand>(keys.of_force(owner), {owner, "40000"});
  }
  /// The lock is somebody's, and these wait for it.
  void line_up(const std::vector<Waiting>& all) const {
    REQUIRE(acquire("holder") == "1\n1");
    for (const Waiting& one : all) REQUIRE(acquire("x", one).starts_with("0\n"));
  }
  /// As if its time had passed.
  static void end_lease() { redis({"DEL", keys.lock}); }
  void pass_ms(long long time) { now_ms_ += time; }
  [[nodiscard]] long long now_ms() const { return now_ms_; }
  /// The place of a call that began so long ago.
  [[nodiscard]] std::string place(int waited_ms) const {
    return std::to_string(now_ms_ - waited_ms) + "000";
  }

  static Words arguments(const std::string& owner, const std::string& order) {
    return {owner, "30000", "1", "", "", order};
  }
  static Words arguments(const std::string& owner, const Waiting& waiting,
                         const std::string& text = "") {
    return {owner,        "30000",
            "1",          text,
            "",           waiting.how,
            waiting.id,   in_us(waiting.waited_ms),
            waiting.turn, waiting.next_waited_us};
  }
  /// A script as a client sends it, but for the clock.
  [[nodiscard]] std::string source(Script script) const {
    constexpr std::string_view clock = "redis.call('TIME')";
    std::string text = scripts_.source(script);
    const std::size_t at = text.find(clock);
    REQUIRE(at != std::string::npos);
    const std::string now = std::to_string(now_ms_);
    const std::size_t seconds = now.size() - 3;
    return text.replace(at, clock.size(),
                        "{'" + now.substr(0, seconds) + "', '" + now.substr(seconds) + "000'}");
  }

 private:
  std::string run(Script script, const Words& its_keys, const Words& its_arguments) const {
    return narrow_user().eval(source(script), its_keys, its_arguments);
  }
  template <typename Command>
  std::string run(const Words& its_keys, const Words& its_arguments) const {
    return run(script_for<Command>, its_keys, its_arguments);
  }

  ScriptSet scripts_;
  long long now_ms_ = 1'800'000'000'000;
};

std::string line() {
  return redis({"ZRANGE", keys.line, "0", "-1"});
}
std::string turn() {
  return redis({"HGET", keys.waiters, keys.lock});
}
std::string turn_of(const std::string& waiter, long long ends_ms) {
  return waiter + ' ' + std::to_string(ends_ms);
}
std::string record(const std::string& waiter) {
  return redis({"HGET", keys.waiters, waiter});
}
void write_record(const std::string& waiter, const std::string& text) {
  redis({"HSET", keys.waiters, waiter, text});
}
bool nobody_waits() {
  return redis({"EXISTS", keys.line, keys.waiters}) == "0";
}
/// The elements of a refusal: 0, milliseconds, place.
long long element(const std::string& reply, int index) {
  std::size_t at = 0;
  for (; index > 0; --index) at = reply.find('\n', at) + 1;
  return std::stoll(reply.substr(at));
}

TEST_CASE("waiters stand in the order in which their calls began, whenever they say so") {
  for (const auto flags : both_forms) {
    LineNode node(flags);
    REQUIRE(node.acquire("holder") == "1\n1");
    const std::string second = node.acquire("x", Waiting{"bb:1", 50});
    CHECK(element(second, 0) == 0);
    CHECK(element(second, 1) > 20'000);
    CHECK(element(second, 2) == 0);
    node.pass_ms(20);
    CHECK(element(node.acquire("x", Waiting{"cc:1", 60, "p"}), 2) == 1);
    CHECK(element(node.acquire("x", Waiting{"cc:2", 70}), 2) == 1);  // then by their names
    CHECK(element(node.acquire("x", Waiting{"aa:1", 80}), 2) == 0);
    CHECK(element(node.acquire("x", Waiting{"bb:1", 70}), 2) == 1);
    CHECK(line() == "aa:1\nbb:1\ncc:2\ncc:1");
    CHECK(redis({"ZSCORE", keys.line, "aa:1"}) == node.place(80));
    CHECK(turn() == "(nil)");
  }
}

TEST_CASE(
    "a waiter's place becomes an earlier one and never a later one, whatever the clock does") {
  for (const auto flags : both_forms) {
    LineNode node(flags);
    node.line_up({{"aa:1", 50}, {"bb:1", 40}});
    const std::string place = node.place(50);
    node.pass_ms(100'000);
    CHECK(element(node.acquire("x", Waiting{"aa:1", 60}), 2) == 0);
    CHECK(redis({"ZSCORE", keys.line, "aa:1"}) == place);
    node.pass_ms(-100'000);
    CHECK(element(node.acquire("x", Waiting{"bb:1", 51}), 2) == 0);
    CHECK(line() == "bb:1\naa:1");
  }
}

TEST_CASE("a waiter counts as alive for as long as its manner of waiting says, from each call") {
  for (const auto flags : both_forms) {
    LineNode node(flags);
    node.line_up({{"aa:1", 50}, {"bb:1", 40, "p", "60"}});
    CHECK(record("aa:1") == std::to_string(node.now_ms() + 2'500) + " w 20");
    CHECK(record("bb:1") == std::to_string(node.now_ms() + 250) + " p 60");
    const auto asks = [&](const Waiting& waiting) {
      CHECK(node.acquire("x", waiting).starts_with("0\n"));
    };
    // What says nearly the same is not written again: for a fifth of the time, and no longer.
    const auto alive = node.now_ms() + 2'500;
    node.pass_ms(49);
    asks({"bb:1", 89, "p", "60"});
    CHECK(record("bb:1") == std::to_string(node.now_ms() + 201) + " p 60");
    node.pass_ms(450);
    asks({"aa:1", 549});
    CHECK(record("aa:1") == std::to_string(alive) + " w 20");
    node.pass_ms(1);
    for (const std::string& key : {keys.line, keys.waiters}) redis({"PEXPIRE", key, "500"});
    asks({"aa:1", 550});
    CHECK(record("aa:1") == std::to_string(alive + 500) + " w 20");
    for (const std::string& key : {keys.line, keys.waiters}) {
      CHECK(std::stoll(redis({"PTTL", key})) > 500);
      CHECK(std::stoll(redis({"PTTL", key})) <= 3'000);
    }
    asks({"aa:1", 550, "w", "30"});
    CHECK(record("aa:1") == std::to_string(alive + 500) + " w 30");
    // The clock was set back.
    node.pass_ms(-1'000);
    asks({"aa:1", 0, "w", "30"});
    CHECK(record("aa:1") == std::to_string(alive - 500) + " w 30");
  }
}

TEST_CASE("the text about a waiter is kept as it was said first") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    REQUIRE(node.acquire("holder") == "1\n1");
    CHECK(node.acquire("x", Waiting{"aa:1"}, "host 1").starts_with("0\n"));
    CHECK(node.acquire("x", Waiting{"aa:1"}, "host 2").starts_with("0\n"));
    CHECK(redis({"HGET", keys.waiters, "@aa:1"}) == "host 1");
    CHECK(node.leave("aa:1") == "0");
    CHECK(nobody_waits());
  }
}

TEST_CASE("a call that does not wait stands in no line, and takes no free lock before waiters") {
  for (const auto flags : both_forms) {
    LineNode node(flags);
    CHECK(node.acquire("a", "0") == "1\n1");
    CHECK(node.acquire("b", "0").starts_with("0\n"));
    CHECK(nobody_waits());
    CHECK(node.acquire("x", Waiting{"aa:1", 0, "p", "60"}).starts_with("0\n"));
    LineNode::end_lease();
    CHECK(node.acquire("b", "0") == "0\n60");
    CHECK(line() == "aa:1");
    CHECK(turn() == turn_of("aa:1", node.now_ms() + 60));
    node.pass_ms(10);
    CHECK(node.acquire("b", "0") == "0\n50");
  }
}

TEST_CASE("a release gives the first waiter its turn, and tells it and the second") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    Subscribed a("aa");
    Subscribed b("bb");
    node.line_up({{"bb:70", 40}, {"aa:1", 50, "w", "35"}, {"aa:2", 30}});
    CHECK(node.release("holder") == "1");
    CHECK(a.messages() == "1 0");
    CHECK(b.messages() == "70 35");
    CHECK(turn() == turn_of("aa:1", node.now_ms() + 35));
  }
}

TEST_CASE("a release that is to tell the first waiter only leaves the second to other nodes") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    Subscribed a("aa");
    Subscribed b("bb");
    node.line_up({{"bb:70", 40}, {"aa:1", 50}});
    CHECK(node.release("holder", Waiting{"aa:2", 30}, "1", "its text") == "1");
    CHECK(a.messages() == "1 0");
    CHECK(b.messages().empty());
    CHECK(line() == "aa:1\nbb:70\naa:2");
    CHECK(redis({"HGET", keys.waiters, "@aa:2"}) == "its text");
    CHECK(node.acquire("a", Waiting{"aa:1", 50}) == "1\n2");
    CHECK(node.release("a", "1") == "1");
    CHECK(a.messages().empty());
    CHECK(b.messages() == "70 0");
    CHECK(node.leave("bb:70") == "0");  // passes its turn on
    CHECK(a.messages() == "2 0");
  }
}

TEST_CASE("during a turn only its waiter is granted the lock; others are stood in their places") {
  for (const auto flags : both_forms) {
    LineNode node(flags);
    Subscribed a("aa");
    node.line_up({{"aa:1", 50, "w", "30"}});
    CHECK(node.release("holder") == "1");
    node.pass_ms(10);
    CHECK(node.acquire("b", Waiting{"bb:1", 70}) == "0\n20\n0");  // though before it
    CHECK(node.acquire("c", "0") == "0\n20");
    CHECK(line() == "bb:1\naa:1");
    CHECK(node.acquire("a", Waiting{"aa:1", 60}) == "1\n2");
    CHECK(line() == "bb:1");
    CHECK(turn() == "(nil)");
    CHECK(record("aa:1") == "(nil)");
  }
}

TEST_CASE("the last waiter that is granted the lock leaves no line behind") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    const Subscribed a("aa");
    REQUIRE(node.acquire("holder") == "1\n1");
    CHECK(node.acquire("x", Waiting{"aa:1"}, "its text").starts_with("0\n"));
    CHECK(node.release("holder") == "1");
    CHECK(node.acquire("a", Waiting{"aa:1"}) == "1\n2");
    CHECK(nobody_waits());
    CHECK(node.release("a") == "1");
    CHECK(node.acquire("a", Waiting{"aa:2"}) == "1\n3");
    CHECK(nobody_waits());
  }
}

TEST_CASE("from a grant on the next call of the client has the place") {
  for (const auto flags : both_forms) {
    LineNode node(flags);
    const Subscribed a("aa");
    const Subscribed b("bb");
    node.line_up({{"aa:1", 50}, {"bb:1", 40}, {"bb:2", 20}});
    CHECK(node.release("holder") == "1");
    node.pass_ms(1);
    CHECK(node.acquire("a", Waiting{"aa:1", 51, "w", "25", in_us(30)}) == "1\n2\n1");
    CHECK(line() == "bb:1\naa:1\nbb:2");
    CHECK(redis({"ZSCORE", keys.line, "aa:1"}) == node.place(30));
    CHECK(record("aa:1") == std::to_string(node.now_ms() + 2'500) + " w 25");
    CHECK(turn() == "(nil)");
    // Where nobody else waits, and the client has not stood there before.
    const LineNode fresh(flags);
    CHECK(fresh.acquire("a", Waiting{"aa:1", 50, "w", "20", "7"}, "its text") == "1\n1\n0");
    CHECK(line() == "aa:1");
    CHECK(redis({"HGET", keys.waiters, "@aa:1"}) == "its text");
  }
}

TEST_CASE("a lock that has expired is kept for the first in line, whichever asks first") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    Subscribed a("aa");
    Subscribed b("bb");
    node.line_up({{"aa:1", 50}, {"bb:1", 40}});
    LineNode::end_lease();
    CHECK(node.acquire("b", Waiting{"bb:1", 40}) == "0\n20\n1");
    CHECK(a.messages() == "1 0");
    CHECK(b.messages().empty());  // it has its reply
    CHECK(node.acquire("a", Waiting{"aa:1", 50}) == "1\n2");
    CHECK(line() == "bb:1");
    LineNode::end_lease();
    CHECK(node.acquire("b", Waiting{"bb:1", 40}) == "1\n3");
    CHECK(nobody_waits());
  }
}

TEST_CASE("a waiter that does not use its turn is not waited for again, but may come back") {
  for (const auto flags : both_forms) {
    LineNode node(flags);
    const Subscribed a("aa");
    Subscribed b("bb");
    node.line_up({{"aa:1", 50}, {"bb:1", 40}, {"bb:2", 30}});
    CHECK(node.release("holder") == "1");
    node.pass_ms(20);
    CHECK(node.acquire("c", Waiting{"bb:2", 50}) == "0\n20\n1");
    CHECK(turn() == turn_of("bb:1", node.now_ms() + 20));
    CHECK(line() == "bb:1\nbb:2");
    CHECK(b.messages() == "1 20\n1 0");
    CHECK(node.acquire("a", Waiting{"aa:1", 70}) == "0\n20\n0");
    node.pass_ms(20);
    CHECK(node.acquire("a", Waiting{"aa:1", 90}) == "1\n2");
    CHECK(line() == "bb:1\nbb:2");
  }
}

TEST_CASE("a turn that is over may still be used by its waiter") {
  for (const auto flags : both_forms) {
    LineNode node(flags);
    const Subscribed a("aa");
    node.line_up({{"aa:1", 50}, {"aa:2", 40}});
    CHECK(node.release("holder") == "1");
    node.pass_ms(100);
    CHECK(node.acquire("a", Waiting{"aa:1", 150}) == "1\n2");
    CHECK(line() == "aa:2");
  }
}

TEST_CASE("a turn that is over harms neither its waiter behind an earlier one, nor that one's") {
  for (const auto flags : both_forms) {
    LineNode node(flags);
    Subscribed a("aa");
    node.line_up({{"aa:1", 50}});
    CHECK(node.release("holder") == "1");
    CHECK(node.acquire("b", Waiting{"aa:2", 60}) == "0\n20\n0");
    node.pass_ms(20);
    CHECK(node.acquire("c", "0") == "0\n20");
    CHECK(a.messages() == "1 0\n2 0\n1 20");
    CHECK(line() == "aa:2\naa:1");
    CHECK(turn() == turn_of("aa:2", node.now_ms() + 20));
  }
}

TEST_CASE("a client that no message reaches is out of the line at once") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    Subscribed b("bb");
    node.line_up({{"aa:1", 9}, {"aa:2", 8}, {"bb:1", 7}, {"aa:3", 6}, {"bb:2", 5}, {"aa:4", 4}});
    CHECK(node.release("holder") == "1");
    CHECK(b.messages() == "1 0\n2 20");
    CHECK(turn() == turn_of("bb:1", node.now_ms() + 20));
    CHECK(line() == "bb:1\nbb:2\naa:4");
  }
}

TEST_CASE("a waiter that has not asked again within its time is out of the line") {
  for (const auto flags : both_forms) {
    Subscribed a("aa");
    LineNode node(flags);
    node.line_up({{"aa:1", 50}});
    node.pass_ms(2'500);
    CHECK(node.acquire("x", Waiting{"aa:2"}).starts_with("0\n"));
    CHECK(node.release("holder") == "1");
    CHECK(line() == "aa:2");
    CHECK(a.messages() == "2 0");
    for (const char* text : {"no record", "1900000000000 w", "1900000000000 q 20", ""}) {
      const LineNode fresh(flags);
      fresh.line_up({{"aa:1", 50}, {"aa:2", 40}});
      write_record("aa:1", text);
      CHECK(fresh.release("holder") == "1");
      CHECK(line() == "aa:2");
      CHECK(a.messages() == "2 0");
    }
    const LineNode last(flags);
    last.line_up({{"aa:1", 50}});
    write_record("aa:1", "1 w 20");
    CHECK(last.release("holder") == "1");
    CHECK(nobody_waits());
  }
}

TEST_CASE("one call passes over 64 dead waiters at most, and the next one goes on with them") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    Subscribed a("aa");
    std::vector<Waiting> all;
    for (int i = 0; i < 70; ++i) all.push_back({"bb:" + std::to_string(i), 200 - i});
    all.push_back({"aa:1", 50});
    node.line_up(all);
    CHECK(node.release("holder") == "1");
    CHECK(redis({"ZCARD", keys.line}) == "7");
    CHECK(turn() == "(nil)");
    CHECK(a.messages().empty());
    CHECK(node.acquire("x", Waiting{"cc:1"}) == "0\n20\n1");
    CHECK(a.messages() == "1 0");
    CHECK(line() == "aa:1\ncc:1");
    // Without an end in sight the lock is kept, so that it goes to none before its turn.
    const LineNode other(flags);
    other.line_up(all);
    LineNode::end_lease();
    CHECK(other.acquire("x", Waiting{"cc:1"}) == "0\n1\n7");
  }
}

TEST_CASE("a turn lasts as long as its waiter needs, and half a second at most") {
  for (const auto flags : both_forms) {
    for (const auto& [asked, given] : {std::pair{"1", 1}, {"137", 137}, {"501", 500}}) {
      const LineNode node(flags);
      Subscribed a("aa");
      node.line_up({{"aa:1", 50, "w", asked}, {"aa:2", 40}});
      CHECK(node.release("holder") == "1");
      CHECK(turn() == turn_of("aa:1", node.now_ms() + given));
      CHECK(a.messages() == "1 0\n2 " + std::to_string(given));
    }
  }
}

TEST_CASE("a waiter that polls is told nothing") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    Subscribed a("aa");
    node.line_up({{"aa:1", 50, "p", "60"}, {"aa:2", 40}});
    CHECK(node.release("holder") == "1");
    CHECK(turn() == turn_of("aa:1", node.now_ms() + 60));
    CHECK(a.messages() == "2 60");
    CHECK(node.acquire("a", Waiting{"aa:1", 50, "p", "60"}) == "1\n2");
  }
}

TEST_CASE("a turn that ends later than any can, as the clock was set back, is over") {
  for (const auto flags : both_forms) {
    LineNode node(flags);
    Subscribed a("aa");
    node.line_up({{"aa:1", 5'000}, {"aa:2", 4'000}});
    CHECK(node.release("holder") == "1");
    CHECK(a.messages() == "1 0\n2 20");
    node.pass_ms(-1'000);
    CHECK(node.acquire("x", Waiting{"bb:1"}) == "0\n20\n1");
    CHECK(a.messages() == "2 0");
    CHECK(line() == "aa:2\nbb:1");
    CHECK(turn() == turn_of("aa:2", node.now_ms() + 20));
  }
}

TEST_CASE("a release of nobody's lock gives no turn, and a waiter that leaves takes nobody's") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    Subscribed a("aa");
    node.line_up({{"aa:1", 50}, {"aa:2", 40}});
    CHECK(node.release("x") == "0");
    CHECK(node.leave("aa:1") == "0");
    CHECK(line() == "aa:2");
    LineNode::end_lease();
    CHECK(node.release("x") == "0");
    CHECK(node.leave("aa:9") == "0");
    CHECK(turn() == "(nil)");
    CHECK(a.messages().empty());
    CHECK(node.leave("aa:2") == "0");
    CHECK(nobody_waits());
    CHECK(node.leave("aa:2") == "0");
  }
}

TEST_CASE("a waiter that leaves while the turn is its own passes it on, unless the lock is taken") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    Subscribed a("aa");
    node.line_up({{"aa:1", 50}, {"aa:2", 40}});
    CHECK(node.release("holder") == "1");
    CHECK(a.messages() == "1 0\n2 20");
    CHECK(node.leave("aa:1") == "0");
    CHECK(a.messages() == "2 0");
    CHECK(turn() == turn_of("aa:2", node.now_ms() + 20));
    redis({"HSET", keys.lock, "somebody", "1"});
    CHECK(node.acquire("x", Waiting{"aa:3"}).starts_with("0\n"));
    CHECK(node.leave("aa:2") == "0");
    CHECK(turn() == "(nil)");
    CHECK(a.messages().empty());
  }
}

TEST_CASE("a waiter that leaves its place to another call of its client keeps the turn if first") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    Subscribed a("aa");
    node.line_up({{"aa:1", 50}, {"aa:2", 30}});
    CHECK(node.release("holder") == "1");
    CHECK(a.messages() == "1 0\n2 20");
    CHECK(node.leave_to(Waiting{"aa:1", 40}) == "0");
    CHECK(line() == "aa:1\naa:2");
    CHECK(turn() == turn_of("aa:1", node.now_ms() + 20));
    CHECK(redis({"ZSCORE", keys.line, "aa:1"}) == node.place(40));
    CHECK(redis({"HGET", keys.waiters, "@aa:1"}) == "about it");
    (void)a.messages();
    CHECK(node.leave_to(Waiting{"aa:1", 20}) == "0");
    CHECK(line() == "aa:2\naa:1");
    CHECK(turn() == turn_of("aa:2", node.now_ms() + 20));
    CHECK(a.messages() == "2 0\n1 20");
  }
}

TEST_CASE("a release whose client goes on waiting stands it in its place before any is told") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    Subscribed a("aa");
    Subscribed b("bb");
    REQUIRE(node.acquire("a", Waiting{"aa:1", 50}) == "1\n1");
    CHECK(node.acquire("x", Waiting{"bb:1", 40}).starts_with("0\n"));
    CHECK(node.release("a", Waiting{"aa:1", 50}) == "1");
    CHECK(line() == "aa:1\nbb:1");
    CHECK(turn() == turn_of("aa:1", node.now_ms() + 20));
    CHECK(a.messages() == "1 0");
    CHECK(b.messages() == "1 20");
    CHECK(record("aa:1") == std::to_string(node.now_ms() + 2'500) + " w 20");
    REQUIRE(node.acquire("a", Waiting{"aa:1", 50}) == "1\n2");
    CHECK(node.release("a", Waiting{"aa:1", 30}) == "1");
    CHECK(line() == "bb:1\naa:1");
    CHECK(turn() == turn_of("bb:1", node.now_ms() + 20));
    // And in that of another call, which has waited less.
    REQUIRE(node.acquire("b", Waiting{.id = "bb:1", .waited_ms = 40, .next_waited_us = "35000"}) ==
            "1\n3\n0");
    CHECK(node.release_to("b", Waiting{"bb:1", 10}) == "1");
    CHECK(line() == "aa:1\nbb:1");
    // Also where nobody else waits, and where it has nothing to release.
    const LineNode fresh(flags);
    REQUIRE(fresh.acquire("a") == "1\n1");
    CHECK(fresh.release("x", Waiting{"aa:1", 50}) == "0");
    CHECK(fresh.release("x", Waiting{"aa:2", 40}) == "0");
    CHECK(line() == "aa:1\naa:2");
    CHECK(turn() == "(nil)");
  }
}

TEST_CASE("any grant ends a turn, and takes no place from the waiter that had it") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    Subscribed a("aa");
    node.line_up({{"aa:1", 50}});
    CHECK(node.release("holder") == "1");
    CHECK(node.acquire("b") == "1\n2");  // out of turn
    CHECK(turn() == "(nil)");
    CHECK(line() == "aa:1");
    CHECK(node.release("b") == "1");
    CHECK(a.messages() == "1 0\n1 0");
    CHECK(node.acquire("a", Waiting{"aa:1", 50}) == "1\n3");
  }
}

TEST_CASE("one release of many locks gives the turn of each") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    Subscribed a("aa");
    Words all;
    Words arguments;
    for (const std::string number : {"1", "2", "3", "4"}) {
      all = joined(all, {"lock" + number, "line" + number, "waiters" + number});
      arguments = joined(arguments, {"o", "2"});
      if (number == "4") break;  // it is nobody's
      redis({"HSET", "lock" + number, "o", "1"});
    }
    redis({"ZADD", "line1", "5", "aa:1"});
    redis({"HSET", "waiters1", "aa:1", "1900000000000 w 20"});
    redis({"SET", "line2", "of another type"});
    redis({"ZADD", "line3", "5", "aa:3", "6", "aa:4"});
    redis({"HSET", "waiters3", "aa:3", "1 w 20", "aa:4", "1900000000000 w 20"});
    redis({"ZADD", "line4", "5", "aa:5"});
    redis({"HSET", "waiters4", "aa:5", "1900000000000 w 20"});
    CHECK(narrow_user().eval(node.source(script_for<engine::ReleaseCommand>), all, arguments) ==
          "1\n1\n1\n0");
    CHECK(a.messages() == "1 0\n4 0");
    CHECK(redis({"EXISTS", "lock1", "lock2", "lock3"}) == "0");
    CHECK(redis({"GET", "line2"}) == "of another type");
  }
}

TEST_CASE("a line of several locks has a turn for each of them") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    const Subscribed a("aa");
    redis({"HSET", "lock1", "o", "1"});
    redis({"HSET", "lock2", "o", "1"});
    redis({"ZADD", keys.line, "5", "aa:1", "6", "aa:2"});
    write_record("aa:1", "1900000000000 w 20");
    write_record("aa:2", "1900000000000 w 20");
    const std::string source = node.source(script_for<engine::ReleaseCommand>);
    for (const std::string lock : {"lock1", "lock2"}) {
      CHECK(narrow_user().eval(source, {lock, keys.line, keys.waiters}, {"o", "2"}) == "1");
      CHECK(redis({"HGET", keys.waiters, lock}) == turn_of("aa:1", node.now_ms() + 20));
    }
  }
}

TEST_CASE("a lock that is taken by force goes to the first in line") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    Subscribed a("aa");
    node.line_up({{"aa:1", 50}});
    CHECK(node.force("another") == "0");
    CHECK(a.messages().empty());
    CHECK(node.force("holder") == "1");
    CHECK(a.messages() == "1 0");
    CHECK(node.acquire("holder", Waiting{"aa:1", 50}) == "3");
    CHECK(node.acquire("a", Waiting{"aa:1", 50}).starts_with("1\n"));
  }
}

TEST_CASE("a grant that fails keeps its waiter's place") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    const Subscribed a("aa");
    node.line_up({{"aa:1", 50}});
    CHECK(node.release("holder") == "1");
    redis({"SET", keys.fence, "9007199254740991"});
    CHECK(contains(node.acquire("a", Waiting{"aa:1", 50}), "has reached 2^53"));
    CHECK(line() == "aa:1");
    CHECK(turn() == turn_of("aa:1", node.now_ms() + 20));
  }
}

TEST_CASE("a damaged line is no line: locks are taken and given back all the same") {
  for (const auto flags : both_forms) {
    for (const std::string& damaged : {keys.line, keys.waiters}) {
      const LineNode node(flags);
      redis({"SET", damaged, "of another type"});
      CHECK(node.acquire("a", Waiting{"aa:1", 50, "w", "20", in_us(30)}) == "1\n1");
      CHECK(element(node.acquire("b", Waiting{"bb:1", 40}), 1) > 20'000);
      CHECK(node.release("a", Waiting{"aa:1", 50}) == "1");
      CHECK(node.acquire("b", "0") == "1\n2");
      CHECK(node.leave("bb:1") == "0");
      CHECK(node.release("b") == "1");
      CHECK(redis({"GET", damaged}) == "of another type");
    }
  }
}

TEST_CASE("a client that may not be in line takes locks out of turn") {
  for (const auto flags : both_forms) {
    const auto weak_user = [](const Words& rights) {
      redis(joined({"ACL", "SETUSER", "weak", "reset", "on", "nopass"}, rights));
      NodeClient client(fleet().port(0));
      REQUIRE(client.command({"AUTH", "weak", "any"}) == "OK");
      return client;
    };
    const ScriptSet scripts(flags);  // with the clock of the node
    const auto acquire = [&](const Waiting& waiting) {
      return eval(scripts.source(script_for<engine::AcquireCommand>), keys.of_acquire("b"),
                  LineNode::arguments("b", waiting));
    };
    const Words release =
        eval(scripts.source(script_for<engine::ReleaseCommand>), keys.of_release(), {"b", "2"});
    for (const char* denied : {"-zadd", "-publish", "-hmget", "-zrange", "-zrem", "-time"}) {
      LineNode node(flags);
      const Subscribed a("aa");
      auto client = weak_user({"~*", "allchannels", "+@all", denied});
      node.line_up({{"aa:1", 50}});
      CHECK(client.command(acquire({"bb:1", 40})).starts_with("0\n"));
      CHECK(node.release("holder") == "1");
      const std::string told = client.command(acquire({"bb:1", 40}));
      CHECK_MESSAGE((told == "1\n2" || told.starts_with("0\n")), denied);
      if (told == "1\n2") CHECK(client.command(release) == "1");
    }
    // A user with the commands that locking takes.
    const LineNode node(flags);
    auto client = weak_user({"resetchannels", "~redlock:*", "+eval", "+type", "+hexists", "+hget",
                             "+hset", "+hdel", "+get", "+set", "+incr", "+pttl", "+pexpire", "+del",
                             "+exists", "+time"});
    node.line_up({{"aa:1", 50}});
    CHECK(element(client.command(acquire({"bb:1", 60, "p"})), 1) > 20'000);
    LineNode::end_lease();
    CHECK(client.command(acquire({"bb:1", 40, "p"})) == "1\n2");
    CHECK(client.command(release) == "1");
    CHECK(line() == "aa:1");
    redis({"ACL", "DELUSER", "weak"});
  }
}

TEST_CASE("a full node stands nobody in line, grants nothing, and still gives turns") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    Subscribed a("aa");
    node.line_up({{"aa:1", 50}});
    redis({"SET", "ballast", std::string(100'000, 'x')});
    REQUIRE(redis({"CONFIG", "SET", "maxmemory", "1"}) == "OK");
    CHECK(node.acquire("b", Waiting{"aa:2", 40}).starts_with("0\n"));
    CHECK(line() == "aa:1");
    CHECK(node.release("holder", Waiting{"aa:3", 30}) == "1");
    CHECK(a.messages() == "1 0\n3 20");
    CHECK(contains(node.acquire("a", Waiting{"aa:1", 50}), "OOM"));
    CHECK(redis({"EXISTS", keys.lock}) == "0");
    CHECK(line() == "aa:1\naa:3");
    CHECK(node.leave("aa:1") == "0");
    CHECK(turn() == turn_of("aa:3", node.now_ms() + 20));
    CHECK(node.leave("aa:3") == "0");
    CHECK(nobody_waits());
  }
}

TEST_CASE("a lock is passed on to the first waiter without a message, and without a turn") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    Subscribed a("aa");
    Subscribed b("bb");
    node.line_up({{"aa:1", 50}, {"bb:1", 40}});
    CHECK(node.pass("holder", "next", Waiting{"aa:1", 50, "w", "20", in_us(30)}) == "1\n1\n2\n1");
    CHECK(redis({"HGETALL", keys.lock}) == "next\n1");
    CHECK(std::stoll(redis({"PTTL", keys.lock})) > 20'000);
    CHECK(line() == "bb:1\naa:1");
    CHECK(turn() == "(nil)");
    CHECK(node.leave("bb:1") == "0");
    CHECK(node.pass("next", "last", Waiting{"aa:1", 50}) == "1\n1\n3");
    CHECK(nobody_waits());
    CHECK(a.messages().empty());
    CHECK(b.messages().empty());
  }
}

TEST_CASE("a lock is not passed on before the first waiter, nor by an owner that has it not") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    Subscribed a("aa");
    const Subscribed b("bb");
    node.line_up({{"aa:1", 50}, {"bb:1", 40}});
    CHECK(node.pass("other", "next", Waiting{"aa:1", 50}).starts_with("0\n0\n"));
    CHECK(redis({"HGETALL", keys.lock}) == "holder\n1");
    CHECK(node.pass("holder", "next", Waiting{"bb:1", 40}) == "1\n0\n20\n1");
    CHECK(redis({"EXISTS", keys.lock}) == "0");
    CHECK(turn() == turn_of("aa:1", node.now_ms() + 20));
    CHECK(a.messages() == "1 0");
    // Without a lock: an acquire behind a release of nothing.
    CHECK(node.leave("aa:1") == "0");
    CHECK(node.pass("holder", "next", std::string("0")) == "0\n0\n20");
    CHECK(line() == "bb:1");
    // Out of turn, as calls that barge.
    CHECK(node.pass("holder", "next", std::string()) == "0\n1\n2");
    CHECK(node.pass("next", "last", std::string()) == "1\n1\n3");
  }
}

TEST_CASE("of a release and an acquire in one call one may fail alone") {
  for (const auto flags : both_forms) {
    const LineNode node(flags);
    Subscribed a("aa");
    node.line_up({{"aa:1", 50}, {"aa:2", 40}});
    SUBCASE("at the fence") {
      redis({"DEL", keys.fence});
      redis({"RPUSH", keys.fence, "x"});
      const std::string reply = node.pass("holder", "next", Waiting{"aa:1", 50});
      CHECK(reply.starts_with("1\n"));
      CHECK(contains(reply, "WRONGTYPE"));
      CHECK(redis({"EXISTS", keys.lock}) == "0");
      CHECK(line() == "aa:1\naa:2");
    }
    SUBCASE("as its owner was forced out") {
      CHECK(node.force("next") == "0");
      CHECK(node.pass("holder", "next", Waiting{"aa:1", 50}) == "1\n3");
      CHECK(redis({"EXISTS", keys.lock}) == "0");
      CHECK(a.messages() == "1 0\n2 20");
      CHECK(turn() == turn_of("aa:1", node.now_ms() + 20));
    }
    SUBCASE("at maxmemory, unless as much was freed before") {
      redis({"SET", "ballast", std::string(100'000, 'x')});
      REQUIRE(redis({"CONFIG", "SET", "maxmemory", "1"}) == "OK");
      CHECK(node.pass("holder", "next", Waiting{"aa:1", 50}) == "1\n1\n2");
      LineNode::end_lease();
      const std::string reply = node.pass("next", "last", std::string());
      CHECK(reply.starts_with("0\n"));
      CHECK(contains(reply, "OOM"));
    }
    redis({"DEL", "ballast"});
  }
}

}  // namespace
}  // namespace redlock::testing::line_script
