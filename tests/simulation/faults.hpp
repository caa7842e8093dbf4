// SPDX-License-Identifier: MIT
// What goes wrong in a world, when, for how long, and how it is mended.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "simulation/clients.hpp"
#include "simulation/fault.hpp"
#include "simulation/network.hpp"
#include "simulation/scene.hpp"
#include "simulation/servers.hpp"
#include "simulation/workload.hpp"

namespace redlock::simulation {

class Faults {
 public:
  Faults(Scene& scene, Network& network, Servers& servers, Clients& clients, Workload& workload)
      : scene_(scene),
        network_(network),
        servers_(servers),
        clients_(clients),
        workload_(workload) {}

  void schedule_next();
  /// At a moment that is rare and short: one fault of this kind (any, if none is named), this often
  /// in a thousand times.
  void attract_fault(ClientIndex client, std::optional<Fault> fault, std::uint32_t per_mille);
  /// A client's engine sends this.
  void on_sent(ClientIndex client, const engine::Send& send);
  /// A client was granted a lock that lasts so long.
  void on_granted(Duration lease);
  /// A client is told that no waiter is before one of its own.
  void on_first_in_line(ClientIndex client);
  void repair_all();

  // Events.
  void next_fault();
  void fault(const Event& event);
  void repair(std::uint32_t number);
  /// What makes forgetting matter: enough nodes for another quorum. They are back at once.
  void many_forget(const Event& event);
  void promotion(const Event& event);
  /// Each client loses the way to one server, and has that to the one of before again.
  void part();
  /// A node that has just been given its marker loses everything once more.
  void flush_again();

 private:
  struct ActiveFault {
    Fault fault{};
    ClientIndex client = 0;
    NodeIndex node = 0;
    std::vector<NodeIndex> nodes;
    bool over = false;
  };

  void inject_any();
  void inject(Fault fault, ClientIndex client);
  [[nodiscard]] Fault special(Fault otherwise);
  void inject_in_node(Fault fault, NodeIndex node, ActiveFault& active);
  void inject_by_hand(Fault fault, NodeIndex node);
  void inject_in_network(Fault fault, ClientIndex client, NodeIndex node, ActiveFault& active);
  /// False: it cannot happen now.
  bool inject_in_client(Fault fault, ClientIndex client);
  bool inject_by_user(Fault fault, ClientIndex client);
  void repair_node(const ActiveFault& active);
  void cut(ClientIndex client, NodeIndex node, int to_node, int from_node);
  void lose(NodeIndex node);
  void demote(NodeIndex node);
  [[nodiscard]] bool may_forget();
  void cover(Fault fault, ClientIndex client);
  void cover_all(Fault fault);

  Scene& scene_;
  Network& network_;
  Servers& servers_;
  Clients& clients_;
  Workload& workload_;
  std::deque<ActiveFault> active_;
  std::vector<Duration> stepped_ = std::vector<Duration>(scene_.nodes.size());
  Random parts_{scene_.plan.seed ^ 0x9a47U};  // of its own
  Instant may_forget_from_{};                 // nodes that forget all the time would never vote
  /// Until when nothing shows any more that a node was a replica, if it is started anew by then.
  std::vector<Instant> promoted_until_ = std::vector<Instant>(scene_.nodes.size());
};

}  // namespace redlock::simulation
