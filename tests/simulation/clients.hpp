// SPDX-License-Identifier: MIT
// The clients: each the product's own driver (engine and wire) on a clock that may be wrong, in a
// process that can be stopped anywhere, crash and start again. What moves its bytes here is the
// simulated network.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "simulation/drifting_clock.hpp"
#include "simulation/network.hpp"
#include "simulation/random.hpp"
#include "simulation/replacements.hpp"
#include "simulation/scene.hpp"
#include "simulation/servers.hpp"
#include "wire/driver.hpp"

namespace redlock::simulation {

/// What the rest of the world learns of clients.
class ClientListener {
 public:
  virtual void on_started(ClientIndex client) = 0;
  virtual void on_crashed(ClientIndex client) = 0;
  /// For the client's users.
  virtual void on_output(ClientIndex client, const engine::ClientOutput& output) = 0;
  /// Its engine sends this.
  virtual void on_sent(ClientIndex client, const engine::Send& send) = 0;

 protected:
  ~ClientListener() = default;
};

class Clients final {
 public:
  /// All of them must outlive this object. start() begins the first lives.
  Clients(Scene& scene, Network& network, Servers& servers, const Replacements& replacements,
          ClientListener& listener);
  ~Clients();
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  void start(ClientIndex client);
  void pause(ClientIndex client, Duration length);
  /// Its machine is suspended, and its clock with it.
  void freeze(ClientIndex client, Duration length);
  void resume(ClientIndex client);
  /// Its connections close, and what it had written may still arrive.
  void crash(ClientIndex client);
  /// It is stopped between a decision and what follows from it, next time.
  void interrupt_next(ClientIndex client);
  void change_speed(ClientIndex client, std::int32_t parts_per_million);
  /// Another client goes on as a copy of this one's machine: with the same random numbers.
  void copy_random(ClientIndex from, ClientIndex to);
  /// Everybody goes on.
  void end_pauses();

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(all_.size()); }
  [[nodiscard]] bool is_alive(ClientIndex client) const;
  [[nodiscard]] bool is_paused(ClientIndex client) const;
  [[nodiscard]] ClientId life(ClientIndex client) const;
  [[nodiscard]] Instant local(ClientIndex client) const;
  /// When a clock shows this, by the world's time.
  [[nodiscard]] Instant when(ClientIndex client, Instant local) const;
  /// Messages of this kind that are not answered.
  [[nodiscard]] std::uint32_t outstanding(ClientIndex client, engine::Tag::Kind kind) const;

  /// To give it a request; turn() must follow.
  [[nodiscard]] engine::Engine& engine(ClientIndex client);
  /// Performs what follows from inputs.
  void turn(ClientIndex client);

  /// What happens to a process that does not run happens when it goes on.
  bool defer(ClientIndex client, const Event& event);

  /// The stream that its driver uses, if the driver says that the node is up.
  [[nodiscard]] std::optional<StreamId> up_stream(ClientIndex client, NodeIndex node) const;
  /// The one that it has, whatever became of it.
  [[nodiscard]] std::optional<StreamId> stream(ClientIndex client, NodeIndex node) const;
  void disturb(ClientIndex client, NodeIndex node);
  void disturb_node(NodeIndex node);
  [[nodiscard]] bool is_well(ClientIndex client, NodeIndex node) const;
  /// Since when, if it is: of the client with this life.
  [[nodiscard]] std::optional<Instant> well_since(ClientId life, NodeIndex node) const;

  /// A connection that passes nothing any more is noticed by its silence, and replaced.
  void must_notice_dead_streams() const;
  /// Long after everything was repaired.
  void must_be_connected() const;
  /// Likewise: every client counts the servers that are the members by now.
  void must_know_the_members() const;

  // Events.
  void timer(const Event& event);
  void connect_timeout(const Event& event);

  // For the network.
  /// Whether its process runs: it can take what has arrived.
  [[nodiscard]] bool runs(ClientIndex client) const;
  void on_connected(StreamId stream);
  void on_bytes(StreamId stream, std::string_view bytes);
  void on_closed(StreamId stream, const char* why);
  void on_writable(StreamId stream);
  /// After all that arrived at once.
  void on_end_of_arrivals(ClientIndex client) { turn(client); }

 private:
  class Machine;
  [[nodiscard]] std::vector<NodeIndex> list_of(ClientIndex client) const;
  [[nodiscard]] Machine& at(ClientIndex client) { return *all_[client]; }
  [[nodiscard]] const Machine& at(ClientIndex client) const { return *all_[client]; }

  Scene& scene_;
  Network& network_;
  Servers& servers_;
  const Replacements& replacements_;
  ClientListener& listener_;
  std::vector<std::unique_ptr<Machine>> all_;
};

}  // namespace redlock::simulation
