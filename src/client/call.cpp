// SPDX-License-Identifier: MIT
// How each kind of question reaches the engine and how its answer becomes the caller's.
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
const std::string& name_of(const AskEnter& ask) {
  return *ask.lease->name;
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

/// What needs no node to be answered.
std::optional<Error> over_already(const std::string& name, const std::stop_token& stop,
                                  engine::Instant deadline) {
  if (stop.stop_requested()) {
    return Error{
        Errc::cancelled, "the call for " + quoted(name) + " was cancelled before it began", {}};
  }
  if (deadline <= BootClock::now()) {
    return Error{Errc::timed_out,
                 "the deadline of the call for " + quoted(name) + " had passed before it began",
                 {}};
  }
  return std::nullopt;
}

/// What is granted while the client is closing is not handed out any more.
template <typename Ask>
Result<Lease> take_grant(Client::Impl& client, const Ask& ask,
                         const engine::AcquireSucceeded& granted) {
  Lease lease = client.make_lease(ask.request.name, granted);
  if (!client.closing()) return lease;
  // A grant that was taken up from elsewhere is left as it was.
  if constexpr (std::is_same_v<Ask, AskAttach>) static_cast<void>(lease.detach());
  return tl::make_unexpected(client.closed_error());
}

}  // namespace

Error not_held(const std::string& name, std::string_view by) {
  return {Errc::invalid_argument,
          "unlock() of " + quoted(name) + " by " + std::string(by) + " that does not hold it",
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
std::optional<Error> AskLeave::before_start(Client::Impl& client) {
  if (client.forked()) return client.closed_error();
  const auto through = handle.lock();
  HeldLocks::Handle gone;
  const auto left = client.held().leave(key, through ? *through : gone);
  last = static_cast<bool>(left.last);
  lease = last ? left.last.state() : left.inner;
  if (!lease) return not_held(*key.name, "an owner");
  if (last) lease->end();
  return std::nullopt;
}
std::optional<Error> AskRelease::before_start(Client::Impl& /*client*/) const {
  if (!lease->end()) return empty_lease();
  return std::nullopt;
}

void AskAcquire::start(engine::Engine& engine, engine::Instant now, engine::RequestId id) {
  engine.acquire(now, id, request);
}
void AskAttach::start(engine::Engine& engine, engine::Instant now, engine::RequestId id) {
  engine.attach(now, id, request);
}
void AskExtend::start(engine::Engine& engine, engine::Instant now, engine::RequestId id) {
  // To confirm is to ask for no more than there is. What a healed node has then counts as well.
  const auto left = std::chrono::floor<std::chrono::milliseconds>(lease->valid_until() - now);
  engine.extend(now, id, lease->grant,
                length.value_or(std::max(left, std::chrono::milliseconds(1))));
}
void AskEnter::start(engine::Engine& engine, engine::Instant now, engine::RequestId id) {
  engine.enter(now, id, {lease->grant, length, renew});
}
void AskRelease::start(engine::Engine& engine, engine::Instant now, engine::RequestId id) {
  lease->client->forget(lease->grant);
  engine.release(now, id, lease->grant);
}
void AskLeave::start(engine::Engine& engine, engine::Instant now, engine::RequestId id) {
  if (last) return AskRelease{lease}.start(engine, now, id);
  engine.leave(now, lease->grant);
  const std::shared_ptr<Client::Impl> client = lease->client;
  client->finish({id, engine::ReleaseDone{lease->found_by_leaving()}});
}
void AskReleaseGrant::start(engine::Engine& engine, engine::Instant now, engine::RequestId id) {
  engine.release(now, id, name, owner, longest_lease);
}
void AskForce::start(engine::Engine& engine, engine::Instant now, engine::RequestId id) {
  engine.force_release(now, id, name, owner, longest_lease);
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
  // As soon as it is posted this call may be answered and gone.
  const auto kept = std::move(kept_client_);
  if constexpr (requires { ask_.before_start(of); }) {
    if (auto error = ask_.before_start(of)) return tl::make_unexpected(std::move(*error));
  }
  set_answer(std::move(self), std::move(callback));
  if (of.post(*this)) return std::nullopt;
  self = std::move(self_);
  callback = std::move(*callback_);
  return tl::make_unexpected(of.closed_error());
}

template <typename Ask>
void CallFor<Ask>::set_answer(std::unique_ptr<PreparedOperation<Answer>> self,
                              Callback<Answer> callback) {
  self_ = std::move(self);
  callback_.emplace(std::move(callback));
}

template <typename Ask>
void CallFor<Ask>::complete(Result<Answer>&& result) noexcept {
  Callback<Answer> callback = std::move(*callback_);
  // What was asked goes before the answer, with which its caller may end everything.
  auto self = std::move(self_);
  self.reset();
  callback(std::move(result));
}

template <typename Ask>
void CallFor<Ask>::start(engine::Engine& engine, engine::Instant now, engine::RequestId id) {
  ask_.start(engine, now, id);
  if constexpr (grants<Ask>) {
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
  if constexpr (std::is_same_v<Ask, AskExtend> || std::is_same_v<Ask, AskEnter>) {
    // By the guard, in the moment before this answer: once lost it is not revived.
    if (ask_.lease->loss_reason()) {
      return complete(tl::make_unexpected(
          describe(name(), {Errc::lost, "the lease was lost before", {}}, client().nodes())));
    }
  }
  if constexpr (grants<Ask>) {
    complete(take_grant(client(), ask_, std::get<engine::AcquireSucceeded>(result)));
  } else if constexpr (std::is_same_v<Ask, AskExtend>) {
    complete(std::get<engine::ExtendSucceeded>(result).valid_until);
  } else if constexpr (std::is_same_v<Ask, AskForce>) {
    complete(report_of(client(), ask_, std::get<engine::ForceDone>(result)));
  } else if constexpr (std::is_same_v<Ask, AskEnter>) {
    complete(std::get<engine::EnterSucceeded>(result).count);
  } else {
    complete(std::get<engine::ReleaseDone>(result).outcome);
  }
}

template <typename Ask>
void CallFor<Ask>::fail(Error&& error) noexcept {
  stop_.reset();
  complete(tl::make_unexpected(std::move(error)));
}

template <typename Ask>
void CallFor<Ask>::close(engine::Engine& engine, engine::Instant now, engine::RequestId id) {
  // Others end by themselves within the node timeout, for which the closing client waits.
  if constexpr (grants<Ask>) engine.cancel(now, id, Errc::closed);
}

template class CallFor<AskAcquire>;
template class CallFor<AskAttach>;
template class CallFor<AskExtend>;
template class CallFor<AskEnter>;
template class CallFor<AskRelease>;
template class CallFor<AskLeave>;
template class CallFor<AskReleaseGrant>;
template class CallFor<AskForce>;

}  // namespace redlock::client
