// SPDX-License-Identifier: MIT
// The users of cluster/users.acl on real servers: with exactly those rights everything can be done,
// and where one of them is missing a sentence says which. A right that nobody misses has no place
// in the list.
#include "integration/api_event_log.hpp"
#include "integration/net_server_kind.hpp"

namespace redlock::testing {
namespace {

struct User {
  std::string name;
  std::string password;
  std::vector<std::string> rights;  // without which it may do nothing
};

/// As the file has them, in its order.
const std::vector<User>& users() {
  static const auto all = [] {
    std::ifstream file(REDLOCK_SOURCE_DIR "/cluster/users.acl");
    std::vector<User> found;
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string word;
      words >> word;
      if (word != "user") continue;
      User user;
      words >> user.name;
      if (user.name == "default") continue;  // it is off: fleet_library_test.cpp
      while (words >> word) {
        const bool right = word[0] == '&' || word[0] == '~' || word[0] == '+';
        if (right) user.rights.push_back(word);
        if (word[0] == '>') user.password = word.substr(1);
      }
      found.push_back(user);
    }
    return found;
  }();
  return all;
}
const User& program() {
  return users().at(0);
}
const User& administrator() {
  return users().at(1);
}

/// The user has its rights but this one. Not by taking it away: Redis 6.2 cannot for subcommands.
void permit(const Fleet& fleet, const User& user, const std::string& but = {}) {
  std::vector<std::string> command{"ACL",           "SETUSER",   user.name,
                                   "reset",         "on",        ">" + user.password,
                                   "resetchannels", "resetkeys", "-@all"};
  std::ranges::copy_if(user.rights, std::back_inserter(command),
                       [&](const std::string& right) { return right != but; });
  run_on_all(fleet, command);
}

Client client_of(const Fleet& fleet, const User& user, std::shared_ptr<Observer> observer = {}) {
  auto options = careful_options_for(uris_as(user.name + ":" + user.password, fleet));
  options.fence_floor = FenceFloor::none;  // the fence is counted up, and not only set
  options.observer = std::move(observer);
  return start_client(options);
}

Fleet adopted_fleet() {
  Fleet fleet({.nodes = 3, .persistence = cluster::Persistence::always, .adopted = true});
  permit(fleet, program());
  permit(fleet, administrator());
  return fleet;
}

/// What is said to a program that uses every command, and to its observer.
std::string said_to_a_program(const Fleet& fleet) {
  const auto log = std::make_shared<EventLog>();
  const Client client = client_of(fleet, program(), log);
  std::string said;
  const auto note = [&](const auto& result) {
    if (!result) said += result.error().message + '\n';
  };
  auto first = client.lock("first").acquire();
  note(first);
  if (first) {
    note(client.lock("first", Owner::create()).acquire());  // it is held
    note(first->extend(40s));
    note(first->release());
    run_on_all(fleet, {"SCRIPT", "FLUSH"});
    note(client.lock("second").acquire());
  }
  for (const std::string& line : log->lines()) said += line + '\n';
  return said;
}

std::string said_by_the_doctor(const Fleet& fleet) {
  const Client client = client_of(fleet, administrator());
  const auto examination = must(Admin(client).examine());
  std::string text;
  for (const auto& node : examination.nodes) {
    for (const auto& problem : node.problems) text += problem.what + '\n';
  }
  return text;
}

bool names(const std::string& text, const std::string& right) {
  const auto at = text.find(' ' + right);
  if (at == std::string::npos) return false;
  const auto next = text.find_first_of(" ;,)\n", at + 1);
  return text.substr(at + 1, next - at - 1) == right;
}

/// Before Redis 7 a refusal names a command without its subcommand.
std::string as_named_by(const Fleet& fleet, const std::string& right) {
  return is_redis_7(fleet) ? right : right.substr(0, right.find('|'));
}

TEST_CASE("the users of users.acl differ by what only an administrator does") {
  REQUIRE(users().size() == 2);
  std::vector<std::string> more;
  std::ranges::set_difference(administrator().rights, program().rights, std::back_inserter(more));
  CHECK(more == std::vector<std::string>{"+ping", "+scan", "+script|kill"});
  CHECK(administrator().rights.size() == program().rights.size() + 3);
}

TEST_CASE("with the program's rights and no other, everything can be done with locks") {
  const Fleet fleet = adopted_fleet();
  CHECK(!contains(said_to_a_program(fleet), "permit"));
  const Client client = client_of(fleet, program());
  const Client other = client_of(fleet, program());
  warm_up(client, fleet);
  warm_up(other, fleet);
  Lease lease = must(client.lock("seat").acquire());
  const auto take_and_release = [](const Client& by) {
    return must(must(by.lock("seat", Owner::create()).acquire({.wait = patience})).release());
  };
  auto mine = std::async(std::launch::async, take_and_release, std::cref(client));
  auto another = std::async(std::launch::async, take_and_release, std::cref(other));
  REQUIRE(soon_waited_for(fleet, "seat", 2));
  fleet.run(2, {"DEL", "redlock:lock:{seat}"});
  REQUIRE(eventually([&] { return lease.extend(40s) && nodes_with_lock(fleet, "seat") == 3; }));
  CHECK(must(lease.release()) == Released::released);
  CHECK(get_soon(mine) == Released::released);
  CHECK(get_soon(another) == Released::released);
  CHECK(contains(fleet.run(0, {"INFO", "commandstats"}), "cmdstat_publish:calls="));

  RedLock again = client.lock("again", Owner::create());
  for (std::size_t turn = 1; turn <= 2; ++turn) {
    CHECK(must(get_soon(again.async_try_lock())) == turn);
  }
}

TEST_CASE("with the administrator's rights and no other, nodes can be adopted, shown and mended") {
  const Fleet fleet({.nodes = 3, .persistence = cluster::Persistence::always});
  permit(fleet, administrator());
  const Client client = client_of(fleet, administrator());
  const Admin admin(client);
  for (const auto& node : must(admin.adopt())) CHECK(node.adoption == Adoption::written);
  Lease lease = must(client.lock("seat").acquire({.wait = patience}));
  CHECK(must(admin.inspect("seat")).verdict == Verdict::held);
  CHECK(must(admin.list()).locks.size() == 1);
  CHECK(must(admin.force_release("seat")).outcome == Forced::released);
  const auto examination = must(admin.examine());
  CHECK(examination.fitness() == Fitness::healthy);
  for (const auto& node : examination.nodes) {
    CHECK(node.missing_rights.empty());
    CHECK(node.problems.empty());
  }
}

TEST_CASE("each right that is missing is named to the program, and by the doctor") {
  // No call fails for them: locks are given back later, waiters are served in no order.
  const std::vector<std::string> for_the_doctor{"+client|kill", "+del",     "+get",  "+hdel",
                                                "+hmget",       "+publish", "+zadd", "+zrange",
                                                "+zrank",       "+zrem"};
  const Fleet fleet = adopted_fleet();
  for (const std::string& right : program().rights) {
    CAPTURE(right);
    permit(fleet, program(), right);
    const std::string said = said_to_a_program(fleet);
    const std::string named = as_named_by(fleet, right);
    if (std::ranges::count(for_the_doctor, right) == 0) CHECK_MESSAGE(names(said, named), said);
    CHECK_MESSAGE(contains(said, "redis://redlock@127.0.0.1:"), said);
    // What could not be given back.
    run_on_all(fleet, {"DEL", "redlock:lock:{first}", "redlock:lock:{second}"});
  }
  for (const std::string& right : administrator().rights) {
    if (right == "+script|kill") continue;  // nothing shows it but to end a script
    CAPTURE(right);
    permit(fleet, administrator(), right);
    const std::string said = said_by_the_doctor(fleet);
    // The doctor has its own list, but for what a node needs to be asked at all.
    CHECK_MESSAGE((names(said, right) || names(said, as_named_by(fleet, right))), said);
  }
}

/// What redis-cli shows to this user.
std::string redis_cli(const Fleet& fleet, const User& user,
                      const std::vector<std::string>& command) {
  cluster::NodeClient client(fleet.port(0), patience);
  REQUIRE(client.command({"AUTH", user.name, user.password}) == "OK");
  return client.command(command);
}

TEST_CASE("the administrator ends a script that keeps a node busy, and a program may not") {
  Fleet fleet({.nodes = 1,
               .persistence = cluster::Persistence::always,
               .adopted = true,
               .settings = {"lua-time-limit 1"}});
  permit(fleet, program());
  permit(fleet, administrator());
  const Client client = client_of(fleet, program());
  must(must(client.lock("seat").acquire({.wait = patience})).release());
  const auto keep_busy = [&](const std::string& script) {
    auto reply = std::async(std::launch::async, [&fleet, script] {
      return cluster::NodeClient(fleet.port(0), patience).command({"EVAL", script, "0"});
    });
    REQUIRE(eventually([&] {
      const auto lease = client.lock("seat").acquire();
      return !lease && lease.error().votes.at(0).cause == Cause::busy &&
             contains(lease.error().message, "BUSY ") &&
             contains(lease.error().message,
                      "; end the script with SCRIPT KILL or FUNCTION KILL, ");
    }));
    return reply;
  };
  const auto votes_again = [&] {
    return eventually([&] { return client.lock("seat").acquire().has_value(); });
  };
  const std::vector<std::string> script_kill{"SCRIPT", "KILL"};

  auto endless = keep_busy("while true do end");
  CHECK(contains(redis_cli(fleet, program(), script_kill), "NOPERM "));
  CHECK(redis_cli(fleet, administrator(), script_kill) == "OK");
  CHECK(contains(get_soon(endless), "killed"));
  CHECK(votes_again());

  auto writing = keep_busy("redis.call('set', 'redlock:unwritten', '') while true do end");
  CHECK(contains(redis_cli(fleet, administrator(), script_kill), "UNKILLABLE "));
  CHECK_THROWS(fleet.run(0, {"SHUTDOWN", "NOSAVE"}));  // it closes the connection
  CHECK_THROWS(get_soon(writing));
  fleet.restart(0);
  CHECK(fleet.run(0, {"EXISTS", "redlock:unwritten"}) == "0");
  permit(fleet, program());
  CHECK(votes_again());
}

/// As users.acl says of applications that are not to touch each other's locks.
User user_of(const std::string& application) {
  std::vector<std::string> rights;
  for (const auto& right : program().rights) {
    if (right != "~redlock:*") rights.push_back(right);
  }
  for (const std::string& key :
       {"lock:{" + application + ":*", "line:{" + application + ":*",
        "waiters:{" + application + ":*", "forced:{" + application + ":*", std::string("fence:*"),
        std::string("node"), std::string("node:notes"), std::string("node:clock"),
        std::string("node:nothing")}) {
    rights.push_back("~redlock:" + key);
  }
  return {application, "secret-of-" + application, rights};
}

TEST_CASE("an application with a user of its own has its locks, and no other one's") {
  const Fleet fleet({.nodes = 3, .persistence = cluster::Persistence::always, .adopted = true});
  permit(fleet, user_of("app1"));
  permit(fleet, user_of("app2"));
  const Client first = client_of(fleet, user_of("app1"));
  const Client other = client_of(fleet, user_of("app1"));
  const Client stranger = client_of(fleet, user_of("app2"));
  warm_up(first, fleet, "app1:warm");
  warm_up(other, fleet, "app1:warm");
  warm_up(stranger, fleet, "app2:warm");

  Lease lease = must(first.lock("app1:seat").acquire());
  auto waiting = std::async(std::launch::async, [&] {
    return must(must(other.lock("app1:seat").acquire({.wait = patience})).release());
  });
  REQUIRE(soon_waited_for(fleet, "app1:seat", 1));
  const auto refused = stranger.lock("app1:seat").acquire();
  CHECK(code_of(refused) == Errc::no_quorum);
  CHECK(refused.error().is_configuration());
  CHECK(must(stranger.lock("app2:seat").acquire()).valid());
  fleet.run(2, {"DEL", "redlock:lock:{app1:seat}"});
  REQUIRE(eventually([&] { return lease.extend(40s) && is_locked_on(fleet, 2, "app1:seat"); }));
  CHECK(must(lease.release()) == Released::released);
  CHECK(get_soon(waiting) == Released::released);

  Lease again = must(first.lock("app1:seat").acquire());
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"DEL", "redlock:lock:{app1:seat}"},
        {"SET", "redlock:forced:{app1:seat}:" + again.owner(), "", "PX", "60000"},
        {"ZREM", "redlock:line:{app1:seat}", "x"},
        {"EVAL", "return redis.call('del', 'redlock:lock:{app1:seat}')", "0"}}) {
    CHECK(contains(redis_cli(fleet, user_of("app2"), command), "(error) "));
  }
  CHECK(must(again.release()) == Released::released);
}

