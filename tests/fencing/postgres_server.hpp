// SPDX-License-Identifier: MIT
// A PostgreSQL server of the test's own, on a Unix socket in a directory of its own. It leaves
// nothing behind, not even when the test is killed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/process.hpp"
#include "cluster/reaper.hpp"
#include "support/temporary_directory.hpp"

namespace redlock::testing {

class PostgresServer {
 public:
  /// Whether the server's programs are on this machine: in PATH, or where Debian puts them.
  static bool is_installed();

  /// Returns when it takes connections. Throws FleetError with the server's own words. The server
  /// ends with the thread that makes it.
  PostgresServer();

  /// For libpq.
  [[nodiscard]] std::string connection() const;

 private:
  struct Server {
    explicit Server(cluster::Process started) : process(std::move(started)) {}
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server();
    cluster::Process process;
  };

  [[nodiscard]] cluster::Process start(const std::string& program,
                                       const std::vector<std::string>& arguments) const;
  [[nodiscard]] std::string log() const;

  TemporaryDirectory directory_;
  cluster::Reaper reaper_;
  std::optional<Server> server_;
};

}  // namespace redlock::testing
