// SPDX-License-Identifier: MIT
// Five etcd servers on loopback that end with this program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <signal.h>
#include <string>
#include <vector>

#include "cluster/free_port.hpp"
#include "cluster/process.hpp"
#include "cluster/reaper.hpp"

namespace peers {

class EtcdCluster {
 public:
  static constexpr std::size_t size = 5;

  /// Keeps its data below `directory`. It has a leader some time after this returns.
  EtcdCluster(const redlock::cluster::Reaper& reaper, const std::filesystem::path& directory) {
    std::string all;
    std::vector<std::string> peer_urls;
    for (std::size_t i = 0; i < size; ++i) {
      clients_.push_back(redlock::cluster::FreePort::pick());
      peers_.push_back(redlock::cluster::FreePort::pick());
      peer_urls.push_back(fmt::format("http://127.0.0.1:{}", peers_[i].number()));
      all += fmt::format("{}m{}={}", i == 0 ? "" : ",", i, peer_urls[i]);
    }
    for (std::size_t i = 0; i < size; ++i) {
      const std::string client_url = fmt::format("http://127.0.0.1:{}", clients_[i].number());
      redlock::cluster::SpawnRequest request;
      request.argv = {"etcd",
                      "--name",
                      fmt::format("m{}", i),
                      "--data-dir",
                      (directory / fmt::format("m{}", i)).string(),
                      "--listen-client-urls",
                      client_url,
                      "--advertise-client-urls",
                      client_url,
                      "--listen-peer-urls",
                      peer_urls[i],
                      "--initial-advertise-peer-urls",
                      peer_urls[i],
                      "--initial-cluster",
                      all,
                      "--log-level",
                      "error"};
      request.group = reaper.group();
      request.output = directory / fmt::format("m{}.log", i);
      members_.push_back(redlock::cluster::Process::spawn(request));
    }
  }
  EtcdCluster(const EtcdCluster&) = delete;
  EtcdCluster& operator=(const EtcdCluster&) = delete;
  ~EtcdCluster() {
    for (std::size_t i = 0; i < size; ++i) kill(i);
  }

  [[nodiscard]] std::uint16_t port(std::size_t member) const { return clients_[member].number(); }
  void stop(std::size_t member) const { members_[member].signal(SIGSTOP); }
  void kill(std::size_t member) const {
    members_[member].signal(SIGKILL);
    members_[member].await_end(std::chrono::seconds(10));
  }

 private:
  std::vector<redlock::cluster::FreePort> clients_;
  std::vector<redlock::cluster::FreePort> peers_;
  std::vector<redlock::cluster::Process> members_;
};

}  // namespace peers
