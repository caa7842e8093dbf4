// SPDX-License-Identifier: MIT
// Admin as a library: what the command's tests cannot see, because they only see what is printed.
#include <thread>

#include "api_fixture.hpp"
#include "cli_process.hpp"
#include "support/stub_server.hpp"

namespace redlock::testing {
namespace {

TEST_CASE("threads may look at the nodes side by side") {
  const Fleet fleet({.nodes = 3});
  const auto client = start_client(fleet);
  const auto lease = must(client.lock("a").acquire());
  std::vector<std::future<bool>> answers;
  for (int i = 0; i < 8; ++i) {
    answers.push_back(std::async(std::launch::async, [&] {
      const Admin admin(client);
      const auto report = admin.inspect("a");
      const auto examination = admin.examine();
      return report && report->owner == lease.owner() && examination &&
             examination->nodes[0].answered();
    }));
  }
  for (auto& answer : answers) CHECK(get_soon(answer));
}

/// What a stub of a blank node answers to all that no case is about.
StubReply like_blank(const RedisCommand& command) {
  return is(command, "HGETALL") ? array({}) : like_redis(command);
}

TEST_CASE("of a node that floods doctor says so, and where to look for the cause") {
  StubServer node([](const RedisCommand& command) -> StubReply {
    if (is(command, "PING")) return StubReply::without_end("", ">0\r\n");
    return like_blank(command);
  });
  const auto client = start_client(options_for({node.uri()}));
  const Admin admin(client);
  const auto problems = must(admin.examine()).nodes.at(0).problems;
  REQUIRE(problems.size() == 1);
  CHECK(contains(problems[0].what, "it sent more than 20000 unrequested messages within a second"));
  CHECK(contains(problems[0].what, "find what publishes to redlock:wake:*"));
}

TEST_CASE("a node that is slow is examined within the node timeout that the client was given") {
  StubServer node([is_slow = true](const RedisCommand& command) mutable -> StubReply {
    if (is(command, "PING") && std::exchange(is_slow, false)) std::this_thread::sleep_for(2s);
    return like_blank(command);
  });
  const auto client = start_client(options_for({node.uri()}));
  const Admin admin(client);
  const auto examination = must(admin.examine());
  CHECK_MESSAGE(examination.nodes[0].answered(), examination.nodes[0].trouble.detail);
}

TEST_CASE("odd answers to questions are no answers") {
  // A healthy start of a connection, then values of types that Redis never gives.
  StubServer node([](const RedisCommand& command) -> StubReply {
    if (is(command, "SCAN")) return array({bulk("0")});
    if (is(command, "PTTL") && contains(command.back(), "redlock:lock:")) return bulk("soon");
    if (is(command, "GET")) return array({integer(1)});
    return is(command, "EVAL") ? integer(1) : like_blank(command);
  });
  const auto client = start_client(options_for({node.uri()}));
  const Admin admin(client);
  const auto report = must(admin.inspect("a"));
  CHECK(report.nodes[0].free());
  CHECK_FALSE(report.nodes[0].fence.has_value());
  CHECK(must(admin.list()).locks.empty());
  CHECK(must(admin.adopt())[0].adoption == Adoption::failed);
}

TEST_CASE("why a node adopts no marker is told without the script around it") {
  const std::string script = "ERR Error running script (call to f_0): @user_script: 5: -";
  for (const auto& [reply, words] :
       {std::pair{script + "OOM command not allowed", "OOM command not allowed"},
        std::pair{script + "ERR s3cret-word", "ERR ***"},
        std::pair{std::string(), "an error without a text"}}) {
    StubServer node([reply = reply](const RedisCommand& command) -> StubReply {
      return is(command, "EVAL") ? error(reply) : like_blank(command);
    });
    const auto with_password = ":s3cret-word@127.0.0.1:" + std::to_string(node.port());
    const auto client = start_client(options_for({"redis://" + with_password}));
    const Admin admin(client);
    const auto adopted = must(admin.adopt());
    CHECK(adopted[0].adoption == Adoption::failed);
    CHECK(adopted[0].detail.starts_with(words));
  }
}

TEST_CASE("keys that only look like locks are not listed, others for what they are") {
  const Fleet fleet({.nodes = 1});
  for (const auto* key :
       {"redlock:lock:{", "redlock:lock:{}", "redlock:lock:{a}b}", "redlock:line:{a}",
        "redlock:waiters:{a}", "redlock:lock:{a}:more", "redlock:lock:{real}"}) {
    fleet.run(0, {"HSET", key, "owner", "1"});
  }
  // Nobody here wrote these.
  fleet.run(0, {"SET", "redlock:lock:{text}", "x", "PX", "600000"});
  fleet.run(0, {"SET", "redlock:lock:{text-for-ever}", "x"});
  fleet.run(0, {"HSET", "redlock:lock:{two}", "one", "1", "other", "1"});
  const auto locks = must(Admin(start_client(fleet)).list()).locks;
  REQUIRE(locks.size() == 4);
  CHECK(locks[0].name == "real");
  CHECK(locks[0].kind == ListedAs::lock);
  CHECK_FALSE(locks[0].remaining.has_value());
  CHECK(locks[1].kind == ListedAs::foreign_type);
  CHECK(locks[1].remaining.value_or(0ms) > 1s);
  CHECK(locks[2].kind == ListedAs::foreign_type);
  CHECK_FALSE(locks[2].remaining.has_value());
  CHECK(locks[3].kind == ListedAs::several_owners);
  CHECK(locks[3].owner.empty());

  const auto printed = redlock(fleet, {"list"}).out;
  CHECK(contains(printed, "several owners"));
  CHECK(occurrences(printed, "never ends") == 3);
}

TEST_CASE("a list with more locks than the limit is the same from every order of the nodes") {
  const Fleet fleet({.nodes = 3});
  const auto client = start_client(fleet);
  std::vector<Lease> leases;
  for (int i = 100; i < 120; ++i) {
    leases.push_back(must(client.lock("lock-" + std::to_string(i)).acquire()));
  }
  const auto list = must(Admin(client).list("lock-*", 20));
  CHECK(list.locks.size() == 20);
  CHECK_FALSE(list.truncated);
  for (const auto& lock : list.locks) CHECK(lock.nodes_of_owner >= list.quorum);
  const auto part = must(Admin(client).list("lock-*", 7));
  CHECK(part.locks.size() == 7);
  CHECK(part.truncated);
}

TEST_CASE("a list of many locks is read in parts, and loses none where a node stops answering") {
  std::vector<std::string> keys;
  for (int i = 0; i < 2000; ++i) {
    keys.push_back(bulk("redlock:lock:{" + std::to_string(10'000 + i) + "}"));
  }
  // It names its locks, then says nothing more about any but the first few hundred.
  std::size_t answered = 0;
  StubServer node([&](const RedisCommand& command) -> StubReply {
    if (is(command, "SCAN")) return array({bulk("0"), array(keys)});
    if (is(command, "HGETALL") && command.back() == "redlock:node") return array({});
    if (!contains(command.back(), "redlock:lock:")) return like_redis(command);
    if (++answered > 700) return StubReply::silence();
    return is(command, "PTTL") ? integer(1000) : array({bulk("owner"), bulk("1")});
  });
  auto options = options_for({node.uri()});
  options.node_timeout = 2s;
  const auto client = start_client(options);
  const auto list = must(Admin(client).list("*", 5000));
  CHECK(list.locks.size() == 2000);
  CHECK(list.nodes[0].trouble.cause == Cause::timed_out);
  CHECK(list.locks.front().kind == ListedAs::lock);
  CHECK(list.locks.front().owner == "owner");
  CHECK(list.locks.back().kind == ListedAs::unread);
  CHECK(std::ranges::count_if(node.commands(), [](const RedisCommand& command) {
          return is(command, "HGETALL") && contains(command.back(), "redlock:lock:");
        }) < 1000);
}

TEST_CASE("a lock that a node named is not gone because that node falls silent") {
  const Fleet fleet({.nodes = 2});
  StubServer silent([](const RedisCommand& command) -> StubReply {
    if (is(command, "SCAN")) return array({bulk("0"), array({bulk("redlock:lock:{a}")})});
    const bool about_locks = std::ranges::any_of(
        command, [](const std::string& word) { return contains(word, ":{a}"); });
    return about_locks ? StubReply::silence() : like_blank(command);
  });
  auto options = options_for({fleet.uri(0), fleet.uri(1), silent.uri()});
  options.node_timeout = 2s;
  const auto client = start_client(options);
  const auto list = must(Admin(client).list());
  REQUIRE(list.locks.size() == 1);
  CHECK(list.locks[0].kind == ListedAs::unread);
  CHECK(list.locks[0].nodes_of_owner == 0);
  CHECK(list.nodes[0].trouble.cause == Cause::none);
  CHECK(list.nodes[2].trouble.cause == Cause::timed_out);
}

}  // namespace
}  // namespace redlock::testing
