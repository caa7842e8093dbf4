// SPDX-License-Identifier: MIT
// One more member, or one less, while locks are held. Every two quorums of before and after share a
// node, so the change itself has nothing to wait for; see docs/safety.md, A6, for what it needs.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <redlock/admin.hpp>

#include "admin/adopting.hpp"
#include "admin/fences.hpp"
#include "client/client_impl.hpp"
#include "client/set_name.hpp"
#include "engine/quorum.hpp"
#include "wire/node_address.hpp"

namespace redlock {
namespace admin {
namespace {

constexpr auto* two_changes =
    "more than one change was begun, and none can be finished like this; if one is of "
    "max_lease_ms, give its redlock set max-lease again";
constexpr auto* other_nodes =
    "the members changed while they were asked; give the same command again";

class Resize final : Adopting {
 public:
  Resize(NodeQuery& query, MemberMove move) : Adopting(query, std::move(move)) {}

  Result<std::vector<NodeAdoption>> run() {
    if (auto done = look(); !done) return tl::make_unexpected(done.error());
    if (auto done = change(); !done) return tl::make_unexpected(done.error());
    return std::move(adoptions_);
  }

 private:
  /// One node after the other is told, and none behind one that was not. A node that has just been
  /// told that the number of members is another one keeps that until earlier leases are over.
  Result<void> change() {
    if (auto done = look_at_new_member(); !done) return done;
    auto target = resized();
    if (!target) return tl::make_unexpected(target.error());
    const auto size = static_cast<std::uint32_t>(target->members.size());
    former_size_ = move_.to.empty() ? size + 1 : size - 1;
    const std::uint32_t quorum = engine::quorum_of(former_size_);
    const auto commands = as_members(*target);
    if (auto done = see_fences(commands, fences_to_read(size)); !done) return done;
    if (auto done = carry_all(); !done) return done;
    const auto would = all_would(*target);
    if (!would) return tl::make_unexpected(would.error());
    if (*would) {
      if (auto done = tell_in_turn(commands, in_turn(commands, *target), *target); !done)
        return done;
    }
    const bool agreed = told() >= quorum;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!agreed || !joins(node)) not_told(node, *would ? told_in_turn : none_told);
    }
    if (!agreed) return {};
    return move_.to.empty() ? Result<void>() : add_new_member(*target);
  }

  void not_told(std::size_t node, const char* why) {
    const auto found = adoptions_[node].adoption;
    if (found == Adoption::already_there || found == Adoption::waits) return;
    unconfirmed(node, joins(node) ? not_agreed : why);
  }

  Result<void> look_at_new_member() const {
    if (move_.to.empty()) return {};
    const std::size_t node = new_node();
    if (node == nodes_.size()) return refused(other_nodes);
    if (!accepted(node)) return refused(move_.to + ": " + adoptions_[node].detail);
    return may_join();
  }

  Result<void> add_new_member(const SetConfiguration& target) {
    const std::size_t node = new_node();
    if (is_member(node) && !was_member(node, target)) return {};
    const auto size = static_cast<std::uint32_t>(target.members.size());
    const auto votes = admit(node, fences_to_read(size), engine::quorum_of(former_size_), target);
    if (!votes) return tl::make_unexpected(votes.error());
    if (!*votes) return {};
    OfNodes commands(nodes_.size());
    commands[node] = command(node, target, {markers_[node] ? markers_[node]->state() : ""});
    return write(commands, target);
  }

  /// Of so many others: one may have taken a place itself, and have none yet.
  [[nodiscard]] std::uint32_t fences_to_read(std::uint32_t size) const {
    return std::min(former_size_, engine::quorum_of(size));
  }

