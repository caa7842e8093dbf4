// SPDX-License-Identifier: MIT
//
// What a fleet that outlives its program leaves in its directory, so that a later program finds it:
// a small text file, readable by its owner only, with one line for each node.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "process.hpp"
#include "unique_fd.hpp"

namespace redlock::cluster {

struct FleetRecord {
  struct Entry {
    std::uint16_t port = 0;
    ProcessId process;
  };
  std::string boot;  // pids and start times mean nothing after the machine was restarted
  std::string password;
  bool durable = false;  // the nodes were started with Persistence::always
  bool unix_sockets = false;
  std::vector<std::string> settings;  // further lines of redis.conf for every node
  std::vector<Entry> nodes;

  /// An empty record of this boot.
  static FleetRecord of_this_boot();

  /// What `directory` records, or nothing when no fleet is recorded there. Throws FleetError when
  /// the file cannot be understood.
  static std::optional<FleetRecord> load(const std::filesystem::path& directory);

  /// Replaces the record in one step: readers see the old one or the new one.
  void save(const std::filesystem::path& directory) const;

  /// Deletes the record, and a draft of one that was interrupted.
  static void erase(const std::filesystem::path& directory);
};

/// Keeps other programs and threads from changing the fleet of a directory while this object lives.
/// Throws FleetError when another program does not let go for ten seconds.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::filesystem::path& directory);
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  ~DirectoryLock();

 private:
  UniqueFd fd_;
};

}  // namespace redlock::cluster
