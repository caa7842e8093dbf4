// SPDX-License-Identifier: MIT
// Each alert of cluster/monitoring/redlock.rules.yml is fired by a fault on real nodes, and clears
// when that is mended: two programs, their metrics, and a Prometheus that judges them.
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <redlock/admin.hpp>

#include "cluster/relay.hpp"
#include "fencing/clock_shim.hpp"
#include "integration/api_fixture.hpp"
#include "monitoring/prometheus.hpp"

namespace redlock::testing {
namespace {

constexpr std::size_t node_count = 3;
const std::string program = "/usr/bin/prometheus";

/// A program that takes a lock again and again, without waiting for it.
class Service {
 public:
  Service(const std::string& name, std::vector<std::string> nodes)
      : client(start_client(options(std::move(nodes), metrics))),
        work_([this, name](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            { const auto lease = client.lock(name).acquire(); }
            std::this_thread::sleep_for(30ms);
          }
        }) {}

  const std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();
  const Client client;

 private:
  static ClientOptions options(std::vector<std::string> nodes, std::shared_ptr<Metrics> metrics) {
    ClientOptions options;
    options.nodes = std::move(nodes);
    options.node_timeout = 1s;
    options.lease = options.max_lease = 3s;  // quarantine and distrust of a clock last as long
    options.observer = std::move(metrics);
    return options;
  }

  std::jthread work_;
};

/// The first program is connected with the nodes, the second one with relays before them.
class Stage {
 public:
  Stage()
      : fleet(fleet_with_clocks(
            place_,
            {.nodes = node_count, .persistence = cluster::Persistence::always, .adopted = true})) {
    for (std::size_t node = 0; node < node_count; ++node) {
      fleet.run(node, {"HSET", "redlock:node", "max_lease_ms", "3000", "set", "one"});
      const auto port = fleet.port(node);
      relays[node] = std::make_unique<cluster::Relay>(
          cluster::listen_on_loopback(), [port] { return cluster::connect_to_loopback(port); });
    }
    services[0] = std::make_unique<Service>("one", fleet.uris());
    std::vector<std::string> uris;
    for (const auto& relay : relays) uris.push_back(relay_uri(*relay));
    services[1] = std::make_unique<Service>("two", uris);
    exporter_.emplace(Exporter::Texts{{"a", [this] { return text_of(0); }},
                                      {"b", [this] { return text_of(1); }}});
    prometheus.emplace(program, *exporter_);
  }

  void run_everywhere(const std::vector<std::string>& command) const {
    for (std::size_t node = 0; node < node_count; ++node) fleet.run(node, command);
  }
  /// Connections see a node's settings when they begin.
  void connect_anew(std::size_t node) const {
    for (const char* type : {"normal", "pubsub"}) fleet.run(node, {"CLIENT", "KILL", "TYPE", type});
  }
  [[nodiscard]] bool shows(const std::string& line) const {
    return contains(services[0]->metrics->text(), line + "\n");
  }
  [[nodiscard]] std::string node_label(std::size_t node) const {
    return "node=\"" + fleet.uri(node) + "\"";
  }

 private:
  static std::string relay_uri(const cluster::Relay& relay) {
    return fmt::format("redis://127.0.0.1:{}", cluster::port_of(relay.listener()));
  }
  /// The second program names the nodes as the first one does.
  [[nodiscard]] std::string text_of(std::size_t service) const {
    std::string text = services[service]->metrics->text();
    for (std::size_t node = 0; node < node_count; ++node) {
      const std::string relay = relay_uri(*relays[node]);
      for (std::size_t at = 0; (at = text.find(relay, at)) != std::string::npos;) {
        text.replace(at, relay.size(), fleet.uri(node));
      }
    }
    return text;
  }

  TemporaryDirectory place_;

 public:
  Fleet fleet;
  std::array<std::unique_ptr<cluster::Relay>, node_count> relays;
  std::array<std::unique_ptr<Service>, 2> services;

 private:
  std::optional<Exporter> exporter_;

