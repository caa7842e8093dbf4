// SPDX-License-Identifier: MIT
#include "client/reporter.hpp"

#include <variant>

#include <redlock/clock.hpp>

#include "client/sentence.hpp"
#include "client/stderr_warning.hpp"
#include "wire/objection_text.hpp"

namespace redlock::client {

void Reporter::each_node(void (Observer::*what)(std::string_view)) const {
  if (!options_.observer) return;
  for (const wire::NodeAddress& node : nodes_) {
    if (!node.label.empty()) (*options_.observer.*what)(node.label);
  }
}

void Reporter::on(const engine::AttemptDecided& output) const {
  if (!options_.observer) return;
  options_.observer->on_attempt(*output.name, output.failure ? &*output.failure : nullptr,
                                name_ballots(output.ballots, nodes_), output.elapsed);
}

void Reporter::on(const engine::AttemptWaits& output) const {
  if (!options_.observer) return;
  // Before the attempt, so that an observer of the attempt already has the place in the line.
  options_.observer->on_waiting(*output.name, output.place);
  if (!output.first) return;
  constexpr Errc contended = Errc::contended;
  options_.observer->on_attempt(*output.name, &contended, name_ballots(output.ballots, nodes_),
                                output.elapsed);
}

void Reporter::on(const engine::WaitEnded& output) const {
  if (options_.observer) options_.observer->on_acquired(*output.name, output.token, output.waited);
}

void Reporter::on(const engine::HoldEnded& output) const {
  if (options_.observer) options_.observer->on_released(*output.name, output.token, output.held);
}

void Reporter::on(const engine::NodeClockMoved& output) const {
  if (!options_.observer) return;
  options_.observer->on_clock_moved(nodes_[output.node].label, output.by, output.ours);
}

void Reporter::node_moved(std::string_view from, std::string_view to) const {
  if (!options_.observer) return;
  if (!from.empty()) options_.observer->on_node_removed(from);
  if (!to.empty()) options_.observer->on_node_added(to);
}

void Reporter::node_up(engine::NodeIndex node, std::string_view warning) const {
  if (options_.observer) options_.observer->on_node_up(nodes_[node].label, warning);
}

void Reporter::node_down(engine::NodeIndex node, const engine::Unavailable& why) const {
  if (!options_.observer) return;
  options_.observer->on_node_down(nodes_[node].label, why.cause,
                                  wire::sentence_of(why.objection, why.detail));
}

void Reporter::reply(engine::NodeIndex node, const engine::Tag& tag,
                     const engine::Reply& reply) const {
  // With NoScript it is sent again; the answer to that counts.
  if (!options_.observer || std::holds_alternative<engine::Unavailable>(reply) ||
      std::holds_alternative<engine::NoScript>(reply)) {
    return;
  }
  const auto command = row_of(tag.kind).seen_as;
  if (!command) return;
  options_.observer->on_answer({.node = nodes_[node].label,
                                .command = *command,
                                .attempt = tag.grant,
                                .round_trip = BootClock::now() - tag.sent});
}

void Reporter::renewed(const Lease::State& lease, const engine::RenewalDecided& output) const {
  if (!options_.observer) return;
  options_.observer->on_renewal(lease.name(), output.ok, output.valid_until - BootClock::now());
}

void Reporter::lost(const Lease::State& lease, LossReason reason) const {
  if (options_.observer) {
    options_.observer->on_lost(lease.name(), lease.key->token, reason);
  } else if (options_.warn_on_stderr && !lease.was_asked() && !lease.ended()) {
    warn_of_loss(lease.name(), reason);
  }
}

void Reporter::closed(const Lease::State& lease) const {
  if (options_.observer) lost(lease, LossReason::closed);
}

void Reporter::call_ended(const std::string& name, std::optional<Errc> failure) const {
  if (options_.observer) options_.observer->on_call(name, failure ? &*failure : nullptr);
}

void Reporter::client_failed(const char* sentence, const CloseReport& report) const noexcept {
  if (!options_.observer) {
    if (options_.warn_on_stderr) warn_of_failure(sentence);
    return;
  }
  try {
    nodes_removed();
  } catch (...) {
  }
  try {
    client_closed(report);
  } catch (...) {
  }
}

void Reporter::client_closed(const CloseReport& report) const {
  if (options_.observer) options_.observer->on_closed(report);
}

}  // namespace redlock::client
