// SPDX-License-Identifier: MIT
// What must be true when an owner is told that it holds a lease once more, and of the calls of one
// owner, which wait for each other and share a lease.
#include <fmt/format.h>

#include "simulation/invariants.hpp"

namespace redlock::simulation {
namespace {

void require(bool kept, const char* rule, ClientId client, std::uint64_t owner) {
  if (kept) return;
  throw Violation{rule, fmt::format("client {}, owner {}", client, owner)};
}

}  // namespace

void Invariants::told_entry(ClientId client, const Request& request, const engine::Finish& finish) {
  Grant* grant = find(client, request.enters);
  if (grant == nullptr) return;
  --grant->entering;
  const auto* success = std::get_if<engine::EnterSucceeded>(&finish.result);
  if (success != nullptr) check_entry(*grant, *success);
}

void Invariants::check_entry(Grant& grant, const engine::EnterSucceeded& entered) {
  const auto require = [&](bool kept, const char* rule) {
    if (kept) return;
    throw Violation{
        rule, fmt::format("client {}, grant {}: told {}", grant.client, grant.id, entered.count)};
  };
  require(grant.state == State::live, "a lost or released lease is not entered");
  require(entered.count == ++grant.count, "an entry is one level more than was told before");
  require(grant.belief.counted(entered.count), "a count is told once a quorum confirmed it");
  require(entered.valid_until == grant.valid_until, "an entry tells the validity");
}

/// How many levels messages may name beyond those that were told: each call may be entering, and
/// one that was answered leaves its level when its round has ended.
std::uint32_t Invariants::may_be_entered(const Grant& grant, Instant now) {
  if (grant.by == nullptr) return 0;
  return grant.by->calls + (now <= grant.by->entry_until ? 1 : 0);
}

void Invariants::told_take(Instant now, ClientId client, const Request& request,
                           const engine::Finish& finish) {
  const TakingOwner& by = *request.owner;
  OwnerState& state = clients_[client].owners[{*request.name, by.number}];
  Grant* const held = find(client, state.grant);
  --state.calls;
  if (const auto* acquired = std::get_if<engine::AcquireSucceeded>(&finish.result)) {
    require(held == nullptr, "the holder of a lease enters it", client, by.number);
    state.grant = acquired->grant;
  } else if (const auto* entered = std::get_if<engine::EnterSucceeded>(&finish.result)) {
    require(held != nullptr && entered->grant == held->id, "the holder of a lease enters it",
            client, by.number);
    check_entry(*held, *entered);
  } else if (const auto* failed = std::get_if<engine::Failed>(&finish.result)) {
    const bool lost = held != nullptr && held->state == State::lost;
    require(failed->code != Errc::lost || lost, "a loss is told to the holder of the lease", client,
            by.number);
    state.entry_until = now + by.entry_takes;
  }
}

void Invariants::left_by_owner(Instant world, ClientId client, const std::string& name,
                               std::uint64_t owner, engine::GrantId released_grant) {
  OwnerState& state = clients_[client].owners[{name, owner}];
  const bool last = find(client, state.grant)->count == 1;
  require(released_grant == (last ? state.grant : 0), "with its last level a lease is given back",
          client, owner);
  if (!last) return left(client, state.grant);
  released(world, client, state.grant);
  state.grant = 0;
}

}  // namespace redlock::simulation
