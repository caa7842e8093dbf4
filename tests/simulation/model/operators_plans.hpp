// SPDX-License-Identifier: MIT
// What the operators of operators_test.cpp decide: of each state of the markers, all that
// resize.cpp and adopt.cpp may make of it, whichever command is given with whichever list, and
// whoever answers.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>
#include <utility>
#include <vector>

#include "operators.hpp"

namespace redlock::simulation::operators {

struct Rules {
  bool all_who_stay_answer = true;    // otherwise a quorum of them
  bool one_change_at_once = true;     // all show one configuration, or the two of this change
  bool nodes_keep_the_number = true;  // until a lease from before is over: adopt.lua
  bool fences_are_carried = true;     // to all who stay, before a change begins
  bool all_are_asked_first = true;    // and none is told if one would refuse: all_would()
  // Of replacements.
  bool one_number_is_shown = true;  // that_shows_another_number(), take_places()
  bool others_may_be_made = true;   // and then nothing is changed: may_be_left()
  bool new_members_wait = true;     // until leases from before are over: Quarantines
  bool joins_by_another_id = true;  // take_places(), changed()
  bool is_finished = true;          // before a client gives the new member its marker
  bool goes_on_anew = true;         // in a new epoch, unless a quorum shows it: configuration()
  // Where one goes on with what another one began.
  bool members_promise = true;             // to execute nothing that one sends: prepare()
  bool one_has_all_promises = true;        // a look after the last one: prepare()
  bool members_are_compared_by_id = true;  // not by address: is_changed(), is_this_move()
  bool interrupted_ones_wait = true;       // the node to be added: add_new_member()
  bool only_former_markers_go = true;      // as they were seen: clear_former()
  bool enough_fences_are_read = true;      // also by add for one that took a place: admit()
};

struct Bounds {
  unsigned operators = 1;
  unsigned changes = 2;  // how many other configurations there are at once
  unsigned nodes = most_nodes;
  bool resize = true;
  bool replace = true;
};

/// What an operator makes of the markers.
struct Plan {
  Operator it;
  Configuration target{};  // a new one; otherwise it is known
  Small last = 0;          // its epoch is larger
  Small base = 0;
  Nodes carried_to = 0;  // the fences, if one of these has them
  Nodes promised = 0;    // these, to execute nothing of an earlier change

  [[nodiscard]] bool is_same(const Plan& other) const {
    return it.bytes() == other.it.bytes() && target.is_list_of(other.target) &&
           target.order == other.target.order && target.unfenced == other.target.unfenced &&
           last == other.last && base == other.base && carried_to == other.carried_to &&
           promised == other.promised;
  }
};

class Plans {
 public:
  Plans(Rules rules, Bounds bounds) : rules_(rules), bounds_(bounds) {}

  /// What may be decided is the same whenever the markers are.
  const std::vector<Plan>& of(const World& world) {
    World key;
    key.markers = world.markers;
    std::ranges::transform(world.configurations, key.configurations.begin(),
                           &Configuration::as_new);
    const auto [found, is_new] = found_.try_emplace(key);
    plans_ = &found->second;
    if (is_new) find(world);
    return found->second;
  }

 private:
  /// A replacement that is to be planned.
  struct Move {
    unsigned from = no_node;
    unsigned to = no_node;
    Nodes asked = 0;
    Nodes answered = 0;  // also those that another member named
    unsigned base = 0;
  };

  void find(const World& world) {
    Nodes named = 0;  // at any time
    for (const Configuration& its : world.configurations) named |= its.members;
    const auto fresh = static_cast<unsigned>(std::countr_one(named));  // all others are like it
    const Nodes nodes = fresh < bounds_.nodes ? named | bit(fresh) : named;
    for (unsigned node = 0; node < most_nodes; ++node) {
      if (!has(nodes, node)) continue;
      for (unsigned some = 1; some < 1U << most_nodes; ++some) {
        const auto answer = static_cast<Nodes>(some);
        if (without(answer, nodes) != 0) continue;
        // Seeds: those of a client's list that answer.
        for (const bool joins : {true, false}) {
          if (bounds_.resize && without(answer, named) == 0) resize(world, node, joins, answer);
        }
        for (const Configuration& list : world.configurations) {
          if (bounds_.replace && list.members != 0) replace(world, node, list.members, answer);
        }
      }
    }
  }
  void add(const World& world, Plan plan) {
    const Nodes used = plan.it.left | bit(plan.it.to);
    plan.it.begins = rules_.one_has_all_promises ? 0 : 1;
    for (unsigned node = 0; node < most_nodes; ++node) {
      plan.it.seen[node] = has(used, node) ? world.markers[node] : Small{0};
    }
    if (plan.it.target != 0) plan.target = {};
    const auto is_it = [&](const Plan& other) { return plan.is_same(other); };
    if (std::ranges::none_of(*plans_, is_it)) plans_->push_back(plan);
  }

