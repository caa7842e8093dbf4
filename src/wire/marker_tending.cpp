// SPDX-License-Identifier: MIT
#include "wire/marker_tending.hpp"

#include <chrono>
#include <utility>

#include "wire/adoption.hpp"

namespace redlock::wire {

MarkerTending::MarkerTending(engine::RandomSource& random, const SetTerms& set, std::size_t slots,
                             bool quarantine)
    : random_(random), set_(set), quarantine_(quarantine), promotions_(slots) {}

MarkerTending::Promotion MarkerTending::on_facts(engine::NodeIndex node, const ServerFacts& facts) {
  const bool pending = facts.was_replica && facts.vouched != facts.promotion;
  const std::string before =
      std::exchange(promotions_[node], pending ? facts.promotion : std::string());
  return {.pending = pending, .is_new = pending && before != facts.promotion};
}

std::vector<std::string> MarkerTending::command(const engine::TendMarker& what) {
  if (!quarantine_) return look_command(set_);
  SetTerms set = set_;
  set.max_lease = std::chrono::ceil<std::chrono::milliseconds>(what.longest_lease);
  if (!what.write) return pending_command(random_, set);
  const StillPending pending{what.pending, random_id(random_)};
  return adoption_command(set, what.marker, {}, promotions_[what.node], &pending);
}

MarkerTending::Finding MarkerTending::read(const engine::TendMarker& what,
                                           const Answer& answer) const {
  if (!quarantine_) return {.there = found_any(answer)};
  if (was_adopted(answer)) return {.there = true, .written = true};
  if (auto id = pending_id(answer)) return {.pending = std::move(id)};
  const auto marker = answer ? NodeMarker::read(*answer) : std::nullopt;
  const bool there = marker && !marker->set_name.empty();
  // A client that only looks waits on where the marker does not vouch for the promotion.
  const std::string& promotion = promotions_[what.node];
  const bool enough = what.write || promotion.empty() || (there && marker->vouched == promotion);
  return {.reconnect = there && enough};
}

}  // namespace redlock::wire
