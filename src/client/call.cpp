// SPDX-License-Identifier: MIT
// How each request reaches the engine, and how its result becomes the caller's.
#include "client/call.hpp"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "client/client_impl.hpp"
#include "client/lease_state.hpp"
#include "client/sentence.hpp"
#include "engine/quorum.hpp"

namespace redlock::client {

namespace {

const std::string& name_of(const AskAcquire& ask) {
  return *ask.request.name;
}
const std::string& name_of(const AskAttach& ask) {
  return *ask.request.name;
}
const std::string& name_of(const AskExtend& ask) {
  return *ask.lease->name;
}
const std::string& name_of(const AskTake& ask) {
  return *ask.key.name;
}
const std::string& name_of(const AskRelease& ask) {
  return *ask.lease->name;
}
const std::string& name_of(const AskLeave& ask) {
  return *ask.key.name;
}
const std::string& name_of(const AskReleaseGrant& ask) {
  return *ask.name;
}
const std::string& name_of(const AskForce& ask) {
  return *ask.name;
}

ForcedRelease report_of(const Client::Impl& client, const AskForce& ask,
                        const engine::ForceDone& done) {
  ForcedRelease report;
  report.name = *ask.name;
  report.owner = engine::to_hex(ask.owner);
  report.removed = done.removed.size();
  report.confirmed = done.confirmed;
  report.quorum = engine::quorum_of(static_cast<std::uint32_t>(done.ballots.size()));
  if (done.confirmed >= report.quorum) {
    report.outcome = report.removed > 0 ? Forced::released : Forced::nothing_held;
  }
  for (engine::NodeIndex node = 0; node < done.ballots.size(); ++node) {
    const engine::Ballot& ballot = done.ballots[node];
    const bool confirmed = ballot.vote == Vote::granted;
    const auto held = done.removed.contains(node) ? ForcedHere::removed : ForcedHere::not_held;
    report.nodes.push_back({client.nodes()[node].label,
                            confirmed ? held : ForcedHere::unreachable,
                            {ballot.cause, ballot.detail}});
  }
  return report;
}

template <typename Ask>
constexpr bool grants = std::is_same_v<typename Ask::Answer, Lease>;
/// Whether it may wait for longer than nodes take to answer: then it has a stop_token.
template <typename Ask>
constexpr bool waits = requires(Ask ask) {
  ask.stop;
};

/// What needs no node to be answered.
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

/// What is granted while the client is closing is not handed out any more.
template <typename Ask>
Result<Lease> take_grant(Client::Impl& client, const Ask& ask,
                         const engine::AcquireSucceeded& granted) {
  Lease lease(client.add_lease(ask.request.name, granted));
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

Error lost_before(const std::string& name, const Client::Impl& client) {
  return describe(name, {Errc::lost, "the lease was lost before", {}}, client.nodes());
}

/// What the engine granted to an owner is held, unless nobody can hold it any more.
Result<std::size_t> hold(Client::Impl& client, const AskTake& ask,
                         const decltype(engine::Finish::result)& result) {
  const auto* const acquired = std::get_if<engine::AcquireSucceeded>(&result);
  const auto lease = acquired != nullptr
                         ? client.add_lease(ask.key.name, *acquired)
                         : client.find_lease(std::get<engine::EnterSucceeded>(result).grant);
  auto handle = ask.handle.lock();
  std::optional<Error> refusal;
  if (client.closing() || !lease) {
    refusal = client.closed_error();
  } else if (lease->loss_reason()) {
    refusal = lost_before(*ask.key.name, client);
  } else if (!handle) {
    refusal = handle_gone(*ask.key.name);
  }
  if (refusal) {
    client.leave(0, ask.key);
    return tl::make_unexpected(std::move(*refusal));
  }
  const std::size_t count = client.held().enter(ask.key, *handle, lease);
  // The RedLock may be destroyed as soon as the call is answered, and then leaves this level. If it
  // was destroyed just now, it has left it.
  handle.reset();
  if (ask.handle.expired()) return tl::make_unexpected(handle_gone(*ask.key.name));
  return count;
}

}  // namespace

Error not_held(const std::string& name) {
  return {Errc::invalid_argument,
          "unlock() of " + in_quotes(name) + " by an owner or thread that does not hold it",
          {}};
}

std::optional<Error> AskAcquire::before_start(Client::Impl& /*client*/) const {
  return over_already(*request.name, stop, request.deadline);
}
std::optional<Error> AskAttach::before_start(Client::Impl& /*client*/) const {
  return over_already(*request.name, stop, deadline);
}
std::optional<Error> AskExtend::before_start(Client::Impl& /*client*/) const {
  if (lease->ended()) return empty_lease();
  return std::nullopt;
}
std::optional<Error> AskTake::before_start(Client::Impl& /*client*/) const {
  return over_already(*key.name, stop, request.deadline);
}
std::optional<Error> AskRelease::before_start(Client::Impl& /*client*/) const {
  if (!lease->end()) return empty_lease();
  return std::nullopt;
}

std::optional<Result<Released>> AskLeave::post(Client::Impl& client, net::Task& call) {
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

void AskAcquire::ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) {
  client.core().engine().acquire(now, id, request);
}
void AskAttach::ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) {
  client.core().engine().attach(now, id, request);
}
void AskExtend::ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) {
  // To confirm is to ask for no more than there is. What a healed node has then counts as well.
  const auto left = std::chrono::floor<std::chrono::milliseconds>(lease->valid_until() - now);
  client.core().engine().extend(now, id, lease->grant,
                                length.value_or(std::max(left, std::chrono::milliseconds(1))));
}
void AskTake::ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) {
  client.core().engine().take(now, id, {key.owner, request});
}
void AskLeave::ask_engine(Client::Impl& client, engine::Instant /*now*/, engine::RequestId id) {
  client.leave(id, key);
}
void AskRelease::ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) {
  client.forget(lease->grant);
  client.core().engine().release(now, id, lease->grant);
}
void AskReleaseGrant::ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) {
  client.core().engine().release(now, id, name, owner, longest_lease);
}
void AskForce::ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) {
  client.core().engine().force_release(now, id, name, owner, longest_lease);
}

