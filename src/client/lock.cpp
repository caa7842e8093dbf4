// SPDX-License-Identifier: MIT
// RedLock: the forms that return leases are thin covers over questions (call.hpp). The forms that
// the standard's lock concepts ask for, and the same without blocking, take by a call in its
// owner's line (taking.hpp) and keep their leases with the client (held_locks.hpp).
#include <algorithm>
#include <memory>
#include <optional>
#include <semaphore>
#include <utility>

#include <redlock/lock.hpp>

#include "client/client_impl.hpp"
#include "client/fork.hpp"
#include "client/last_errors.hpp"
#include "client/requests.hpp"
#include "client/sentence.hpp"
#include "client/taking.hpp"

namespace redlock {

struct REDLOCK_NO_EXPORT RedLock::State : std::enable_shared_from_this<RedLock::State> {
  State(std::shared_ptr<Client::Impl> of, std::string locked, std::optional<Owner> by)
      : client(std::move(of)),
        name(std::make_shared<const std::string>(std::move(locked))),
        owner_(by) {}
  ~State();

  [[nodiscard]] Result<client::AskAcquire> ask_acquire(const AcquireOptions& options) const {
    return client::ask_acquire(name, options, client->options());
  }
  [[nodiscard]] Result<client::AskAttach> ask_attach(const Grant& grant,
                                                     const AcquireOptions& options) const;
  [[nodiscard]] Result<client::AskReleaseGrant> ask_release(const Grant& grant) const;
  [[nodiscard]] Result<void> check_same_name(const Grant& grant) const;

  // For lock() and unlock().
  [[nodiscard]] client::HeldLocks::Key key() const {
    return {name, owner_ ? *owner_ : Owner::this_thread()};
  }
  [[nodiscard]] Result<void> take(const AcquireOptions& options);
  [[nodiscard]] std::optional<Error> last_error() const;
  [[nodiscard]] client::HeldLocks::Left leave() { return client->held().leave(key(), handle_); }
  [[nodiscard]] Result<Released> give_back(client::HeldLocks::Left left) const;
  static void report(Client::Impl& client, const engine::Name& name,
                     const Result<Released>& result);
  [[nodiscard]] Operation<std::size_t> prepare_take(const AcquireOptions& options);
  [[nodiscard]] Operation<Released> prepare_leave();
  /// What this owner holds; null if nothing, also in the child of a fork.
  [[nodiscard]] std::shared_ptr<Lease::State> held() const {
    return client->forked() ? nullptr : client->held().find(key());
  }

  const std::shared_ptr<Client::Impl> client;
  const engine::Name name;

 private:
  [[nodiscard]] Result<void> check_take(const AcquireOptions& options) const;
  [[nodiscard]] Result<void> take_unnoted(const AcquireOptions& options);
  [[nodiscard]] std::shared_ptr<client::HeldLocks::Handle> handle() {
    return {shared_from_this(), &handle_};
  }
  [[nodiscard]] Error no_owner(const char* call) const;

