// SPDX-License-Identifier: MIT
// Clients (each one engine), nodes and a network in one thread and in virtual time, all from one
// seed. The parts are in world_network.cpp, world_clients.cpp, world_users.cpp, world_faults.cpp.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "engine/engine.hpp"
#include "simulation/event.hpp"
#include "simulation/fault.hpp"
#include "simulation/invariants.hpp"
#include "simulation/plan.hpp"
#include "simulation/random.hpp"
#include "simulation/sim_node.hpp"
#include "simulation/trace.hpp"
#include "simulation/wire.hpp"

namespace redlock::simulation {

class World {
 public:
  World(Plan plan, Trace& trace, Coverage& coverage);

  /// Lives until the end. Throws a Violation.
  void run();

  [[nodiscard]] const Invariants::Counts& counts() const { return invariants_.counts(); }

 private:
  static constexpr std::uint32_t none = ~0U;

  struct NodeState {
    bool down = false;
    bool unreachable = false;  // down, and nobody says so
    std::uint32_t hung = 0;
    Duration slow{};
    Duration stepped{};
    Instant started{};
    std::deque<std::uint32_t> waiting;  // wires with a packet for a hung node
  };
  struct Link {
    std::uint32_t wire = none;
    bool up = false;
    std::uint32_t cut_to_node = 0;
    std::uint32_t cut_from_node = 0;
    std::vector<std::uint32_t> to_kill;
    Instant disturbed{};
  };
  struct Client {
    Client(Instant world, Instant local, std::int32_t ppm, std::uint64_t seed)
        : clock(world, local, ppm), random(seed) {}
    DriftingClock clock;
    Random random;
    std::unique_ptr<engine::Engine> engine;
    bool quarantine = false;
    ClientId life = 0;
    bool alive = true;
    bool paused = false;
    Instant paused_at{};
    Duration slept{};
    bool interrupt = false;  // the next outputs are performed after a pause
    Instant timer = engine::never;
    std::vector<Event> deferred;
    engine::Outputs undone;
    std::vector<engine::Send> unsendable;  // there is no connection, which is known at once
    std::vector<Link> links;
    std::array<std::uint32_t, 6> outstanding{};  // by kind of message
  };
  struct User {
    enum class State : std::uint8_t { idle, acquiring, holding, ending };
    std::uint32_t client = 0;
    std::uint64_t turn = 0;  // an event for another turn is stale
    State state = State::idle;
    std::string name = {};
    engine::RequestId request = 0;
    engine::RequestId extending = 0;
    std::vector<engine::RequestId> entering = {};
    std::uint32_t count = 1;
    engine::GrantId grant = 0;
    engine::OwnerId owner = {};
    engine::Token token = 0;
    std::chrono::milliseconds lease{};
    Instant valid_until{};
    std::optional<std::uint64_t> read = {};
    bool lost = false;
  };
  struct ActiveFault {
    Fault fault{};
    std::uint32_t client = 0;
    std::uint32_t node = 0;
    std::vector<std::uint32_t> nodes;
    bool over = false;
  };

  void dispatch(const Event& event);
  void at(Instant when, Event::What what, std::uint32_t a = 0, std::uint32_t b = 0,
          std::uint64_t c = 0);
  template <typename Say>
  void note(std::uint64_t a, std::uint64_t b, std::uint64_t c, Say&& say) {
    trace_.step(now_, a, b, c, std::forward<Say>(say));
  }

  // Network.
  void push_to_node(std::uint32_t wire, Wire::Request request);
  void push_to_client(std::uint32_t wire, Wire::Answer answer);
  void packet_at_node(std::uint32_t wire);
  void process_at_node(std::uint32_t wire);
  void shake_hands(std::uint32_t wire, const Wire::Request& request);
  void packet_at_client(const Event& event);
  void close_at_node(std::uint32_t wire);
  void close_at_client(std::uint32_t wire);
  void connect(std::uint32_t client, std::uint32_t node);
  void connect_timeout(std::uint32_t wire);
  void silence(const Event& event);
  void link_up(std::uint32_t wire, const Wire::Answer& welcome);
  void probe(const Event& event);
  void read_clock(std::uint32_t wire);
  void clock_read(std::uint32_t wire, const Wire::Answer& answer);
  void tend_marker(const Event& event);
  void link_broken(std::uint32_t wire);
  void reconnect_later(std::uint32_t client, std::uint32_t node);
  void release_waiting(std::uint32_t client, std::uint32_t node);
  [[nodiscard]] engine::Reply run_at_node(const Wire& wire, const engine::Send& send);
  [[nodiscard]] engine::NodeFacts facts_of(std::uint32_t node) const;
  void look_for_marker(std::uint32_t client, std::uint32_t node);
  Duration delay(std::uint32_t node);
  [[nodiscard]] Duration ahead_of(std::uint32_t client, std::uint32_t node) const;

