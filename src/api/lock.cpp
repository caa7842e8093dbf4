// SPDX-License-Identifier: MIT
// RedLock: the forms that return leases are thin covers over questions (call.hpp). The forms that
// the standard's lock concepts ask for keep their leases here, one for each thread that holds.
#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <redlock/lock.hpp>

#include "api/client_impl.hpp"
#include "api/fork.hpp"
#include "api/forms.hpp"
#include "api/requests.hpp"
#include "api/sentence.hpp"

namespace redlock {

struct REDLOCK_NO_EXPORT RedLock::State {
  struct Held {
    std::thread::id thread;
    Lease lease;
  };

  State(std::shared_ptr<Client::Impl> of, std::string locked)
      : client(std::move(of)), name(std::make_shared<const std::string>(std::move(locked))) {}

  [[nodiscard]] Result<api::AskAcquire> ask_acquire(const AcquireOptions& options) const {
    return api::ask_acquire(name, options, client->options());
  }
  [[nodiscard]] Result<api::AskAttach> ask_attach(const Grant& grant,
                                                  const AcquireOptions& options) const;
  [[nodiscard]] Result<api::AskReleaseGrant> ask_release(const Grant& grant) const;
  [[nodiscard]] Result<void> check_same_name(const Grant& grant) const;

  // For lock() and unlock().
  [[nodiscard]] Result<void> take(const AcquireOptions& options);
  [[nodiscard]] Lease give_up();
  void report(const Result<Released>& result) const;
  /// Calls `use` with this thread's lease, or a null pointer.
  template <typename Use>
  auto with_lease(Use use);

  const std::shared_ptr<Client::Impl> client;
  const engine::Name name;

 private:
  std::mutex mutex_;
  std::vector<Held> held_;
};

namespace {

[[noreturn]] void raise(const Error& error) {
  throw std::system_error(make_error_code(error.code), error.message);
}

/// What try_lock() does not turn into false.
bool is_callers_fault(Errc code) {
  return code == Errc::would_deadlock || code == Errc::invalid_argument || code == Errc::closed;
}

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

template <typename Use>
auto RedLock::State::with_lease(Use use) {
  const std::scoped_lock lock(mutex_);
  const auto mine = std::ranges::find(held_, std::this_thread::get_id(), &Held::thread);
  return use(mine == held_.end() ? nullptr : &mine->lease);
}

Result<void> RedLock::State::take(const AcquireOptions& options) {
  if (client->forked()) return tl::make_unexpected(client->closed_error());
  if (with_lease([](const Lease* lease) { return lease != nullptr; })) {
    return tl::make_unexpected(Error{Errc::would_deadlock,
                                     "this thread holds " + api::quoted(*name) +
                                         " already through this RedLock: unlock() it first",
                                     {}});
  }
  auto lease = client->perform(ask_acquire(options));
  if (!lease) return tl::make_unexpected(std::move(lease.error()));
  const std::scoped_lock lock(mutex_);
  held_.push_back({std::this_thread::get_id(), std::move(*lease)});
  return {};
}

Lease RedLock::State::give_up() {
  const std::scoped_lock lock(mutex_);
  const auto mine = std::ranges::find(held_, std::this_thread::get_id(), &Held::thread);
  if (mine == held_.end()) return {};
  Lease lease = std::move(mine->lease);
  held_.erase(mine);
  return lease;
}

/// Of an unlock(), which has no other way to say what it found.
void RedLock::State::report(const Result<Released>& result) const {
  if (result == Released::released) return;
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
    : state_(std::make_shared<State>(client.impl(), std::move(name))) {}
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
  return try_lock_within(std::chrono::milliseconds::zero());
}

bool RedLock::try_lock_within(std::chrono::milliseconds wait) {
  const auto taken = state_->take({.wait = std::max(wait, std::chrono::milliseconds::zero())});
  if (!taken && is_callers_fault(taken.error().code)) raise(taken.error());
  return taken.has_value();
}

void RedLock::unlock() noexcept {
  if (state_->client->forked()) return;
  Lease lease = state_->give_up();
  if (!lease) {
    state_->report(tl::make_unexpected(
        Error{Errc::invalid_argument,
              "unlock() of " + api::quoted(*state_->name) + " by a thread that does not hold it",
              {}}));
  } else if (state_->client->on_loop_thread()) {
    lease.release([state = state_](const Result<Released>& result) { state->report(result); });
  } else {
    state_->report(lease.release());
  }
}

std::uint64_t RedLock::token() const noexcept {
  if (state_->client->forked()) return 0;
  return state_->with_lease([](const Lease* lease) { return lease ? lease->token() : 0; });
}

std::stop_token RedLock::lost() const noexcept {
  if (state_->client->forked()) return {};
  return state_->with_lease(
      [](const Lease* lease) { return lease ? lease->lost() : std::stop_token(); });
}

}  // namespace redlock
