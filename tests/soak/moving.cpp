// SPDX-License-Identifier: MIT
// One client holds many renewed leases over five nodes that it knows by name, and all of its
// connections break at once: again and again by CLIENT KILL, and then because every node is killed
// and comes back with its data at another address. No lease may be lost, every one must be renewed
// after each break, and nothing may be left when they were given back.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <redlock/redlock.hpp>

#include "cluster/fleet.hpp"
#include "soak/names.hpp"
#include "soak/verdict.hpp"

namespace {

using namespace redlock;
using namespace std::chrono_literals;
using cluster::Fleet;

constexpr std::size_t nodes = 5;
constexpr std::size_t at_once = 100;  // are acquired

struct Plan {
  std::size_t leases = 1000;
  int lease = 9;
  std::size_t breaks = 20;
  std::size_t moves = 4;
};

/// Which leases were renewed since the last break, and what else happens to them.
class Watch final : public Observer {
 public:
  explicit Watch(std::size_t leases) : renewed_after_(leases) {}

  void on_renewal(std::string_view name, bool ok, std::chrono::nanoseconds) override {
    ++(ok ? renewals : failed_renewals);
    if (ok) renewed_after_[index_of(name)] = breaks.load();
  }
  void on_lost(std::string_view name, std::uint64_t, LossReason reason) override {
    if (++lost <= 3) fmt::print("{} was lost: {}\n", name, to_string(reason));
  }
  void on_node_down(std::string_view, Cause, std::string_view) override { ++broken_connections; }

  [[nodiscard]] bool all_renewed() const {
    return std::ranges::all_of(renewed_after_, [&](const auto& after) { return after == breaks; });
  }

  std::atomic<std::size_t> breaks = 0;
  std::atomic<std::size_t> renewals = 0;
  std::atomic<std::size_t> failed_renewals = 0;
  std::atomic<std::size_t> lost = 0;
  std::atomic<std::size_t> broken_connections = 0;

 private:
  static std::size_t index_of(std::string_view name) {
    return std::stoul(std::string(name.substr(name.rfind(':') + 1)));
  }
  std::vector<std::atomic<std::size_t>> renewed_after_;
};

class Run {
 public:
  explicit Run(const Plan& plan) : plan_(plan) {}

  bool run() {
    const Client client = start();
    acquire(client);
    for (std::size_t i = 0; i < plan_.breaks; ++i) {
      if (i % 2 == 1) await_renewal();  // to break a round of them; otherwise right after one
      break_and_wait("all connections dropped", [&] { drop_connections(); });
    }
    for (std::size_t i = 0; i < plan_.moves; ++i) {
      const std::string to = i % 2 == 0 ? "127.0.0.3" : "127.0.0.2";
      break_and_wait("all nodes moved to " + to, [&] { move_nodes(to); });
      if (!all_connected_to(to)) return false;
    }
    return release() && watch_->lost == 0;
  }

 private:
  Client start() {
    ClientOptions options;
    for (std::size_t node = 0; node < nodes; ++node) {
      options.nodes.push_back(fmt::format("redis://node-{}.example:{}", node, fleet_.port(node)));
    }
    options.observer = watch_;
    // A busy machine must not look like a node that is gone.
    options.node_timeout = options.connect_timeout = options.resolve_timeout = 10s;
    soak::set_address("127.0.0.2");
    auto client = Client::create(std::move(options));
    if (!client) throw std::runtime_error(client.error().message);
    return std::move(*client);
  }

  void acquire(const Client& client) {
    while (leases_.size() < plan_.leases) {
      std::vector<std::future<Result<Lease>>> granted;
      const auto end = std::min(plan_.leases, leases_.size() + at_once);
      for (std::size_t i = leases_.size(); i < end; ++i) {
        granted.push_back(client.lock(fmt::format("moving:{}", i))
                              .async_acquire({.lease = std::chrono::seconds(plan_.lease),
                                              .renewal = Renewal::always,
                                              .wait = 30s})
                              .as_future());
      }
      for (auto& each : granted) {
        auto lease = each.get();
        if (!lease) throw std::runtime_error(lease.error().message);
        leases_.push_back(std::move(*lease));
      }
    }
    fmt::print("{} leases of {} s over {} nodes\n", leases_.size(), plan_.lease, nodes);
  }

  void await_renewal() const {
    const std::size_t before = watch_->renewals;
    while (watch_->renewals == before) std::this_thread::sleep_for(1ms);
  }

