// SPDX-License-Identifier: MIT
// A model of operators who add and remove members: two of them at once, each of whom may stop at
// any step and begin anew with any command. Every state is visited that they can reach while a
// lease is granted, and ends, and tokens are given: no two quorums that clients may count are ever
// without a common node, and none gives a token that is not new. Without any one of the rules some
// are.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <doctest/doctest.h>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/quorum.hpp"

namespace redlock::simulation {
namespace {

struct Rules {
  bool all_who_stay_answer = true;    // otherwise a quorum of them
  bool one_change_at_once = true;     // all show one configuration, or the two of this change
  bool nodes_keep_the_number = true;  // until a lease from before is over: adopt.lua
  bool fences_are_carried = true;     // to all who stay, before a change begins
};

constexpr unsigned most_nodes = 6;
constexpr unsigned most_changes = 3;
using Nodes = std::uint8_t;

unsigned quorum(Nodes members) {
  return engine::quorum_of(static_cast<std::uint32_t>(std::popcount(members)));
}
bool is_majority(Nodes some, Nodes members) {
  return static_cast<unsigned>(std::popcount<Nodes>(some & members)) >= quorum(members);
}

/// Configurations are numbered in the order of their epochs, from 1; a marker of 0 is none.
struct Configuration {
  Nodes members = 0;
  std::uint16_t ids = 0;  // of each node two bits: one that joins once more has another id
  Nodes shown_by = 0;     // at any time
  bool followed = false;
};
struct Operator {
  std::uint8_t target = 0;  // 0: is not at it
  Nodes left = 0;           // to be told, one after the other
  Nodes joins = 0;
  std::array<std::uint8_t, most_nodes> seen{};
};
struct World {
  std::array<Configuration, most_changes + 2> configurations{};
  std::array<std::uint8_t, most_nodes> markers{};
  std::array<Operator, 2> operators{};
  Nodes lease = 0;    // the nodes that confirmed it
  Nodes resized = 0;  // those whose number has changed since
  Nodes token = 0;    // the nodes that know the largest
};

class Model {
 public:
  Model(Nodes members, unsigned operators, Rules rules, unsigned changes)
      : rules_(rules), operators_(operators), changes_(changes) {
    World start;
    start.configurations[1] = {members, 0, members, true};
    for (unsigned node = 0; node < most_nodes; ++node) start.markers[node] = has(members, node);
    start.token = members;
    visit(start);
  }

  /// Whether two quorums share no node, or a token is not new.
  bool breaks() {
    while (!next_.empty()) {
      const World world = unpack(next_.back());
      next_.pop_back();
      if (quorums(world)) return true;
      for (unsigned who = 0; who < operators_; ++who) {
        for (unsigned node = 0; node < most_nodes; ++node) begin(world, who, node);
        tell(world, who);
        World stopped = world;
        stopped.operators[who] = {};
        visit(stopped);
      }
      World over = world;
      over.lease = over.resized = 0;
      visit(over);
    }
    return false;
  }

 private:
  static bool has(Nodes nodes, unsigned node) { return (nodes >> node & 1U) != 0; }
  static Nodes bit(unsigned node) { return static_cast<Nodes>(1U << node); }

  /// Each quorum that some client may count now; true if one breaks a promise. Of nodes that name
  /// what they executed: a majority of what the client knows, and of each later configuration.
  bool quorums(const World& world) {
    for (unsigned some = 1; some < 1U << most_nodes; ++some) {
      const auto nodes = static_cast<Nodes>(some);
      if (!counts(world, nodes)) continue;
      if (world.lease != 0 && (nodes & world.lease) == 0) return true;
      if ((nodes & world.token) == 0) return true;
      World granted = world;
      granted.lease = granted.token = nodes;
      granted.resized = 0;
      if (world.lease == 0) visit(granted);
    }
    return false;
  }
  static bool counts(const World& world, Nodes nodes) {
    for (unsigned known = 1; known < world.configurations.size(); ++known) {
      const Configuration& its = world.configurations[known];
      if (!its.followed || (nodes & ~its.members) != 0 || !is_majority(nodes, its.members))
        continue;
      bool all = true;
      for (unsigned node = 0; node < most_nodes; ++node) {
        if (!has(nodes, node)) continue;
        const unsigned shown = world.markers[node];
        all = all && shown != 0 &&
              (shown <= known || is_majority(nodes, world.configurations[shown].members));
      }
      if (all) return true;
    }
    return false;
  }

