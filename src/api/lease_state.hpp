// SPDX-License-Identifier: MIT
// What a Lease and the loop thread share. The loop writes the validity and the loss; any thread
// reads them without a lock. It is also the task that gives the lock back when a Lease is dropped,
// so that a destructor has nothing to allocate.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include <redlock/client.hpp>
#include <redlock/lease.hpp>

#include "engine/engine.hpp"
#include "io/core.hpp"

namespace redlock {

struct REDLOCK_NO_EXPORT Lease::State final : io::Task {
  enum class Parting : std::uint8_t { release, detach };

  State(std::shared_ptr<Client::Impl> client, engine::Name name,
        const engine::AcquireSucceeded& granted);

  /// Posts the end of this lease without waiting for it.
  static void part(std::shared_ptr<State> state, Parting how) noexcept;

  /// Posts that one level of it is left (there are others). `callback`, if any, is told what was
  /// found once that is done.
  static void leave(std::shared_ptr<State> state, Callback<Released> callback = nullptr);
  /// What somebody finds who leaves a level of it now.
  [[nodiscard]] Released found_by_leaving() const noexcept;

  [[nodiscard]] BootClock::time_point valid_until() const noexcept;
  [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept;
  [[nodiscard]] std::optional<LossReason> loss_reason() const noexcept;
  [[nodiscard]] std::stop_token lost() noexcept;

  // By the loop thread.
  void run() override;
  void confirm(BootClock::time_point valid_until) noexcept;
  void lose(LossReason reason) noexcept;

  const std::shared_ptr<Client::Impl> client;
  const engine::GrantId grant;
  const engine::Name name;
  const engine::Token token;
  const engine::OwnerId owner;

 private:
  /// Made when somebody asks: most leases of a program that holds many are never asked.
  std::stop_source lost_{std::nostopstate};
  std::atomic<BootClock::rep> valid_until_;
  /// A LossReason + 1, or 0.
  std::atomic<std::uint8_t> loss_{0};
  Parting parting_ = Parting::release;
  /// Keeps the posted task alive until it has run.
  std::shared_ptr<State> self_;
};

}  // namespace redlock
