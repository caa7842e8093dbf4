// SPDX-License-Identifier: MIT
// Takes the lock while handling signals, and shows the progress of the wait. For exec and acquire.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <redlock/redlock.hpp>

#include "cli/signals.hpp"

namespace redlock::cli {

/// Records every attempt of the client whose observer it is (ClientOptions::observer), so that a
/// wait without a time limit can end when no attempt can succeed. It counts as well, for --metrics.
class AttemptWatch : public Metrics {
 public:
  void on_node_up(std::string_view node, std::string_view warning) override;
  void on_node_down(std::string_view node, Cause cause, std::string_view detail) override;
  void on_attempt(std::string_view name, const Errc* code, const std::vector<NodeVote>& votes,
                  std::chrono::nanoseconds elapsed) override;
  void on_waiting(std::string_view name, std::size_t place) override;

  /// Whether any node has ever answered, even with a refusal.
  [[nodiscard]] bool reached_a_node() const noexcept { return reached_; }
  /// Notified at every failed attempt, and at every change of the place in the line.
  [[nodiscard]] const Event& event() const noexcept { return event_; }
  /// The last attempt's failure since the last call, if there was one.
  [[nodiscard]] std::optional<Error> take();
  /// How many waiters are before the call; none until that is known.
  [[nodiscard]] std::optional<std::size_t> place() const;

 private:
  Event event_;
  mutable std::mutex mutex_;
  std::optional<Error> failed_;
  std::optional<std::size_t> place_;
  std::atomic<bool> reached_ = false;
};

/// How long a wait without --wait goes on while no node answers at all.
inline constexpr std::chrono::seconds unreachable_for{10};
enum class IfUnreachable { go_on, give_up };
enum class Progress { shown, silent };

/// The lease. Throws Exit: with the code of the error; 128 + N if a signal ended the wait; 78 as
/// soon as an attempt shows that the nodes' configuration keeps it from ever succeeding; 69 if it
/// is to give up and no node has ever answered. Nothing is held then.
[[nodiscard]] Lease wait_for_lock(const Client& client, AttemptWatch& watch, const Signals& signals,
                                  const std::string& name, AcquireOptions options,
                                  IfUnreachable if_unreachable,
                                  Progress progress = Progress::shown);

}  // namespace redlock::cli