  /// Whether the one list is the other with this node more.
  static bool is_with(Nodes more, Nodes less, unsigned node) {
    return !has(less, node) && more == (less | bit(node));
  }

  /// Reads the markers, and decides what to write. The node is to join or to leave.
  void begin(const World& world, unsigned who, unsigned node) {
    if (world.operators[who].target != 0) return;
    for (const bool joins : {true, false}) {
      // Seeds: the members that some configuration names.
      for (unsigned asked = 1; asked < world.configurations.size(); ++asked) {
        const Nodes named = world.configurations[asked].members;
        if (named != 0) begin_by(world, who, node, joins, named);
      }
    }
  }
  void begin_by(const World& world, unsigned who, unsigned node, bool joins, Nodes seeds) {
    Nodes stay = asked(world, seeds);
    const unsigned own = world.markers[node];
    bool is_listed = false;  // as the member that it is
    for (unsigned each = 0; joins && own != 0 && each < most_nodes; ++each) {
      const Configuration& its = world.configurations[world.markers[each]];
      const unsigned same = its.ids ^ world.configurations[own].ids;
      is_listed = is_listed || (each != node && has(seeds | stay, each) && has(its.members, node) &&
                                (same >> 2 * node & 3U) == 0);
    }
    if (!is_listed) stay &= static_cast<Nodes>(~bit(node));
    if (rules_.all_who_stay_answer) return begin_with(world, who, node, joins, stay);
    for (unsigned some = 1; some < 1U << most_nodes; ++some) {
      const auto answer = static_cast<Nodes>(some);
      if ((answer & ~stay) == 0) begin_with(world, who, node, joins, answer);
    }
  }
  /// Who the members are: as a majority of them say, or all that one of the seeds names.
  [[nodiscard]] static Nodes asked(const World& world, Nodes seeds) {
    Nodes all = 0;
    std::array<unsigned, most_changes + 2> shown_by{};
    unsigned agreed = 0;  // the latest that is
    for (unsigned each = 0; each < most_nodes; ++each) {
      const unsigned its = has(seeds, each) ? world.markers[each] : 0;
      const Nodes members = world.configurations[its].members;
      all |= members;
      if (++shown_by[its] >= quorum(members) && its != 0) agreed = std::max(agreed, its);
    }
    return agreed != 0 ? world.configurations[agreed].members : all;
  }
  void begin_with(const World& world, unsigned who, unsigned node, bool joins, Nodes answer) {
    const auto members = [&](unsigned its) { return world.configurations[its].members; };
    const auto ids = [&](unsigned its) { return world.configurations[its].ids; };
    const auto id = [&](unsigned its, unsigned each) { return ids(its) >> 2 * each & 3U; };
    std::vector<unsigned> lists;  // the latest of each
    unsigned last = 0;
    for (unsigned each = 0; each < most_nodes; ++each) {
      if (!has(answer, each)) continue;
      const unsigned shown = world.markers[each];
      if (shown == 0) return;
      last = std::max(last, shown);
      const auto same = std::ranges::find_if(lists, [&](unsigned other) {
        return members(other) == members(shown) && ids(other) == ids(shown);
      });
      same == lists.end() ? lists.push_back(shown) : void(*same = std::max(*same, shown));
    }
    if (lists.empty()) return;
    const auto done = [&](unsigned its) { return has(members(its), node) == joins; };
    std::ranges::sort(lists, {}, [&](unsigned its) { return std::pair(done(its), its); });
    const unsigned base = lists.back();
    if (rules_.one_change_at_once) {
      const bool of_this = lists.size() == 2 && done(base) && !done(lists.front()) &&
                           is_with(members(joins ? base : lists.front()),
                                   members(joins ? lists.front() : base), node) &&
                           ((ids(base) ^ ids(lists.front())) & ~(3U << 2 * node)) == 0;
      if (lists.size() > 2 || (lists.size() == 2 && !of_this)) return;
    }
    World to = world;
    Operator& it = to.operators[who];
    const Nodes target = done(base) ? members(base)
                         : joins    ? members(base) | bit(node)
                                    : members(base) & static_cast<Nodes>(~bit(node));
    const Nodes former = joins ? target & static_cast<Nodes>(~bit(node)) : target | bit(node);
    if (std::popcount<Nodes>(answer & target & former) < static_cast<int>(quorum(former))) return;
    const bool is_new = joins && !has(answer, node);
    it.joins = is_new ? bit(node) : 0;
    it.left = answer & target;
    it.seen = world.markers;
    const bool begins = !done(base) && lists.size() == 1;
    if (begins && rules_.fences_are_carried && (answer & to.token) != 0) to.token |= answer;
    if (done(base) && base == last) {
      it.target = static_cast<std::uint8_t>(base);
      return visit(to);
    }
    // Its epoch is larger than those that were seen, and of others that nobody saw any.
    for (unsigned epoch = last + 1; epoch <= changes_ + 1; ++epoch) {
      if (to.configurations[changes_ + 1].members != 0) return;  // enough of them
      World with = to;
      for (unsigned each = static_cast<unsigned>(with.configurations.size()) - 1; each > epoch;
           --each) {
        with.configurations[each] = with.configurations[each - 1];
      }
      unsigned target_ids = ids(base);
      if (!done(base) && joins) {
        unsigned last_id = 0;
        for (unsigned each = 1; each < to.configurations.size(); ++each) {
          last_id = std::max(last_id, id(each, node));
        }
        if (last_id == 3) return;
        target_ids = (target_ids & ~(3U << 2 * node)) | (last_id + 1) << 2 * node;
      }
      with.configurations[epoch] = {target, static_cast<std::uint16_t>(target_ids), 0, false};
      renumber(with, epoch);
      with.operators[who].target = static_cast<std::uint8_t>(epoch);
      visit(with);
      if (to.configurations[epoch].members == 0) return;
    }
  }
  static void renumber(World& world, unsigned from) {
    const auto shift = [from](std::uint8_t& its) {
      if (its >= from) ++its;
    };
    for (auto& marker : world.markers) shift(marker);
    for (auto& one : world.operators) {
      shift(one.target);
      for (auto& seen : one.seen) shift(seen);
    }
  }