  /// Waits until every lease was renewed after the break.
  void break_and_wait(const std::string& what, const std::function<void()>& cause) {
    const std::size_t broken_before = watch_->broken_connections;
    cause();
    ++watch_->breaks;
    const auto patience = BootClock::now() + std::chrono::seconds(3 * plan_.lease);
    while (watch_->broken_connections < broken_before + nodes || !watch_->all_renewed()) {
      if (BootClock::now() > patience) throw std::runtime_error("not all are renewed");
      std::this_thread::sleep_for(10ms);
    }
    fmt::print("{}, and all leases were renewed: {} renewals so far, {} not in time; {} lost\n",
               what, watch_->renewals.load(), watch_->failed_renewals.load(), watch_->lost.load());
    std::fflush(stdout);
  }

  void on_every_node(const std::function<void(std::size_t)>& act) {
    std::vector<std::future<void>> acts;
    for (std::size_t node = 0; node < nodes; ++node) {
      acts.push_back(std::async(std::launch::async, act, node));
    }
    for (auto& each : acts) each.get();
  }

  void drop_connections() {
    on_every_node([&](std::size_t node) {
      // To the server what is subscribed is of a type of its own.
      for (const char* type : {"normal", "pubsub"}) {
        fleet_.run(node, {"CLIENT", "KILL", "TYPE", type});
      }
    });
  }

  /// The names lead elsewhere once the nodes are gone; where they were, nobody listens any more.
  void move_nodes(const std::string& to) {
    on_every_node([&](std::size_t node) { fleet_.kill(node); });
    soak::set_address(to);
    on_every_node([&](std::size_t node) {
      std::ofstream file(fleet_.directory(node) / "redis.conf", std::ios::app);
      file << "bind 127.0.0.1 " << to << '\n';
      file.close();
      fleet_.restart(node, cluster::Data::kept);
    });
  }

  [[nodiscard]] bool all_connected_to(const std::string& address) const {
    for (std::size_t node = 0; node < nodes; ++node) {
      const auto clients = fleet_.run(node, {"CLIENT", "LIST"});
      if (clients.find(fmt::format("laddr={}:{} ", address, fleet_.port(node))) ==
          std::string::npos) {
        fmt::print("node {} has no connection at {}\n", node + 1, address);
        return false;
      }
    }
    return true;
  }

  /// True if every lease was held to the end, and no node has a lock left.
  bool release() {
    std::size_t released = 0;
    std::vector<std::future<Result<Released>>> answers;
    for (Lease& lease : leases_) answers.push_back(lease.async_release().as_future());
    for (auto& answer : answers) {
      const auto result = answer.get();
      if (result && *result == Released::released) ++released;
    }
    // Not so long that what was left would have expired.
    const auto patience = BootClock::now() + std::chrono::milliseconds(1000 * plan_.lease / 3);
    while (keys_left() > 0 && BootClock::now() < patience) std::this_thread::sleep_for(10ms);
    const std::size_t left = keys_left();
    fmt::print("{} of {} released; {} keys left; {} names looked up\n", released, leases_.size(),
               left, soak::look_ups());
    return released == leases_.size() && left == 0;
  }

  [[nodiscard]] std::size_t keys_left() const {
    std::size_t count = 0;
    for (std::size_t node = 0; node < nodes; ++node) {
      const auto keys = fleet_.run(node, {"KEYS", "redlock:lock:*"});
      if (keys == "(empty array)") continue;
      count += 1 + static_cast<std::size_t>(std::ranges::count(keys, '\n'));
    }
    return count;
  }

  Plan plan_;
  Fleet fleet_{{.nodes = nodes,
                .persistence = cluster::Persistence::always,
                .adopted = true,
                .settings = {"bind 127.0.0.1 127.0.0.2"}}};
  std::shared_ptr<Watch> watch_ = std::make_shared<Watch>(plan_.leases);
  std::vector<Lease> leases_;
};

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  CLI::App app{"Holds many leases while all connections break, and while all nodes move."};
  app.add_option("--leases", plan.leases, "how many; default 1000");
  app.add_option("--lease", plan.lease, "seconds; default 9")->check(CLI::Range(1, 60));
  app.add_option("--breaks", plan.breaks, "how often all connections are dropped; default 20");
  app.add_option("--moves", plan.moves, "how often all nodes move; default 4");
  CLI11_PARSE(app, argc, argv);
  return redlock::soak::verdict_of("soak_moving", [&] { return Run(plan).run(); });
}
