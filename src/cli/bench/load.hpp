// SPDX-License-Identifier: MIT
// The callers of `redlock bench`: threads that take a lock, lengthen it and give it back, each
// cycle at a moment that was fixed before (open loop), so that a slow answer delays no measurement
// but shows in all that were due meanwhile.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <redlock/redlock.hpp>

#include "cli/bench/measurements.hpp"
#include "cli/bench/settings.hpp"
#include "cli/file_descriptor.hpp"

namespace redlock::cli {

class Load {
 public:
  /// Callers use the clients in turn. All must outlive the load.
  Load(const BenchSettings& settings, const std::vector<Client>& clients,
       const std::vector<std::string>& names, Recorder& recorder);
  /// Stops.
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  /// Starts the callers; once.
  void start();
  /// Readable when the last caller has ended: at the end of the time, or when the last wait is
  /// over.
  [[nodiscard]] int ended_fd() const noexcept { return ended_.fd(); }
  [[nodiscard]] bool ended() const noexcept { return running_ == 0; }
  [[nodiscard]] BootClock::time_point began() const noexcept { return began_; }
  [[nodiscard]] BootClock::time_point end() const noexcept { return end_; }
  /// Ends the calls under way, and waits until every caller has given back its lock.
  void stop();

 private:
  /// A lock that callers contend for: when it was given back last.
  struct GivenBack {
    std::mutex mutex;
    std::optional<BootClock::time_point> given_back;
  };

  void call(std::size_t caller);
  /// When the cycle of this number is due; nothing if that is not fixed.
  [[nodiscard]] BootClock::time_point due(std::uint64_t number) const;
  [[nodiscard]] bool sleep_until(BootClock::time_point when);
  void cycle(std::size_t caller, std::uint64_t round, BootClock::time_point intended);
  void note_grant(GivenBack& turn, BootClock::time_point began, BootClock::time_point granted);

  const BenchSettings settings_;
  const std::vector<Client>& clients_;
  const std::vector<std::string>& names_;
  std::vector<std::unique_ptr<GivenBack>> turns_;  ///< by name
  Recorder& recorder_;
  Event ended_;
  BootClock::time_point began_;
  BootClock::time_point end_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::size_t> running_{0};
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::vector<std::thread> threads_;
};

}  // namespace redlock::cli