  /// The next node: first those for which the number of members stays, at last the one that joins.
  void tell(World world, unsigned who) {
    Operator& it = world.operators[who];
    if (it.target == 0) return;
    const Nodes members = world.configurations[it.target].members;
    const auto number = [&](unsigned node) {
      return std::popcount(world.configurations[it.seen[node]].members);
    };
    unsigned next = most_nodes;
    for (unsigned node = most_nodes; node-- > 0;) {
      if (!has(it.left, node)) continue;
      const bool stays = number(node) == std::popcount(members);
      if (next == most_nodes || stays || number(next) != std::popcount(members)) next = node;
    }
    if (next == most_nodes) return join(world, who);
    it.left &= static_cast<Nodes>(~bit(next));
    const unsigned here = world.markers[next];
    if (here == it.target) return visit(world);
    if (here != it.seen[next] || here > it.target) return stop(world, who);
    if (number(next) != std::popcount(members)) {
      if (rules_.nodes_keep_the_number && world.lease != 0 && has(world.resized, next)) {
        return stop(world, who);
      }
      world.resized |= bit(next);
    }
    mark(world, next, it.target);
    visit(world);
  }
  void join(World& world, unsigned who) {
    const Operator it = std::exchange(world.operators[who], {});
    visit(world);
    const Configuration& its = world.configurations[it.target];
    const Nodes former = its.members & static_cast<Nodes>(~it.joins);
    Nodes told = 0;
    for (unsigned node = 0; node < most_nodes; ++node) {
      if (world.markers[node] == it.target) told |= bit(node);
    }
    if (it.joins == 0 || !is_majority(told, former)) return;
    const auto node = static_cast<unsigned>(std::countr_zero(it.joins));
    if (rules_.fences_are_carried && (former & world.token) != 0) world.token |= it.joins;
    if (world.markers[node] > it.target) return;
    mark(world, node, it.target);
    visit(world);
  }
  void stop(World world, unsigned who) {
    world.operators[who] = {};
    visit(world);
  }
  static void mark(World& world, unsigned node, unsigned its) {
    world.markers[node] = static_cast<std::uint8_t>(its);
    world.configurations[its].shown_by |= bit(node);
    // Who knows any that is followed goes on with what a quorum of its members show.
    for (bool more = true; more;) {
      more = false;
      for (unsigned known = 1; known < world.configurations.size(); ++known) {
        if (!world.configurations[known].followed) continue;
        for (unsigned later = known + 1; later < world.configurations.size(); ++later) {
          Configuration& next = world.configurations[later];
          if (next.followed || next.members == 0) continue;
          next.followed = is_majority(next.shown_by, world.configurations[known].members);
          more = more || next.followed;
        }
      }
    }
  }

