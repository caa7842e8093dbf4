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
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "engine/quorum.hpp"

namespace redlock::simulation::operators {

using Small = std::uint8_t;
using Nodes = std::uint8_t;
constexpr unsigned most_nodes = 6;
constexpr unsigned most_changes = 3;
constexpr Small no_node = most_nodes;

constexpr Nodes bit(unsigned node) {
  return static_cast<Nodes>(1U << node);
}
constexpr bool has(Nodes nodes, unsigned node) {
  return (nodes >> node & 1U) != 0;
}
constexpr Nodes without(Nodes nodes, Nodes others) {
  return static_cast<Nodes>(nodes & ~others);
}
constexpr auto counts_of_nodes = [] {
  std::array<Small, 256> counts{};
  for (unsigned nodes = 0; nodes < counts.size(); ++nodes) {
    counts[nodes] = static_cast<Small>(std::popcount(nodes));
  }
  return counts;
}();
constexpr unsigned count(unsigned nodes) {
  return counts_of_nodes[nodes];
}
constexpr unsigned quorum(Nodes members) {
  return engine::quorum_of(count(members));
}
constexpr bool is_majority(Nodes some, Nodes members) {
  return count(some & members) >= quorum(members);
}
inline std::string text_of(Nodes nodes) {
  std::string text;
  for (unsigned node = 0; node < most_nodes; ++node) {
    if (has(nodes, node)) text += static_cast<char>('a' + node);
  }
  return text;
}

/// Configurations are numbered in the order of their epochs, from 1; a marker of 0 is none.
struct Configuration {
  Nodes members = 0;
  std::array<Nodes, 2> ids{};  // a bit of each: a node that joins once more has another id
  std::array<Small, most_nodes> order{no_node, no_node, no_node, no_node, no_node, no_node};
  Small followed = 0;   // clients may know it, who saw a quorum show it, each node at some time
  Nodes shown_by = 0;   // at any time, until then
  Nodes unfenced = 0;   // members that took a place, and were not given the fences yet
  Nodes made_for = 0;   // members that have had no marker since a quorum showed it at once
  Nodes waited_by = 0;  // of these, those for which any lease of then is over

  [[nodiscard]] unsigned id(unsigned node) const {
    return (has(ids[0], node) ? 1U : 0U) + (has(ids[1], node) ? 2U : 0U);
  }
  void set_id(unsigned node, unsigned id) {
    for (const unsigned each : {0U, 1U}) {
      ids[each] = without(ids[each], bit(node));
      if ((id >> each & 1U) != 0) ids[each] |= bit(node);
    }
  }
  void join(unsigned node) {
    members |= bit(node);
    *std::ranges::find(order, no_node) = static_cast<Small>(node);
  }
  void leave(unsigned node) {
    members = without(members, bit(node));
    *std::remove(order.begin(), order.end(), static_cast<Small>(node)) = no_node;
    set_id(node, 0);
  }
  void give_place(unsigned from, unsigned to) {
    members = without(members, bit(from)) | bit(to);
    std::ranges::replace(order, static_cast<Small>(from), static_cast<Small>(to));
    set_id(from, 0);
  }
  /// The same members, of whom nobody knows yet.
  [[nodiscard]] Configuration as_new() const {
    Configuration its;
    its.members = members, its.ids = ids, its.order = order;
    return its;
  }
  /// Whether the node is the member that the other one lists.
  [[nodiscard]] bool has_of(const Configuration& other, unsigned node) const {
    return has(members & other.members, node) && id(node) == other.id(node);
  }
  [[nodiscard]] bool has_all_of(const Configuration& other, Nodes nodes) const {
    for (unsigned node = 0; node < most_nodes; ++node) {
      if (has(nodes, node) && !has_of(other, node)) return false;
    }
    return true;
  }
  [[nodiscard]] bool is_list_of(const Configuration& other) const {
    return members == other.members && ids == other.ids;
  }
};

struct Operator {
  Small target = 0;    // 0: is not at it
  Small in_turn = 0;   // adds or removes; a replacement's messages come in any order
  Small asks = 0;      // all of them first whether they would take it
  Small begins = 0;    // has told nobody, and another one may ask at the same time
  Small gives = 0;     // the new member its marker; otherwise a client does
  Small to = no_node;  // to be admitted at last
  Nodes left = 0;      // to be told
  Nodes told = 0;
  std::array<Small, most_nodes> seen{};

  [[nodiscard]] std::string_view bytes() const {
    static_assert(std::has_unique_object_representations_v<Operator>);
    return {reinterpret_cast<const char*>(this), sizeof(Operator)};
  }
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

  void insert(unsigned epoch, const Configuration& its) {
    renumber(epoch, 1);
    std::copy_backward(configurations.begin() + epoch, configurations.end() - 1,
                       configurations.end());
    configurations[epoch] = its;
  }

