// SPDX-License-Identifier: MIT
// A state of the model in operators_test.cpp: configurations, the markers of nodes, what two
// operators are at, a lease and a token.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "engine/quorum.hpp"

namespace redlock::simulation {

using Small = std::uint8_t;
using Nodes = std::uint8_t;
constexpr unsigned most_nodes = 6;
constexpr unsigned most_changes = 3;

constexpr Nodes bit(unsigned node) {
  return static_cast<Nodes>(1U << node);
}
constexpr bool has(Nodes nodes, unsigned node) {
  return (nodes >> node & 1U) != 0;
}
constexpr Nodes without(Nodes nodes, Nodes others) {
  return static_cast<Nodes>(nodes & ~others);
}
constexpr unsigned count(Nodes nodes) {
  return static_cast<unsigned>(std::popcount(nodes));
}
constexpr unsigned quorum(Nodes members) {
  return engine::quorum_of(count(members));
}
constexpr bool is_majority(Nodes some, Nodes members) {
  return count(some & members) >= quorum(members);
}

/// Whether clients may know it: as they saw a quorum of former members show it, each at some time;
/// or all at once; and longer ago than any lease that lives was granted.
enum Known : Small { unknown, followed, made, awaited };

constexpr Small no_node = most_nodes;

/// Configurations are numbered in the order of their epochs, from 1; a marker of 0 is none.
struct Configuration {
  Nodes members = 0;
  Nodes ids[2] = {};   // one bit each: a node that joins once more has another id
  Nodes shown_by = 0;  // at any time, until it is followed
  Nodes unfenced = 0;  // members that took a place, and were not given the fences yet
  Small known = unknown;
  std::array<Small, most_nodes> order{no_node, no_node, no_node, no_node, no_node, no_node};

  [[nodiscard]] unsigned id(unsigned node) const {
    return static_cast<unsigned>(has(ids[0], node)) + 2U * has(ids[1], node);
  }
  void set_id(unsigned node, unsigned id) {
    for (const unsigned each : {0U, 1U}) {
      ids[each] = without(ids[each], bit(node));
      if ((id >> each & 1U) != 0) ids[each] |= bit(node);
    }
  }
  /// Whether the node is the member that the other one lists.
  [[nodiscard]] bool has_of(const Configuration& other, unsigned node) const {
    return has(members & other.members, node) && id(node) == other.id(node);
  }
  [[nodiscard]] bool is_list_of(const Configuration& other) const {
    return members == other.members && ids[0] == other.ids[0] && ids[1] == other.ids[1];
  }
};

struct Operator {
  Small target = 0;   // 0: is not at it
  Small in_turn = 0;  // otherwise messages may come in any order
  Small gives = 0;    // the new member its marker; otherwise a client does
  Small from = no_node;
  Small to = no_node;  // to be admitted at last
  Nodes left = 0;      // to be told
  Nodes told = 0;
  // Of a replacement that has members to tell behind the others:
  Nodes then = 0;
  Small base = 0;
  Nodes asked = 0;
  Nodes answered = 0;  // also those that another member named
  std::array<Small, most_nodes> seen{};
};

struct World {
  std::array<Configuration, most_changes + 2> configurations{};
  std::array<Small, most_nodes> markers{};
  std::array<Operator, 2> operators{};
  Nodes lease = 0;    // the nodes that confirmed it
  Nodes resized = 0;  // those whose number has changed since
  Nodes token = 0;    // the nodes that know the largest

  [[nodiscard]] std::string_view bytes() const {
    static_assert(std::has_unique_object_representations_v<World>);
    return {reinterpret_cast<const char*>(this), sizeof(World)};
  }
  friend bool operator==(const World& one, const World& two) { return one.bytes() == two.bytes(); }
  struct Hash {
    std::size_t operator()(const World& its) const {
      return std::hash<std::string_view>()(its.bytes());
    }
  };