  const std::optional<Owner> owner_;  // none: the calling thread
  client::HeldLocks::Handle handle_;
  client::LastErrors errors_;
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

}  // namespace

Result<void> RedLock::State::check_same_name(const Grant& grant) const {
  if (grant.name.empty() || grant.name == *name) return {};
  return tl::make_unexpected(Error{Errc::invalid_argument,
                                   "the grant is of " + client::quoted(grant.name) +
                                       ", but this lock is " + client::quoted(*name),
                                   {}});
}

Result<client::AskAttach> RedLock::State::ask_attach(const Grant& grant,
                                                     const AcquireOptions& options) const {
  if (auto ok = check_same_name(grant); !ok) return tl::make_unexpected(std::move(ok.error()));
  return client::ask_attach(name, grant, options, client->options());
}

Result<client::AskReleaseGrant> RedLock::State::ask_release(const Grant& grant) const {
  if (auto ok = check_same_name(grant); !ok) return tl::make_unexpected(std::move(ok.error()));
  return client::ask_release(name, grant, client->options());
}

RedLock::State::~State() {
  if (client->forked()) return;
  for (const auto& left : client->held().leave_all(handle_)) {
    if (left.inner) Lease::State::leave(left.inner);
  }
}

/// What cannot work, or may not wait, is said before anything is waited for.
Result<void> RedLock::State::check_take(const AcquireOptions& options) const {
  if (client->forked()) return tl::make_unexpected(client->closed_error());
  auto ask = ask_acquire(options);
  if (!ask) return tl::make_unexpected(std::move(ask.error()));
  if (auto over = ask->before_start(*client)) return tl::make_unexpected(std::move(*over));
  return {};
}

Result<void> RedLock::State::take(const AcquireOptions& options) {
  auto taken = take_unnoted(options);
  // Another thread may have been at its errors when the process forked.
  if (!client->forked()) errors_.note(key().owner, taken);
  return taken;
}

std::optional<Error> RedLock::State::last_error() const {
  return client->forked() ? client->closed_error() : errors_.of(key().owner);
}

Result<void> RedLock::State::take_unnoted(const AcquireOptions& options) {
  if (auto ok = check_take(options); !ok) return ok;
  if (client->must_not_wait()) {
    return tl::make_unexpected(client->perform(ask_acquire(options)).error());
  }
  std::optional<Result<std::size_t>> taken;
  std::binary_semaphore ready{0};
  Callback<std::size_t> callback = [&](Result<std::size_t> result) {
    taken.emplace(std::move(result));
    ready.release();
  };
  const client::TakeRequest request{key(), handle(), options};
  if (!client::Taking::begin(*client, request, callback)) {
    return tl::make_unexpected(client->closed_error());
  }
  ready.acquire();
  if (!*taken) return tl::make_unexpected(std::move(taken->error()));
  return {};
}

Operation<std::size_t> RedLock::State::prepare_take(const AcquireOptions& options) {
  if (!owner_) return client::failed_operation<std::size_t>(no_owner("async_try_lock"));
  return Operation<std::size_t>(std::make_unique<client::PreparedTaking>(
      client, client::TakeRequest{key(), handle(), options}));
}

Operation<Released> RedLock::State::prepare_leave() {
  if (!owner_) return client::failed_operation<Released>(no_owner("async_release"));
  return client->prepare(Result<client::AskLeave>(client::AskLeave{key(), handle()}));
}

/// A callback or coroutine is on whichever thread it is.
Error RedLock::State::no_owner(const char* call) const {
  return {Errc::invalid_argument,
          std::string(call) + " of " + client::quoted(*name) +
              " in a form that does not block needs an owner of its own: make the lock by "
              "client.lock(name, redlock::Owner::create())",
          {}};
}

/// Waits for a quorum if it was the last level.
Result<Released> RedLock::State::give_back(client::HeldLocks::Left left) const {
  if (left.last) return left.last.release();
  if (left.inner) {
    Lease::State::leave(left.inner);
    return left.inner->found_by_leaving();
  }
  return tl::make_unexpected(client::not_held(*name, owner_ ? "an owner" : "a thread"));
}

/// Of an unlock(), which has no other way to say what it found.
void RedLock::State::report(Client::Impl& client, const engine::Name& name,
                            const Result<Released>& result) {
  if (result == Released::released || result == Released::still_held) return;
  if (!result) return client.report_release_failed(name, result.error());
  const bool gone = *result == Released::already_gone;
  client.report_release_failed(
      name, Error{gone ? Errc::lost : Errc::no_quorum,
                  client::quoted(*name) + (gone ? " was no longer ours when it was unlocked"
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
  if (state_ && state_->client->forked()) client::keep_forever(std::move(state_));
}

const std::string& RedLock::name() const noexcept {
  return *state_->name;
}

Result<Lease> RedLock::acquire(const AcquireOptions& options) {
  return state_->client->perform(state_->ask_acquire(options));
}
Operation<Lease> RedLock::async_acquire(const AcquireOptions& options) {
  return state_->client->prepare(state_->ask_acquire(options));
}

Result<Lease> RedLock::attach(const Grant& grant, const AcquireOptions& options) {
  return state_->client->perform(state_->ask_attach(grant, options));
}
Operation<Lease> RedLock::async_attach(const Grant& grant, const AcquireOptions& options) {
  return state_->client->prepare(state_->ask_attach(grant, options));
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

Operation<std::size_t> RedLock::async_try_lock(const AcquireOptions& options) {
  return state_->prepare_take(options);
}

void RedLock::unlock() noexcept {
  if (state_->client->forked()) return;
  auto left = state_->leave();
  if (left.last && state_->client->must_not_wait()) {
    left.last.async_release().start(
        [client = state_->client, name = state_->name](const Result<Released>& result) {
          State::report(*client, name, result);
        });
  } else {
    State::report(*state_->client, state_->name, state_->give_back(std::move(left)));
  }
}

Result<Released> RedLock::release() {
  if (state_->client->forked()) return tl::make_unexpected(state_->client->closed_error());
  return state_->give_back(state_->leave());
}

Operation<Released> RedLock::async_release() {
  return state_->prepare_leave();
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
  return lease ? Lease::State::lost(lease) : std::stop_token();
}

}  // namespace redlock