  /// Who the members are: as a majority of them say, or all that one of the nodes of the list
  /// names; and who was asked.
  struct Named {
    Nodes members = 0;
    bool agreed = false;
    Nodes asked = 0;
  };
  [[nodiscard]] static Named ask(const World& world, Nodes list, Nodes answer) {
    constexpr unsigned rounds = 3;
    Named named{0, false, list};
    for (unsigned round = 1; round <= rounds; ++round) {
      Nodes all = 0;
      std::array<unsigned, most_changes + 2> shown_by{};
      unsigned agreed = 0;  // the latest that is
      for (unsigned each = 0; each < most_nodes; ++each) {
        const unsigned its = has(named.asked & answer, each) ? world.markers[each] : 0;
        const Nodes members = world.at(its).members;
        all |= members;
        if (++shown_by[its] >= quorum(members) && its != 0) agreed = std::max(agreed, its);
      }
      if (agreed != 0) return {world.at(agreed).members, true, named.asked};
      if (round == 1) named.members = all;
      if (round < rounds) named.asked |= all;
    }
    return named;
  }
  /// Whether another of these nodes lists this one as the member that it is.
  [[nodiscard]] static bool is_listed(const World& world, unsigned node, Nodes nodes) {
    for (unsigned each = 0; world.markers[node] != 0 && each < most_nodes; ++each) {
      const bool lists = world.shown(each).has_of(world.shown(node), node);
      if (each != node && has(nodes, each) && lists) return true;
    }
    return false;
  }
  /// Of a node that joins.
  [[nodiscard]] unsigned next_id(const World& world, unsigned node) const {
    unsigned last = 0;
    bool was_member = false;
    for (const Configuration& each : world.configurations) {
      last = std::max(last, each.id(node));
      was_member = was_member || has(each.members, node);
    }
    return was_member && !rules_.joins_by_another_id ? last : last + 1;
  }

  // resize.cpp
  void resize(const World& world, unsigned node, bool joins, Nodes seeds) {
    Nodes stay = without(ask(world, seeds, static_cast<Nodes>(~0U)).members, bit(node));
    if (joins && is_listed(world, node, stay)) stay |= bit(node);
    if (rules_.all_who_stay_answer) return resize_with(world, node, joins, stay);
    for (unsigned some = 1; some < 1U << most_nodes; ++some) {
      const auto answer = static_cast<Nodes>(some);
      if (without(answer, stay) == 0) resize_with(world, node, joins, answer);
    }
  }
  void resize_with(const World& world, unsigned node, bool joins, Nodes answer) {
    unsigned last = 0;
    const auto lists = lists_of(world, answer, node, joins, last);
    if (lists.empty()) return;
    const unsigned base = lists.back();
    const bool is_done = has(world.at(base).members, node) == joins;
    if (rules_.one_change_at_once && lists.size() > 1) {
      const Configuration& before = world.at(lists.front());
      const bool was_done = has(before.members, node) == joins;
      const bool is_this = is_done && !was_done && is_changed(before, world.at(base), node, joins);
      if (lists.size() > 2 || !is_this) return;
    }
    Configuration target = world.at(base).as_new();
    if (!is_done && joins) {
      target.join(node), target.set_id(node, next_id(world, node));
    } else if (!is_done) {
      target.leave(node);
    }
    const Nodes former = joins ? without(target.members, bit(node)) : target.members | bit(node);
    if (count(answer & target.members & former) < quorum(former) || target.id(node) > 2) return;
    const bool all_answer = without(target.members, answer | bit(node)) == 0;
    if (rules_.all_who_stay_answer && !all_answer) return;
    Plan plan;
    Operator& it = plan.it;
    unsigned told = 0;
    for (unsigned each = 0; each < most_nodes; ++each) {
      if (!has(answer, each) || !target.has_of(world.shown(each), each)) continue;
      it.left |= bit(each);
      told += has(former, each) && world.markers[each] == base ? 1 : 0;
    }
    it.in_turn = 1, it.asks = rules_.all_are_asked_first && it.left != 0 ? 1 : 0;
    // Where the node may have had its marker already, a client waits.
    const bool may_have_voted =
        rules_.interrupted_ones_wait || base < lists.front() || (told >= quorum(former));
    if (joins && !target.has_of(world.shown(node), node)) {
      it.to = static_cast<Small>(node), it.gives = is_done && may_have_voted ? 0 : 1;
    }
    plan.promised = answer;
    const bool begins = !is_done && lists.size() == 1;
    if (begins && rules_.fences_are_carried) plan.carried_to = answer;
    plan.last = static_cast<Small>(last), plan.base = static_cast<Small>(base);
    plan.target = target;
    if (is_done && base == last) it.target = static_cast<Small>(base);
    add(world, plan);
  }
  /// What these show, the latest of each list; at last that in which it is done. Nothing if one of
  /// them has no marker.
  static std::vector<unsigned> lists_of(const World& world, Nodes answer, unsigned node, bool joins,
                                        unsigned& last) {
    std::vector<unsigned> lists;
    for (unsigned each = 0; each < most_nodes; ++each) {
      if (!has(answer, each)) continue;
      const unsigned shown = world.markers[each];
      if (shown == 0) return {};
      last = std::max(last, shown);
      const auto same = std::ranges::find_if(
          lists, [&](unsigned other) { return world.at(other).is_list_of(world.at(shown)); });
      same == lists.end() ? lists.push_back(shown) : void(*same = std::max(*same, shown));
    }
    std::ranges::sort(lists, {}, [&](unsigned its) {
      return std::pair(has(world.at(its).members, node) == joins, its);
    });
    return lists;
  }
  [[nodiscard]] bool is_changed(const Configuration& before, const Configuration& its,
                                unsigned node, bool joins) const {
    const Configuration& more = joins ? its : before;
    const Configuration& less = joins ? before : its;
    if (has(less.members, node) || more.members != (less.members | bit(node))) return false;
    return !rules_.members_are_compared_by_id || more.has_all_of(less, less.members);
  }

