// SPDX-License-Identifier: MIT
// A model of operators who add, remove and replace members: two of them at once, each of whom may
// stop at any step, and begin anew with any command. Every state is visited that they can reach
// while a lease is granted, and ends, tokens are given, and clients give markers to nodes without
// one: no two quorums that clients may count are ever without a common node, and none gives a token
// that is not new; and where they have stopped, some command goes on. Without any one of the rules
// there are such quorums, or sets that no command changes any more.
//
// Not in it are nodes that lose their data or were replicas, `redlock adopt`, the word of --over,
// and longer leases. An operator reads all markers at one moment, and a client is granted a lease
// at one; in its sisters, resize_test.cpp and timed_replacement_test.cpp, confirmations are
// gathered. What an operator has sent may be executed at any time later, until another one has the
// node's promise; one whose program has ended is no different from one that waits.
#include "operators.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <doctest/doctest.h>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "operators_plans.hpp"

namespace redlock::simulation::operators {
namespace {

/// Each is looked at by itself. A lease lives only for the first, as it would be in the way of the
/// others. The last: where nobody is at it, there is a command that can tell a quorum.
enum class Promise : Small { exclusion, tokens, a_way_on };

class Model {
 public:
  Model(Nodes members, Bounds bounds, Rules rules, Promise promise)
      : plans_(rules, bounds), rules_(rules), bounds_(bounds), promise_(promise) {
    World start;
    start.configurations[1].followed = 1;
    for (unsigned node = 0; has(members, node); ++node) {
      start.configurations[1].join(node);
      start.markers[node] = 1;
    }
    if (promise == Promise::tokens) start.token = members;
    visit(start);
  }

  /// The way to a state in which two quorums share no node, a token is not new, or no command goes
  /// on; empty if there is none.
  std::string way_to_break() {
    for (std::size_t next = 0; next < states_.size(); ++next) {
      here_ = states_[next];
      const World world = *here_;
      if (promise_ == Promise::a_way_on) {
        if (is_stuck(world)) return way_here() + "\nand no command goes on";
      } else if (const Nodes other = grant(world)) {
        return way_here() + "\nand a quorum " + text_of(other);
      }
      for (unsigned who = 0; who < bounds_.operators; ++who) go_on(world, who);
      for (unsigned node = 0; node < most_nodes; ++node) give(world, node);
      World over = world;
      over.lease = 0;
      visit(over);
    }
    MESSAGE("nothing breaks in " << states_.size() << " states");
    return "";
  }

 private:
  void visit(World world) {
    if (promise_ != Promise::tokens) {
      for (Configuration& each : world.configurations) each.unfenced = 0;
    }
    world.tidy();
    const auto [at, is_new] = came_from_.try_emplace(world, here_);
    if (is_new) states_.push_back(&at->first);
  }

  bool is_stuck(const World& world) {
    const auto is_idle = [](const Operator& it) { return it.target == 0; };
    const auto tells_a_quorum = [&](const Plan& plan) {
      const Operator& it = plan.it;
      const Configuration& target = it.target != 0 ? world.at(it.target) : plan.target;
      return is_majority(it.left | it.told, target.members);
    };
    return std::ranges::all_of(world.operators, is_idle) &&
           std::ranges::none_of(plans_.of(world), tells_a_quorum);
  }

