// SPDX-License-Identifier: MIT
// A PostgreSQL server of the test's own, on a Unix socket in a directory of its own. It leaves
// nothing behind, not even when the test is killed.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/process.hpp"
#include "cluster/reaper.hpp"

namespace redlock::testing {

class PostgresServer {
 public:
  /// Whether the server's programs are on this machine: in PATH, or where Debian puts them.
  static bool is_installed();

  /// Returns when it takes connections. Throws FleetError with the server's own words.
  PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;
  ~PostgresServer();

  /// For libpq.
  [[nodiscard]] std::string connection() const;

 private:
  cluster::Process start(const std::string& program, const std::vector<std::string>& arguments);
  [[nodiscard]] std::string log() const;

  std::filesystem::path directory_;
  cluster::Reaper reaper_;
  std::optional<cluster::Process> server_;
};

}  // namespace redlock::testing
