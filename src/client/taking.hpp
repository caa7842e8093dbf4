// SPDX-License-Identifier: MIT
// How an owner takes a lock, in every form: by one more level of what it holds already, or by an
// acquisition. The calls of one owner for one name stand in a line, because two at once would
// contend with each other. All of it happens on the loop thread, so no form blocks it or is
// blocked.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <unordered_map>
#include <utility>
#include <vector>

#include <redlock/client.hpp>

#include "client/held_locks.hpp"
#include "engine/types.hpp"
#include "net/task.hpp"

namespace redlock::client {

/// What is to be taken. `handle`: the RedLock to hold it through. If that goes first, what was
/// taken is given back.
struct TakeRequest {
  HeldLocks::Key key;
  std::weak_ptr<HeldLocks::Handle> handle;
  AcquireOptions options;
};

/// One call. It is answered once: when it is decided, or when its waiting time, its deadline, its
/// stop token or its client ends. A re-entry that is answered while its round is still under way
/// keeps its place in the queue until that round has ended, and leaves again what it got.
class Taking final : public net::Task, public std::enable_shared_from_this<Taking> {
 public:
  Taking(Client::Impl& client, const TakeRequest& request, Callback<std::size_t> callback);

  /// Any thread. False, and the callback stays, if the client takes no more calls.
  [[nodiscard]] static bool begin(Client::Impl& client, const TakeRequest& request,
                                  Callback<std::size_t>& callback);

  // Loop thread only, for Takings.

  void run() override;
  /// Begins, or begins again, once what was posted before has run.
  void post_attempt();
  /// Ends what only waits if its time is over, or lets it try again. When to look again.
  engine::Instant on_time(engine::Instant now);
  /// The client is ending.
  void close();

  [[nodiscard]] const HeldLocks::Key& key() const { return key_; }

 private:
  enum class Stage : std::uint8_t { arriving, queued, posted, acquiring, entering, pausing };
  struct Stopper {
    std::weak_ptr<Taking> taking;
    void operator()() const noexcept;
  };

  void arrive();
  void attempt();
  void enter(const std::shared_ptr<Lease::State>& lease, const AcquireOptions& options);
  void entered(const std::shared_ptr<Lease::State>& lease, Result<std::uint32_t> result);
  void acquired(Result<Lease> result);
  void pause_or_end(Error error);
  /// Answers now, and leaves the line unless a round is under way.
  void give_up(Error error);
  void end(Result<std::size_t> result);
  void end_holding(std::size_t count);
  void answer(Result<std::size_t> result);

  [[nodiscard]] bool waits() const;
  [[nodiscard]] std::chrono::milliseconds left() const;
  [[nodiscard]] Error out_of_time() const;
  [[nodiscard]] Error handle_gone() const;

  Client::Impl& client_;
  const HeldLocks::Key key_;
  const std::weak_ptr<HeldLocks::Handle> handle_;
  const AcquireOptions options_;
  const engine::Instant wait_until_;               // never: without end
  std::optional<Callback<std::size_t>> callback_;  // none: answered
  Stage stage_ = Stage::arriving;
  engine::Instant next_attempt_ = engine::never;
  std::optional<std::stop_callback<Stopper>> stop_;
  std::shared_ptr<Taking> self_;  // while it is posted
};

/// An operation that takes.
class PreparedTaking final : public PreparedOperation<std::size_t> {
 public:
  PreparedTaking(std::shared_ptr<Client::Impl> client, TakeRequest request)
      : client_(std::move(client)), request_(std::move(request)) {}
  [[nodiscard]] std::optional<Result<std::size_t>> start(
      std::unique_ptr<PreparedOperation<std::size_t>> self,
      Callback<std::size_t>& callback) noexcept override;

 private:
  std::shared_ptr<Client::Impl> client_;
  TakeRequest request_;
};

/// Those of one client. Loop thread only.
class Takings {
 public:
  explicit Takings(Client::Impl& client) : client_(client) {}

  void join(const std::shared_ptr<Taking>& taking);
  [[nodiscard]] bool has_line(const HeldLocks::Key& key) const { return lines_.contains(key); }
  /// It is out of the line, and the next one's turn has come.
  void leave(const Taking& taking);

  /// Something waits until then, at the latest.
  void look_by(engine::Instant when);
  void on_time(engine::Instant now);
  /// Answers `closed` to all that wait; what is under way ends by itself.
  void close();

 private:
  using Line = std::deque<std::shared_ptr<Taking>>;

  [[nodiscard]] std::vector<std::shared_ptr<Taking>> all() const;

  Client::Impl& client_;
  std::unordered_map<HeldLocks::Key, Line, HeldLocks::Hash> lines_;
  engine::Instant next_look_ = engine::never;
};

}  // namespace redlock::client