 public:
  std::optional<Prometheus> prometheus;
};

struct Fault {
  std::string alert;
  std::string label;  ///< with the value that it has
  std::function<void()> begin;
  /// Without it the fault is over by itself, and begins again until it was seen: on a busy machine
  /// all scrapes may miss it.
  std::function<void()> end = nullptr;
};

std::string node(const Stage& stage, std::size_t node) {
  return "node=" + stage.fleet.uri(node);
}

/// Of nodes that give no lock to anybody, each for another reason.
std::vector<Fault> faults_of_nodes(Stage& stage) {
  Fleet& fleet = stage.fleet;
  const auto set_memory = [&](const char* most) {
    fleet.run(0, {"CONFIG", "SET", "maxmemory", most});
  };
  const auto clock_of = [&fleet](std::size_t of) {
    return [&fleet, of, ahead = std::chrono::hours(0)]() mutable {
      set_clock_ahead(fleet.directory(of), ++ahead);
    };
  };
  return {
      {"RedlockNodeDown", node(stage, 0), [&] { fleet.kill(0); }, [&] { fleet.restart(0); }},
      {"RedlockNodeDown", node(stage, 1), [&] { fleet.pause(1); }, [&] { fleet.resume(1); }},
      {"RedlockNodeDown", node(stage, 0),
       [&stage, set_memory] {
         set_memory("1");
         const std::string down = "redlock_node_down{" + stage.node_label(0);
         CHECK(eventually([&] { return stage.shows(down + ",cause=\"out_of_memory\"} 1"); }));
       },
       [set_memory] { set_memory("0"); }},
      // It lost its marker, and gets it back when old leases are over.
      {"RedlockNodeDown", node(stage, 1), [&] { fleet.run(1, {"FLUSHALL"}); }},
      {"RedlockNodeUnsafe", node(stage, 0),
       [&] {
         fleet.run(0, {"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
         stage.connect_anew(0);
       },
       [&] {
         fleet.run(0, {"CONFIG", "SET", "maxmemory-policy", "noeviction"});
         stage.connect_anew(0);
       }},
      {"RedlockSlowNode", node(stage, 2), [&] { stage.relays[2]->delay(300ms); },
       [&] { stage.relays[2]->pass(); }},
      {"RedlockClockMoved", node(stage, 2), clock_of(2)},
      // The same clock, until it has kept time.
      {"RedlockNodeDown", node(stage, 1), clock_of(1)},
  };
}

/// Of programs that find too few nodes.
std::vector<Fault> faults_of_programs(Stage& stage) {
  const auto force = [&stage] {
    const Client& client = stage.services[0]->client;
    // On a busy machine it may be lost for another reason.
    REQUIRE(eventually([&] {
      const Lease lease =
          must(client.lock("held").acquire({.renewal = Renewal::always, .wait = patience}));
      must(Admin(stage.services[1]->client).force_release("held"));
      REQUIRE(eventually([&] { return lease.lost().stop_requested(); }));
      return lease.loss_reason() == LossReason::forced;
    }));
  };
  return {
      {"RedlockNodeDownForProcess", "instance=b", [&] { stage.relays[2]->refuse(); },
       [&] { stage.relays[2]->pass(); }},
      {"RedlockProcessNoQuorum", "instance=b",
       [&] {
         for (const std::size_t node : {1U, 2U}) stage.relays[node]->refuse();
       },
       [&] {
         for (const std::size_t node : {1U, 2U}) stage.relays[node]->pass();
       }},
      {"RedlockNoQuorum", "job=service",
       [&] {
         for (const std::size_t node : {1U, 2U}) stage.fleet.kill(node);
       },
       [&] {
         for (const std::size_t node : {1U, 2U}) stage.fleet.restart(node);
       }},
      {"RedlockLeasesLost", "reason=forced", force},
  };
}

TEST_CASE("each alert fires when its fault begins, and clears when that is mended") {
  if (!std::filesystem::exists(program)) {
    std::puts("SKIPPED: Prometheus is not installed (on Debian: apt install prometheus)");
    return;
  }
  Stage stage;
  const auto all_is_well = [&] {
    bool well = true;
    for (std::size_t node = 0; node < node_count; ++node) {
      const std::string up = "redlock_node_up{" + stage.node_label(node) + "} 1";
      well = well && stage.shows(up);
    }
    return well && stage.prometheus->firing().empty();
  };
  REQUIRE(eventually(all_is_well));

  std::set<std::string> tried;
  auto faults = faults_of_nodes(stage);
  for (auto& fault : faults_of_programs(stage)) faults.push_back(std::move(fault));
  for (const Fault& fault : faults) {
    CAPTURE(fault.alert);
    CAPTURE(fault.label);
    const std::string alert = fault.alert + " " + fault.label;
    fault.begin();
    auto begun = std::chrono::steady_clock::now();
    CHECK(eventually([&] {
      if (fault.end == nullptr && std::chrono::steady_clock::now() - begun > 6s) {
        fault.begin();
        begun = std::chrono::steady_clock::now();
      }
      return stage.prometheus->firing().contains(alert);
    }));
    if (fault.end != nullptr) fault.end();
    CHECK(eventually(all_is_well));
    tried.insert(fault.alert);
  }
  CHECK(tried == stage.prometheus->alerts());
}

}  // namespace
}  // namespace redlock::testing
