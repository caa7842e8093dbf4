// SPDX-License-Identifier: MIT
// Takes the lock while listening to signals, and says once what it waits for. For exec and acquire.
#pragma once

#include <memory>
#include <string>

#include <redlock/redlock.hpp>

#include "cli/signals.hpp"

namespace redlock::cli {

/// Hears of every attempt of the client that it is given to (ClientOptions::observer), which is
/// how a wait without end learns that it could never succeed.
class AttemptWatch : public Observer {
 public:
  void on_attempt(std::string_view name, const Errc* code, const std::vector<NodeVote>& votes,
                  std::chrono::nanoseconds elapsed) override;

  /// Notified at every failed attempt.
  [[nodiscard]] const Event& event() const noexcept { return event_; }
  /// The last attempt's failure since the last call, if there was one.
  [[nodiscard]] std::optional<Error> take();

 private:
  Event event_;
  std::mutex mutex_;
  std::optional<Error> failed_;
};

/// The lease. Throws Exit: with the code of the error; 128 + N if a signal ended the wait; 78 as
/// soon as an attempt shows that the nodes' configuration keeps it from ever succeeding. Nothing is
/// held then.
[[nodiscard]] Lease wait_for_lock(const Client& client, AttemptWatch& watch, const Signals& signals,
                                  const std::string& name, AcquireOptions options);

}  // namespace redlock::cli