  /// What each quorum does that some client may count now; one that breaks the promise, or none.
  Nodes grant(const World& world) {
    std::array<bool, 1U << most_nodes> counted{};
    const Nodes before = promise_ == Promise::tokens ? world.token : world.lease;
    const auto voters = voters_of(world);
    for (unsigned some = 1; some < counted.size(); ++some) {
      const auto nodes = static_cast<Nodes>(some);
      const bool breaks = before != 0 && (nodes & before) == 0;
      if (!breaks && world.lease != 0) continue;
      counted[some] = counts(world, voters, nodes);
      if (!counted[some]) continue;
      if (breaks) return nodes;
      bool is_least = true;  // others can do no more
      for (unsigned node = 0; node < most_nodes; ++node) {
        const bool is_more = has(nodes, node) && counted[without(nodes, bit(node))];
        is_least = is_least && !is_more;
      }
      if (!is_least) continue;
      World granted = world;
      (promise_ == Promise::tokens ? granted.token : granted.lease) = nodes;
      visit(granted);
    }
    return 0;
  }
  /// Of each configuration the nodes that are its members by their own markers.
  using Voters = std::array<Nodes, most_changes + 2>;
  static Voters voters_of(const World& world) {
    Voters voters{};
    for (unsigned its = 1; its < voters.size(); ++its) {
      for (unsigned node = 0; node < most_nodes; ++node) {
        if (world.at(its).has_of(world.shown(node), node)) voters[its] |= bit(node);
      }
    }
    return voters;
  }
  /// Of nodes that name what they executed: a majority of what the client knows, and of each later
  /// configuration; if it knows none, of each.
  static bool counts(const World& world, const Voters& voters, Nodes nodes) {
    const auto has_quorum = [&](unsigned its) {
      return count(nodes & voters[its]) >= quorum(world.at(its).members);
    };
    for (unsigned known = 0; known < voters.size(); ++known) {
      const Configuration& its = world.at(known);
      if (known != 0 && (its.followed == 0 || without(nodes, its.members) != 0)) continue;
      bool all = known == 0 || has_quorum(known);
      for (unsigned node = 0; all && node < most_nodes; ++node) {
        const unsigned shown = world.markers[node];
        if (has(nodes, node)) all = shown != 0 && (shown <= known || has_quorum(shown));
      }
      if (all) return true;
    }
    return false;
  }

  /// A client gives a member its marker that has none.
  void give(const World& world, unsigned node) {
    for (unsigned its = 1; its < world.configurations.size(); ++its) {
      const Configuration& one = world.at(its);
      if (!has(rules_.new_members_wait ? one.waited_by : one.made_for, node)) continue;
      if (one.followed == 0 || (rules_.is_finished && has(one.unfenced, node))) continue;
      World to = world;
      to.mark(node, its);
      visit(to);
    }
  }

  void go_on(const World& world, unsigned who) {
    const Operator& it = world.operators[who];
    if (it.target == 0) return begin(world, who);
    World stopped = world;
    stopped.operators[who] = {};
    visit(stopped);
    if (it.in_turn != 0) {
      if (it.asks != 0) return ask_all(world, who);
      return it.left != 0 ? tell(world, who, next_of(world, it)) : admit(world, who);
    }
    for (unsigned node = 0; node < most_nodes; ++node) {
      if (has(it.left, node)) tell(world, who, node);
    }
    admit(world, who);
  }

  /// Reads the markers, and decides what to write.
  void begin(const World& world, unsigned who) {
    for (const Plan& plan : plans_.of(world)) {
      const Operator& other = world.operators[1 - who];
      // Of two that ask at the same time each may have asked last at some of the nodes.
      const Nodes both = other.begins != 0 ? other.left & plan.promised : 0;
      for (Nodes lost = both; lost != 0; lost = static_cast<Nodes>((lost - 1U) & both)) {
        begin(world, who, plan, lost);
      }
      begin(world, who, plan, 0);
    }
  }
  void begin(const World& world, unsigned who, const Plan& plan, Nodes lost) {
    World to = world;
    to.operators[who] = plan.it;
    if (rules_.members_promise) take_promises(to, 1 - who, without(plan.promised, lost));
    if ((plan.carried_to & to.token) != 0) to.token |= plan.carried_to;
    if (plan.it.target != 0) return promised(to, who, lost);
    // Its epoch is larger than those that were seen, and of others that nobody saw any.
    if (world.at(bounds_.changes + 1).members != 0) return;
    bool is_last = false;
    for (unsigned epoch = plan.last + 1U; !is_last; ++epoch) {
      is_last = world.at(epoch).members == 0;
      World with = to;
      with.insert(epoch, plan.target);
      with.configurations[epoch].unfenced |= world.at(plan.base).unfenced;
      with.operators[who].target = static_cast<Small>(epoch);
      promised(with, who, lost);
    }
  }
  void promised(World world, unsigned who, Nodes lost) {
    take_promises(world, who, lost);
    visit(world);
  }