TEST_CASE("the doctor calls a node unsafe that lets anybody in, or shows another user's password") {
  const Fleet fleet({.nodes = 3, .persistence = cluster::Persistence::always, .adopted = true});
  permit(fleet, administrator());
  const auto examined = [&] { return must(Admin(client_of(fleet, administrator())).examine()); };
  CHECK(examined().fitness() == Fitness::healthy);  // protected-mode keeps other machines out
  const auto set_everywhere = [&](const std::string& setting, const std::string& value) {
    run_on_all(fleet, {"CONFIG", "SET", setting, value});
  };
  set_everywhere("protected-mode", "no");
  CHECK(examined().fitness() == Fitness::healthy);  // bound to loopback, as all nodes of tests are
  // No address of this machine, which `-` permits: only the setting says that they are reached.
  set_everywhere("bind", "127.0.0.1 -192.0.2.1");
  const auto open = examined();
  CHECK(open.fitness() == Fitness::unsafe);
  CHECK(contains(said_by_the_doctor(fleet), "its default user is on without a password"));
  auto options = options_for(fleet.uris());
  CHECK(must(Admin(start_client(options)).examine()).nodes.at(0).open);  // by that user itself

  fleet.run(0, {"ACL", "SETUSER", "default", "-@all", "+config|set", "+acl"});
  CHECK_FALSE(examined().nodes.at(0).open);
  CHECK(examined().nodes.at(1).open);
  set_everywhere("masterauth", "sesame");
  const auto readable = examined();
  CHECK(readable.nodes.at(0).readable_passwords == std::vector<std::string>{"masterauth"});
  CHECK(readable.nodes.at(0).problems.size() == 1);
  CHECK(readable.nodes.at(0).problems.at(0).severity == Severity::error);
  CHECK(contains(said_by_the_doctor(fleet), "the password in masterauth by CONFIG GET"));
  CHECK_FALSE(contains(said_by_the_doctor(fleet), "sesame"));
  set_everywhere("masterauth", "");
  set_everywhere("requirepass", "sesame");  // from now on a fleet's own command needs it
  const auto closed = examined();
  for (const auto& node : closed.nodes) {
    CHECK_FALSE(node.open);
    CHECK(node.readable_passwords == std::vector<std::string>{"requirepass"});
  }
}

TEST_CASE("another database than 0 needs one right more, which is named") {
  const Fleet fleet = adopted_fleet();
  auto options = options_for(uris_as("redlock:change-me", fleet));
  for (auto& uri : options.nodes) uri += "/1";
  const auto refused = start_client(options).lock("seat").acquire();
  CHECK(code_of(refused) == Errc::no_quorum);
  CHECK_MESSAGE(names(refused.error().message, "+select"), refused.error().message);
  run_on_all(fleet, {"ACL", "SETUSER", "redlock", "+select"});
  CHECK(start_client(options).lock("seat").acquire().has_value());
}

}  // namespace
}  // namespace redlock::testing
