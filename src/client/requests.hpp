// SPDX-License-Identifier: MIT
// The questions of a RedLock (call_for.hpp says what an Ask has), and how they follow from the
// options of a call: checks and defaults.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include <redlock/client.hpp>

#include "client/call.hpp"
#include "client/held_locks.hpp"
#include "engine/requests.hpp"
#include "engine/types.hpp"

namespace redlock::client {

struct AskAcquire {
  engine::AcquireRequest request;
  std::stop_token stop;
  [[nodiscard]] const std::string& name() const { return *request.name; }
  [[nodiscard]] std::optional<Error> before_start(Client::Impl& client) const;
  void ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) const;
  [[nodiscard]] Result<Lease> read(Client::Impl& client, const EngineResult& result) const;
};
struct AskAttach {
  engine::AttachRequest request;
  engine::Instant deadline = engine::never;
  std::stop_token stop;
  [[nodiscard]] const std::string& name() const { return *request.name; }
  [[nodiscard]] std::optional<Error> before_start(Client::Impl& client) const;
  void ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) const;
  [[nodiscard]] Result<Lease> read(Client::Impl& client, const EngineResult& result) const;
};
/// Takes a name for an owner, to be held through the RedLock with this handle: how often it is held
/// then. If that RedLock is destroyed before the answer, the level is given back.
struct AskTake {
  HeldLocks::Key key;
  std::weak_ptr<HeldLocks::Handle> handle;
  engine::AcquireRequest request;
  std::stop_token stop;
  [[nodiscard]] const std::string& name() const { return *key.name; }
  [[nodiscard]] std::optional<Error> before_start(Client::Impl& client) const;
  void ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) const;
  [[nodiscard]] Result<std::size_t> read(Client::Impl& client, const EngineResult& result) const;
  void explain(Error& error) const;
};
/// Leaves one level of what an owner holds. The answer to the last one comes when the lock is given
/// back; to an inner one at once, or else from the loop thread.
struct AskLeave {
  HeldLocks::Key key;
  std::weak_ptr<HeldLocks::Handle> handle;
  bool inner_answers_at_once = false;
  [[nodiscard]] const std::string& name() const { return *key.name; }
  /// Takes the level out of the table of held locks, and posts.
  [[nodiscard]] std::optional<Result<Released>> post(Client::Impl& client, Call& call) const;
  void ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) const;
  [[nodiscard]] Result<Released> read(Client::Impl& client, const EngineResult& result) const;
};
struct AskReleaseGrant {
  engine::Name of;
  engine::OwnerId owner;
  [[nodiscard]] const std::string& name() const { return *of; }
  void ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) const;
  [[nodiscard]] Result<Released> read(Client::Impl& client, const EngineResult& result) const;
};

/// The answer to an owner that leaves what it does not hold.
[[nodiscard]] Error not_held(const std::string& name);
/// The error of an operation whose lease was lost before.
[[nodiscard]] Error lost_before(const std::string& name, const Client::Impl& client);

[[nodiscard]] Result<AskAcquire> ask_acquire(engine::Name name, const AcquireOptions& options,
                                             std::stop_token stop, const ClientOptions& client);

[[nodiscard]] Result<AskAttach> ask_attach(engine::Name name, const Grant& grant,
                                           const AcquireOptions& options, std::stop_token stop,
                                           const ClientOptions& client);

[[nodiscard]] Result<AskTake> ask_take(HeldLocks::Key key, std::weak_ptr<HeldLocks::Handle> handle,
                                       const AcquireOptions& options, std::stop_token stop,
                                       const ClientOptions& client);

[[nodiscard]] Result<AskReleaseGrant> ask_release(engine::Name name, const Grant& grant);

}  // namespace redlock::client
