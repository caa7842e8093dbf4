// SPDX-License-Identifier: MIT
// Metrics as a file for other programs (the textfile collector of Prometheus' node_exporter):
// complete at every moment, new every ten seconds.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include <redlock/metrics.hpp>

namespace redlock::cli {

class MetricsFile {
 public:
  /// Writes it at once, and again from a thread of its own. Throws Exit if it cannot be written.
  MetricsFile(std::filesystem::path path, std::shared_ptr<const Metrics> metrics);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  /// Writes the file for the last time. Reports on stderr if that fails.
  void finish() noexcept;

 private:
  void keep_writing();
  void write() const;

  std::filesystem::path path_;
  std::filesystem::path fresh_;
  std::shared_ptr<const Metrics> metrics_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::thread writer_;
};

}  // namespace redlock::cli
