// SPDX-License-Identifier: MIT
//
// One redis-server of a fleet: its directory, its configuration file, its process. The directory
// outlives the process, so a node that was killed can come back with its data and on its port.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "node_client.hpp"
#include "process.hpp"

namespace redlock::cluster {

enum class NodeState { running, paused, ended };

class Node {
 public:
  Node(std::size_t index, std::filesystem::path directory, std::uint16_t port, std::string password)
      : index_(index),
        directory_(std::move(directory)),
        port_(port),
        password_(std::move(password)) {}

  [[nodiscard]] std::size_t index() const { return index_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  [[nodiscard]] std::filesystem::path socket() const { return directory_ / "redis.sock"; }
  [[nodiscard]] NodeState state() const;

  /// The process that runs, or ran last; pid -1 when there has been none.
  [[nodiscard]] ProcessId id() const { return id_; }

  /// Takes over a process that an earlier program started; none if it has ended.
  void adopt_process(ProcessId id);

  /// Makes the directory and the configuration file. `settings` go behind those of the fleet.
  void write_configuration(const std::string& settings) const;
  void move_to_port(std::uint16_t port) { port_ = port; }
  void forget_data() const;

  /// Starts the process without waiting for it.
  void launch(const std::string& program, pid_t group);

  /// Waits until the process that was launched answers PING. False: another program has taken the
  /// port. Throws FleetError with the server's own words when it ended for another reason.
  [[nodiscard]] bool await_ready(std::chrono::steady_clock::time_point deadline);

  /// Sends a signal without waiting for what it does.
  void signal(int number) const;
  void await_end() const;
  void pause() const;
  void resume() const;

  /// From now on connect() uses the node's Unix socket: its port is for TLS.
  void reach_by_socket() { by_socket_ = true; }
  [[nodiscard]] NodeClient connect(std::chrono::milliseconds timeout) const;

 private:
  /// As people count.
  [[nodiscard]] std::size_t number() const { return index_ + 1; }
  [[nodiscard]] const Process& running_process() const;
  [[nodiscard]] std::filesystem::path log() const { return directory_ / "log"; }
  [[nodiscard]] std::string log_since_launch() const;
  [[nodiscard]] bool answers() const;

  std::size_t index_;
  std::filesystem::path directory_;
  std::uint16_t port_;
  std::string password_;
  bool by_socket_ = false;
  ProcessId id_;
  std::optional<Process> process_;
  std::uintmax_t log_size_at_launch_ = 0;
};

}  // namespace redlock::cluster
