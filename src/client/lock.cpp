// SPDX-License-Identifier: MIT
// RedLock: every member asks the client one question (call_for.hpp), blocking or as an Operation.
// The client's table (held_locks.hpp) has the locks that lock() and the other locking functions
// take.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <redlock/lock.hpp>

#include "client/call_for.hpp"
#include "client/fork.hpp"
#include "client/last_errors.hpp"
#include "client/requests.hpp"
#include "client/sentence.hpp"

namespace redlock {

struct REDLOCK_NO_EXPORT RedLock::State : std::enable_shared_from_this<RedLock::State> {
  State(std::shared_ptr<Client::Impl> of, std::string locked, std::optional<Owner> by)
      : client(std::move(of)),
        name(std::make_shared<const std::string>(std::move(locked))),
        owner_(by) {}
  ~State();

  [[nodiscard]] Result<client::AskAcquire> ask_acquire(const AcquireOptions& options,
                                                       std::stop_token stop) const {
    return client::ask_acquire(name, options, std::move(stop), client->options());
  }
  [[nodiscard]] Result<client::AskAttach> ask_attach(const Grant& grant,
                                                     const AcquireOptions& options,
                                                     std::stop_token stop) const;
  [[nodiscard]] Result<client::AskReleaseGrant> ask_release(const Grant& grant) const;
  [[nodiscard]] Result<void> check_same_name(const Grant& grant) const;

  // For lock() and unlock().
  [[nodiscard]] Owner owner() const { return owner_ ? *owner_ : Owner::this_thread(); }
  [[nodiscard]] client::HeldLocks::Key key() const { return {name, owner().id()}; }
  [[nodiscard]] Result<client::AskTake> ask_take(const AcquireOptions& options,
                                                 std::stop_token stop) {
    return client::ask_take(key(), handle(), options, std::move(stop), client->options());
  }
  [[nodiscard]] Result<void> take(const AcquireOptions& options);
  [[nodiscard]] std::optional<Error> last_error() const;
  [[nodiscard]] Result<Released> leave();
  void unlock();
  [[nodiscard]] Operation<Released> prepare_leave(client::Call::Waits waits) {
    return client->prepare(Result<client::AskLeave>(client::AskLeave{key(), handle()}), waits);
  }
  static void report(Client::Impl& client, const engine::Name& name, const Lease::State* lease,
                     const Result<Released>& result);
  /// The error of an async_ function that needs an Owner.
  [[nodiscard]] std::optional<Error> no_owner(const char* function) const;
  /// The lease that this owner holds; null if it holds none, also in the child of a fork.
  [[nodiscard]] std::shared_ptr<Lease::State> held() const {
    return client->forked() ? nullptr : client->held().find(key());
  }

  const std::shared_ptr<Client::Impl> client;
  const engine::Name name;

 private:
  [[nodiscard]] std::shared_ptr<client::HeldLocks::Handle> handle() {
    return {shared_from_this(), &handle_};
  }