  /// These execute nothing more of what it sends; in turn, none behind them is told.
  static void take_promises(World& world, unsigned who, Nodes promised) {
    Operator& it = world.operators[who];
    const Nodes left = without(it.left, promised);
    if (it.in_turn != 0 && left != it.left) {
      for (unsigned next = next_of(world, it); !has(promised, next); next = next_of(world, it)) {
        it.left = without(it.left, bit(next));
      }
      it.left = without(left, it.left);
    } else {
      it.left = left;
    }
  }
  [[nodiscard]] static bool stays(const World& world, const Operator& it, unsigned node) {
    return count(world.at(it.seen[node]).members) == count(world.at(it.target).members);
  }
  /// The next one in turn: first those for which the number of members stays.
  [[nodiscard]] static unsigned next_of(const World& world, const Operator& it) {
    unsigned next = no_node;
    for (const unsigned node : world.at(it.target).order) {
      if (!has(it.left, node)) continue;
      if (next == no_node || (stays(world, it, node) && !stays(world, it, next))) next = node;
    }
    return next;
  }
  /// The marker is as it was seen, or is there already; and the node need not keep its number.
  [[nodiscard]] bool takes(const World& world, const Operator& it, unsigned node) const {
    const unsigned here = world.markers[node];
    if (here == it.target) return true;
    const bool keeps = rules_.nodes_keep_the_number && has(world.resized, node);
    return here == it.seen[node] && (stays(world, it, node) || !keeps);
  }
  void ask_all(World world, unsigned who) {
    Operator& it = world.operators[who];
    it.asks = 0;
    bool all = true;
    for (unsigned node = 0; node < most_nodes; ++node) {
      if (!has(it.left, node)) continue;
      all = all && takes(world, it, node);
      if (it.seen[node] == it.target) it.told |= bit(node);
    }
    if (!all) it.left = 0;
    visit(world);
  }
  void tell(World world, unsigned who, unsigned node) {
    Operator& it = world.operators[who];
    it.left = without(it.left, bit(node));
    it.begins = 0;
    if (!takes(world, it, node)) {
      if (it.in_turn != 0) it.left = 0;  // none behind one that was not told
      return visit(world);
    }
    it.told |= bit(node);
    if (!stays(world, it, node) && world.lease != 0) world.resized |= bit(node);
    if (world.markers[node] != it.target) world.mark(node, it.target);
    visit(world);
  }
  // Adopting::admit()
  void admit(World world, unsigned who) {
    Operator& it = world.operators[who];
    if (it.to == no_node || !world.is_agreed(it, it.told)) return;
    const unsigned to = std::exchange(it.to, no_node);
    const Configuration target = world.at(it.target);
    const Nodes former = without(target.members, bit(to));
    // The fences of so many are read.
    unsigned enough = quorum(it.in_turn != 0 ? former : target.members);
    if (rules_.enough_fences_are_read) enough = std::min(count(former), quorum(target.members));
    const bool is_read = count(without(former, world.token)) < enough;
    if (rules_.fences_are_carried && is_read) world.token |= bit(to);
    for (Configuration& each : world.configurations) {
      if (each.has_of(target, to)) each.unfenced = without(each.unfenced, bit(to));
    }
    const unsigned seen = std::exchange(it.seen[to], Small{0});
    const bool is_former = world.markers[to] == seen || !rules_.only_former_markers_go;
    if (seen != 0 && is_former) world.clear(to);
    if (it.gives != 0 && world.markers[to] == 0) world.mark(to, it.target);
    visit(world);
  }

  [[nodiscard]] std::string way_here() const {
    std::string way;
    for (const World* at = here_; at != nullptr; at = came_from_.at(*at)) way.insert(0, at->text());
    return way;
  }