  void visit(const World& world) {
    const State state = pack(world);
    if (seen_.insert(state).second) next_.push_back(state);
  }

  using State = std::array<std::uint64_t, 4>;
  struct Hash {
    std::size_t operator()(const State& state) const {
      std::uint64_t hash = 0;
      for (const std::uint64_t word : state) {
        hash = (std::rotl(hash, 23) ^ word) * 0x9e3779b97f4a7c15U;
      }
      return hash ^ hash >> 29;
    }
  };
  struct Packed {
    void operator()(unsigned& value, unsigned bits) {
      for (; bits > 0; --bits, ++at) {
        std::uint64_t& word = state[at / 64];
        if (writes)
          word |= std::uint64_t{value >> (bits - 1) & 1U} << at % 64;
        else
          value = value << 1 | (word >> at % 64 & 1U);
      }
    }
    State state{};
    bool writes = true;
    unsigned at = 0;
  };
  template <typename Value>
  static void each(Packed& packed, Value& part, unsigned bits) {
    unsigned value = packed.writes ? static_cast<unsigned>(part) : 0;
    packed(value, bits);
    part = static_cast<Value>(value);
  }
  static void all(Packed& packed, World& world) {
    for (unsigned its = 1; its < world.configurations.size(); ++its) {
      Configuration& part = world.configurations[its];
      each(packed, part.members, most_nodes);
      each(packed, part.ids, 2 * most_nodes);
      each(packed, part.shown_by, most_nodes);
      each(packed, part.followed, 1);
    }
    for (auto& marker : world.markers) each(packed, marker, 3);
    for (Operator& one : world.operators) {
      each(packed, one.target, 3);
      each(packed, one.left, most_nodes);
      each(packed, one.joins, most_nodes);
      for (auto& seen : one.seen) each(packed, seen, 3);
    }
    for (Nodes* nodes : {&world.lease, &world.resized, &world.token})
      each(packed, *nodes, most_nodes);
  }
  static State pack(World world) {
    Packed packed;
    all(packed, world);
    return packed.state;
  }
  static World unpack(const State& state) {
    World world;
    Packed packed{state, false, 0};
    all(packed, world);
    return world;
  }

  const Rules rules_;
  const unsigned operators_;
  const unsigned changes_;
  std::unordered_set<State, Hash> seen_;
  std::vector<State> next_;
};

bool breaks(Nodes members, unsigned operators, Rules rules = {}, unsigned changes = 2) {
  return Model(members, operators, rules, changes).breaks();
}

constexpr Nodes two = 0b11;
constexpr Nodes three = 0b111;
constexpr Nodes four = 0b1111;

TEST_CASE("operators who add and remove members leave every two quorums a common node") {
  for (const Nodes members : {two, three, four}) CHECK_FALSE(breaks(members, 1));
  CHECK_FALSE(breaks(two, 2));
}

TEST_CASE("operators who add and remove members need each of these rules") {
  CHECK(breaks(three, 1, {.all_who_stay_answer = false}));
  CHECK(breaks(three, 1, {.one_change_at_once = false}));
  CHECK(breaks(three, 1, {.nodes_keep_the_number = false}));
  CHECK(breaks(three, 1, {.fences_are_carried = false}));
}

TEST_CASE("by hand: two operators, and three changes" * doctest::skip()) {
  for (const Nodes members : {three, four}) {
    CHECK_FALSE(breaks(members, 2));
    CHECK_FALSE(breaks(members, 1, {}, 3));
  }
}

}  // namespace
}  // namespace redlock::simulation
