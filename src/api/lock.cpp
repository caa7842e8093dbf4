// SPDX-License-Identifier: MIT
// RedLock: the forms that return leases are thin covers over questions (call.hpp). The forms that
// the standard's lock concepts ask for keep their leases with the client (held_locks.hpp).
#include <algorithm>
#include <thread>
#include <utility>

#include <redlock/lock.hpp>

#include "api/client_impl.hpp"
#include "api/fork.hpp"
#include "api/forms.hpp"
#include "api/requests.hpp"
#include "api/sentence.hpp"

namespace redlock {

struct REDLOCK_NO_EXPORT RedLock::State {
  State(std::shared_ptr<Client::Impl> of, std::string locked, std::optional<Owner> by)
      : client(std::move(of)),
        name(std::make_shared<const std::string>(std::move(locked))),
        owner_(by) {}
  ~State();

  [[nodiscard]] Result<api::AskAcquire> ask_acquire(const AcquireOptions& options) const {
    return api::ask_acquire(name, options, client->options());
  }
  [[nodiscard]] Result<api::AskAttach> ask_attach(const Grant& grant,
                                                  const AcquireOptions& options) const;
  [[nodiscard]] Result<api::AskReleaseGrant> ask_release(const Grant& grant) const;
  [[nodiscard]] Result<void> check_same_name(const Grant& grant) const;

  // For lock() and unlock().
  [[nodiscard]] api::HeldLocks::Key key() const {
    return {name, owner_ ? *owner_ : Owner::this_thread()};
  }
  [[nodiscard]] Result<void> take(const AcquireOptions& options);
  [[nodiscard]] api::HeldLocks::Left leave() { return client->held().leave(key(), handle_); }
  [[nodiscard]] Result<Released> give_back(api::HeldLocks::Left left) const;
  void report(const Result<Released>& result) const;
  /// What this owner holds; null if nothing, also in the child of a fork.
  [[nodiscard]] std::shared_ptr<Lease::State> held() const {
    return client->forked() ? nullptr : client->held().find(key());
  }

  const std::shared_ptr<Client::Impl> client;
  const engine::Name name;

 private:
  [[nodiscard]] Result<void> acquire_or_enter(const api::HeldLocks::Key& key,
                                              AcquireOptions options);

  const std::optional<Owner> owner_;  // none: the calling thread
  api::HeldLocks::Handle handle_;
};

namespace {

[[noreturn]] void raise(const Error& error) {
  throw std::system_error(make_error_code(error.code), error.message);
}

/// What try_lock() does not turn into false.
bool is_callers_fault(Errc code) {
  return code == Errc::would_deadlock || code == Errc::invalid_argument || code == Errc::closed ||
         code == Errc::lost;
}

/// What is left of a waiting time that has an end, or has none.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds wait) : wait_(wait) {}
  [[nodiscard]] std::chrono::milliseconds left() const {
    if (wait_ == forever) return forever;
    const auto gone = std::chrono::floor<std::chrono::milliseconds>(BootClock::now() - start_);
    return std::max(wait_ - gone, std::chrono::milliseconds::zero());
  }

