// SPDX-License-Identifier: MIT
// The releases by which a client ends: a part of them at a time, so that the releases under way are
// answered within a node timeout, and how long to wait for their answers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_set>

#include <redlock/clock.hpp>
#include <redlock/observer.hpp>

#include "engine/engine.hpp"

namespace redlock::client {

/// Only by the thread that drives.
class FinalReleases {
 public:
  /// `last_request` is the client's, by which its requests are numbered; it must outlive this.
  FinalReleases(std::chrono::milliseconds node_timeout, engine::RequestId& last_request)
      : node_timeout_(node_timeout), last_request_(last_request) {}

  void begin(engine::Instant now, std::chrono::milliseconds at_most);
  /// Adds a lease to be released. A lease that waits for its turn is not renewed meanwhile.
  void add(engine::Engine& engine, engine::Instant now, engine::GrantId grant);
  void release_some(engine::Engine& engine);
  /// The request may be one of another kind.
  void on_finish(engine::Engine& engine, const engine::Finish& finish);
  /// For a quorum of answers, then for the slowest nodes: when to look again; nothing: enough.
  /// `others_under_way`: whether there are calls or leases beside these.
  [[nodiscard]] std::optional<std::chrono::microseconds> await_answers(engine::Engine& engine,
                                                                       bool others_under_way);
  /// No release is confirmed any more; that many leases are unconfirmed.
  void abandon(std::size_t leases);
  [[nodiscard]] const CloseReport& report() const { return report_; }

 private:
  struct Progress {
    bool quorum_awaited = true;    ///< answers that decide are to come
    bool only_dropped = false;     ///< none of leases, only of those that were dropped before
    std::size_t confirmed = 0;     ///< leases
    std::size_t unanswered = 0;    ///< releases, by all nodes
    bool taken_elsewhere = false;  ///< the grant of one of these, by another client
  };
  [[nodiscard]] Progress progress(const engine::Engine& engine, bool others_under_way) const;
  [[nodiscard]] bool quorum_is_worth_waiting(const Progress& current);
  [[nodiscard]] bool stragglers_are_worth_waiting(const Progress& current);
  /// Sends the releases that cannot be confirmed in time.
  void release_rest(engine::Engine& engine);

  const std::chrono::milliseconds node_timeout_;
  engine::RequestId& last_request_;
  /// The releases that no quorum has confirmed, and the leases that are still to be released.
  std::unordered_set<engine::RequestId> under_way_;
  std::deque<engine::GrantId> waiting_;
  CloseReport report_;
  /// The number of awaited answers, and when the last answer came.
  bool for_quorum_ = true;
  engine::Instant end_{};
  engine::Instant last_progress_{};
  Progress before_{};
  std::chrono::microseconds pause_{50};
};

}  // namespace redlock::client