  Plans plans_;
  const Rules rules_;
  const Bounds bounds_;
  const Promise promise_;
  const World* here_ = nullptr;
  std::unordered_map<World, const World*, World::Hash> came_from_;
  std::vector<const World*> states_;
};

/// A way to a state that breaks a promise; empty if there is none.
std::string broken(Nodes members, Bounds bounds, Rules rules = {}) {
  std::string way = Model(members, bounds, rules, Promise::exclusion).way_to_break();
  if (!way.empty()) return way;
  return Model(members, bounds, rules, Promise::tokens).way_to_break();
}
/// A way to a set that no command changes any more.
std::string stuck(Nodes members, Bounds bounds, Rules rules = {}) {
  return Model(members, bounds, rules, Promise::a_way_on).way_to_break();
}
constexpr Nodes two = 0b11;
constexpr Nodes three = 0b111;
constexpr Nodes four = 0b1111;
constexpr Nodes five = 0b11111;

constexpr Bounds resized{.operators = 2, .replace = false};
constexpr Bounds any{.operators = 2, .nodes = 4};
constexpr Bounds any_thrice{.operators = 2, .changes = 3, .nodes = 4};

TEST_CASE("operators who add and remove members leave every two quorums a common node") {
  for (const Nodes members : {two, three, four}) CHECK(broken(members, resized) == "");
}

TEST_CASE("operators who add and remove members need each of these rules") {
  const Bounds thrice{.changes = 3, .nodes = 5, .replace = false};
  CHECK(broken(four, thrice, {.all_who_stay_answer = false}) != "");
  CHECK(broken(four, thrice, {.all_are_asked_first = false}) != "");
  CHECK(broken(three, resized, {.one_change_at_once = false}) != "");
  CHECK(broken(three, resized, {.nodes_keep_the_number = false}) != "");
  CHECK(broken(three, resized, {.fences_are_carried = false}) != "");
}

TEST_CASE("operators who also replace members leave every two quorums a common node") {
  for (const Nodes members : {two, three})
    CHECK(broken(members, {.operators = 2, .nodes = 5}) == "");
  CHECK(broken(three, {.changes = 3, .nodes = 4}) == "");
}

TEST_CASE("wherever operators stop, some command goes on") {
  for (const Nodes members : {two, three}) CHECK(stuck(members, any_thrice) == "");
  CHECK(stuck(three, {.operators = 2, .nodes = 5}) == "");
  CHECK(stuck(four, {.operators = 2, .nodes = 5}) == "");
  CHECK(stuck(three, any, {.one_has_all_promises = false}) != "");
  CHECK(stuck(three, any_thrice, {.one_number_is_shown = false}) != "");
}

TEST_CASE("operators who replace members need each of these rules") {
  const Bounds one{.nodes = 5};
  CHECK(broken(three, one, {.others_may_be_made = false}) != "");
  CHECK(broken(three, one, {.new_members_wait = false}) != "");
  CHECK(broken(three, one, {.joins_by_another_id = false}) != "");
  CHECK(broken(three, one, {.is_finished = false}) != "");
}

TEST_CASE("operators who go on with what another one began need each of these rules") {
  CHECK(broken(three, any, {.members_promise = false}) != "");
  CHECK(broken(three, any, {.interrupted_ones_wait = false}) != "");
  CHECK(broken(three, {.changes = 3, .nodes = 4}, {.members_are_compared_by_id = false}) != "");
  CHECK(broken(three, {.nodes = 5}, {.enough_fences_are_read = false}) != "");
  CHECK(broken(three, any_thrice, {.only_former_markers_go = false}) != "");
}

// Minutes, and gigabytes: to be run with --no-skip when a rule changes.
TEST_CASE("by hand: more nodes, and three changes" * doctest::skip()) {
  for (const Nodes members : {two, three}) {
    CHECK(broken(members, any_thrice) == "");
    CHECK(broken(members, {.changes = 3, .nodes = 5}) == "");
  }
  CHECK(broken(four, {.operators = 2, .nodes = 5}) == "");
  CHECK(broken(four, {.changes = 3, .nodes = 5}) == "");
  const Bounds of_five{.operators = 2, .nodes = 6};
  CHECK(broken(five, of_five) == "");
  CHECK(broken(five, of_five, {.goes_on_anew = false}) != "");
  CHECK(stuck(five, of_five) == "");
}

}  // namespace
}  // namespace redlock::simulation::operators
