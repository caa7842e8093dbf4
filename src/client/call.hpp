// SPDX-License-Identifier: MIT
// One operation under way: what is asked of the engine, and where the answer goes. A blocking
// caller keeps its call on its own stack; every other form has one on the heap that ends itself.
// All members run on the loop thread, but for the constructor and BlockingCall::wait().
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <semaphore>
#include <stop_token>
#include <utility>

#include <redlock/admin.hpp>
#include <redlock/client.hpp>

#include "engine/engine.hpp"
#include "net/core.hpp"

namespace redlock::client {

/// What can be asked. `Answer` is what a caller gets; `start` hands it to the engine.
struct AskAcquire {
  using Answer = Lease;
  engine::AcquireRequest request;
  std::stop_token stop;
  void start(engine::Engine& engine, engine::Instant now, engine::RequestId id);
};
struct AskAttach {
  using Answer = Lease;
  engine::AttachRequest request;
  std::stop_token stop;
  void start(engine::Engine& engine, engine::Instant now, engine::RequestId id);
};
struct AskExtend {
  using Answer = BootClock::time_point;
  std::shared_ptr<Lease::State> lease;
  std::optional<std::chrono::milliseconds> length;  // none: only asks whether it is still ours
  void start(engine::Engine& engine, engine::Instant now, engine::RequestId id);
};
struct AskEnter {
  using Answer = std::uint32_t;  // how often it is held then
  std::shared_ptr<Lease::State> lease;
  std::chrono::milliseconds length{};
  bool renew = false;
  void start(engine::Engine& engine, engine::Instant now, engine::RequestId id);
};
struct AskRelease {
  using Answer = Released;
  std::shared_ptr<Lease::State> lease;
  void start(engine::Engine& engine, engine::Instant now, engine::RequestId id);
};
struct AskReleaseGrant {
  using Answer = Released;
  engine::Name name;
  engine::OwnerId owner;
  std::chrono::milliseconds longest_lease{};
  void start(engine::Engine& engine, engine::Instant now, engine::RequestId id);
};

struct AskForce {
  using Answer = ForcedRelease;
  engine::Name name;
  engine::OwnerId owner;
  std::chrono::milliseconds longest_lease{};
  void start(engine::Engine& engine, engine::Instant now, engine::RequestId id);
};

/// What every call is to the client's loop, whatever it asks.
class Call : public net::Task {
 public:
  explicit Call(Client::Impl& client) : client_(client) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Enters the call in the client's table and starts it; or fails it, if the client is closing.
  void run() final;

  virtual void start(engine::Engine& engine, engine::Instant now, engine::RequestId id) = 0;
  /// The name that is worked on.
  [[nodiscard]] virtual const std::string& name() const = 0;
  /// Exactly one of these two is called, once; the call may be gone afterwards.
  virtual void succeed(decltype(engine::Finish::result)&& result) noexcept = 0;
  virtual void fail(Error&& error) noexcept = 0;
  /// Ends it with `closed` as soon as that is safe.
  virtual void close(engine::Engine& engine, engine::Instant now, engine::RequestId id) = 0;

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

template <typename Ask>
class CallFor : public Call {
 public:
  using Answer = typename Ask::Answer;

  CallFor(Client::Impl& client, Ask&& ask) : Call(client), ask_(std::move(ask)) {}

  void start(engine::Engine& engine, engine::Instant now, engine::RequestId id) final;
  [[nodiscard]] const std::string& name() const final;
  void succeed(decltype(engine::Finish::result)&& result) noexcept final;
  void fail(Error&& error) noexcept final;
  void close(engine::Engine& engine, engine::Instant now, engine::RequestId id) final;

 protected:
  ~CallFor() = default;
  virtual void complete(Result<Answer>&& result) noexcept = 0;

 private:
  Ask ask_;
  std::optional<std::stop_callback<Canceller>> stop_;
};

template <typename Ask>
class BlockingCall final : public CallFor<Ask> {
 public:
  using CallFor<Ask>::CallFor;
  using typename CallFor<Ask>::Answer;

  Result<Answer> wait() {
    ready_.acquire();
    return std::move(*result_);
  }

 private:
  void complete(Result<Answer>&& result) noexcept override {
    result_.emplace(std::move(result));
    ready_.release();
  }

  std::optional<Result<Answer>> result_;
  std::binary_semaphore ready_{0};
};

template <typename Ask>
class CallbackCall final : public CallFor<Ask> {
 public:
  using typename CallFor<Ask>::Answer;

  CallbackCall(Client::Impl& client, Ask&& ask, Callback<Answer>&& callback)
      : CallFor<Ask>(client, std::move(ask)), callback_(std::move(callback)) {}

  /// For a call that could not be posted.
  [[nodiscard]] Callback<Answer> take_callback() { return std::move(callback_); }

 private:
  void complete(Result<Answer>&& result) noexcept override {
    const Callback<Answer> callback = std::move(callback_);
    delete this;
    callback(std::move(result));
  }

  Callback<Answer> callback_;
};

}  // namespace redlock::client
