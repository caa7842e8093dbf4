// SPDX-License-Identifier: MIT
// Each error that a real server gives a lock client, on one of three nodes: what its vote says,
// that the others grant the lock, and that the node is of use again by itself once the trouble is
// over. (Rights and scripts that run for long: api_rights_test.cpp. Wrong passwords:
// api_password_test.cpp.)
#include "cluster/node_client.hpp"
#include "integration/api_event_log.hpp"
#include "integration/net_server_kind.hpp"

namespace redlock::testing {
namespace {

using cluster::NodeClient;

void run(const Fleet& fleet, const std::vector<std::string>& command) {
  REQUIRE(fleet.run(0, command) == "OK");
}

/// How node 0 is brought into trouble and out of it.
struct ServerTrouble {
  std::string name;
  std::function<void(const Fleet&)> begin;
  std::function<void(const Fleet&)> end;
  std::vector<Cause> causes;  // the first one as a rule; the others where a handshake is refused
  std::vector<std::string> words;
  std::vector<std::string> settings = {};  // of redis.conf
};

void check(const ServerTrouble& trouble) {
  CAPTURE(trouble.name);
  const Fleet fleet({.nodes = 3, .node_settings = {{0, trouble.settings}}});
  auto options = options_for({fleet.uri(0)});
  options.node_timeout = 500ms;
  const Client of_one = start_client(options);
  const Client of_all = start_client(fleet);
  warm_up(of_all, fleet);
  REQUIRE(eventually([&] { return of_one.lock("warm-up").acquire().has_value(); }));
  trouble.begin(fleet);

  std::string said;
  const auto refused_as_expected = [&] {
    const auto lease = of_one.lock("alone").acquire();
    if (lease) return false;
    CHECK(lease.error().code == Errc::no_quorum);
    said = lease.error().message;
    const auto& vote = lease.error().votes.at(0);
    CHECK(vote.vote == Vote::unavailable);
    return std::ranges::count(trouble.causes, vote.cause) == 1 &&
           std::ranges::all_of(trouble.words,
                               [&](const auto& word) { return contains(said, word); });
  };
  CHECK_MESSAGE(eventually(refused_as_expected), said);
  must(must(of_all.lock("seat").acquire()).release());

  trouble.end(fleet);
  CHECK(eventually([&] { return of_one.lock("alone").acquire().has_value(); }));
  Lease lease = must(of_all.lock("seat").acquire({.wait = patience}));
  // A renewal heals the node, if it was not there in time for the grant.
  CHECK(eventually([&] { return lease.extend(40s) && is_locked_on(fleet, 0, "seat"); }));
}

using Command = std::vector<std::string>;

/// That these commands begin and end.
ServerTrouble trouble_by(const std::string& name, const std::vector<Command>& begin,
                         const std::vector<Command>& end, std::vector<Cause> causes,
                         std::vector<std::string> words) {
  const auto run_all = [](const std::vector<Command>& commands) {
    return [commands](const Fleet& fleet) {
      for (const Command& command : commands) fleet.run(0, command);
    };
  };
  return {name, run_all(begin), run_all(end), std::move(causes), std::move(words)};
}

ServerTrouble trouble_by_setting(const std::string& setting, const std::string& bad,
                                 const std::string& good, Cause cause,
                                 std::vector<std::string> words) {
  return trouble_by(setting, {{"CONFIG", "SET", setting, bad}}, {{"CONFIG", "SET", setting, good}},
                    {cause}, std::move(words));
}

TEST_CASE("a node that cannot serve says why and what to do, and is of use again afterwards") {
  check(trouble_by_setting("maxmemory", "1", "0", Cause::out_of_memory,
                           {"OOM ", "; raise maxmemory"}));
  check(trouble_by_setting("min-replicas-to-write", "1", "0", Cause::too_few_replicas,
                           {"NOREPLICAS ", "; set min-replicas-to-write 0"}));
  check(trouble_by("CLIENT PAUSE", {{"CLIENT", "PAUSE", "600000", "WRITE"}},
                   {{"CLIENT", "UNPAUSE"}}, {Cause::timed_out},
                   {"no answer within the node timeout"}));
  // The marker, which is read when a connection begins, is a key of another kind.
  check(trouble_by(
      "WRONGTYPE",
      {{"SET", "redlock:node", "of somebody else"},
       {"CLIENT", "KILL", "TYPE", "normal"},
       {"CLIENT", "KILL", "TYPE", "pubsub"}},
      {{"DEL", "redlock:node"}}, {Cause::server_error},
      {"WRONGTYPE ", "; a key of redlock:* there is another program's: find its writer"}));
  for (const std::string stale : {"yes", "no"}) {
    check(trouble_by(
        "replica, serves stale data: " + stale,
        {{"CONFIG", "SET", "replica-serve-stale-data", stale}, {"REPLICAOF", "127.0.0.1", "1"}},
        {{"REPLICAOF", "NO", "ONE"}}, {Cause::read_only, Cause::master_down, Cause::incompatible},
        {"replica", "independent masters"}));
  }
}

TEST_CASE("a node that could not save says what to repair") {
  const auto save = [](const Fleet& fleet, const std::string& status) {
    REQUIRE(eventually([&] {
      fleet.run(0, {"BGSAVE"});
      return info_of(fleet, 0, "persistence", "rdb_last_bgsave_status") == status;
    }));
  };
  // A directory stands where the file is to be.
  const auto file = [](const Fleet& fleet) {
    const std::string reply = fleet.run(0, {"CONFIG", "GET", "dir"});
    return std::filesystem::path(reply.substr(reply.find('\n') + 1)) / "dump.rdb";
  };
  const auto begin = [&](const Fleet& fleet) {
    std::filesystem::create_directory(file(fleet));
    run(fleet, {"CONFIG", "SET", "save", "86400 1000000"});
    run(fleet, {"CONFIG", "SET", "stop-writes-on-bgsave-error", "yes"});
    save(fleet, "err");
  };
  const auto end = [&](const Fleet& fleet) {
    std::filesystem::remove(file(fleet));
    save(fleet, "ok");
  };
  check({"bgsave",
         begin,
         end,
         {Cause::write_error},
         {"MISCONF ", "; make room on its disk, or repair it"}});
}

TEST_CASE("a node whose password is missing says where to give it") {
  const Fleet fleet({.nodes = 3, .password = "right"});
  auto uris = fleet.uris();
  uris[0] = "redis://127.0.0.1:" + std::to_string(fleet.port(0));
  const auto lease = start_client(options_for({uris[0]})).lock("alone").acquire();
  REQUIRE(code_of(lease) == Errc::no_quorum);
  CHECK(lease.error().is_configuration());
  CHECK(lease.error().votes.at(0).cause == Cause::authentication);
  CHECK(contains(lease.error().message,
                 "; give its user and password in the URI, or a password file"));
  must(start_client(options_for(uris)).lock("seat").acquire());
}

TEST_CASE("a node that has too many clients says what to raise") {
  std::optional<NodeClient> only;
  const auto begin = [&](const Fleet& fleet) {
    only.emplace(fleet.port(0));
    REQUIRE(only->command({"CONFIG", "SET", "maxclients", "1"}) == "OK");
    only->command({"CLIENT", "KILL", "TYPE", "normal"});
    only->command({"CLIENT", "KILL", "TYPE", "pubsub"});
  };
  const auto end = [&](const Fleet&) {
    REQUIRE(only->command({"CONFIG", "SET", "maxclients", "1000"}) == "OK");
  };
  check({"maxclients",
         begin,
         end,
         {Cause::server_error, Cause::connection_lost, Cause::connection_failed},
         {"ERR max number of clients reached", "; raise maxclients"}});
}

/// Older servers than Redis 7 have the command DEBUG, and no such setting.
std::vector<std::string> with_debug(std::vector<std::string> settings) {
  if (is_redis_7(three_nodes())) settings.emplace_back("enable-debug-command yes");
  return settings;
}

TEST_CASE("a node that loads a large append-only file says so") {
  // Again and again: a machine may stand still for as long as one load takes.
  std::atomic<bool> over = false;
  std::thread loader;
  const auto begin = [&](const Fleet& fleet) {
    run(fleet, {"DEBUG", "POPULATE", "1000", "key", "20000"});
    run(fleet, {"CONFIG", "SET", "appendonly", "yes"});
    REQUIRE(eventually([&] {
      return info_of(fleet, 0, "persistence", "aof_rewrite_in_progress") == "0" &&
             info_of(fleet, 0, "persistence", "aof_rewrite_scheduled") == "0";
    }));
    loader = std::thread([&over, port = fleet.port(0)] {
      while (!over) NodeClient(port).command({"DEBUG", "LOADAOF"});
    });
  };
  const auto end = [&](const Fleet&) {
    over = true;
    loader.join();
  };
  check({"loading",
         begin,
         end,
         {Cause::loading},
         {"LOADING ", "; wait: it votes when it has read its data"},
         with_debug({"key-load-delay 1000", "rdbcompression no"})});
}

Fleet fleet_without(const std::string& command) {
  return Fleet({.nodes = 3, .node_settings = {{0, {"rename-command " + command + " it-is-gone"}}}});
}

/// Fleet needs INFO to start a node, so this one reads its configuration anew once it runs: the
/// same process executes the server again.
Fleet fleet_without_info() {
  Fleet fleet({.nodes = 3, .node_settings = {{0, with_debug({})}}});
  std::ofstream(fleet.directory(0) / "redis.conf", std::ios::app)
      << "\nrename-command INFO it-is-gone\n";
  const auto answer = [&](const std::vector<std::string>& command) {
    try {
      return NodeClient(fleet.port(0)).command(command);
    } catch (const cluster::FleetError& error) {
      return std::string(error.what());
    }
  };
  answer({"DEBUG", "CRASH-AND-RECOVER", "0"});
  REQUIRE(eventually([&] { return contains(answer({"INFO"}), "unknown command"); }));
  return fleet;
}

TEST_CASE("a node with a renamed command says what is not done, or cannot serve without it") {
  struct Case {
    std::string command;
    bool is_needed;
    std::string warning = {};
  };
  const std::vector<Case> cases{
      {"EVALSHA", true},
      {"HSET", true},
      {"HGETALL", true},
      {"SCRIPT", true},
      {"HELLO", false},  // those who wait ask again; a lock lacks nothing
      {"CONFIG", false, "it refuses CONFIG GET, so it is not known whether it is durable (ERR "},
      {"INFO", false, "it refuses INFO, so its version, role and identity are not checked (ERR "}};
  for (const Case& renamed : cases) {
    CAPTURE(renamed.command);
    const Fleet fleet =
        renamed.command == "INFO" ? fleet_without_info() : fleet_without(renamed.command);
    const auto log = std::make_shared<EventLog>();
    auto options = options_for({fleet.uri(0)});
    options.observer = log;
    const Client client = start_client(options);
    auto lease = client.lock("seat").acquire();
    CHECK(lease.has_value() != renamed.is_needed);
    std::string said;
    if (renamed.is_needed) {
      REQUIRE(code_of(lease) == Errc::no_quorum);
      CHECK(lease.error().is_configuration());
      CHECK(lease.error().votes.at(0).cause == Cause::permission);
      said = lease.error().message;
    } else {
      must(lease->release());
      REQUIRE(log->soon_has("up "));
      said = log->lines("up ").back();
    }
    CHECK_MESSAGE(contains(said, renamed.warning), said);
    const bool advises = contains(said, "; do not rename the commands of a lock node");
    CHECK_MESSAGE(advises == (renamed.is_needed || !renamed.warning.empty()), said);
    must(start_client(fleet).lock("of all").acquire());
  }
}

}  // namespace
}  // namespace redlock::testing
