// SPDX-License-Identifier: MIT
#include "client/requests.hpp"

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "client/client_impl.hpp"
#include "client/lease_state.hpp"
#include "client/options_check.hpp"
#include "client/sentence.hpp"

namespace redlock::client {

namespace {

bool renews(const AcquireOptions& options) {
  switch (options.renewal) {
    case Renewal::always:
      return true;
    case Renewal::never:
      return false;
    case Renewal::when_no_lease_given:
      break;
  }
  return !options.lease.has_value();
}

/// Waiting for longer than a century is waiting for ever, and does not overflow.
engine::Duration waiting_time(std::chrono::milliseconds wait) {
  constexpr std::chrono::milliseconds century = std::chrono::hours(24 * 36'525);
  return wait > century ? engine::Duration::max() : engine::Duration(wait);
}

/// The lease to ask for, if everything about the call can work.
Result<std::chrono::milliseconds> check_call(const std::string& name, const AcquireOptions& options,
                                             const ClientOptions& client) {
  if (auto ok = check_name(name); !ok) return tl::make_unexpected(std::move(ok.error()));
  return check_acquire_options(options, client);
}

/// An answer that needs no node.
std::optional<Error> over_already(const std::string& name, const std::stop_token& stop,
                                  engine::Instant deadline) {
  if (stop.stop_requested()) {
    return Error{
        Errc::cancelled, "the call for " + in_quotes(name) + " was cancelled before it began", {}};
  }
  if (deadline <= BootClock::now()) {
    return Error{Errc::timed_out,
                 "the deadline of the call for " + in_quotes(name) + " had passed before it began",
                 {}};
  }
  return std::nullopt;
}

/// A lock that is granted while the client is closing is not handed out any more.
template <typename Ask>
Result<Lease> take_grant(Client::Impl& client, const EngineResult& result) {
  const auto& granted = std::get<engine::AcquireSucceeded>(result);
  Lease lease(client.add_lease(granted));
  if (!client.closing()) return lease;
  // A grant that was taken up from elsewhere is left as it was.
  if constexpr (std::is_same_v<Ask, AskAttach>) static_cast<void>(lease.detach());
  return tl::make_unexpected(client.closed_error());
}

Error handle_gone(const std::string& name) {
  return {Errc::cancelled,
          "the RedLock that was to hold " + in_quotes(name) +
              " has gone: keep it until the call is answered",
          {}};
}

}  // namespace

Error not_held(const std::string& name) {
  return {Errc::invalid_argument,
          "unlock() of " + in_quotes(name) + " by an owner or thread that does not hold it",
          {}};
}

Error lost_before(const std::string& name, const Client::Impl& client) {
  return describe(name, {Errc::lost, "the lease was lost before", {}}, client.nodes());
}

Result<AskAcquire> ask_acquire(engine::Name name, const AcquireOptions& options,
                               std::stop_token stop, const ClientOptions& client) {
  const auto lease = check_call(*name, options, client);
  if (!lease) return tl::make_unexpected(lease.error());
  AskAcquire ask;
  ask.request.name = std::move(name);
  ask.request.lease = *lease;
  ask.request.min_validity = options.min_validity.value_or(client.min_validity);
  ask.request.renew = renews(options);
  ask.request.max_hold = options.max_hold;
  ask.request.wait = waiting_time(options.wait);
  ask.request.deadline = options.deadline.value_or(engine::never);
  ask.request.in_order = options.ordering.value_or(client.ordering) == Ordering::fifo;
  ask.stop = std::move(stop);
  return ask;
}

Result<AskAttach> ask_attach(engine::Name name, const Grant& grant, const AcquireOptions& options,
                             std::stop_token stop, const ClientOptions& client) {
  const auto lease = check_call(*name, options, client);
  if (!lease) return tl::make_unexpected(lease.error());
  const auto owner = parse_owner(grant.owner);
  if (!owner) return tl::make_unexpected(owner.error());
  if (grant.token >= engine::token_limit) {
    return tl::make_unexpected(
        Error{Errc::invalid_argument,
              "the token " + std::to_string(grant.token) + " was never issued: tokens end at 2^53",
              {}});
  }
  AskAttach ask;
  ask.request.name = std::move(name);
  ask.request.owner = *owner;
  ask.request.token = grant.token;
  ask.request.lease = *lease;
  ask.request.renew = renews(options);
  ask.request.max_hold = options.max_hold;
  ask.deadline = options.deadline.value_or(engine::never);
  ask.stop = std::move(stop);
  return ask;
}

Result<AskTake> ask_take(HeldLocks::Key key, std::weak_ptr<HeldLocks::Handle> handle,
                         const AcquireOptions& options, std::stop_token stop,
                         const ClientOptions& client) {
  auto ask = ask_acquire(key.name, options, std::move(stop), client);
  if (!ask) return tl::make_unexpected(std::move(ask.error()));
  return AskTake{std::move(key), std::move(handle), std::move(ask->request), std::move(ask->stop)};
}

Result<AskReleaseGrant> ask_release(engine::Name name, const Grant& grant) {
  if (auto ok = check_name(*name); !ok) return tl::make_unexpected(std::move(ok.error()));
  const auto owner = parse_owner(grant.owner);
  if (!owner) return tl::make_unexpected(owner.error());
  return AskReleaseGrant{std::move(name), *owner};
}

std::optional<Error> AskAcquire::before_start(Client::Impl& /*client*/) const {
  return over_already(*request.name, stop, request.deadline);
}
void AskAcquire::ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) const {
  client.core().engine().acquire(now, id, request);
}
Result<Lease> AskAcquire::read(Client::Impl& client, const EngineResult& result) const {
  return take_grant<AskAcquire>(client, result);
}

std::optional<Error> AskAttach::before_start(Client::Impl& /*client*/) const {
  return over_already(*request.name, stop, deadline);
}
void AskAttach::ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) const {
  client.core().engine().attach(now, id, request);
}
Result<Lease> AskAttach::read(Client::Impl& client, const EngineResult& result) const {
  return take_grant<AskAttach>(client, result);
}

