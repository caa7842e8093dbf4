// SPDX-License-Identifier: MIT
// A world without chance: the author of a scenario says which message arrives next, and when time
// passes. It has the same clients, nodes and judges as the world of seeds.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "simulation/invariants.hpp"
#include "simulation/node_server.hpp"
#include "simulation/random.hpp"
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

  using Node = std::uint32_t;
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
  /// It comes to life when it is first named.
  Client& client(const std::string& name);

  void acquire(Client& by, engine::AcquireRequest what);
  void extend(Client& by, std::chrono::milliseconds lease);
  void enter(Client& by, engine::EnterRequest what);
  void leave(Client& by);
  void release(Client& by);
  void cancel(Client& by);
  /// The taker attaches to the lease of the giver, which forgets it.
  void take_over(Client& giver, Client& taker);
  /// By an operator, through a third client.
  void force(Client& by, const Client& holder);

  /// The oldest message under way is run by the node; its answer is under way then.
  void deliver(Client& from, Node node);
  /// The oldest answer under way arrives.
  void answer(Node node, Client& to);
  /// Both, until nothing is under way.
  void drain(Client& client, Node node);
  /// What a broken connection still carried is run by the node.
  void deliver_late(Client& from, Node node);
  void disconnect(Client& of, Node node);
  void connect(Client& of, Node node);

  void pass(Duration time);
  void pause(Client& of) { of.paused = true; }
  void resume(Client& of);
  void step_clock(Node node, Duration by) { nodes_.at(node).wall.step(now_, by); }
  /// The client learns what every node's clock shows.
  void read_clocks(Client& of);
  NodeData& node(Node node) { return nodes_.at(node).data; }
  void forget_scripts(Node node) { servers_.at(node).forget_scripts(); }
  [[nodiscard]] Node node_count() const { return static_cast<Node>(nodes_.size()); }

  void read(Client& of);
  void write(Client& of);
  /// Prints which clients believe to hold which locks.
  void who_is_valid();
  /// Which nodes have a lock of that name: "0 2", "none".
  [[nodiscard]] std::string who_has(const std::string& name) const;
  /// How often its owner holds it, according to each node: "2 2 -".
  [[nodiscard]] std::string counts(const std::string& name) const;

  void say(std::string text) { events_.push_back(std::move(text)); }
  /// What happened since the last call, in words.
  std::vector<std::string> take_events() { return std::exchange(events_, {}); }

 private:
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