 private:
  std::chrono::milliseconds wait_;
  BootClock::time_point start_ = BootClock::now();
};

/// An owner's turn at taking a name.
class Turn {
 public:
  Turn(api::HeldLocks& held, const api::HeldLocks::Key& key, std::chrono::milliseconds wait)
      : held_(held), key_(key), mine_(held.begin_taking(key, wait)) {}
  ~Turn() {
    if (mine_) held_.end_taking(key_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  explicit operator bool() const { return mine_; }

 private:
  api::HeldLocks& held_;
  const api::HeldLocks::Key& key_;
  bool mine_;
};

}  // namespace

Result<void> RedLock::State::check_same_name(const Grant& grant) const {
  if (grant.name.empty() || grant.name == *name) return {};
  return tl::make_unexpected(Error{
      Errc::invalid_argument,
      "the grant is of " + api::quoted(grant.name) + ", but this lock is " + api::quoted(*name),
      {}});
}

Result<api::AskAttach> RedLock::State::ask_attach(const Grant& grant,
                                                  const AcquireOptions& options) const {
  if (auto ok = check_same_name(grant); !ok) return tl::make_unexpected(std::move(ok.error()));
  return api::ask_attach(name, grant, options, client->options());
}

Result<api::AskReleaseGrant> RedLock::State::ask_release(const Grant& grant) const {
  if (auto ok = check_same_name(grant); !ok) return tl::make_unexpected(std::move(ok.error()));
  return api::ask_release(name, grant, client->options());
}

RedLock::State::~State() {
  if (client->forked()) return;
  for (const auto& left : client->held().leave_all(handle_)) {
    if (left.inner) left.inner->leave();
  }
}

Result<void> RedLock::State::take(const AcquireOptions& options) {
  if (client->forked()) return tl::make_unexpected(client->closed_error());
  // What cannot work, or may not wait, is said before anything is waited for.
  auto ask = ask_acquire(options);
  if (!ask) return tl::make_unexpected(std::move(ask.error()));
  if (client->on_loop_thread()) {
    return tl::make_unexpected(client->perform(std::move(ask)).error());
  }
  const auto key = this->key();
  const Patience patience(options.wait);
  const Turn turn(client->held(), key, options.wait);
  if (!turn) {
    return tl::make_unexpected(
        Error{Errc::timed_out,
              "another call of the same owner is still taking " + api::quoted(*name),
              {}});
  }
  for (;;) {
    AcquireOptions rest = options;
    rest.wait = patience.left();
    auto taken = acquire_or_enter(key, rest);
    const bool again = !taken && taken.error().code == Errc::no_quorum;
    if (!again || client->held().find(key) == nullptr || patience.left().count() == 0) return taken;
    std::this_thread::sleep_for(std::min(client->options().retry_max, patience.left()));
  }
}

Result<void> RedLock::State::acquire_or_enter(const api::HeldLocks::Key& key,
                                              AcquireOptions options) {
  api::HeldLocks& held = client->held();
  // Another thread of the same owner may give back what is being entered: then it is taken anew.
  while (const auto lease = held.find(key)) {
    auto entered = client->perform(api::ask_enter(lease, options, client->options()));
    if (entered && held.enter(key, handle_, lease)) return {};
    if (entered || held.find(key) != lease) continue;
    if (entered.error().code == Errc::lost) {
      entered.error().message += ": unlock() what is held of it before locking it again";
    }
    return tl::make_unexpected(std::move(entered.error()));
  }
  auto lease = client->perform(ask_acquire(options));
  if (!lease) return tl::make_unexpected(std::move(lease.error()));
  held.hold(key, handle_, std::move(*lease));
  return {};
}

/// Waits for a quorum if it was the last level.
Result<Released> RedLock::State::give_back(api::HeldLocks::Left left) const {
  if (left.last) return left.last.release();
  if (left.inner) {
    left.inner->leave();
    return left.inner->remaining().count() > 0 ? Released::still_held : Released::already_gone;
  }
  return tl::make_unexpected(Error{Errc::invalid_argument,
                                   "unlock() of " + api::quoted(*name) + " by " +
                                       (owner_ ? "an owner" : "a thread") +
                                       " that does not hold it",
                                   {}});
}

/// Of an unlock(), which has no other way to say what it found.
void RedLock::State::report(const Result<Released>& result) const {
  if (result == Released::released || result == Released::still_held) return;
  if (!result) return client->report_release_failed(name, result.error());
  const bool gone = *result == Released::already_gone;
  client->report_release_failed(
      name, Error{gone ? Errc::lost : Errc::no_quorum,
                  api::quoted(*name) + (gone ? " was no longer ours when it was unlocked"
                                             : " was unlocked, but no quorum of nodes confirmed "
                                               "it: what is left ends with the lease"),
                  {}});
}

RedLock::RedLock(const Client& client, std::string name)
    : state_(std::make_shared<State>(client.impl(), std::move(name), std::nullopt)) {}
RedLock::RedLock(const Client& client, std::string name, Owner owner)
    : state_(std::make_shared<State>(client.impl(), std::move(name), owner)) {}
RedLock::RedLock(RedLock&&) noexcept = default;
RedLock& RedLock::operator=(RedLock&& other) noexcept {
  if (this == &other) return *this;
  RedLock old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

RedLock::~RedLock() {
  // Another thread may have been at work in here when the process forked.
  if (state_ && state_->client->forked()) api::keep_forever(std::move(state_));
}

const std::string& RedLock::name() const noexcept {
  return *state_->name;
}

Result<Lease> RedLock::acquire(const AcquireOptions& options) {
  return state_->client->perform(state_->ask_acquire(options));
}
void RedLock::acquire(const AcquireOptions& options, Callback<Lease> callback) {
  state_->client->submit(state_->ask_acquire(options), std::move(callback));
}
std::future<Result<Lease>> RedLock::acquire_future(const AcquireOptions& options) {
  return api::as_future<Lease>([&](auto callback) { acquire(options, std::move(callback)); });
}
Operation<Lease> RedLock::co_acquire(const AcquireOptions& options) {
  return Operation<Lease>([state = state_, options](auto callback) {
    state->client->submit(state->ask_acquire(options), std::move(callback));
  });
}

Result<Lease> RedLock::attach(const Grant& grant, const AcquireOptions& options) {
  return state_->client->perform(state_->ask_attach(grant, options));
}
void RedLock::attach(const Grant& grant, const AcquireOptions& options, Callback<Lease> callback) {
  state_->client->submit(state_->ask_attach(grant, options), std::move(callback));
}
std::future<Result<Lease>> RedLock::attach_future(const Grant& grant,
                                                  const AcquireOptions& options) {
  return api::as_future<Lease>([&](auto callback) { attach(grant, options, std::move(callback)); });
}
Operation<Lease> RedLock::co_attach(const Grant& grant, const AcquireOptions& options) {
  return Operation<Lease>([state = state_, grant, options](auto callback) {
    state->client->submit(state->ask_attach(grant, options), std::move(callback));
  });
}

Result<Released> RedLock::release(const Grant& grant) {
  return state_->client->perform(state_->ask_release(grant));
}
void RedLock::release(const Grant& grant, Callback<Released> callback) {
  state_->client->submit(state_->ask_release(grant), std::move(callback));
}
std::future<Result<Released>> RedLock::release_future(const Grant& grant) {
  return api::as_future<Released>([&](auto callback) { release(grant, std::move(callback)); });
}
Operation<Released> RedLock::co_release(const Grant& grant) {
  return Operation<Released>([state = state_, grant](auto callback) {
    state->client->submit(state->ask_release(grant), std::move(callback));
  });
}

void RedLock::lock() {
  if (auto taken = state_->take({.wait = forever}); !taken) raise(taken.error());
}

void RedLock::lock(std::chrono::milliseconds lease) {
  if (auto taken = state_->take({.lease = lease, .wait = forever}); !taken) raise(taken.error());
}

bool RedLock::try_lock() {
  return try_lock_within(std::chrono::milliseconds::zero(), std::nullopt);
}

bool RedLock::try_lock_within(std::chrono::milliseconds wait,
                              std::optional<std::chrono::milliseconds> lease) {
  const auto taken =
      state_->take({.lease = lease, .wait = std::max(wait, std::chrono::milliseconds::zero())});
  if (!taken && is_callers_fault(taken.error().code)) raise(taken.error());
  return taken.has_value();
}

void RedLock::unlock() noexcept {
  if (state_->client->forked()) return;
  auto left = state_->leave();
  if (left.last && state_->client->on_loop_thread()) {
    left.last.release([state = state_](const Result<Released>& result) { state->report(result); });
  } else {
    state_->report(state_->give_back(std::move(left)));
  }
}

Result<Released> RedLock::release() {
  if (state_->client->forked()) return tl::make_unexpected(state_->client->closed_error());
  return state_->give_back(state_->leave());
}

std::size_t RedLock::hold_count() const noexcept {
  return state_->client->forked() ? 0 : state_->client->held().count(state_->key());
}

bool RedLock::held_by_me() const noexcept {
  const auto lease = state_->held();
  return lease && lease->remaining() > std::chrono::nanoseconds::zero();
}

std::uint64_t RedLock::token() const noexcept {
  const auto lease = state_->held();
  return lease ? lease->token : 0;
}

std::stop_token RedLock::lost() const noexcept {
  const auto lease = state_->held();
  return lease ? lease->lost() : std::stop_token();
}

}  // namespace redlock
