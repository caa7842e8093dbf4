// SPDX-License-Identifier: MIT
//
// The smallest Redis client that tests and the fleet need: one connection, one command at a time,
// the reply as text. It shares nothing with the library, so that a test's check does not lean on
// the code that it checks.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "unique_fd.hpp"

namespace redlock::cluster {

class NodeClient {
 public:
  /// Connects to 127.0.0.1. Throws FleetError when nobody answers within the timeout, which is also
  /// the time that each command may take.
  explicit NodeClient(std::uint16_t port,
                      std::chrono::milliseconds timeout = std::chrono::seconds(30));

  /// Connects to a Unix socket.
  explicit NodeClient(const std::filesystem::path& socket,
                      std::chrono::milliseconds timeout = std::chrono::seconds(30));

  /// Sends one command and waits for its reply. A nil reads "(nil)", an empty array "(empty
  /// array)", an error "(error) CODE text"; the items of an array stand on lines of their own.
  std::string command(const std::vector<std::string>& argv);

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  void send_all(std::string_view bytes, Deadline deadline);
  void fill(Deadline deadline);
  std::string read_line(Deadline deadline);
  std::string read_bytes(std::size_t count, Deadline deadline);
  std::string read_reply(Deadline deadline);
  void await(short event, Deadline deadline);

  void await_connected(int result);
  [[noreturn]] void fail(const char* what, int error) const;

  std::string where_;
  std::chrono::milliseconds timeout_;
  UniqueFd fd_;
  std::string received_;
};

}  // namespace redlock::cluster
