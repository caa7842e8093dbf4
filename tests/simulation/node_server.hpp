// SPDX-License-Identifier: MIT
// A Redis server in front of a NodeModel: bytes of many connections in, bytes out. It knows the
// commands that the library sends, and replies to them as Redis 7 does (node_server_test.cpp
// compares them). Calls of the library's scripts become the model's commands; what it cannot read
// is reported, because a real node could not either.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/messages.hpp"
#include "simulation/node_model.hpp"
#include "simulation/request_reader.hpp"

namespace redlock::simulation {

/// A connection, by a number that its server and its network share.
using StreamId = std::uint32_t;

/// What the user of a client may lack the permission for.
enum class Denied : std::uint8_t {
  client_kill,
  client_id,
  client_setname,
  info,
  time,
  config,
  subscribe,
  hello,
  publish,  // within a script
  count
};
using DeniedCommands = std::bitset<static_cast<std::size_t>(Denied::count)>;

/// What a node server tells, while it runs a request.
class NodeServerHost {
 public:
  /// It has run one command of the model, of a call that may have several.
  virtual void on_executed(StreamId stream, const engine::Command& command,
                           const engine::Reply& reply) = 0;
  /// A client has given the node its marker.
  virtual void on_marked(StreamId stream) = 0;
  /// It sends this to a client that has asked for nothing just now.
  virtual void on_push(StreamId stream, std::string_view bytes) = 0;
  /// It publishes this to the client of this stream. How many of it are sent now.
  virtual std::uint32_t on_publish(StreamId /*stream*/, const std::string& /*channel*/,
                                   const std::string& /*text*/) {
    return 1;
  }
  /// It has replied to TIME.
  virtual void on_time_told(StreamId stream) = 0;
  /// A client had it close this connection. It sends nothing any more.
  virtual void on_killed(StreamId stream) = 0;
  /// The request is none that a server can run. It is answered with an error.
  virtual void on_misread(StreamId stream, std::string_view why) = 0;

 protected:
  ~NodeServerHost() = default;
};

class NodeServer final : Publisher {
 public:
  struct Settings {
    std::string version = "7.0.15";
    std::string password = {};  ///< of the default user; empty: none is needed
    bool durable = true;        ///< appendonly yes, appendfsync always
    DeniedCommands denied = {};
  };

  /// The model and the host must outlive it.
  NodeServer(NodeModel& model, const Settings& settings, NodeServerHost& host);

  /// A process begins, with no connections and no scripts.
  void start(std::string run_id, std::int64_t now_us);
  /// It goes on with the data of another master, whose replica it was.
  void promote();
  /// It becomes a replica, which its clients do not know yet.
  void demote();
  /// Every client with a connection of before was told of it, by a refusal to write or by INFO.
  [[nodiscard]] bool demotion_is_known() const;

  void accept(StreamId stream);
  /// The other end has closed it, or nobody can read it any more.
  void close(StreamId stream) { sessions_.erase(stream); }
  /// Runs what is complete now, at this time of the node's wall clock. Replies are appended. False:
  /// it closes the connection behind them.
  [[nodiscard]] bool take(StreamId stream, std::string_view bytes, std::int64_t now_us,
                          std::string& replies);
  [[nodiscard]] const std::string& run_id() const { return run_id_; }

  /// The user may or may not do that from now on.
  void set_denied(Denied what, bool denied) {
    settings_.denied.set(static_cast<std::size_t>(what), denied);
  }
  /// Somebody publishes this, to whoever is subscribed now.
  void publish_text(const std::string& channel, const std::string& text);
  /// Those that clients are subscribed to.
  [[nodiscard]] std::vector<std::string> channels() const;

 private:
  using Request = RequestReader::Request;
  struct Session {
    std::int64_t id = 0;
    bool authenticated = false;
    bool knows_its_role = true;
    bool resp3 = false;
    std::string channel = {};  // to which it is subscribed
    RequestReader reader;
  };
  enum class Kind : std::uint8_t;
  struct Call;
  static Kind kind_of(std::size_t place);

  void run(StreamId stream, Session& session, const Request& request, std::string& out);
  void run_client(StreamId stream, const Session& session, const Request& request,
                  std::string& out);
  void run_config(const Session& session, const Request& request, std::string& out) const;
  void run_auth(Session& session, const Request& request, std::string& out);
  void run_script_load(const Request& request, std::string& out);
  void run_call(StreamId stream, const Request& request, std::string& out);
  void run_acquire(StreamId stream, const Call& call, std::string& out);
  void run_holds(StreamId stream, const Call& call, std::string& out);
  [[nodiscard]] std::optional<std::int64_t> place_of(const std::string& name,
                                                     const Order& order) const;
  void run_releases(StreamId stream, const Call& call, std::string& out);
  void run_force(StreamId stream, const Call& call, std::string& out);
  void run_pass(StreamId stream, const Call& call, std::string& out);
  [[nodiscard]] bool read_acquire(const Call& call, engine::AcquireCommand& command,
                                  ScriptCaller& caller);
  void write_released(std::string& out, const engine::ReleaseCommand& command, const Order& order,
                      bool released) const;
  void run_marker_script(StreamId stream, const Call& call, std::string& out);
  engine::Reply execute(StreamId stream, const Call& call, const engine::Command& command,
                        ScriptCaller caller = {});
  std::optional<std::size_t> publish(const std::string& client, const std::string& text) override;
  void run_script(StreamId stream, const Call& call, std::string& out);
  void run_hello(Session& session, const Request& request, std::string& out);
  void run_subscribe(Session& session, const Request& request, std::string& out) const;
  void run_exists(const Request& request, std::string& out) const;
  void write_marker(char type, std::string& out) const;
  [[nodiscard]] std::string info(std::string_view section) const;
  [[nodiscard]] bool kill(StreamId asking, std::int64_t id);
  [[nodiscard]] const char* refusal(const Session& session, std::string_view command) const;
  [[nodiscard]] bool denies(Denied what, std::string& out) const;
  void misread(StreamId stream, std::string_view why, std::string& out);
  struct Keys {
    engine::Name name;
    std::string fence;
    std::string forced;
  };
  const Keys* keys_of(std::string_view lock);

  NodeModel& model_;
  Settings settings_;
  NodeServerHost& host_;
  std::string run_id_;
  std::string replid_;
  bool was_replica_ = false;
  std::int64_t started_s_ = 0;
  std::int64_t now_us_ = 0;
  std::int64_t last_id_ = 0;
  std::map<StreamId, Session> sessions_;
  StreamId asking_ = 0;                            // whose script runs
  std::string own_pushes_;                         // to that one
  std::map<std::string, Keys, std::less<>> keys_;  // by that of the lock
};

}  // namespace redlock::simulation