  // adopt.cpp
  void replace(const World& world, unsigned to, Nodes list, Nodes answer) {
    const Named named = ask(world, list, answer);
    const Nodes own = named.agreed ? named.members : list;
    for (unsigned from = 0; from < most_nodes; ++from) {
      if (from == to || (has(own, from) == has(own, to) && (named.agreed || !has(own, to))))
        continue;
      Move it{.from = from, .to = to};
      it.asked = without(own, bit(from)) | bit(to);
      it.answered = answer & (it.asked | named.asked);
      replace_with(world, it);
    }
  }
  void replace_with(const World& world, Move it) {
    const Nodes answer = it.answered & it.asked;
    const unsigned number = count(it.asked);
    Nodes accepted = 0;
    unsigned last = 0;
    for (unsigned node = 0; node < most_nodes; ++node) {
      if (!has(answer, node) || world.markers[node] == 0) continue;
      last = std::max<unsigned>(last, world.markers[node]);
      if (node == it.to && !is_listed(world, node, answer)) continue;
      const bool is_alike = count(world.shown(node).members) == number;
      if (!is_alike && rules_.one_number_is_shown) return;
      if (is_alike) accepted |= bit(node);
    }
    const unsigned its = number <= 2 ? 0 : configuration(world, it, accepted);
    if (its == 0 || has(world.at(its).members, it.from) == has(world.at(its).members, it.to))
      return;
    Plan plan;
    plan.target = world.at(its).as_new();
    plan.last = static_cast<Small>(last), plan.base = static_cast<Small>(its);
    const bool is_new = has(plan.target.members, it.from);
    if (is_new) {
      const unsigned former = has(it.answered, it.from) ? world.markers[it.from] : 0;
      const bool is_alike = former == 0 || count(world.at(former).members) == number;
      if (!is_alike && rules_.one_number_is_shown) return;
      plan.target.give_place(it.from, it.to);
      plan.target.set_id(it.to, next_id(world, it.to));
      plan.target.unfenced = bit(it.to);
    }
    if (plan.target.id(it.to) > 2) return;
    const bool is_made = is_majority(showing(world, its, without(accepted, bit(it.to))), it.asked);
    const bool is_its = !is_new && last <= its && (is_made || !rules_.goes_on_anew);
    if (is_its) plan.it.target = static_cast<Small>(its);
    Nodes reads = 0;
    for (unsigned node = 0; node < most_nodes; ++node) {
      const bool stays = has(accepted, node) && plan.target.has_of(world.shown(node), node);
      const bool is_empty = world.markers[node] == 0 || node == it.to;
      if (has(answer, node) && (stays || is_empty)) reads |= bit(node);
      if (!stays) continue;
      const bool is_told = is_its && world.markers[node] == its;
      (is_told ? plan.it.told : plan.it.left) |= bit(node);
    }
    const bool is_read = has(reads, it.to) && count(reads) > quorum(it.asked);
    if (plan.it.left != 0 && !is_read) return;
    plan.promised = plan.it.told | plan.it.left;
    const bool is_admitted = plan.target.has_of(world.shown(it.to), it.to);
    if (has(answer, it.to) && !is_admitted) plan.it.to = static_cast<Small>(it.to);
    add(world, plan);
  }
  [[nodiscard]] static Nodes showing(const World& world, unsigned its, Nodes among) {
    Nodes nodes = 0;
    for (unsigned node = 0; node < most_nodes; ++node) {
      if (has(among, node) && world.markers[node] == its) nodes |= bit(node);
    }
    return nodes;
  }
  /// The one that a quorum shows, or the first that is not past, or this replacement of it, which
  /// was interrupted; 0 if it is not known.
  unsigned configuration(const World& world, Move& it, Nodes accepted) const {
    const unsigned enough = quorum(it.asked);
    std::array<unsigned, most_changes + 2> shown{};
    for (unsigned node = 0; node < most_nodes; ++node) {
      if (has(accepted, node)) ++shown[world.markers[node]];
    }
    if (count(accepted) < enough) return 0;
    const auto is_past = [&](unsigned its) {
      unsigned later = 0;
      for (unsigned next = its + 1; next < shown.size(); ++next) {
        later += shown[next];
      }
      return later >= enough;
    };
    unsigned first = 1;
    while (shown[first] == 0 || is_past(first)) ++first;
    unsigned base = first;
    while (base < shown.size() && shown[base] < enough) ++base;
    if (base == shown.size()) base = first;
    it.base = base;
    unsigned its = base;
    for (unsigned next = base + 1; next < shown.size(); ++next) {
      if (shown[next] != 0 && is_this_move(it, world.at(base), world.at(next))) its = next;
    }
    return may_be_left(world, it, world.at(its), accepted) ? 0 : its;
  }
  /// Whether others than its base and these may have been in force: adopt.cpp.
  [[nodiscard]] bool may_be_left(const World& world, const Move& it, const Configuration& its,
                                 Nodes accepted) const {
    if (!rules_.others_may_be_made) return false;
    const Configuration& base = world.at(it.base);
    unsigned silent = 0;
    unsigned elsewhere = 0;
    for (unsigned node = 0; node < most_nodes; ++node) {
      if (!has(base.members, node)) continue;
      const unsigned shown = shown_by(world, it, node, base, accepted);
      silent += shown == 0 ? 1 : 0;
      elsewhere += shown == 0 || node == it.from || shown > it.base ? 1 : 0;
    }
    const unsigned enough = quorum(base.members);
    if (silent >= enough) return true;
    for (unsigned node = 0; node < most_nodes && elsewhere >= enough; ++node) {
      const unsigned other = has(it.answered, node) ? world.markers[node] : 0;
      if (other <= it.base || world.at(other).is_list_of(its)) continue;
      if (told_of(world, it, other, accepted) >= enough) return true;
    }
    return false;
  }
  [[nodiscard]] bool is_this_move(const Move& it, const Configuration& before,
                                  const Configuration& after) const {
    if (!has(before.members, it.from) || has(after.members, it.from)) return false;
    const Nodes others = without(after.members, bit(it.to));
    if (without(others, before.members) != 0) return false;
    return !rules_.members_are_compared_by_id || after.has_all_of(before, others);
  }
  /// What a member shows; 0 if nothing.
  [[nodiscard]] static unsigned shown_by(const World& world, const Move& it, unsigned node,
                                         const Configuration& lists, Nodes accepted) {
    const unsigned seen = world.markers[node];
    const bool is_it = lists.has_of(world.at(seen), node);
    if (has(it.asked, node)) return has(accepted, node) && (node != it.to || is_it) ? seen : 0;
    return has(it.answered, node) && is_it ? seen : 0;
  }
  [[nodiscard]] static unsigned told_of(const World& world, const Move& it, unsigned other,
                                        Nodes accepted) {
    const Configuration& its = world.at(other);
    const Configuration& base = world.at(it.base);
    unsigned fresh = 0;
    unsigned told = 0;
    for (unsigned node = 0; node < most_nodes; ++node) {
      if (!has(its.members, node)) continue;
      const unsigned shown = shown_by(world, it, node, its, accepted);
      const bool is_new = !base.has_of(its, node);
      fresh += is_new ? 1 : 0;
      const bool leaves_now = node == it.from && shown != 0 && shown <= it.base;
      const bool knows = shown >= other && may_follow(world, it, other, shown);
      told += knows || leaves_now || (shown == 0 && !is_new) ? 1 : 0;
    }
    return fresh > 1 ? count(its.members) : told;
  }
  [[nodiscard]] static bool may_follow(const World& world, const Move& it, unsigned other,
                                       unsigned shown) {
    const Configuration& base = world.at(it.base);
    bool comes_back = false;
    for (unsigned node = 0; node < most_nodes && shown != other; ++node) {
      const bool was_left_out = !base.has_of(world.at(other), node);
      comes_back = comes_back || (was_left_out && base.has_of(world.at(shown), node));
    }
    return !comes_back;
  }

  const Rules rules_;
  const Bounds bounds_;
  std::unordered_map<World, std::vector<Plan>, World::Hash> found_;
  std::vector<Plan>* plans_ = nullptr;
};

}  // namespace redlock::simulation::operators
