// SPDX-License-Identifier: MIT
// What must be true when an owner is told that it holds a lease once more.
#include <fmt/format.h>

#include "simulation/invariants.hpp"

namespace redlock::simulation {

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

}  // namespace redlock::simulation