  const std::optional<Owner> owner_;  // none: the calling thread
  client::HeldLocks::Handle handle_;
  client::LastErrors errors_;
};

namespace {

[[noreturn]] void raise(const Error& error) {
  throw std::system_error(make_error_code(error.code), error.message);
}

/// Errors that try_lock() throws.
bool is_callers_fault(Errc code) {
  return code == Errc::would_deadlock || code == Errc::invalid_argument || code == Errc::closed ||
         code == Errc::lost;
}

}  // namespace

Result<void> RedLock::State::check_same_name(const Grant& grant) const {
  if (grant.name.empty() || grant.name == *name) return {};
  return tl::make_unexpected(Error{Errc::invalid_argument,
                                   "the grant is of " + client::in_quotes(grant.name) +
                                       ", but this lock is " + client::in_quotes(*name),
                                   {}});
}

Result<client::AskAttach> RedLock::State::ask_attach(const Grant& grant,
                                                     const AcquireOptions& options,
                                                     std::stop_token stop) const {
  if (auto ok = check_same_name(grant); !ok) return tl::make_unexpected(std::move(ok.error()));
  return client::ask_attach(name, grant, options, std::move(stop), client->options());
}

Result<client::AskReleaseGrant> RedLock::State::ask_release(const Grant& grant) const {
  if (auto ok = check_same_name(grant); !ok) return tl::make_unexpected(std::move(ok.error()));
  return client::ask_release(name, grant);
}

RedLock::State::~State() {
  if (client->forked()) return;
  for (bool more = true; more;) {
    const auto left = client->held().leave(handle_);
    more = left.lease != nullptr;
    if (more) client->leave_later(left.key);
  }
}

Result<void> RedLock::State::take(const AcquireOptions& options) {
  const auto taken = client->perform(ask_take(options, {})).map([](std::size_t) {});
  // Another thread may have held the mutex of the errors when the process forked.
  if (!client->forked()) errors_.note(owner(), taken);
  return taken;
}

std::optional<Error> RedLock::State::last_error() const {
  return client->forked() ? client->closed_error() : errors_.of(owner());
}

/// Waits for a quorum if it was the last level, unless it must not wait.
Result<Released> RedLock::State::leave() {
  if (!client->must_not_wait()) {
    return client->perform(Result<client::AskLeave>(client::AskLeave{key(), handle(), true}));
  }
  const auto left = client->held().leave(key(), &handle_);
  if (!left.lease) return tl::make_unexpected(client::not_held(*name));
  client->leave_later(left.key);
  if (left.last) return tl::make_unexpected(client->would_deadlock_error());
  return left.lease->found_by_leaving();
}

/// A callback or coroutine runs on any thread.
std::optional<Error> RedLock::State::no_owner(const char* function) const {
  if (owner_) return std::nullopt;
  return Error{Errc::invalid_argument,
               std::string(function) + " of " + client::in_quotes(*name) +
                   " needs an owner of its own: make the lock by client.lock(name, "
                   "redlock::Owner::create())",
               {}};
}

/// Reports the result of an unlock(), which returns nothing.
void RedLock::State::report(Client::Impl& client, const engine::Name& name,
                            const Lease::State* lease, const Result<Released>& result) {
  if (result == Released::released || result == Released::still_held) return;
  if (!result) return client.report_release_failed(name, result.error(), lease);
  const bool gone = *result == Released::already_gone;
  client.report_release_failed(
      name,
      Error{
          gone ? Errc::lost : Errc::no_quorum,
          client::in_quotes(*name) + (gone ? " was no longer ours when it was unlocked"
                                           : " was unlocked, but no quorum of nodes confirmed "
                                             "the release: locks that are left end with the lease"),
          {}},
      lease);
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
  // Another thread may have been inside when the process forked.
  if (state_ && state_->client->forked()) client::keep_forever(std::move(state_));
}

const std::string& RedLock::name() const noexcept {
  return *state_->name;
}

Result<Lease> RedLock::acquire(const AcquireOptions& options, std::stop_token stop) {
  return state_->client->perform(state_->ask_acquire(options, std::move(stop)));
}
Operation<Lease> RedLock::async_acquire(const AcquireOptions& options, std::stop_token stop) {
  return state_->client->prepare(state_->ask_acquire(options, std::move(stop)));
}

Result<Lease> RedLock::attach(const Grant& grant, const AcquireOptions& options,
                              std::stop_token stop) {
  return state_->client->perform(state_->ask_attach(grant, options, std::move(stop)));
}
Operation<Lease> RedLock::async_attach(const Grant& grant, const AcquireOptions& options,
                                       std::stop_token stop) {
  return state_->client->prepare(state_->ask_attach(grant, options, std::move(stop)));
}

Result<Released> RedLock::release(const Grant& grant) {
  return state_->client->perform(state_->ask_release(grant));
}
Operation<Released> RedLock::async_release(const Grant& grant) {
  return state_->client->prepare(state_->ask_release(grant));
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

std::optional<Error> RedLock::last_error() const {
  return state_->last_error();
}

Operation<std::size_t> RedLock::async_try_lock(const AcquireOptions& options,
                                               std::stop_token stop) {
  if (auto error = state_->no_owner("async_try_lock")) {
    return client::failed_operation<std::size_t>(state_->client, std::move(*error));
  }
  return state_->client->prepare(state_->ask_take(options, std::move(stop)));
}

void RedLock::unlock() noexcept {
  if (state_->client->forked()) return;
  try {
    state_->unlock();
  } catch (...) {
    state_->client->end_for_want_of_memory();
  }
}

void RedLock::State::unlock() {
  auto lease = held();
  if (!client->must_not_wait()) {
    return report(*client, name, lease.get(), leave());
  }
  prepare_leave(client::Call::Waits::nowhere)
      .start([client = client, name = name, lease = std::move(lease)](
                 const Result<Released>& result) { report(*client, name, lease.get(), result); });
}

Result<Released> RedLock::release() {
  if (state_->client->forked()) return tl::make_unexpected(state_->client->closed_error());
  return state_->leave();
}

Operation<Released> RedLock::async_release() {
  if (auto error = state_->no_owner("async_release")) {
    return client::failed_operation<Released>(state_->client, std::move(*error));
  }
  return state_->prepare_leave(client::Call::Waits::elsewhere);
}

std::size_t RedLock::hold_count() const noexcept {
  return state_->client->forked() ? 0 : state_->client->held().count(state_->key());
}

bool RedLock::held_by_me() const noexcept {
  const auto lease = state_->held();
  if (lease) lease->mark_asked();
  return lease && lease->remaining() > std::chrono::nanoseconds::zero();
}

std::uint64_t RedLock::token() const noexcept {
  const auto lease = state_->held();
  return lease ? lease->key->token : 0;
}

std::stop_token RedLock::lost() const {
  const auto lease = state_->held();
  if (!lease) return {};
  lease->mark_asked();
  return Lease::State::lost(lease);
}

}  // namespace redlock
