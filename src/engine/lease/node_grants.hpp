// SPDX-License-Identifier: MIT
// What is known of each node about one grant: whether it has the lock, and until when. The validity
// of a lease is computed from this and from nothing else. Programs hold many: every byte counts.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "engine/electorate.hpp"
#include "engine/messages.hpp"
#include "engine/quorum.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

enum class Possession : std::uint8_t {
  unknown,   ///< perhaps asked by somebody else, and not known to have it
  asked,     ///< sent an acquire, and not known to have answered
  ours,      ///< confirmed
  healing,   ///< sent a heal: what it answers to earlier messages is out of date
  not_ours,  ///< it certainly has nothing of this owner
  shared,    ///< another process has it by the same owner: nothing that it says confirms, ever
};

/// One word for each node. Times are rounded down to 1 us: what a node should have ends no later.
class NodeGrant {
 public:
  constexpr NodeGrant() : NodeGrant(Possession::unknown) {}
  constexpr explicit NodeGrant(Possession known)
      : possession(known),
        in_quarantine(false),
        forgotten(false),
        hold_is_late(false),
        hold_is_out(false),
        holds_awaited(0),
        until_(static_cast<std::uint64_t>(no_time) & mask) {}

  /// It should have the lock until then; counts while ours. Instant::min(): it never counted.
  [[nodiscard]] Instant until() const {
    const std::int64_t ticks = static_cast<std::int64_t>(std::uint64_t{until_} << flags) >> flags;
    return ticks == no_time ? Instant::min() : Instant(std::chrono::microseconds(ticks));
  }
  void set_until(Instant until) {
    const auto ticks = std::chrono::floor<std::chrono::microseconds>(until.time_since_epoch());
    until_ = static_cast<std::uint64_t>(until == Instant::min() ? no_time : ticks.count()) & mask;
  }

  /// It may execute what takes the lock.
  [[nodiscard]] bool may_take() const {
    return possession == Possession::asked || possession == Possession::healing;
  }

  Possession possession : 3;
  bool in_quarantine : 1;           ///< it was when it confirmed
  bool forgotten : 1;               ///< in quarantine, and has it no more; counts until it is over
  bool hold_is_late : 1;            ///< one was not answered in time, and is still awaited
  bool hold_is_out : 1;             ///< one will not be answered, and may be executed at any time
  std::uint16_t holds_awaited : 4;  ///< sent, and not answered; `uncounted` or more are not counted

  static constexpr std::uint16_t uncounted = 15;

 private:
  static constexpr int flags = 11;  // bits that are not the time's
  static constexpr std::uint64_t mask = (std::uint64_t{1} << (64 - flags)) - 1;
  static constexpr std::int64_t no_time = -(std::int64_t{1} << (63 - flags));

  std::uint64_t until_ : 53;  // in us, which is 142 years in each direction
};
static_assert(sizeof(NodeGrant) == 8);

class NodeGrants {
 public:
  /// `asked`: these nodes are sent an acquire. Otherwise the grant is one that exists already.
  NodeGrants(NodeSet nodes, bool asked);

  [[nodiscard]] const NodeGrant& operator[](NodeIndex node) const {
    const auto stored = all();
    return node < stored.size() ? stored[node] : nothing;
  }
  /// To change it.
  [[nodiscard]] NodeGrant& at(NodeIndex node) {
    const auto stored = all();
    return node < stored.size() ? stored[node] : make_room(node);
  }

  /// The node has the lock for this owner until then at least.
  void confirm(NodeIndex node, Instant until);
  /// The node has the lock, and its clock is not trusted.
  void confirm_without_trust(NodeIndex node) { confirm(node, Instant::min()); }
  /// The node ends every lease that much earlier than was thought.
  void shorten(NodeIndex node, Duration by);
  /// What the node confirmed counts until then at the latest.
  void limit(NodeIndex node, Instant until);
  /// The node replied free or taken: whatever it confirmed before no longer counts.
  void withdraw(NodeIndex node);
  /// Another process has drawn this owner and has the lock there: the node cannot tell the two
  /// apart, so it is no vote for this grant any more, whatever it replies later.
  void share(NodeIndex node);
  [[nodiscard]] bool is_shared(NodeIndex node) const {
    return (*this)[node].possession == Possession::shared;
  }
  /// Whether that is so of any node. Only what was granted to this process is then its to release.
  [[nodiscard]] bool is_shared() const;
  /// The node lost what it confirmed, and grants nothing before that is over.
  void forget(NodeIndex node) { at(node).forgotten = true; }
  void hold_sent(NodeIndex node);
  /// `last`: to the last hold that was sent, for certain.
  void hold_answered(NodeIndex node, const Reply& reply, bool last);
  /// A round has waited long enough for the node's answer.
  void hold_timed_out(NodeIndex node);
  /// Whether the node still has one to answer for which no round waits any more.
  [[nodiscard]] bool hold_is_late(NodeIndex node) const { return (*this)[node].hold_is_late; }
  /// Nothing is concluded from that any more.
  void withdraw_forgotten();

  /// The quorum-th latest of the trusted times: until then, too few nodes are free for anybody
  /// else. Instant::min() if fewer than a quorum are ours.
  [[nodiscard]] Instant valid_until(const Majorities& majorities) const;
  /// Nodes that are ours or may be, without those that are only being healed.
  [[nodiscard]] NodeSet can_be_ours() const;
  /// Nodes that may still run the acquire, and have not answered it.
  [[nodiscard]] NodeSet asked() const { return in(Possession::asked); }
  /// Nodes that confirmed, and have denied nothing since.
  [[nodiscard]] NodeSet ours() const { return in(Possession::ours); }
  /// Nodes that confirmed, and are trusted to have the lock still.
  [[nodiscard]] NodeSet trusted(Instant now) const;
  /// Nodes that may have something of this owner, and so must be released.
  [[nodiscard]] NodeSet may_hold() const;
  /// Nodes that did not answer when they were asked to take the lock, or to make it last: they may
  /// do so at any time until the next connection is up.
  [[nodiscard]] NodeSet may_answer_late() const;
  /// Of these, nodes of which nothing is awaited but the answer to the last hold.
  [[nodiscard]] NodeSet awaits_hold() const;

 private:
  /// The members that most sets begin with: grants of these stand here, without an allocation.
  static constexpr std::uint32_t few = 5;
  using Few = std::array<NodeGrant, few>;
  using Many = std::vector<NodeGrant>;  // as many as there were, or as far as later ones were asked
  /// Of a node that was never asked.
  static constexpr NodeGrant nothing{Possession::not_ours};

  [[nodiscard]] std::span<NodeGrant> all() {
    if (auto* const many = std::get_if<Many>(&grants_)) return *many;
    return std::get<Few>(grants_);
  }
  [[nodiscard]] std::span<const NodeGrant> all() const {
    return const_cast<NodeGrants*>(this)->all();
  }
  /// For a node behind those that were asked.
  NodeGrant& make_room(NodeIndex node);
  /// The nodes of these grants.
  template <typename Condition>
  [[nodiscard]] NodeSet where(const Condition& condition) const;
  [[nodiscard]] NodeSet in(Possession possession) const;

  [[no_unique_address]] std::variant<Few, Many> grants_;
};

}  // namespace redlock::engine
