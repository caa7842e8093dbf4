// SPDX-License-Identifier: MIT
// One operation: what is asked of the engine, and where the answer goes. A blocking caller keeps
// its call on its own stack; an Operation is a call on the heap, which keeps itself from its start
// to its answer. Until the start a call belongs to the thread that made it, then to the loop
// thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <redlock/admin.hpp>
#include <redlock/callback.hpp>
#include <redlock/client.hpp>
#include <redlock/operation.hpp>

#include "client/held_locks.hpp"
#include "engine/engine.hpp"
#include "net/core.hpp"

namespace redlock::client {

/// What can be asked. `Answer` is what a caller gets; `ask_engine` gives it to the engine, on the
/// loop thread. `before_start`, of those that have it, is called on the caller's thread before; its
/// error is the answer, and nothing is sent.
struct AskAcquire {
  using Answer = Lease;
  engine::AcquireRequest request;
  std::stop_token stop;
  [[nodiscard]] std::optional<Error> before_start(Client::Impl& client) const;
  void ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id);
};
struct AskAttach {
  using Answer = Lease;
  engine::AttachRequest request;
  engine::Instant deadline = engine::never;
  std::stop_token stop;
  [[nodiscard]] std::optional<Error> before_start(Client::Impl& client) const;
  void ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id);
};
struct AskExtend {
  using Answer = BootClock::time_point;
  std::shared_ptr<Lease::State> lease;
  std::optional<std::chrono::milliseconds> length;  // none: only asks whether it is still ours
  [[nodiscard]] std::optional<Error> before_start(Client::Impl& client) const;
  void ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id);
};
/// Takes a name for an owner, to be held through the RedLock with this handle. If that RedLock is
/// destroyed before the answer, the level is given back.
struct AskTake {
  using Answer = std::size_t;  // how often it is held then
  HeldLocks::Key key;
  std::weak_ptr<HeldLocks::Handle> handle;
  engine::AcquireRequest request;
  std::stop_token stop;
  [[nodiscard]] std::optional<Error> before_start(Client::Impl& client) const;
  void ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id);
};
/// Leaves one level of what an owner holds. The answer to the last one comes when the lock is given
/// back; to an inner one at once, or else from the loop thread.
struct AskLeave {
  using Answer = Released;
  HeldLocks::Key key;
  std::weak_ptr<HeldLocks::Handle> handle;
  bool inner_answers_at_once = false;
  /// In place of posting the call: takes the level out of the table of what is held, and posts. The
  /// answer if it is known.
  [[nodiscard]] std::optional<Result<Released>> post(Client::Impl& client, net::Task& call);
  void ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id);
};
struct AskRelease {
  using Answer = Released;
  std::shared_ptr<Lease::State> lease;
  /// Ends the lease for its holder.
  [[nodiscard]] std::optional<Error> before_start(Client::Impl& client) const;
  void ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id);
};
struct AskReleaseGrant {
  using Answer = Released;
  engine::Name name;
  engine::OwnerId owner;
  std::chrono::milliseconds longest_lease{};
  void ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id);
};

struct AskForce {
  using Answer = ForcedRelease;
  engine::Name name;
  engine::OwnerId owner;
  std::chrono::milliseconds longest_lease{};
  void ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id);
};

/// The answer to an owner that leaves what it does not hold.
[[nodiscard]] Error not_held(const std::string& name);

/// A call as the client's loop sees it, whatever it asks.
class Call : public net::Task {
 public:
  explicit Call(Client::Impl& client) : client_(client) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Enters the call in the client's table and asks the engine; or fails it, if the client is
  /// closing.
  void run() final;

  /// Gives it to the engine, whose output Finish will have this number.
  virtual void ask_engine(engine::Instant now, engine::RequestId id) = 0;
  /// The name that is worked on.
  [[nodiscard]] virtual const std::string& name() const = 0;
  /// Exactly one of these two is called, once; the call may be gone afterwards.
  virtual void succeed(decltype(engine::Finish::result)&& result) noexcept = 0;
  virtual void fail(Error&& error) noexcept = 0;
  /// The client is closing: cancels what may wait long. The rest ends within the node timeout.
  virtual void close(engine::Instant now, engine::RequestId id) = 0;

 protected:
  ~Call() = default;
  [[nodiscard]] Client::Impl& client() const { return client_; }

 private:
  Client::Impl& client_;
};

/// Posts the cancellation of a request; called from whichever thread requests the stop.
struct Canceller {
  Client::Impl* client;
  engine::RequestId id;
  void operator()() const noexcept;
};

/// A call that asks this.
template <typename Ask>
class CallFor final : public Call, public PreparedOperation<typename Ask::Answer> {
 public:
  using Answer = typename Ask::Answer;

  CallFor(Client::Impl& client, Ask&& ask) : Call(client), ask_(std::move(ask)) {}

  /// The start of every operation, on the caller's thread: see PreparedOperation. `self` keeps this
  /// call until it is answered; null if the caller does.
  [[nodiscard]] std::optional<Result<Answer>> start(std::unique_ptr<PreparedOperation<Answer>> self,
                                                    Callback<Answer>& callback) noexcept override;

  /// For an Operation, which may be started after its client was destroyed.
  void keep(std::shared_ptr<Client::Impl> client) { kept_client_ = std::move(client); }

  void ask_engine(engine::Instant now, engine::RequestId id) override;
  [[nodiscard]] const std::string& name() const override;
  void succeed(decltype(engine::Finish::result)&& result) noexcept override;
  void fail(Error&& error) noexcept override;
  void close(engine::Instant now, engine::RequestId id) override;

 private:
  void complete(Result<Answer>&& result) noexcept;

  Ask ask_;
  std::shared_ptr<Client::Impl> kept_client_;
  std::optional<Callback<Answer>> callback_;
  std::unique_ptr<PreparedOperation<Answer>> self_;
  std::optional<std::stop_callback<Canceller>> stop_;
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
