// SPDX-License-Identifier: MIT
#include "engine/lease/hold_round.hpp"

#include <string>
#include <utility>

namespace redlock::engine {

void HoldRound::unavailable(NodeIndex node, const Unavailable& why) {
  unavailable_.insert(node);
  if (request_ != 0) reasons_.emplace_back(node, why);
}

void HoldRound::node_removed(NodeIndex node) {
  if (!yes_.contains(node)) return;
  yes_.erase(node);
  unavailable(node, other_members());
}

void HoldRound::below_token(NodeIndex node, Token fence) {
  below_token_.insert(node);
  unavailable(node, {Cause::server_error, Delivery::refused,
                     "its fence (" + std::to_string(fence) + ") is below the token"});
}

/// Of other members fewer of these may have been in a quorum.
bool HoldRound::refutes_token() const {
  const NodeSet others = nodes_ - below_token_;
  if (electorate_->sets().may_be_others()) return others == NodeSet();
  return !electorate_->is_quorum(others);
}

NodeSet HoldRound::time_out() {
  const NodeSet silent = tally().pending();
  for (NodeIndex node = 0; node < electorate_->slots(); ++node) {
    if (silent.contains(node)) unavailable(node, no_answer());
  }
  return silent;
}

NodeSet HoldRound::take_free() {
  return std::exchange(free_, NodeSet{});
}

bool HoldRound::announce() {
  return !announced_ && decided() && announce_end();
}

std::vector<Ballot> HoldRound::ballots() const {
  std::vector<Ballot> ballots(electorate_->slots());
  for (NodeIndex node = 0; node < ballots.size(); ++node) {
    ballots[node].counts = nodes_.contains(node);
    if (yes_.contains(node)) ballots[node].vote = Vote::granted;
    if (no_.contains(node)) ballots[node].vote = Vote::refused;
  }
  for (const auto& [node, why] : reasons_) {
    ballots[node] = {Vote::unavailable, why.cause, why.detail, why.objection};
  }
  return ballots;
}

}  // namespace redlock::engine
