// SPDX-License-Identifier: MIT
// The operation of Lease::async_lost(). From its start it keeps itself and stands in a list beside
// the lease (lease_state.hpp), without an allocation; the code that takes it out of there completes
// it.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>

#include <redlock/callback.hpp>
#include <redlock/operation.hpp>

#include "client/lease_state.hpp"
#include "net/task.hpp"

namespace redlock::client {

class LossWait final : public PreparedOperation<LossReason>, public net::Task {
 public:
  LossWait(std::shared_ptr<Lease::State> lease, std::stop_token stop)
      : lease_(std::move(lease)), stop_(std::move(stop)) {}

  [[nodiscard]] std::optional<Result<LossReason>> start(
      std::unique_ptr<PreparedOperation<LossReason>> self, Callback<LossReason>& callback) override;

  // Called by the code that took it out; the operation may be gone afterwards.

  void lose(LossReason reason) noexcept { complete(reason); }
  /// With `lost` if the lease was ended for its holder, or with `cancelled`: on the loop thread, or
  /// here if the client has none any more.
  void fail(Errc why) noexcept;

  [[nodiscard]] Error cancelled_error() const;

  // For the lease, with its mutex held.
  LossWait* next = nullptr;
  bool stopped = false;

 private:
  struct Cancel {
    LossWait* wait;
    void operator()() const noexcept {
      if (wait->lease_->stop_waiting(*wait)) wait->fail(Errc::cancelled);
    }
  };

  [[nodiscard]] std::optional<Result<LossReason>> begin();
  /// After fail().
  void run() override;
  void complete(Result<LossReason>&& result) noexcept;

  const std::shared_ptr<Lease::State> lease_;
  const std::stop_token stop_;
  Errc why_ = Errc::lost;
  std::optional<Callback<LossReason>> callback_;
  std::unique_ptr<PreparedOperation<LossReason>> self_;
  std::optional<std::stop_callback<Cancel>> on_stop_;
};

}  // namespace redlock::client