void Call::run() {
  client_.begin(*this);
}

void Canceller::operator()() const noexcept {
  static_cast<void>(client->post([of = client, request = id] { of->cancel(request); }));
}

template <typename Ask>
auto CallFor<Ask>::start(std::unique_ptr<PreparedOperation<Answer>> self,
                         Callback<Answer>& callback) noexcept -> std::optional<Result<Answer>> {
  Client::Impl& of = client();
  // As soon as it is posted, this call may be answered and destroyed.
  const auto kept = std::move(kept_client_);
  if constexpr (requires { ask_.before_start(of); }) {
    if (auto error = ask_.before_start(of)) return tl::make_unexpected(std::move(*error));
  }
  self_ = std::move(self);
  callback_.emplace(std::move(callback));
  std::optional<Result<Answer>> known;
  if constexpr (requires { ask_.post(of, *this); }) {
    known = ask_.post(of, *this);
  } else if (!of.post(*this)) {
    known = tl::make_unexpected(of.closed_error());
  }
  if (!known) return known;
  self = std::move(self_);
  callback = std::move(*callback_);
  return known;
}

template <typename Ask>
void CallFor<Ask>::complete(Result<Answer>&& result) noexcept {
  Callback<Answer> callback = std::move(*callback_);
  // The request is destroyed before the answer, upon which the caller may destroy everything else.
  auto self = std::move(self_);
  self.reset();
  callback(std::move(result));
}

template <typename Ask>
void CallFor<Ask>::ask_engine(engine::Instant now, engine::RequestId id) {
  ask_.ask_engine(client(), now, id);
  if constexpr (waits<Ask>) {
    if (ask_.stop.stop_possible()) stop_.emplace(ask_.stop, Canceller{&client(), id});
  }
}

template <typename Ask>
const std::string& CallFor<Ask>::name() const {
  return name_of(ask_);
}

template <typename Ask>
void CallFor<Ask>::succeed(decltype(engine::Finish::result)&& result) noexcept {
  stop_.reset();
  if constexpr (std::is_same_v<Ask, AskExtend>) {
    // The guard may have reported the loss just before this result: a lost lease is not revived.
    if (ask_.lease->loss_reason()) {
      return complete(tl::make_unexpected(lost_before(name(), client())));
    }
  }
  if constexpr (grants<Ask>) {
    complete(take_grant(client(), ask_, std::get<engine::AcquireSucceeded>(result)));
  } else if constexpr (std::is_same_v<Ask, AskExtend>) {
    complete(std::get<engine::ExtendSucceeded>(result).valid_until);
  } else if constexpr (std::is_same_v<Ask, AskForce>) {
    complete(report_of(client(), ask_, std::get<engine::ForceDone>(result)));
  } else if constexpr (std::is_same_v<Ask, AskTake>) {
    auto count = hold(client(), ask_, result);
    if (!count) return fail(std::move(count.error()));
    complete(std::move(count));
  } else {
    complete(std::get<engine::ReleaseDone>(result).outcome);
  }
}

template <typename Ask>
void CallFor<Ask>::fail(Error&& error) noexcept {
  stop_.reset();
  if (std::is_same_v<Ask, AskTake> && error.code == Errc::lost) {
    error.message += ": unlock() what is held of it before locking it again";
  }
  complete(tl::make_unexpected(std::move(error)));
}

template <typename Ask>
void CallFor<Ask>::close(engine::Instant now, engine::RequestId id) {
  // Others end by themselves within the node timeout, for which the closing client waits.
  if constexpr (waits<Ask>) client().core().engine().cancel(now, id, Errc::closed);
}

template class CallFor<AskAcquire>;
template class CallFor<AskAttach>;
template class CallFor<AskExtend>;
template class CallFor<AskTake>;
template class CallFor<AskRelease>;
template class CallFor<AskLeave>;
template class CallFor<AskReleaseGrant>;
template class CallFor<AskForce>;

}  // namespace redlock::client
