// SPDX-License-Identifier: MIT
// A world without chance: the author of a scenario says which message arrives next, and when time
// passes. It has the same clients, nodes and judges as the world of seeds.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "simulation/invariants.hpp"
#include "simulation/node_server.hpp"
#include "simulation/random.hpp"
#include "simulation/sim_node.hpp"
#include "wire/reply_reader.hpp"
#include "wire/script_set.hpp"

namespace redlock::simulation {

class Stage final : NodeServerHost {
 public:
  struct Settings {
    engine::Config engine;
    Judged judged;
  };
  explicit Stage(const Settings& settings);

  using Clients = std::vector<std::string>;
  using Node = std::uint32_t;

  void acquire(const std::string& client, engine::AcquireRequest what);
  void extend(const std::string& client, std::chrono::milliseconds lease);
  void enter(const std::string& client, engine::EnterRequest what);
  void leave(const std::string& client);
  void release(const std::string& client);
  void cancel(const std::string& client);
  /// The second one attaches to the lease of the first, which forgets it.
  void take_over(const std::string& from, const std::string& to);
  /// By an operator, through a third client.
  void force(const std::string& by, const std::string& holder);

  /// The oldest message under way is run by the node; its answer is under way then.
  void deliver(const std::string& client, Node node);
  /// The oldest answer under way arrives.
  void answer(Node node, const std::string& client);
  /// Both, until nothing is under way.
  void drain(const std::string& client, Node node);
  /// What a broken connection still carried is run by the node.
  void deliver_late(const std::string& client, Node node);
  void disconnect(const std::string& client, Node node);
  void connect(const std::string& client, Node node);

  void pass(Duration time);
  void pause(const std::string& client);
  void resume(const std::string& client);
  void step_clock(Node node, Duration by) { nodes_.at(node).wall.step(now_, by); }
  void set_speed(const std::string& client, std::int32_t ppm);
  /// The client learns what every node's clock shows.
  void read_clocks(const std::string& client);
  NodeData& node(Node node) { return nodes_.at(node).data; }
  void forget_scripts(Node node) { servers_.at(node).forget_scripts(); }
  [[nodiscard]] Node node_count() const { return static_cast<Node>(nodes_.size()); }

  void read(const std::string& client);
  void write(const std::string& client);
  /// Prints which clients believe to hold which locks.
  void who_is_valid();
  /// Which nodes have a lock of that name: "0 2", "none".
  [[nodiscard]] std::string who_has(const std::string& name) const;
  void say_who_has(const std::string& name) { say("on nodes: " + who_has(name)); }
  /// How often its owner holds it, according to each node: "2 2 -".
  [[nodiscard]] std::string counts(const std::string& name) const;
  void say_counts(const std::string& name) { say("counts: " + counts(name)); }

  /// What happened since the last call, in words.
  std::vector<std::string> take_events();

 private:
  struct Answer {
    engine::Tag tag;
    engine::Reply reply;
  };
  struct Link {
    bool up = true;
    std::deque<engine::Send> to_node;
    std::deque<Answer> to_client;
    std::deque<engine::Tag> outstanding;
    std::deque<engine::Send> late;
  };
  struct Client {
    Client(Instant world, std::uint64_t seed) : clock(world, world, 0), random(seed) {}
    std::string name;
    DriftingClock clock;
    Random random;
    std::unique_ptr<engine::Engine> engine;
    ClientId life = 0;
    bool paused = false;
    std::vector<Link> links;
    engine::RequestId request = 0;
    std::string lock;
    engine::GrantId grant = 0;
    engine::OwnerId owner;
    engine::Token token = 0;
    std::chrono::milliseconds lease{};
    Instant valid_until = Instant::min();
    std::optional<std::uint64_t> value;
  };

  Client& client(const std::string& name);
  /// Runs it on the node, as the bytes that the library sends.
  engine::Reply execute(Node node, const engine::Send& send);
  wire::ReplyView ask(Node node, std::string_view bytes);
  void on_executed(StreamId stream, const ScriptRun& run) override;
  void on_misread(StreamId stream, std::string_view why) override;
  void turn(Client& client);
  void perform(Client& client, const engine::Send& send);
  void perform(Client& client, const engine::ClientOutput& output);
  void tell(Client& client, const engine::Finish& finish);
  void receive(Client& client, Node node, const Answer& answer);
  void say(std::string text) { events_.push_back(std::move(text)); }
  void request(Client& client, Invariants::Request request);
  [[nodiscard]] Instant local(const Client& client) const { return client.clock.read(now_); }
  [[nodiscard]] std::string validity(const Client& client) const;

  Settings settings_;
  Instant now_;
  std::vector<SimNode> nodes_;
  std::deque<NodeServer> servers_;
  std::vector<wire::ScriptSet> scripts_;
  wire::ReplyReader reader_;
  std::deque<Client> clients_;
  Invariants invariants_;
  engine::RequestId last_request_ = 0;
  std::vector<std::string> events_;
};

}  // namespace redlock::simulation
