// SPDX-License-Identifier: MIT
// Clients, nodes, a network between them and what goes wrong, in one thread and in virtual time,
// all from one seed. The clients are the product down to the bytes.
#pragma once

#include "simulation/clients.hpp"
#include "simulation/faults.hpp"
#include "simulation/network.hpp"
#include "simulation/owner_users.hpp"
#include "simulation/scene.hpp"
#include "simulation/servers.hpp"
#include "simulation/workload.hpp"

namespace redlock::simulation {

class World final : ClientListener {
 public:
  World(Plan plan, Trace& trace, Coverage& coverage);

  /// Lives until the end. Throws a Violation.
  void run();

  [[nodiscard]] const Invariants::Counts& counts() const { return scene_.invariants.counts(); }

 private:
  void dispatch(const Event& event);
  void live_until(Instant end);
  /// Looks at what is left on the nodes, and takes away what is nobody's.
  void tidy();

  void on_started(ClientIndex client) override {
    workload_.on_started(client);
    owner_users_.on_started(client);
  }
  void on_crashed(ClientIndex client) override {
    workload_.on_crashed(client);
    owner_users_.on_crashed(client);
  }
  void on_output(ClientIndex client, const engine::ClientOutput& output) override;
  void on_sent(ClientIndex client, const engine::Send& send) override {
    faults_.on_sent(client, send);
  }

  Scene scene_;
  Network network_;
  Servers servers_;
  Clients clients_;
  Faults faults_;
  Workload workload_;
  OwnerUsers owner_users_;
};

}  // namespace redlock::simulation
