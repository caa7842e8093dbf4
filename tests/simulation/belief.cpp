// SPDX-License-Identifier: MIT
#include "simulation/belief.hpp"

#include <algorithm>

namespace redlock::simulation {

using Kind = engine::Tag::Kind;

namespace {

bool nothing_happened(const engine::Reply& reply) {
  const auto* unavailable = std::get_if<engine::Unavailable>(&reply);
  return std::holds_alternative<engine::NoScript>(reply) ||
         (unavailable != nullptr && unavailable->delivery != engine::Delivery::unknown);
}

}  // namespace

Instant Belief::trusted_until(Instant sent, std::chrono::milliseconds lease) const {
  const Duration all = lease;
  // The engine computes in floating point: a microsecond for its rounding.
  const Duration drift = Duration(all.count() / 1'000'000 * drift_ppm_);
  return sent + all - drift - std::chrono::milliseconds(2) + std::chrono::microseconds(1);
}

void Belief::sent(std::uint32_t node, const engine::Tag& tag) {
  if (tag.kind == Kind::acquire || tag.kind == Kind::heal) {
    nodes_[node].may_hold = true;
    nodes_[node].has_nothing = 0;
  }
  if (tag.kind == Kind::acquire) {
    nodes_[node].asked = true;
    nodes_[node].refused = false;
  }
  if (tag.kind == Kind::release) {
    nodes_[node].released = true;
    nodes_[node].no_script = false;
  }
  if (tag.kind != Kind::heal) return;
  nodes_[node].ours = false;
  nodes_[node].healing = true;
}

void Belief::ran_ahead(std::uint32_t index, Duration by, std::uint64_t order) {
  Node& node = nodes_[index];
  if (node.until != Instant::min() && node.confirmed < order) node.until -= by;
}

void Belief::confirm(Node& node, const engine::Tag& tag, Circumstances circumstances) {
  if (node.shared != 0) return;
  const bool trusted = circumstances.trusted;
  node.confirmed = circumstances.order;
  const Instant until = trusted ? trusted_until(tag.sent, tag.lease) : Instant::min();
  node.until = node.ours ? std::max(node.until, until) : until;
  node.ours = true;
  node.healing = false;
}

void Belief::deny(Node& node, Circumstances circumstances) {
  node.may_hold = false;
  node.granted = 0;
  // What it gives to nobody else is as good as ours.
  if (circumstances.quarantined) return;
  node.has_nothing = circumstances.order;
  node.ours = false;
  node.healing = false;
}

void Belief::answered(std::uint32_t index, const engine::Tag& tag, const engine::Reply& reply,
                      Circumstances circumstances) {
  if (is_broadcast(tag.kind)) return;
  Node& node = nodes_[index];
  if (tag.kind == Kind::release) {
    node.removed |= std::holds_alternative<engine::ReleasedHere>(reply);
    // A release that finds no script is sent again, unless the node had nothing.
    node.had_none |= std::holds_alternative<engine::NotHeld>(reply);
    node.no_script = std::holds_alternative<engine::NoScript>(reply);
    return;
  }
  if (tag.kind == Kind::acquire) {
    node.asked = false;
    node.spent |= std::holds_alternative<engine::Unavailable>(reply) && !nothing_happened(reply);
  }
  if ((tag.kind == Kind::hold || tag.kind == Kind::settle) && !node.sent.empty()) {
    if (std::holds_alternative<engine::Held>(reply)) {
      node.count = std::max(node.count, node.sent.front());
    }
    node.sent.pop_front();
  }
  const bool before_healing = node.healing && tag.kind != Kind::heal;
  if (std::holds_alternative<engine::Granted>(reply)) {
    if (tag.kind == Kind::heal) return confirm(node, tag, circumstances);
    ++granted_;
    node.granted = std::get<engine::Granted>(reply).token;
    node.fence = node.granted;
    confirm(node, tag, circumstances);
  } else if (std::holds_alternative<engine::Held>(reply)) {
    if (tag.kind == Kind::settle) node.fence = std::get<engine::Held>(reply).fence;
    if (!before_healing) confirm(node, tag, circumstances);
  } else if (std::holds_alternative<engine::Free>(reply)) {
    if (!before_healing) deny(node, circumstances);
  } else if (std::holds_alternative<engine::Taken>(reply) ||
             std::holds_alternative<engine::Refused>(reply) ||
             std::holds_alternative<engine::ForcedOut>(reply)) {
    node.refused = true;
    circumstances.quarantined = false;
    if (!before_healing) deny(node, circumstances);
  } else if (std::holds_alternative<engine::AlreadyOurs>(reply)) {
    if (tag.kind == Kind::heal) return confirm(node, tag, circumstances);
    // The lock there is another process's of the same owner: the node says nothing from now on.
    node.may_hold = node.ours = false;
    node.shared = circumstances.order;
    owner_is_shared_ = true;
  } else if (tag.kind == Kind::acquire && nothing_happened(reply)) {
    node.may_hold = false;
    if (!std::holds_alternative<engine::NoScript>(reply)) node.has_nothing = circumstances.order;
  } else if (tag.kind == Kind::heal && !std::holds_alternative<engine::NoScript>(reply)) {
    node.healing = false;  // the next round will show
    if (nothing_happened(reply)) node.may_hold = false;
  }
}

bool Belief::settled(engine::Token token) const {
  const auto vouching = std::ranges::count_if(nodes_, [token](const Node& node) {
    return node.granted != 0 && node.granted <= token && node.fence >= token;
  });
  return static_cast<std::size_t>(vouching) >= quorum();
}

bool Belief::counted(std::uint32_t count) const {
  const auto nodes =
      std::ranges::count_if(nodes_, [count](const Node& node) { return node.count >= count; });
  return static_cast<std::size_t>(nodes) >= quorum();
}

std::uint32_t Belief::refused() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(nodes_, &Node::refused));
}

std::uint32_t Belief::removed() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(nodes_, &Node::removed));
}

std::uint32_t Belief::may_have_had() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      nodes_, [](const Node& node) { return node.released && !node.had_none && !node.no_script; }));
}

std::uint32_t Belief::confirmed() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(nodes_, &Node::ours));
}

Instant Belief::valid_until() const {
  std::vector<Instant> until;
  for (const Node& node : nodes_) {
    if (node.ours) until.push_back(node.until);
  }
  if (until.size() < quorum()) return Instant::min();
  std::ranges::sort(until, std::greater<>());
  return until[quorum() - 1];
}

}  // namespace redlock::simulation
