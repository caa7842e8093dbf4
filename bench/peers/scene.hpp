// SPDX-License-Identifier: MIT
// The same five nodes for all peers, each peer's programs, and what may befall the nodes.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "bench/peers/etcd_cluster.hpp"
#include "bench/peers/program.hpp"
#include "bench/samples.hpp"
#include "cluster/fleet.hpp"
#include "cluster/temporary_directory.hpp"
#include "support/proxy.hpp"

namespace peers {

enum class On { quorum, one_node, etcd };
enum class NodeFault { stopped, killed };

/// One that is compared.
struct Peer {
  std::string name;
  On on = On::quorum;
  std::vector<std::string> command;
  std::string version = {};
  std::map<std::string, std::string> cells = {};  // by column: what the table shows
  std::vector<std::string> notes = {};

  [[nodiscard]] bool is_lock() const { return name != "bare hiredis"; }
  /// Its name as the beginning of its locks' names: peers share nodes, but no lock.
  [[nodiscard]] std::string tag() const {
    std::string text = name;
    std::erase_if(text, [](char c) { return c == ' ' || c == ','; });
    return text;
  }
};

/// What a peer's calls came to, of all rounds.
struct Figures {
  bench::Samples acquire;
  bench::Samples release;
  bench::Samples rates;  // as if they were us: a sample is a round's grants a second
  std::vector<std::size_t> grants;
  std::size_t failed = 0;
  std::size_t overlaps = 0;
  std::string error;
  std::string trouble;

  /// What one or more programs had in the same time.
  void add(const std::vector<json>& answers, std::chrono::milliseconds length) {
    std::size_t at = 0;
    double in_time = 0;
    for (const json& answer : answers) {
      const auto samples = [&](const char* of, bench::Samples& to) {
        for (const auto& time : answer.value(of, json::array())) {
          to.add(std::chrono::microseconds(time.get<std::int64_t>()));
        }
      };
      samples("acquire_us", acquire);
      samples("release_us", release);
      for (const auto& one : answer.value("grants", json::array())) {
        if (grants.size() <= at) grants.push_back(0);
        grants[at++] += one.get<std::size_t>();
        in_time += one.get<double>();
      }
      failed += answer.value("failed", std::size_t{0});
      overlaps += answer.value("overlaps", std::size_t{0});
      const json why = answer.value("error", json());
      if (error.empty() && why.is_string()) error = why.get<std::string>();
    }
    const double seconds = std::chrono::duration<double>(length).count();
    rates.add(std::chrono::nanoseconds(static_cast<std::int64_t>(1000 * in_time / seconds)));
  }
};

/// In memory where that can be: etcd writes each of its entries, and Redis none here.
inline std::filesystem::path place_for_data() {
  const std::filesystem::path memory = "/dev/shm";
  return std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
}

class Scene {
 public:
  Scene(std::vector<Peer>& peers, std::chrono::milliseconds lease) : peers_(peers), lease_(lease) {
    for (const Peer& peer : peers) {
      if (peer.on == On::etcd) etcd_ = std::make_unique<EtcdCluster>(reaper_, directory_);
    }
  }

  /// What goes to and from the nodes from now on by way of proxies takes this much longer.
  void delay(std::chrono::milliseconds each_way) {
    const auto put = [&](std::uint16_t port, auto& where) {
      where.push_back(std::make_unique<redlock::testing::Proxy>(port));
      where.back()->delay(each_way);
    };
    for (std::size_t node = 0; node < fleet_.size(); ++node) {
      put(fleet_.port(node), proxies_);
      if (etcd_) put(etcd_->port(node), etcd_proxies_);
    }
  }

  /// A program for the peer, ready. Throws Trouble if it is not.
  Program start(Peer& peer) {
    std::vector<std::string> command = peer.command;
    command.push_back(std::to_string(lease_.count()));
    for (std::size_t i = 0; i < fleet_.size(); ++i) command.push_back(address(peer, i));
    Program program(reaper_, directory_, command);
    peer.version = program.answer_within(std::chrono::seconds(60)).value.value("version", "");
    return program;
  }

  /// The one that those on one node use is the first of these.
  void befall(NodeFault fault, std::size_t node) {
    if (fault == NodeFault::stopped) {
      fleet_.pause(node);
      if (etcd_) etcd_->stop(node);
    } else {
      fleet_.kill(node);
      if (etcd_) etcd_->kill(node);
    }
  }

  /// How many running nodes have a key with this in its name.
  [[nodiscard]] std::size_t nodes_with(const std::string& name) const {
    std::size_t count = 0;
    for (std::size_t node = 0; node < fleet_.size(); ++node) {
      if (fleet_.state(node) != redlock::cluster::NodeState::running) continue;
      if (fleet_.run(node, {"KEYS", "*" + name + "*"}) != "(empty array)") ++count;
    }
    return count;
  }

  /// A file that does not exist, for holders to make.
  [[nodiscard]] std::string guard(const std::string& name) const {
    return (directory_ / ("guard-" + name)).string();
  }
  [[nodiscard]] std::vector<Peer>& peers() const { return peers_; }

  static constexpr std::size_t first_faulty = 1;

 private:
  [[nodiscard]] std::string address(const Peer& peer, std::size_t i) const {
    std::size_t node = i;
    if (peer.on == On::one_node) node = (i + first_faulty) % fleet_.size();
    const auto& proxies = peer.on == On::etcd ? etcd_proxies_ : proxies_;
    const auto direct = peer.on == On::etcd ? etcd_->port(node) : fleet_.port(node);
    return fmt::format("127.0.0.1:{}", proxies.empty() ? direct : proxies[node]->port());
  }

  std::vector<Peer>& peers_;
  std::chrono::milliseconds lease_;
  redlock::cluster::TemporaryDirectory place_{"redlock-peers", place_for_data()};
  std::filesystem::path directory_ = place_.path();
  redlock::cluster::Reaper reaper_{directory_};
  redlock::cluster::Fleet fleet_{{.nodes = 5}};
  std::unique_ptr<EtcdCluster> etcd_;
  std::vector<std::unique_ptr<redlock::testing::Proxy>> proxies_;
  std::vector<std::unique_ptr<redlock::testing::Proxy>> etcd_proxies_;
};

}  // namespace peers