  // Clients.
  void start(std::uint32_t client);
  void turn(std::uint32_t client);
  void perform(std::uint32_t client, const engine::NodeOutput& output);
  void perform(std::uint32_t client, const engine::ClientOutput& output);
  void perform_send(std::uint32_t client, const engine::Send& send);
  void answer(std::uint32_t client, std::uint32_t node, const engine::Tag& tag,
              const engine::Reply& reply);
  void set_timer(std::uint32_t client);
  void timer(const Event& event);
  void pause(std::uint32_t client, Duration length);
  void resume(std::uint32_t client);
  void crash(std::uint32_t client);
  bool defer(std::uint32_t client, const Event& event);
  [[nodiscard]] Instant local(std::uint32_t client) const {
    return clients_[client].clock.read(now_);
  }
  void watch_validity(std::uint32_t client, engine::GrantId grant, Instant valid_until);

  // Users.
  void user_next(User& user, Duration at_most);
  void user_event(const Event& event);
  void begin_request(User& user);
  void clone(std::uint32_t client);
  void begin_acquire(User& user);
  void take_over(User& user);
  void use_lease(User& user);
  void extend(User& user);
  void enter(User& user);
  void leave_one(User& user);
  void give_back(User& user, bool wait_for_it);
  void hand_over(User& user);
  void tell_user(std::uint32_t client, const engine::ClientOutput& output);
  void user_finished(User& user, const engine::Finish& finish);
  void leave(User& user);
  User* user_of_request(std::uint32_t client, engine::RequestId request);
  User* user_of_grant(std::uint32_t client, engine::GrantId grant);

  // Faults.
  void next_fault();
  void attract_fault(std::uint32_t client, std::optional<Fault> fault, std::uint32_t per_mille);
  void inject();
  Fault special(Fault otherwise);
  void inject(Fault fault, std::uint32_t client);
  void inject_in_node(Fault fault, std::uint32_t node, ActiveFault& active);
  void inject_in_network(Fault fault, std::uint32_t client, std::uint32_t node,
                         ActiveFault& active);
  bool inject_in_client(Fault fault, std::uint32_t client, ActiveFault& active);
  void repair(std::uint32_t fault);
  void repair_node(const ActiveFault& active);
  void cut(std::uint32_t client, std::uint32_t node, int to_node, int from_node);
  void forget(std::uint32_t node);
  void forget_newest(std::uint32_t node);
  void many_forget();
  void become_of_another_set(std::uint32_t node);
  bool may_forget();
  void kill_node(std::uint32_t node);
  void disturb_node(std::uint32_t node);
  void disturb(std::uint32_t client, std::uint32_t node);
  void cover(Fault fault, std::uint32_t client);
  bool cancel_one(std::uint32_t client);
  bool race_release_with_hold(std::uint32_t client);
  bool release_by_force(std::uint32_t client);
  void tidy();
  [[nodiscard]] bool well(std::uint32_t client, std::uint32_t node) const;

  Plan plan_;
  Trace& trace_;
  Coverage& coverage_;
  Random random_;
  Instant now_{};
  Instant may_forget_from_{};  // nodes that forget all the time would never vote
  Agenda agenda_;
  std::vector<SimNode> nodes_;
  std::vector<NodeState> states_;
  std::deque<Client> clients_;
  std::deque<Wire> wires_;
  std::vector<User> users_;
  std::deque<ActiveFault> active_;
  std::optional<engine::AttachRequest> handed_over_;
  engine::RequestId last_request_ = 0;
  bool ending_ = false;
  Invariants invariants_;
  engine::Outputs outputs_;
};

}  // namespace redlock::simulation