  [[nodiscard]] const Configuration& at(unsigned its) const { return configurations[its]; }
  [[nodiscard]] const Configuration& shown(unsigned node) const { return at(markers[node]); }

  /// Every number from this one on is another by so much.
  void renumber(unsigned from, int by) {
    const auto shift = [=](Small& its) {
      if (its >= from) its = static_cast<Small>(its + by);
    };
    for (auto& marker : markers) shift(marker);
    for (auto& one : operators) {
      shift(one.target), shift(one.base);
      for (auto& seen : one.seen) shift(seen);
    }
  }
  void insert(unsigned epoch, const Configuration& its) {
    renumber(epoch, 1);
    std::copy_backward(configurations.begin() + epoch, configurations.end() - 1,
                       configurations.end());
    configurations[epoch] = its;
  }
  void erase(unsigned epoch) {
    std::copy(configurations.begin() + epoch + 1, configurations.end(),
              configurations.begin() + epoch);
    configurations.back() = {};
    renumber(epoch + 1, -1);
  }

  void mark(unsigned node, unsigned its) {
    markers[node] = static_cast<Small>(its);
    if (at(its).known == unknown) configurations[its].shown_by |= bit(node);
    unsigned all = 0;
    for (unsigned each = 0; each < most_nodes; ++each) all += markers[each] == its ? 1 : 0;
    if (all >= quorum(at(its).members) && at(its).known < made) {
      configurations[its].known = made, configurations[its].shown_by = 0;
    }
    // Who knows any that is followed goes on with what a quorum of its members show; who starts,
    // with what a majority of those show that it names.
    for (bool more = true; more;) {
      more = false;
      for (unsigned later = 1; later < configurations.size(); ++later) {
        Configuration& next = configurations[later];
        if (next.known != unknown || next.members == 0) continue;
        bool follows = is_majority(next.shown_by, next.members);
        for (unsigned known = 1; known < later; ++known) {
          const bool is_known = at(known).known != unknown;
          follows = follows || (is_known && is_majority(next.shown_by, at(known).members));
        }
        if (!follows) continue;
        next.known = followed, next.shown_by = 0;
        more = true;
      }
    }
  }

  /// Whether so many know the target that its new member is admitted.
  [[nodiscard]] bool is_agreed(const Operator& it, unsigned told) const {
    const Nodes members = at(it.target).members;
    const Nodes former = without(members, bit(it.to));
    return count(static_cast<Nodes>(told & former)) >= quorum(it.in_turn != 0 ? former : members);
  }

  /// Forgets what decides nothing any more.
  void tidy() {
    for (Operator& one : operators) {
      if (one.then == 0) one.from = no_node, one.base = one.asked = one.answered = 0;
      if (one.to == no_node && one.then == 0) one.told = 0;
      const bool may_agree = one.to != no_node && is_agreed(one, one.told | one.left);
      if (one.target == 0 || (one.left == 0 && one.then == 0 && !may_agree)) one = {};
      for (unsigned node = 0; node < most_nodes && one.then == 0; ++node) {
        if (!has(one.left, node) && one.to != node) one.seen[node] = 0;
      }
    }
    for (unsigned its = static_cast<unsigned>(configurations.size()); its-- > 1;) {
      const Configuration& one = at(its);
      const bool is_target = std::ranges::count(operators, its, &Operator::target) != 0;
      if (one.members != 0 && one.known == unknown && one.shown_by == 0 && !is_target) erase(its);
    }
    if (lease == 0) {
      resized = 0;
      for (auto& each : configurations) {
        if (each.known == made) each.known = awaited;
      }
    }
    const auto of = [](const Operator& one) {
      return std::string_view(reinterpret_cast<const char*>(&one), sizeof(one));
    };
    if (of(operators[0]) < of(operators[1])) std::swap(operators[0], operators[1]);
  }
};

}  // namespace redlock::simulation