  /// First those for which the number of members stays. If only some were told that a member
  /// leaves, which does not count together with these, programs might find no quorum.
  [[nodiscard]] std::vector<std::size_t> in_turn(const OfNodes& all,
                                                 const SetConfiguration& target) const {
    std::vector<std::size_t> order;
    for (const bool same_number : {true, false}) {
      for (const Member& member : target.members) {
        const auto at = std::ranges::find(nodes_, member.address, &wire::NodeAddress::address);
        const auto node = static_cast<std::size_t>(at - nodes_.begin());
        if (all[node].empty()) continue;
        const auto number = markers_[node]->configuration().members.size();
        if ((number == target.members.size()) == same_number) order.push_back(node);
      }
    }
    return order;
  }

  /// The members with one more, or one less.
  [[nodiscard]] SetConfiguration changed(SetConfiguration its) const {
    if (move_.to.empty()) {
      std::erase_if(its.members, [&](const Member& each) { return each.address == move_.from; });
    } else if (its.at(move_.to) == nullptr) {
      its.members.push_back({new_id(), move_.to});
    }
    return its;
  }

  /// Whether these are the members of before with that one more, or less, and no other: at an
  /// address may be a member that was one before, and joined again.
  [[nodiscard]] bool is_changed(const SetConfiguration& before, const SetConfiguration& its) const {
    const SetConfiguration& less = move_.to.empty() ? its : before;
    const SetConfiguration& more = move_.to.empty() ? before : its;
    const std::string& one = move_.to.empty() ? move_.from : move_.to;
    return more.members.size() == less.members.size() + 1 && more.at(one) != nullptr &&
           before.has_leases_of(its) && std::ranges::all_of(more.members, [&](const Member& each) {
             return each.address == one || less.has(each.id);
           });
  }

  /// A token from before the former change is known by those of then who stay. What has a quorum
  /// after this change shares a node with them only if a quorum of today know it.
  Result<void> carry_all() {
    const auto all = static_cast<std::uint32_t>(nodes_.size());
    const std::uint32_t asked = move_.to.empty() ? all : all - 1;
    // So many of these are of each quorum of the former members; one alone explains nothing.
    const auto explain =
        std::max<std::uint32_t>(2, engine::quorum_of(former_size_) + asked - former_size_);
    for (std::size_t node = 0; begins_ && node < nodes_.size(); ++node) {
      if (joins(node)) continue;
      const auto carried = carry_fences(query_, healths(), node, all, explain);
      if (!carried) return tl::make_unexpected(carried.error());
      if (!*carried) return too_few_fences(nodes_[node].label + " and of all others that stay");
    }
    return {};
  }

  /// Who shows a list of members.
  struct Shown {
    SetConfiguration list;  // in its latest epoch
    std::string by{};       // one of these nodes
  };

