// SPDX-License-Identifier: MIT
// Each error that a real server gives a lock client, on one of three nodes: what its vote says,
// that the others grant the lock, and that the node is of use again by itself once the trouble is
// over.
#include "cluster/node_client.hpp"
#include "integration/api_fixture.hpp"
#include "integration/net_server_kind.hpp"

namespace redlock::testing {
namespace {

using cluster::NodeClient;

/// The value of a field of INFO.
std::string told(const Fleet& fleet, const std::string& section, const std::string& field) {
  const std::string text = fleet.run(0, {"INFO", section});
  const auto at = text.find(field + ":");
  if (at == std::string::npos) return {};
  const auto begin = at + field.size() + 1;
  return text.substr(begin, text.find_first_of("\r\n", begin) - begin);
}

void run_on(const Fleet& fleet, std::size_t node, const std::vector<std::string>& command) {
  REQUIRE(fleet.run(node, command) == "OK");
}
void run(const Fleet& fleet, const std::vector<std::string>& command) {
  run_on(fleet, 0, command);
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

TEST_CASE("a node whose memory is full says what to raise") {
  check({.name = "maxmemory",
         .begin =
             [](const Fleet& fleet) {
               run(fleet, {"CONFIG", "SET", "maxmemory", "1"});
             },
         .end =
             [](const Fleet& fleet) {
               run(fleet, {"CONFIG", "SET", "maxmemory", "0"});
             },
         .causes = {Cause::out_of_memory},
         .words = {"OOM ", "; raise maxmemory"}});
}

TEST_CASE("a node that could not save says what to repair") {
  const auto save = [](const Fleet& fleet, const std::string& status) {
    REQUIRE(eventually([&] {
      fleet.run(0, {"BGSAVE"});
      return told(fleet, "persistence", "rdb_last_bgsave_status") == status;
    }));
  };
  // A directory stands where the file is to be.
  const auto file = [](const Fleet& fleet) {
    const std::string reply = fleet.run(0, {"CONFIG", "GET", "dir"});
    return std::filesystem::path(reply.substr(reply.find('\n') + 1)) / "dump.rdb";
  };
  check({.name = "bgsave",
         .begin =
             [&](const Fleet& fleet) {
               std::filesystem::create_directory(file(fleet));
               run(fleet, {"CONFIG", "SET", "save", "86400 1000000"});
               run(fleet, {"CONFIG", "SET", "stop-writes-on-bgsave-error", "yes"});
               save(fleet, "err");
             },
         .end =
             [&](const Fleet& fleet) {
               std::filesystem::remove(file(fleet));
               save(fleet, "ok");
             },
         .causes = {Cause::write_error},
         .words = {"MISCONF ", "; make room on its disk, or repair it"}});
}

TEST_CASE("a node that is stuck in a script says how that is ended") {
  std::thread stuck;
  check({.name = "script",
         .begin =
             [&](const Fleet& fleet) {
               stuck = std::thread([port = fleet.port(0)] {
                 NodeClient(port).command({"EVAL", "while true do end", "0"});
               });
             },
         .end =
             [&](const Fleet& fleet) {
               run(fleet, {"SCRIPT", "KILL"});
               stuck.join();
             },
         .causes = {Cause::busy},
         .words = {"BUSY ", "; end the script with SCRIPT KILL or FUNCTION KILL, "},
         .settings = {"lua-time-limit 1"}});
}

TEST_CASE("a node that has become a replica says so, whether or not it has its master") {
  for (const char* stale : {"yes", "no"}) {
    check({.name = std::string("replica, serves stale data: ") + stale,
           .begin =
               [&](const Fleet& fleet) {
                 run(fleet, {"CONFIG", "SET", "replica-serve-stale-data", stale});
                 run(fleet, {"REPLICAOF", "127.0.0.1", "1"});
               },
           .end =
               [](const Fleet& fleet) {
                 run(fleet, {"REPLICAOF", "NO", "ONE"});
               },
           .causes = {Cause::read_only, Cause::master_down, Cause::incompatible},
           .words = {"replica", "independent masters"}});
  }
}

TEST_CASE("a node that needs replicas and has none says what to set") {
  check({.name = "min-replicas-to-write",
         .begin =
             [](const Fleet& fleet) {
               run(fleet, {"CONFIG", "SET", "min-replicas-to-write", "1"});
             },
         .end =
             [](const Fleet& fleet) {
               run(fleet, {"CONFIG", "SET", "min-replicas-to-write", "0"});
             },
         .causes = {Cause::too_few_replicas},
         .words = {"NOREPLICAS ", "; set min-replicas-to-write 0"}});
}

TEST_CASE("a node whose user lacks a right says which") {
  check({.name = "ACL",
         .begin =
             [](const Fleet& fleet) {
               run(fleet, {"ACL", "SETUSER", "default", "-hset"});
             },
         .end =
             [](const Fleet& fleet) {
               run(fleet, {"ACL", "SETUSER", "default", "+hset"});
             },
         .causes = {Cause::permission},
         .words = {"; permit +hset"}});
}

TEST_CASE("a node with a key of another kind in the place of its marker says what to delete") {
  check({.name = "WRONGTYPE",
         .begin =
             [](const Fleet& fleet) {
               run(fleet, {"SET", "redlock:node", "of somebody else"});
               // It is read when a connection begins.
               for (const char* type : {"normal", "pubsub"}) {
                 fleet.run(0, {"CLIENT", "KILL", "TYPE", type});
               }
             },
         .end =
             [](const Fleet& fleet) {
               REQUIRE(fleet.run(0, {"DEL", "redlock:node"}) == "1");
             },
         .causes = {Cause::server_error},
         .words = {"WRONGTYPE ",
                   "; a key of redlock:* there is another program's: find its writer"}});
}

TEST_CASE("a node whose password is missing or wrong says where to correct it") {
  const Fleet fleet({.nodes = 3, .password = "right"});
  const std::string port = std::to_string(fleet.port(0));
  const std::pair<std::string, std::string> cases[] = {
      {"redis://127.0.0.1:" + port, "; give its user and password in the URI, or a password file"},
      {"redis://:wrong@127.0.0.1:" + port, "; correct the URI or the password file"},
  };
  for (const auto& entry : cases) {
    const std::string& uri = entry.first;
    const std::string& remedy = entry.second;
    const auto lease = start_client(options_for({uri})).lock("alone").acquire();
    REQUIRE(code_of(lease) == Errc::no_quorum);
    CHECK(lease.error().is_configuration());
    CHECK(lease.error().votes.at(0).cause == Cause::authentication);
    CHECK_MESSAGE(contains(lease.error().message, remedy), lease.error().message);
    auto uris = fleet.uris();
    uris[0] = uri;
    must(must(start_client(options_for(uris)).lock("seat").acquire()).release());
  }
}

TEST_CASE("a node that is paused does not answer in time, until it is no longer") {
  check({.name = "CLIENT PAUSE",
         .begin =
             [](const Fleet& fleet) {
               run(fleet, {"CLIENT", "PAUSE", "600000", "WRITE"});
             },
         .end =
             [](const Fleet& fleet) {
               run(fleet, {"CLIENT", "UNPAUSE"});
             },
         .causes = {Cause::timed_out},
         .words = {"no answer within the node timeout"}});
}

TEST_CASE("a node that has too many clients says what to raise") {
  std::optional<NodeClient> only;
  check({.name = "maxclients",
         .begin =
             [&](const Fleet& fleet) {
               only.emplace(fleet.port(0));
               REQUIRE(only->command({"CONFIG", "SET", "maxclients", "1"}) == "OK");
               only->command({"CLIENT", "KILL", "TYPE", "normal"});
               only->command({"CLIENT", "KILL", "TYPE", "pubsub"});
             },
         .end =
             [&](const Fleet&) {
               REQUIRE(only->command({"CONFIG", "SET", "maxclients", "1000"}) == "OK");
             },
         .causes = {Cause::server_error, Cause::connection_lost, Cause::connection_failed},
         .words = {"ERR max number of clients reached", "; raise maxclients"}});
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
  check({.name = "loading",
         .begin =
             [&](const Fleet& fleet) {
               run(fleet, {"DEBUG", "POPULATE", "1000", "key", "20000"});
               run(fleet, {"CONFIG", "SET", "appendonly", "yes"});
               REQUIRE(eventually([&] {
                 return told(fleet, "persistence", "aof_rewrite_in_progress") == "0" &&
                        told(fleet, "persistence", "aof_rewrite_scheduled") == "0";
               }));
               loader = std::thread([&over, port = fleet.port(0)] {
                 while (!over) NodeClient(port).command({"DEBUG", "LOADAOF"});
               });
             },
         .end =
             [&](const Fleet&) {
               over = true;
               loader.join();
             },
         .causes = {Cause::loading},
         .words = {"LOADING ", "; wait: it votes when it has read its data"},
         .settings = with_debug({"key-load-delay 1000", "rdbcompression no"})});
}

TEST_CASE("what a node forgets of scripts and connections costs no vote") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  warm_up(client, fleet);
  Lease lease = must(client.lock("seat").acquire());
  for (std::size_t node = 0; node < 3; ++node) run_on(fleet, node, {"SCRIPT", "FLUSH"});
  must(lease.extend(40s));
  must(must(client.lock("other").acquire()).release());
  for (std::size_t node = 0; node < 3; ++node) {
    for (const char* type : {"normal", "pubsub"}) {
      fleet.run(node, {"CLIENT", "KILL", "TYPE", type});
    }
  }
  CHECK(eventually([&] { return lease.extend(40s) && nodes_with_lock(fleet, "seat") == 3; }));
  CHECK(must(lease.release()) == Released::released);
}

/// What the client was told of the node when it came up.
class LastWarning final : public Observer {
 public:
  void on_node_up(std::string_view, std::string_view warning) override {
    const std::scoped_lock lock(mutex_);
    text_ = warning;
  }
  [[nodiscard]] std::optional<std::string> text() const {
    const std::scoped_lock lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<std::string> text_;
};

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

TEST_CASE("a node that lacks a renamed command which a lock needs says not to rename it") {
  for (const std::string command : {"EVALSHA", "HSET", "HGETALL", "SCRIPT"}) {
    CAPTURE(command);
    const Fleet fleet = fleet_without(command);
    const auto lease = start_client(options_for({fleet.uri(0)})).lock("seat").acquire();
    REQUIRE(code_of(lease) == Errc::no_quorum);
    CHECK(lease.error().is_configuration());
    CHECK(lease.error().votes.at(0).cause == Cause::permission);
    CHECK_MESSAGE(contains(lease.error().message, "; do not rename the commands of a lock node"),
                  lease.error().message);
    must(must(start_client(fleet).lock("seat").acquire()).release());
  }
}

TEST_CASE("a node with a renamed command that a lock can do without says what is not done") {
  const std::pair<std::string, std::string> cases[] = {
      {"HELLO", ""},  // those who wait ask again; a lock lacks nothing
      {"CONFIG", "it refuses CONFIG GET, so it is not known whether it is durable (ERR "},
      {"INFO", "it refuses INFO, so its version, role and identity are not checked (ERR "},
  };
  for (const auto& entry : cases) {
    const std::string& what = entry.second;
    CAPTURE(entry.first);
    const Fleet fleet = entry.first == "INFO" ? fleet_without_info() : fleet_without(entry.first);
    auto options = options_for({fleet.uri(0)});
    const auto warning = std::make_shared<LastWarning>();
    options.observer = warning;
    const Client client = start_client(options);
    must(must(client.lock("seat").acquire()).release());
    REQUIRE(eventually([&] { return warning->text().has_value(); }));
    const std::string text = *warning->text();
    CHECK_MESSAGE(contains(text, what), text);
    const bool advises = contains(text, "; do not rename the commands of a lock node");
    CHECK_MESSAGE(advises == !what.empty(), text);
    must(must(start_client(fleet).lock("seat").acquire()).release());
  }
}

}  // namespace
}  // namespace redlock::testing
