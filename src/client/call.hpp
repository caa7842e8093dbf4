// SPDX-License-Identifier: MIT
// One operation as the client's loop sees it, whatever it asks; call_for.hpp has the rest.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <redlock/callback.hpp>
#include <redlock/client.hpp>
#include <redlock/operation.hpp>

#include "engine/engine.hpp"
#include "net/task.hpp"

namespace redlock::client {

using EngineResult = decltype(engine::Finish::result);

/// What a caller gets who asks this: see call_for.hpp.
template <typename Ask>
using SuccessOf = typename decltype(std::declval<const Ask&>().read(
    std::declval<Client::Impl&>(), std::declval<const EngineResult&>()))::value_type;

/// A call as the client's loop sees it.
class Call : public net::Task {
 public:
  /// Whether a thread waits for the answer, which then runs no code of users.
  enum class Waits { elsewhere, here };

  Call(Client::Impl& client, Waits where) : client_(client), blocking_(where == Waits::here) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  [[nodiscard]] bool blocking() const { return blocking_; }
  /// The thread that waits for the answer has the loop's seat, and is to run this call there.
  [[nodiscard]] bool seated() const { return seated_; }
  void set_seated() { seated_ = true; }

  /// Enters the call in the client's table and asks the engine; or fails it, if the client is
  /// closing.
  void run() final;

  /// Gives it to the engine, whose output Finish will have this number.
  virtual void ask_engine(engine::Instant now, engine::RequestId id) = 0;
  /// The name that is worked on.
  [[nodiscard]] virtual const std::string& name() const = 0;
  /// Exactly one of these two is called, once; the call may be gone afterwards.
  virtual void succeed(const EngineResult& result) noexcept = 0;
  virtual void fail(Error&& error) noexcept = 0;
  /// The client is closing: cancels what may wait long. The rest ends within the node timeout.
  virtual void close(engine::Instant now, engine::RequestId id) = 0;

 protected:
  ~Call() = default;
  [[nodiscard]] Client::Impl& client() const { return client_; }

 private:
  Client::Impl& client_;
  const bool blocking_;
  bool seated_ = false;
};

/// The operation whose result is known before it starts.
template <typename T>
class FailedOperation final : public PreparedOperation<T> {
 public:
  explicit FailedOperation(Error error) : error_(std::move(error)) {}
  [[nodiscard]] std::optional<Result<T>> start(std::unique_ptr<PreparedOperation<T>> /*self*/,
                                               Callback<T>& /*callback*/) noexcept override {
    return tl::make_unexpected(std::move(error_));
  }

 private:
  Error error_;
};

template <typename T>
[[nodiscard]] Operation<T> failed_operation(Error error) {
  return Operation<T>(std::make_unique<FailedOperation<T>>(std::move(error)));
}

}  // namespace redlock::client