  /// The members with one more or less: as an interrupted call began to tell them, or those that
  /// all who stay show, changed. One who does not answer may have been told of another change: two
  /// that are made at once would leave quorums that share no node.
  Result<SetConfiguration> resized() {
    std::vector<Shown> shown;  // each list once
    std::string why_not;       // the first reason
    const auto keeps = [&](std::size_t node, const std::string& from) {
      if (why_not.empty()) why_not = nodes_[node].label + from;
    };
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (joins(node) && !is_listed(node)) continue;
      if (!accepted(node)) {
        keeps(node, ": " + adoptions_[node].detail + all_who_stay);
        continue;
      }
      if (!is_member(node)) {
        keeps(node, without_marker);
        continue;
      }
      auto its = markers_[node]->configuration();
      if (!shown.empty() && shown.front().list.set != its.set) {
        keeps(node, ": " + client::another_set(its.set, shown.front().list.set));
        continue;
      }
      const auto same = std::ranges::find_if(shown, [&](const Shown& each) {
        return each.list.members == its.members && each.list.has_leases_of(its);
      });
      if (same == shown.end()) {
        shown.push_back({std::move(its), nodes_[node].label});
      } else {
        same->list.epoch = std::max(same->list.epoch, its.epoch);
      }
    }
    if (const auto missed = missed_change()) return refused(*missed);
    if (shown.size() > 2) return refused(in_words(shown) + two_changes + way_out);
    if (!why_not.empty()) return refused(why_not + (shown.size() > 1 ? way_out : ""));
    if (shown.empty()) return refused("no node that answers is a member of a set");
    std::ranges::sort(shown, {}, [this](const Shown& each) { return move_.is_done_in(each.list); });
    const SetConfiguration& last = shown.back().list;
    const bool is_done = move_.is_done_in(last);
    if (shown.size() == 2 && !(is_done && is_changed(shown.front().list, last))) {
      return refused(in_words(shown) + other_change + way_out);
    }
    if (shown.size() == 1 && is_done && move_.to.empty()) return no_member(last);
    begins_ = !is_done;
    // The new member may have had its marker. Or a replacement has told the nodes that show it:
    // then leases may live that the member which it left out has confirmed.
    may_have_voted_ = is_done;
    SetConfiguration target = is_done ? last : changed(last);
    if (!is_done || target.epoch < last_epoch()) target.epoch = next_epoch();
    for (const Member& member : target.members) {
      const auto same = std::ranges::find(nodes_, member.address, &wire::NodeAddress::address);
      if (same != nodes_.end()) continue;
      const std::string& knows = shown.back().by;
      return refused(knows + " names " + member.address +
                     ", which was not asked; give the same command again, with " + knows +
                     " as the list of nodes");
    }
    return shown.size() == 1 && is_done ? Result<SetConfiguration>(target) : has_quorum(target);
  }

  /// "a names a b c (max_lease_ms 60000); b names a b c d (max_lease_ms 60000); "
  static std::string in_words(const std::vector<Shown>& shown) {
    std::string sentence;
    for (const Shown& each : shown) {
      sentence += each.by + " names";
      for (const Member& member : each.list.members) sentence += " " + member.address;
      sentence += " (max_lease_ms " +
                  wire::NodeMarker::max_lease_text(each.list.max_lease, each.list.announced) +
                  "); ";
    }
    return sentence;
  }

  /// Programs that run follow when a quorum of the former members name the new ones.
  Result<SetConfiguration> has_quorum(const SetConfiguration& target) const {
    const auto size = static_cast<std::uint32_t>(target.members.size());
    const std::uint32_t stay = move_.to.empty() ? size : size - 1;
    const std::uint32_t former = move_.to.empty() ? size + 1 : size - 1;
    if (stay >= engine::quorum_of(former)) return target;
    return refused("of " + std::to_string(former) + " members " + std::to_string(stay) +
                   " would be left, which is no quorum of them, so that programs that run would "
                   "not follow");
  }

  std::uint32_t former_size_ = 0;  // how many members there were
  bool begins_ = false;            // otherwise the change is finished, or undone
};

Result<std::vector<NodeAdoption>> resize(const Client& client, std::string_view uri, bool joins) {
  const auto one = wire::parse_node_uri(uri);
  if (!one) return tl::make_unexpected(Error{Errc::invalid_argument, one.error(), {}});
  auto nodes = members_to_change(client);
  if (!nodes) return tl::make_unexpected(nodes.error());
  if (auto error = other_scheme(*one, nodes->front())) return tl::make_unexpected(*error);
  const wire::NodeAddress login = nodes->front();
  std::erase_if(*nodes, [&](const auto& node) { return node.address == one->address; });
  if (joins) nodes->push_back(*one);
  const MemberMove move = joins ? MemberMove{.to = one->address} : MemberMove{.from = one->address};
  return change_among(client, *nodes, login,
                      [&](NodeQuery& query) { return Resize(query, move).run(); });
}

}  // namespace
}  // namespace admin

Result<std::vector<NodeAdoption>> Admin::add(std::string_view node) const {
  return admin::resize(*client_, node, true);
}

Result<std::vector<NodeAdoption>> Admin::remove(std::string_view node) const {
  return admin::resize(*client_, node, false);
}

}  // namespace redlock
