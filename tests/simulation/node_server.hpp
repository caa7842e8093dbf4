// SPDX-License-Identifier: MIT
// A Redis server in front of a node's data: bytes of many connections in, bytes out. It knows the
// commands that the library and its scripts send, and replies to them as Redis 7 does
// (conformance_test.cpp compares them). Scripts are the library's own texts, run by Lua. A request
// that it cannot run, and a script that fails by itself, are reported: neither may happen.
#pragma once

#include <bitset>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/commands.hpp"
#include "simulation/interpreter.hpp"
#include "simulation/node_data.hpp"
#include "simulation/request_reader.hpp"

namespace redlock::simulation {

/// A connection, by a number that its server and its network share.
using StreamId = std::uint32_t;

/// What the user of a client may lack the permission for, also within scripts.
enum class Denied : std::uint8_t {
  client_kill,
  client_id,
  client_setname,
  info,
  time,
  config,
  subscribe,
  hello,
  publish,
  pexpire,  ///< in scripts: no others set the end of a key apart
  count
};
using DeniedCommands = std::bitset<static_cast<std::size_t>(Denied::count)>;

/// A script that a node has run.
struct ScriptRun {
  std::string_view script;  ///< the name of its file
  Words keys;
  Words arguments;
  std::string_view reply;            ///< in RESP
  const NodeData* before = nullptr;  ///< what its keys were, and nothing else
  std::uint32_t told = 0;            ///< messages to waiters
  bool disturbed = false;  ///< something is wrong with the node, or it refused a part but messages
};

/// What a node answers to every script about locks, without running it: well-formed, and wrong.
enum class Lie : std::uint8_t {
  none,
  taken,         ///< another owner has the lock
  shared_owner,  ///< this owner had it before
  forced,        ///< this owner was forced out
  foreign,       ///< a key of another type stands there
  any,           ///< one of these, at random
  members,       ///< the set has later members, of which most do not exist
};

/// What a node server tells, while it runs a request.
class NodeServerHost {
 public:
  virtual void on_executed(StreamId stream, const ScriptRun& run) = 0;
  /// A client has given the node its marker.
  virtual void on_marked(StreamId /*stream*/) {}
  /// It sends this to a client that has asked for nothing just now.
  virtual void on_push(StreamId /*stream*/, std::string_view /*bytes*/) {}
  /// It publishes this to the client of this stream. How many of it are sent now.
  virtual std::uint32_t on_publish(StreamId /*stream*/, std::string_view /*channel*/,
                                   std::string_view /*text*/) {
    return 1;
  }
  /// It has replied to TIME.
  virtual void on_time_told(StreamId /*stream*/) {}
  /// And to PTTL of the note about its clock, which lasts so long (zero: there is none).
  virtual void on_note_told(StreamId /*stream*/, std::chrono::milliseconds /*lasts*/) {}
  /// A client had it close this connection. It sends nothing any more.
  virtual void on_killed(StreamId /*stream*/) {}
  /// The request is none that a server can run, or its script is broken. The reply is an error.
  virtual void on_misread(StreamId stream, std::string_view why) = 0;

 protected:
  ~NodeServerHost() = default;
};

class NodeServer final : Publisher, ScriptHost {
 public:
  struct Settings {
    std::string version = "7.0.15";
    std::string password = {};  ///< of the default user; empty: none is needed
    bool durable = true;        ///< appendonly yes, appendfsync always
    DeniedCommands denied = {};
    Lie lie = Lie::none;
  };

  /// The data and the host must outlive it.
  NodeServer(NodeData& data, const Settings& settings, NodeServerHost& host);

  /// A process begins, with no connections and no scripts.
  void start(std::string run_id, std::int64_t now_us);
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  /// SCRIPT FLUSH.
  void forget_scripts() { scripts_.clear(); }
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

  /// The user may or may not do that from now on.
  void set_denied(Denied what, bool denied) {
    settings_.denied.set(static_cast<std::size_t>(what), denied);
  }
  /// Somebody publishes this, to whoever is subscribed now.
  void publish_text(const std::string& channel, const std::string& text);
  /// Those that clients are subscribed to.
  [[nodiscard]] std::vector<std::string> channels() const;

 private:
  struct Session {
    std::int64_t id = 0;
    bool authenticated = false;
    bool knows_its_role = true;
    bool resp3 = false;
    std::string channel = {};  // to which it is subscribed
    RequestReader reader;
  };
  /// A request of a client.
  struct Asked {
    StreamId stream;
    Session& session;
    Words words;
    std::string& out;
    RespReply reply;
  };
  struct Row;
  static const Row* find_row(std::string_view name);

  void run(StreamId stream, Session& session, Words words, std::string& out);
  void run_data(Asked& asked, const CommandRow& row);
  void run_client(Asked& asked);
  void run_config(Asked& asked);
  void run_auth(Asked& asked);
  void run_hello(Asked& asked);
  void run_info(Asked& asked);
  void run_select(Asked& asked);
  void run_ping(Asked& asked);
  void run_subscribe(Asked& asked);
  void run_script(Asked& asked);
  void run_eval(Asked& asked);
  void run_evalsha(Asked& asked);
  void call_script(Asked& asked, const Script& script);
  bool lie_about(const Script& script, std::int64_t keys, Reply& reply);
  [[nodiscard]] bool refuses(const Script& script, Reply& reply) const;
  const Script* take_in(Asked& asked, std::string_view text);

  void call_from_script(Words words, Reply& reply) override;
  std::size_t publish(std::string_view channel, std::string_view text) override;
  [[nodiscard]] std::string_view refusal_to_write(const CommandRow& row) const;
  [[nodiscard]] std::string info(bool all) const;
  [[nodiscard]] bool kill(StreamId asking, std::int64_t id);
  /// What the state of the node says instead of running a command; empty if it runs it.
  [[nodiscard]] std::string_view refusal(bool while_loading, bool while_busy) const;
  [[nodiscard]] bool denies(Denied what) const {
    return settings_.denied.test(static_cast<std::size_t>(what));
  }
  [[nodiscard]] bool denies(Denied what, Reply& reply) const;
  void misread(Asked& asked, std::string_view why);
  [[nodiscard]] bool is_replica() const { return data_.ailment == Ailment::read_only; }

  NodeData& data_;
  Settings settings_;
  NodeServerHost& host_;
  std::string run_id_;
  std::string replid_;
  bool was_replica_ = false;
  std::int64_t started_s_ = 0;
  std::int64_t now_us_ = 0;
  std::int64_t last_id_ = 0;
  std::map<StreamId, Session> sessions_;
  std::map<std::string, const Script*, std::less<>> scripts_;  // by digest
  // While a script runs:
  StreamId asking_ = 0;        // who called it
  std::string own_pushes_;     // to that one
  bool at_maxmemory_ = false;  // it may write there
  bool wrote_ = false;         // it cannot be stopped any more
  bool was_denied_ = false;    // its user might not do all of it, beside messages
  std::uint32_t told_ = 0;     // messages to waiters
  std::uint32_t lies_ = 0;
};

}  // namespace redlock::simulation