  void mark(unsigned node, unsigned its) {
    markers[node] = static_cast<Small>(its);
    if (at(its).followed == 0) configurations[its].shown_by |= bit(node);
    for (bool more = true; more;) {
      more = false;
      for (unsigned each = 1; each < configurations.size(); ++each) {
        if (!is_to_be_followed(each)) continue;
        configurations[each].followed = 1, configurations[each].shown_by = 0;
        more = true;
      }
    }
  }
  void clear(unsigned node) {
    markers[node] = 0;
    resized = without(resized, bit(node));
  }

  /// Whether so many know the target that its new member is admitted.
  [[nodiscard]] bool is_agreed(const Operator& it, unsigned told) const {
    const Nodes members = at(it.target).members;
    const Nodes former = without(members, bit(it.to));
    return count(told & former) >= quorum(it.in_turn != 0 ? former : members);
  }

  /// What decides nothing any more is forgotten, and operators may change names.
  void tidy() {
    for (Operator& one : operators) {
      if (one.to == no_node) one.told = 0;
      const bool may_agree = one.to != no_node && is_agreed(one, one.told | one.left);
      if (one.target == 0 || (one.left == 0 && !may_agree)) one = {};
      if (one.left == 0) one.begins = 0;
      for (unsigned node = 0; node < most_nodes; ++node) {
        if (!has(one.left, node) && one.to != node) one.seen[node] = 0;
      }
    }
    if (operators[0].bytes() < operators[1].bytes()) std::swap(operators[0], operators[1]);
    for (unsigned its = static_cast<unsigned>(configurations.size()); its-- > 1;) {
      const Configuration& one = at(its);
      const bool is_target = std::ranges::count(operators, its, &Operator::target) != 0;
      if (one.members != 0 && one.followed == 0 && one.shown_by == 0 && !is_target) erase(its);
    }
    if (lease == 0) resized = 0;
    for (unsigned its = 1; its < configurations.size(); ++its) wait(its);
  }

  /// "1=abc 2=abd'? | 211000 | ...": a configuration that no client follows has a question mark.
  [[nodiscard]] std::string text() const {
    std::string text = "\n";
    for (unsigned its = 1; its < configurations.size() && at(its).members != 0; ++its) {
      text += std::to_string(its) + '=';
      for (const unsigned node : at(its).order) {
        text += text_of(bit(node) & at(its).members) + std::string(at(its).id(node), '\'');
      }
      text += at(its).followed != 0 ? " " : "? ";
    }
    text += "| ";
    for (const unsigned marker : markers) text += std::to_string(marker);
    for (const Operator& it : operators) {
      if (it.target == 0) continue;
      text += std::string(it.in_turn != 0 ? " | resizes to " : " | replaces to ") +
              std::to_string(it.target) + ": left " + text_of(it.left) + ", told " +
              text_of(it.told);
    }
    return text + " | lease " + text_of(lease) + ", resized " + text_of(resized) + ", token " +
           text_of(token);
  }

 private:
  /// Every number from this one on is another by so much.
  void renumber(unsigned from, int by) {
    const auto shift = [=](Small& its) {
      if (its >= from) its = static_cast<Small>(its + by);
    };
    for (Small& marker : markers) shift(marker);
    for (Operator& one : operators) {
      shift(one.target);
      for (Small& seen : one.seen) shift(seen);
    }
  }
  void erase(unsigned epoch) {
    std::copy(configurations.begin() + epoch + 1, configurations.end(),
              configurations.begin() + epoch);
    configurations.back() = {};
    renumber(epoch + 1, -1);
  }
  /// Who knows any that is followed goes on with what a quorum of its members show; who starts,
  /// with what a majority of those show that it names.
  [[nodiscard]] bool is_to_be_followed(unsigned its) const {
    const Configuration& next = at(its);
    if (next.followed != 0 || next.members == 0) return false;
    bool follows = is_majority(next.shown_by, next.members);
    for (unsigned known = 1; known < its; ++known) {
      const bool is_known = at(known).followed != 0;
      follows = follows || (is_known && is_majority(next.shown_by, at(known).members));
    }
    return follows;
  }
  /// A client that found a node without its marker has read the others' since.
  void wait(unsigned its) {
    Configuration& one = configurations[its];
    Nodes empty = 0;
    unsigned showing = 0;
    for (unsigned node = 0; node < most_nodes; ++node) {
      if (markers[node] == 0) empty |= bit(node);
      showing += markers[node] == its ? 1 : 0;
    }
    if (showing >= quorum(one.members)) one.made_for |= one.members;
    one.made_for &= empty;
    one.waited_by = lease == 0 ? one.made_for : one.waited_by & empty;
  }
};

}  // namespace redlock::simulation::operators