std::optional<Error> AskTake::before_start(Client::Impl& /*client*/) const {
  return over_already(*key.name, stop, request.deadline);
}
void AskTake::ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) const {
  client.core().engine().take(now, id, {key.owner, request});
}
/// The owner holds the lock that the engine granted, unless its RedLock is gone.
Result<std::size_t> AskTake::read(Client::Impl& client, const EngineResult& result) const {
  const auto* const acquired = std::get_if<engine::AcquireSucceeded>(&result);
  const auto lease = acquired != nullptr
                         ? client.add_lease(*acquired)
                         : client.find_lease(std::get<engine::EnterSucceeded>(result).grant);
  auto through = handle.lock();
  std::optional<Error> refusal;
  if (client.closing() || !lease) {
    refusal = client.closed_error();
  } else if (lease->loss_reason()) {
    refusal = lost_before(*key.name, client);
  } else if (!through) {
    refusal = handle_gone(*key.name);
  }
  if (refusal) {
    client.leave(0, key);
    return tl::make_unexpected(std::move(*refusal));
  }
  const std::size_t count = client.held().enter(key, *through, lease);
  // The RedLock may be destroyed as soon as the call is answered, and then leaves this level. If it
  // was destroyed just now, it has left it.
  through.reset();
  if (handle.expired()) return tl::make_unexpected(handle_gone(*key.name));
  return count;
}

void AskTake::explain(Error& error) const {
  if (error.code == Errc::lost) {
    error.message += ": unlock() every level of it before you lock it again";
  }
}

std::optional<Result<Released>> AskLeave::post(Client::Impl& client, Call& call) const {
  if (client.forked()) return tl::make_unexpected(client.closed_error());
  const auto through = handle.lock();
  const auto left = client.held().leave(key, through.get());
  if (!left.lease) return tl::make_unexpected(not_held(*key.name));
  if (inner_answers_at_once && !left.last) {
    client.leave_later(key);
    return left.lease->found_by_leaving();
  }
  if (client.post(call)) return std::nullopt;
  return tl::make_unexpected(client.closed_error());
}

void AskLeave::ask_engine(Client::Impl& client, engine::Instant /*now*/,
                          engine::RequestId id) const {
  client.leave(id, key);
}
Result<Released> AskLeave::read(Client::Impl& /*client*/, const EngineResult& result) const {
  return std::get<engine::ReleaseDone>(result).outcome;
}

void AskReleaseGrant::ask_engine(Client::Impl& client, engine::Instant now,
                                 engine::RequestId id) const {
  client.core().engine().release(now, id, of, owner);
}
Result<Released> AskReleaseGrant::read(Client::Impl& /*client*/, const EngineResult& result) const {
  return std::get<engine::ReleaseDone>(result).outcome;
}

}  // namespace redlock::client
