// SPDX-License-Identifier: MIT
//
// Real redis-server processes for tests, benches, the demo and `redlock fleet`: started on free
// loopback ports, killed, paused, resumed, restarted and added one by one. A Fleet made by its
// constructor leaves no process and no directory behind, not even when its program is killed with
// SIGKILL; one made by start_detached() lives on until down().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "cluster/fleet_error.hpp"
#include "cluster/free_port.hpp"
#include "cluster/node.hpp"
#include "cluster/reaper.hpp"

namespace redlock::cluster {

struct FleetRecord;

enum class Persistence {
  none,    // nothing reaches the disk: fast, and a restarted node has forgotten everything
  always,  // as cluster/redis.conf says: every write is on disk before it is answered
};

enum class Data { kept, empty };

/// PEM files, of a CertificateAuthority for example.
struct FleetTls {
  std::filesystem::path authority;    ///< of the clients' certificates
  std::filesystem::path certificate;  ///< of every node
  std::filesystem::path key;
  bool clients_need_certificates = false;
};

struct FleetOptions {
  std::size_t nodes = 5;
  Persistence persistence = Persistence::none;

  /// The port of the first node, the others on those that follow; 0: free ones, found by chance.
  std::uint16_t first_port = 0;

  /// Each node has its marker, for a longest lease of 60 s, as after `redlock adopt`. With
  /// Persistence::always it may then vote at once, otherwise once it has run for a minute.
  bool adopted = false;

  /// Each node also listens on a Unix socket; see Fleet::unix_uri.
  bool unix_sockets = false;

  /// Each node's port speaks TLS, and nothing else; the fleet itself uses the Unix socket. Not for
  /// a detached fleet, whose record does not say so.
  std::optional<FleetTls> tls = {};

  /// The password of the default user; empty: none.
  std::string password = {};

  /// Further lines of redis.conf for every node, such as "user alice on >secret ~* +@all", and for
  /// single nodes, by index. A later line wins over an earlier one.
  std::vector<std::string> settings = {};
  std::map<std::size_t, std::vector<std::string>> node_settings = {};

  /// How long starting all nodes may take.
  std::chrono::milliseconds start_timeout = std::chrono::seconds(60);
};

/// Every call throws FleetError, with one sentence that says what to do, when it fails, and
/// std::out_of_range for a node that does not exist. Here nodes are counted from 0, in messages and
/// by the command from 1. Different threads and programs may use different nodes at the same time.
class Fleet {
 public:
  /// Starts the nodes, all at once, and returns when every one of them answers. The program
  /// redis-server is taken from $REDLOCK_REDIS_SERVER, otherwise from PATH.
  explicit Fleet(const FleetOptions& options = {});

  /// Starts nodes that outlive this program, recorded in `directory`: a new or empty one, or that
  /// of an earlier fleet of which no node runs any more (its data is deleted).
  static Fleet start_detached(const std::filesystem::path& directory,
                              const FleetOptions& options = {});

  /// The fleet that start_detached() recorded in `directory`, with its nodes as they are now.
  static Fleet open(const std::filesystem::path& directory);

  /// Ends the fleet recorded in `directory`, paused nodes too, and deletes its files. False: there
  /// was none.
  static bool down(const std::filesystem::path& directory);

  Fleet(Fleet&&) noexcept = default;
  Fleet& operator=(Fleet&&) = delete;

  /// Ends the nodes and deletes their directory, unless the fleet is detached. In a forked child of
  /// the program it does nothing.
  ~Fleet();

  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] Persistence persistence() const { return options_.persistence; }
  [[nodiscard]] std::uint16_t port(std::size_t node) const;
  [[nodiscard]] pid_t pid(std::size_t node) const;
  [[nodiscard]] NodeState state(std::size_t node) const;

  /// "redis://127.0.0.1:PORT" (rediss:// with TLS), with the password if there is one.
  [[nodiscard]] std::string uri(std::size_t node) const;
  [[nodiscard]] std::vector<std::string> uris() const;

  /// "unix:///path", for a fleet with Unix sockets or TLS.
  [[nodiscard]] std::string unix_uri(std::size_t node) const;

  /// Where the node keeps its configuration, log and data.
  [[nodiscard]] std::filesystem::path directory(std::size_t node) const;

  /// SIGKILL, as by a crash. Returns when the process has ended.
  void kill(std::size_t node);

  /// SIGTERM, as by a service manager. Returns when the process has ended.
  void terminate(std::size_t node);

  /// SIGSTOP: connections stay open and nobody answers. Returns when the process has stopped.
  void pause(std::size_t node);
  void resume(std::size_t node);

  /// Starts the node anew on its port, killing it first if it runs. Kept data is what it had on
  /// disk: everything with Persistence::always, nothing with Persistence::none.
  void restart(std::size_t node, Data data = Data::kept);

  /// Starts one more node on a free port, with the options of the others but without a marker, as
  /// Admin::add and Admin::replace want it, and returns its place, the last one. It returns when
  /// the node answers; if it throws, the fleet is as before. Other programs may add nodes to a
  /// detached fleet at the same time, and this object then has theirs, too; of this object no other
  /// call may run meanwhile.
  std::size_t add();

  /// Runs one command on a node, as the default user, over a connection of its own; see
  /// NodeClient::command for the form of the reply.
  std::string run(std::size_t node, const std::vector<std::string>& argv,
                  std::chrono::milliseconds timeout = std::chrono::seconds(30)) const;

 private:
  explicit Fleet(std::filesystem::path directory) : directory_(std::move(directory)) {}
  Fleet(std::filesystem::path directory, const FleetOptions& options);

  void create();
  void start_nodes(std::size_t count, pid_t group);
  void adopt_nodes() const;
  std::size_t add_node(pid_t group, FleetRecord* record);
  void end_nodes(std::size_t first = 0);
  void make_record() const;
  [[nodiscard]] FleetRecord present_record(std::size_t nodes) const;
  void record_node(std::size_t node) const;
  void take_over(const FleetRecord& record);

  std::filesystem::path directory_;
  FleetOptions options_;
  std::vector<Node> nodes_;
  // By node, kept while this program lives, so that no other fleet takes them.
  std::map<std::size_t, FreePort> ports_;
  std::unique_ptr<Reaper> reaper_;  // none: the fleet is detached
};

}  // namespace redlock::cluster
