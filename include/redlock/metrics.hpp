// SPDX-License-Identifier: MIT
// An observer that counts, and prints its counters in the format of Prometheus.
#pragma once

#include <redlock/cpp20.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <redlock/error.hpp>
#include <redlock/export.hpp>
#include <redlock/observer.hpp>

namespace redlock {

/// Counters and histograms of everything that a client tells its observer:
///
///     auto metrics = std::make_shared<redlock::Metrics>();
///     auto client = redlock::Client::create({.nodes = nodes, .observer = metrics});
///     ... serve metrics->text() at /metrics ...
///
/// One object may observe several clients, which are then counted together; for a node that several
/// of them have, it shows the latest state that was reported. No lock's name becomes a label,
/// because the number of names has no bound. docs/metrics.md has the list of metrics, with the
/// alerts that are worth having.
///
/// Every member may be called from any thread. Each answer of a node costs the lock of a mutex,
/// which is uncontended unless text() runs, and a search in a tree of nodes.
class REDLOCK_EXPORT Metrics : public Observer {
 public:
  Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics() override;

  /// All metrics in Prometheus' text format, version 0.0.4 (content type "text/plain;
  /// version=0.0.4"): each family with its HELP and TYPE, durations in seconds. Families without a
  /// value appear without a line of values.
  [[nodiscard]] std::string text() const;

  /// To pass the events on to another observer as well, override these functions and call them.
  void on_node_added(std::string_view node) override;
  void on_node_removed(std::string_view node) override;
  void on_node_up(std::string_view node, std::string_view warning) override;
  void on_node_down(std::string_view node, Cause cause, std::string_view detail) override;
  void on_clock_moved(std::string_view node, std::chrono::nanoseconds by, bool ours) override;
  void on_attempt(std::string_view name, const Errc* code, const std::vector<NodeVote>& votes,
                  std::chrono::nanoseconds elapsed) override;
  void on_waiting(std::string_view name, std::size_t place) override;
  void on_call(std::string_view name, const Errc* code) override;
  void on_acquired(std::string_view name, std::uint64_t token,
                   std::chrono::nanoseconds waited) override;
  void on_released(std::string_view name, std::uint64_t token,
                   std::chrono::nanoseconds held) override;
  void on_renewal(std::string_view name, bool ok, std::chrono::nanoseconds remaining) override;
  void on_lost(std::string_view name, std::uint64_t token, LossReason reason) override;
  void on_release_failed(std::string_view name, const Error& error) override;
  void on_answer(const NodeAnswer& answer) override;
  void on_closed(const CloseReport& report) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace redlock
