// SPDX-License-Identifier: MIT
// Writes the marker on nodes that have none, after a look at whether they may ever vote: a marker
// that should not be there is hard to get rid of. A set is born when all of its nodes have agreed
// to be its members: each is first marked as forming the set, and only when all are does one of
// them become a member. So of two operators with two lists that share a node one at most makes a
// set. Where there is a set, a node without a marker is perhaps listed by mistake in the place of a
// member: only the operator can tell.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <redlock/admin.hpp>

#include "admin/fences.hpp"
#include "admin/marker.hpp"
#include "admin/node_query.hpp"
#include "admin/twins.hpp"
#include "client/client_impl.hpp"
#include "client/sentence.hpp"
#include "client/set_name.hpp"
#include "engine/quorum.hpp"
#include "net/kernel_random.hpp"
#include "wire/adoption.hpp"
#include "wire/info_text.hpp"
#include "wire/key_layout.hpp"

namespace redlock {
namespace {

using admin::QueryCommand;
using engine::Member;
using engine::SetConfiguration;

constexpr auto* not_said =
    "it has lost its data, or is listed by mistake; if all leases that it may have granted are "
    "over, say so: redlock adopt --replaced NODE; otherwise correct the list";
constexpr auto* no_set =
    "it is new beside a node that has a marker, and no quorum of the nodes is in one set; correct "
    "the list, start the nodes that are down, or see docs/operations.md if most have lost their "
    "data";
constexpr auto* no_place =
    "it stands at no member's address; to give it the place of a member: "
    "redlock set replace OLD NEW; otherwise correct the list";
constexpr auto* moved =
    "another node of the list has the data of the member at this address; to give that node this "
    "place: redlock set replace OLD NEW";
constexpr auto* interrupted =
    "its marker names later members of the set than most: a change was interrupted; finish it with "
    "the same redlock set command, or undo it: replace NEW OLD, remove what was to be added, add "
    "what was to be removed";
constexpr auto* other_change =
    "another change of the members was interrupted; finish it with the same redlock set command, "
    "or undo it, first";
constexpr auto* all_who_stay =
    "; every member that stays has to answer and agree: mend it, or give its place to another node "
    "first (redlock set replace OLD NEW)";
constexpr auto* without_marker =
    ": it is named as a member, and has no marker: another change was interrupted, which is to be "
    "finished with the same redlock set command, or undone, first; or it has lost its data, and "
    "has to be a member again first (redlock doctor)";
constexpr auto* too_few_to_replace =
    "a set of one or two members has no quorum without one of them; while all of them answer, make "
    "the new node one more member (redlock set add), then remove the old one (redlock set remove); "
    "if one is dead, start it";
constexpr auto* other_nodes =
    "the members changed while they were asked; give the same command again";
constexpr auto* told_in_turn =
    "it was not told who the members are, as one before it was not; give the same command again";
constexpr auto* not_agreed =
    "it takes its place when a quorum of the members name it, and too few could be told; when they "
    "can be, give the same command again";
constexpr auto* without_fences =
    "it takes its place when it has the fences of the others, and too few could be read, or it "
    "refused; give the same command again";
constexpr auto* waits =
    "it takes its place when every lease that the former member may have confirmed is over: a "
    "client gives it its marker when it has run for one longest lease from now on";
constexpr auto* beside = "another adoption has changed its marker at the same time; run it again";
constexpr auto* not_all =
    "a new set is adopted when all its nodes can be asked: start the others and adopt again, or "
    "correct the list";
constexpr auto* not_any_more =
    "it is no member of its set any more: another node has taken its place; correct the list";

std::string random_id() {
  net::KernelRandom random;
  return wire::random_id(random);
}

/// The addresses of a member that leaves and of a node that joins, in its place if both are given;
/// empty: none does.
struct MemberMove {
  std::string from{};
  std::string to{};
  OldLeases leases = OldLeases::are_over;

  [[nodiscard]] bool resizes() const { return from.empty() != to.empty(); }
  [[nodiscard]] bool is_done_in(const SetConfiguration& its) const {
    return (to.empty() || its.at(to) != nullptr) && (from.empty() || its.at(from) == nullptr);
  }
};

/// One adoption: what each node is found to be, and what is to be written there.
class Adopting {
 public:
  Adopting(admin::NodeQuery& query, const std::set<std::string>& replaced, MemberMove move = {})
      : query_(query),
        nodes_(query.nodes()),
        replaced_(replaced),
        move_(std::move(move)),
        set_{.max_lease = query.options().max_lease, .drift_factor = query.options().drift_factor},
        promotions_(nodes_.size()),
        markers_(nodes_.size()) {
    for (const auto& node : nodes_) {
      adoptions_.emplace_back();
      adoptions_.back().node = node.label;
    }
  }

  Result<std::vector<NodeAdoption>> run() {
    if (auto done = look(); !done) return tl::make_unexpected(done.error());
    const bool is_new = std::ranges::none_of(
        markers_, [](const auto& marker) { return marker && !marker->set_name.empty(); });
    const bool replaces = !move_.to.empty() && !move_.resizes();
    if (replaces) {
      if (const auto node = that_shows_another_number()) {
        return refused(nodes_[*node].label + ": its marker names " +
                       std::to_string(markers_[*node]->configuration().members.size()) +
                       " members, and " + std::to_string(nodes_.size()) +
                       " are asked: " + other_change);
      }
    }
    if (replaces && nodes_.size() <= 2) return refused(too_few_to_replace);
    auto done = move_.resizes() ? resize() : is_new ? form() : join();
    if (!done) return tl::make_unexpected(done.error());
    return std::move(adoptions_);
  }

 private:
  using OfNodes = std::vector<std::vector<QueryCommand>>;

  Result<void> look() {
    const std::vector<QueryCommand> questions{{"INFO"},
                                              {"HGETALL", std::string(set_.layout.marker)}};
    const auto infos = query_.ask(std::vector(nodes_.size(), questions), query_.patience());
    if (!infos) return tl::make_unexpected(infos.error());
    std::vector<std::string> run_ids;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      run_ids.push_back(take_info(node, (*infos)[node].answers[0]));
      take_marker(node, (*infos)[node].answers[1]);
    }
    const auto twins = admin::find_twins(query_, run_ids);
    if (!twins) return tl::make_unexpected(twins.error());
    for (std::size_t node = 0; node < twins->size(); ++node) {
      if (!(*twins)[node]) continue;
      fail(node, Cause::incompatible, same_as(*(*twins)[node]));
      fail(*(*twins)[node], Cause::incompatible, same_as(node));
    }
    return {};
  }

  /// The run id. The user may not be allowed to read INFO; then the operator's word has to suffice.
  std::string take_info(std::size_t node, const wire::Answer& answer) {
    const auto trouble = admin::trouble_of(answer, nodes_[node]);
    if (!answer) {
      fail(node, trouble.cause, trouble.detail);
      return {};
    }
    const auto text = admin::text_of(answer).value_or("");
    const wire::InfoText info(text);
    const auto role = info.value("role");
    if (!role.empty() && role != "master") {
      fail(node, Cause::incompatible, "it is a replica; only independent masters are adopted");
    } else if (info.is_in_cluster()) {
      fail(node, Cause::incompatible, "it belongs to a Redis Cluster; take an independent master");
    }
    if (info.was_replica()) promotions_[node] = info.promotion();
    return std::string(info.value("run_id"));
  }

  void take_marker(std::size_t node, const wire::Answer& answer) {
    const auto trouble = admin::trouble_of(answer, nodes_[node]);
    if (trouble.cause != Cause::none) return fail(node, trouble.cause, trouble.detail);
    markers_[node] = admin::read_marker(answer, nodes_[node]);
    if (!markers_[node]) return;
    const std::size_t members = markers_[node]->configuration().members.size();
    if (const auto how = markers_[node]->disagreement(set_)) {
      disagrees(node, *how);
    } else if (!move_.resizes() && members != nodes_.size()) {
      disagrees(node, "its marker says nodes " + std::to_string(members) + ", this client " +
                          std::to_string(nodes_.size()) +
                          "; give the whole list, or one or two of its members");
    }
  }

  /// A new set: no node is a member of one.
  Result<void> form() {
    const auto its = to_form();
    const bool all = its && std::ranges::all_of(adoptions_, [](const NodeAdoption& node) {
                       return node.cause == Cause::none && node.adoption != Adoption::disagrees;
                     });
    for (std::size_t node = 0; node < nodes_.size() && !all; ++node) unconfirmed(node, not_all);
    if (!all) return {};
    OfNodes commands(nodes_.size());
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const auto seen = markers_[node] ? markers_[node]->state() : "";
      if (seen != its->set) commands[node] = command(node, *its, {seen, true});
    }
    if (auto done = write(commands, *its); !done) return done;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const auto& adoption = adoptions_[node];
      const bool agrees = commands[node].empty() || adoption.adoption == Adoption::written;
      if (agrees) continue;
      for (std::size_t other = 0; other < nodes_.size(); ++other) unconfirmed(other, not_all);
      return {};
    }
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      commands[node] = command(node, *its, {its->set, false});
    }
    return write(commands, *its);
  }

  /// The configuration of the new set: one that an adoption left unfinished, or another; nothing if
  /// that had other members. Of two that two operators began with one list both go on with the
  /// same.
  std::optional<SetConfiguration> to_form() {
    SetConfiguration its;
    bool others = false;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!markers_[node] || !accepted(node)) continue;
      const auto begun = markers_[node]->configuration();
      if (!std::ranges::all_of(nodes_, [&](const auto& it) { return begun.at(it.address); })) {
        disagrees(node, other_list(begun));
        others = true;
      } else if (begun.set > its.set) {
        its = begun;
      }
    }
    if (others) return std::nullopt;
    if (!its.set.empty()) return its;
    its = {random_id(), 1, {}};
    for (const auto& node : nodes_) its.members.push_back({random_id(), node.address});
    return its;
  }

  /// Nodes beside members of a set.
  Result<void> join() {
    auto its = configuration();
    if (!its) {
      for (std::size_t node = 0; node < nodes_.size(); ++node) leave(node);
      return {};
    }
    may_have_voted_ = may_be_made(*its);
    if (auto done = take_places(*its); !done) return done;
    if (auto done = clear_new_member(*its); !done) return done;
    OfNodes commands(nodes_.size());
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (accepted(node) && is_member(node)) commands[node] = as_member(node, *its);
    }
    if (auto done = see_fences(commands); !done) return done;
    if (auto done = write(commands, *its); !done) return done;
    const auto with_it = std::ranges::count_if(adoptions_, [](const NodeAdoption& node) {
      return node.cause == Cause::none &&
             (node.adoption == Adoption::already_there || node.adoption == Adoption::written);
    });
    // A set of the first epoch was agreed on by all; any other by the quorum that it has now.
    const bool agreed = its->epoch == 1 || with_it >= query_.quorum();
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      commands[node].clear();
      if (!accepted(node) || is_member(node)) continue;
      if (!agreed) {
        unconfirmed(node, not_agreed);
      } else if (nodes_[node].address == move_.to) {
        if (auto done = admit(node); !done) return done;
      }
      const auto found = adoptions_[node].adoption;
      if (found != Adoption::unconfirmed && found != Adoption::waits) {
        commands[node] =
            command(node, *its, {markers_[node] ? markers_[node]->state() : "", false});
      }
    }
    return write(commands, *its);
  }

  /// A node of the list names more members, or fewer.
  [[nodiscard]] std::optional<std::size_t> that_shows_another_number() const {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (is_member(node) && markers_[node]->configuration().members.size() != nodes_.size()) {
        return node;
      }
    }
    return std::nullopt;
  }

  // --- one more member, or one less

  /// One node after the other is told, and none behind one that was not. A node that has just been
  /// told that the number of members is another one keeps that until earlier leases are over.
  Result<void> resize() {
    if (auto done = look_at_new_member(); !done) return done;
    auto target = resized();
    if (!target) return tl::make_unexpected(target.error());
    if (auto done = clear_new_member(*target); !done) return done;
    const auto size = static_cast<std::uint32_t>(target->members.size());
    former_size_ = move_.to.empty() ? size + 1 : size - 1;
    const std::uint32_t quorum = engine::quorum_of(former_size_);
    OfNodes commands(nodes_.size());
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (accepted(node) && is_member(node)) commands[node] = as_member(node, *target);
    }
    may_have_voted_ = may_have_voted_ || told() >= quorum;
    if (auto done = see_fences(commands); !done) return done;
    if (auto done = carry_all(); !done) return done;
    if (auto done = tell_in_turn(commands, *target); !done) return done;
    const bool agreed = told() >= quorum;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!agreed || nodes_[node].address != move_.to) not_told(node);
    }
    if (!agreed) return {};
    return move_.to.empty() ? Result<void>() : add_new_member(*target);
  }

  /// Of those who stay.
  [[nodiscard]] std::uint32_t told() const {
    std::uint32_t count = 0;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const bool joins = nodes_[node].address == move_.to;
      count += !joins && adoptions_[node].adoption == Adoption::already_there ? 1 : 0;
    }
    return count;
  }
  void not_told(std::size_t node) {
    const auto found = adoptions_[node].adoption;
    if (found == Adoption::already_there || found == Adoption::waits) return;
    unconfirmed(node, nodes_[node].address == move_.to ? not_agreed : told_in_turn);
  }

  [[nodiscard]] std::size_t new_node() const {
    const auto found = std::ranges::find(nodes_, move_.to, &wire::NodeAddress::address);
    return static_cast<std::size_t>(found - nodes_.begin());
  }

  Result<void> look_at_new_member() const {
    if (move_.to.empty()) return {};
    const std::size_t node = new_node();
    if (node == nodes_.size()) return refused(other_nodes);
    if (!accepted(node)) return refused(move_.to + ": " + adoptions_[node].detail);
    for (std::size_t other = 0; other < nodes_.size() && is_member(node); ++other) {
      if (other == node || !is_member(other)) continue;
      const auto its = markers_[other]->configuration();
      if (its.has(markers_[node]->id) && !is_listed(node)) {
        return refused(move_.to + ": it has the data of another member; start it empty");
      }
      if (its.set == markers_[node]->set_name) continue;
      return refused(move_.to + ": " +
                     client::another_set(markers_[node]->set_name, markers_[other]->set_name));
    }
    return {};
  }

  Result<void> add_new_member(const SetConfiguration& target) {
    const std::size_t node = new_node();
    if (is_member(node)) return {};
    if (auto done = admit(node); !done) return done;
    const auto found = adoptions_[node].adoption;
    if (found == Adoption::unconfirmed || found == Adoption::waits) return {};
    OfNodes commands(nodes_.size());
    commands[node] = command(node, target, {markers_[node] ? markers_[node]->state() : "", false});
    return write(commands, target);
  }

  /// One after the other, until one is not told. First those for which the number of members stays.
  Result<void> tell_in_turn(const OfNodes& all, const SetConfiguration& target) {
    for (const bool same_number : {true, false}) {
      for (const Member& member : target.members) {
        const auto at = std::ranges::find(nodes_, member.address, &wire::NodeAddress::address);
        const auto node = static_cast<std::size_t>(at - nodes_.begin());
        if (all[node].empty()) continue;
        const auto number = markers_[node]->configuration().members.size();
        if ((number == target.members.size()) != same_number) continue;
        OfNodes commands(nodes_.size());
        commands[node] = all[node];
        if (auto done = write(commands, target); !done) return done;
        if (adoptions_[node].adoption != Adoption::already_there) return {};
      }
    }
    return {};
  }

  /// The members with one more, or one less.
  [[nodiscard]] SetConfiguration changed(SetConfiguration its) const {
    if (move_.to.empty()) {
      std::erase_if(its.members, [&](const Member& each) { return each.address == move_.from; });
    } else if (its.at(move_.to) == nullptr) {
      its.members.push_back({random_id(), move_.to});
    }
    return its;
  }
  /// Whether these are the members of before with that one more, or less, and no other.
  [[nodiscard]] bool is_changed(const SetConfiguration& before, const SetConfiguration& its) const {
    const SetConfiguration& less = move_.to.empty() ? its : before;
    const SetConfiguration& more = move_.to.empty() ? before : its;
    const std::string& one = move_.to.empty() ? move_.from : move_.to;
    return more.members.size() == less.members.size() + 1 && more.at(one) != nullptr &&
           std::ranges::all_of(more.members, [&](const Member& each) {
             return each.address == one || less.at(each.address) != nullptr;
           });
  }

  /// As the member that it says it is.
  [[nodiscard]] bool is_listed(std::size_t node) const {
    for (std::size_t other = 0; other < nodes_.size() && is_member(node); ++other) {
      if (other == node || !is_member(other)) continue;
      const auto its = markers_[other]->configuration();
      const Member* const member = its.at(nodes_[node].address);
      const bool is_it = member != nullptr && member->id == markers_[node]->id;
      if (is_it && its.set == markers_[node]->set_name) return true;
    }
    return false;
  }

  /// A token from before the former change is known by those of then who stay. What has a quorum
  /// after this change shares a node with them only if a quorum of today know it.
  Result<void> carry_all() {
    const auto all = static_cast<std::uint32_t>(nodes_.size());
    for (std::size_t node = 0; begins_ && node < nodes_.size(); ++node) {
      if (nodes_[node].address == move_.to) continue;
      const auto carried = admin::carry_fences(query_, healths(), node, all);
      if (!carried) return tl::make_unexpected(carried.error());
      if (!*carried) return too_few_fences(nodes_[node].label + " and of all others that stay");
    }
    return {};
  }

  /// The members with one more or less: as an interrupted call began to tell them, or those that
  /// all who stay show, changed. One who does not answer may have been told of another change: two
  /// that are made at once would leave quorums that share no node.
  Result<SetConfiguration> resized() {
    std::vector<SetConfiguration> shown;  // each list of members once, in its latest epoch
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (nodes_[node].address == move_.to && !is_listed(node)) continue;
      if (!accepted(node)) {
        return refused(nodes_[node].label + ": " + adoptions_[node].detail + all_who_stay);
      }
      if (!is_member(node)) return refused(nodes_[node].label + without_marker);
      auto its = markers_[node]->configuration();
      if (!shown.empty() && shown.front().set != its.set) {
        return refused(nodes_[node].label + ": " + client::another_set(its.set, shown.front().set));
      }
      const auto same = std::ranges::find(shown, its.members, &SetConfiguration::members);
      if (same == shown.end()) {
        shown.push_back(std::move(its));
      } else {
        same->epoch = std::max(same->epoch, its.epoch);
      }
    }
    if (shown.empty()) return refused("no node that answers is a member of a set");
    std::ranges::sort(shown, {}, [this](const auto& each) { return move_.is_done_in(each); });
    const SetConfiguration& last = shown.back();
    const bool is_done = move_.is_done_in(last);
    if (shown.size() > 2) return refused(other_change);
    if (shown.size() == 2 && !(is_done && is_changed(shown.front(), last))) {
      return refused(other_change);
    }
    if (shown.size() == 1 && is_done && move_.to.empty()) return no_member(last);
    begins_ = !is_done;
    may_have_voted_ = is_done && last.epoch < shown.front().epoch;  // before this was undone
    SetConfiguration target = is_done ? last : changed(last);
    if (!is_done || target.epoch < last_epoch()) target.epoch = next_epoch();
    for (const Member& member : target.members) {
      const auto same = std::ranges::find(nodes_, member.address, &wire::NodeAddress::address);
      if (same == nodes_.end()) return refused(other_nodes);
    }
    return shown.size() == 1 && is_done ? Result<SetConfiguration>(target) : has_quorum(target);
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
  [[nodiscard]] tl::unexpected<Error> no_member(const SetConfiguration& its) const {
    std::string sentence = move_.from + " is no member of the set, whose members are";
    for (const Member& member : its.members) sentence += " " + member.address;
    return tl::make_unexpected(Error{Errc::invalid_argument,
                                     sentence + "; give one of these as the node that " +
                                         (move_.to.empty() ? "leaves" : "is replaced"),
                                     {}});
  }
  static tl::unexpected<Error> refused(const std::string& why) {
    return tl::make_unexpected(Error{Errc::no_quorum, "no marker was changed: " + why, {}});
  }

  // ---

  /// A replacement is not begun by whom the nodes do not let finish it.
  Result<void> see_fences(const OfNodes& commands) {
    if (move_.to.empty() || std::ranges::all_of(commands, &std::vector<QueryCommand>::empty)) {
      return {};
    }
    const auto fences = admin::read_fences(query_, healths());
    if (!fences) return tl::make_unexpected(fences.error());
    const std::size_t to = new_node();
    if (admin::can_be_carried(*fences, to, enough_fences())) return {};
    return too_few_fences(nodes_[to].label + " and of a quorum of the others");
  }
  static Result<void> too_few_fences(const std::string& whose) {
    return refused("the fences of " + whose +
                   " are to be read, and too few nodes answer or let this user; start them, or "
                   "take the user redlock-admin");
  }

  /// The new member, and of those without it so many as have one that knows each token.
  [[nodiscard]] std::uint32_t enough_fences() const {
    return 1 + (move_.resizes() ? engine::quorum_of(former_size_) : query_.quorum());
  }

  /// A node that has just been made a member.
  Result<void> admit(std::size_t node) {
    const auto carried = admin::carry_fences(query_, healths(), node, enough_fences());
    if (!carried) return tl::make_unexpected(carried.error());
    if (!*carried) {
      unconfirmed(node, without_fences);
    } else if (move_.leases == OldLeases::may_live || may_have_voted_) {
      adoptions_[node].adoption = Adoption::waits;
      adoptions_[node].detail = waits;
    }
    return {};
  }

  /// Of the set that a quorum of the nodes name, or form: the configuration that a quorum shows, or
  /// the first one of several; but the next one if its new member is the one that is put in a place
  /// now, because that was interrupted. Of two that were begun at once, neither of which can have
  /// had a quorum, this one goes on, under another epoch.
  [[nodiscard]] std::optional<SetConfiguration> configuration() const {
    std::map<std::string, std::uint32_t> named;
    std::vector<std::pair<SetConfiguration, std::uint32_t>> shown;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!accepted(node) || !markers_[node]) continue;
      auto its = markers_[node]->configuration();
      ++named[its.set];
      if (!is_member(node)) continue;
      const auto same = std::ranges::find(shown, its, [](const auto& each) { return each.first; });
      same == shown.end() ? void(shown.emplace_back(std::move(its), 1)) : void(++same->second);
    }
    std::erase_if(shown, [&](const auto& each) { return named[each.first.set] < query_.quorum(); });
    if (shown.empty()) return std::nullopt;
    std::ranges::sort(shown, {}, [](const auto& each) { return each.first.epoch; });
    const auto of_quorum = std::ranges::find_if(
        shown, [&](const auto& each) { return each.second >= query_.quorum(); });
    const auto& [base, count] = of_quorum != shown.end() ? *of_quorum : shown.front();
    const bool is_rivalled =
        count < query_.quorum() && shown.size() > 1 && shown[1].first.epoch == base.epoch;
    SetConfiguration its = base;
    for (const auto& [next, its_count] : shown) {
      if (next.epoch > its.epoch && is_this_move(base, next)) its = next;
    }
    // A later one may have a quorum by the nodes that could not be asked.
    const bool may_be_past = count < query_.quorum() && shown.size() > 1 && !all_asked();
    if (may_be_past && its == base) return std::nullopt;
    if (is_rivalled) its.epoch = next_epoch();
    const bool is_done = its.at(move_.to) != nullptr && its.at(move_.from) == nullptr;
    if (is_done && last_epoch() > its.epoch) its.epoch = next_epoch();
    return its;
  }

  /// Whether the new member may have had its marker already, and have lost it with what it granted:
  /// a quorum names it, or may have. That the former one's leases are over says nothing of these.
  [[nodiscard]] bool may_be_made(const SetConfiguration& its) const {
    if (move_.to.empty() || its.at(move_.to) == nullptr) return false;
    std::uint32_t may_name = 0;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const bool is_asked = adoptions_[node].cause == Cause::none;
      const bool names = is_member(node) && markers_[node]->configuration().at(move_.to) != nullptr;
      if (nodes_[node].address != move_.to && (names || !is_asked)) ++may_name;
    }
    return may_name >= query_.quorum();
  }

  [[nodiscard]] bool all_asked() const {
    return std::ranges::all_of(adoptions_,
                               [](const NodeAdoption& node) { return node.cause == Cause::none; });
  }

  [[nodiscard]] std::uint64_t last_epoch() const {
    std::uint64_t last = 0;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (markers_[node] && is_member(node)) {
        last = std::max(last, markers_[node]->configuration().epoch);
      }
    }
    return last;
  }
  /// One that no other configuration has: a node that cannot be asked, or is being replaced, may
  /// name members that an interrupted replacement told it, and messages name the epoch alone.
  [[nodiscard]] std::uint64_t next_epoch() const {
    net::KernelRandom random;
    constexpr std::uint64_t most_skipped = 1'000'000;
    return last_epoch() + 1 + random.next() % most_skipped;
  }

  [[nodiscard]] bool is_this_move(const SetConfiguration& before,
                                  const SetConfiguration& after) const {
    return after.epoch > before.epoch &&
           std::ranges::all_of(after.members, [&](const Member& member) {
             return member.address == move_.to || before.at(member.address) != nullptr;
           });
  }

  /// Leaves alone each node that is no member, unless the operator names it, or all had agreed that
  /// it is one and too few members are there for a lock to have been granted without it.
  Result<void> take_places(SetConfiguration& its) {
    Member* const place = place_of(its, move_.from);
    if (!move_.to.empty() && place == nullptr && its.at(move_.to) == nullptr) {
      return no_member(its);
    }
    std::uint32_t members = 0;
    for (std::size_t node = 0; node < nodes_.size(); ++node) members += is_member(node) ? 1 : 0;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!accepted(node)) continue;
      const std::string& address = nodes_[node].address;
      if (address == move_.to && place != nullptr) {
        its.epoch = next_epoch();
        *place = {random_id(), address};
      }
      if (is_member(node) || address == move_.to) continue;
      const Member* const member = its.at(address);
      if (member == nullptr) {
        unconfirmed(node, no_place);
      } else if (is_shown(member->id)) {
        unconfirmed(node, moved);
      } else if (!replaced_.contains(nodes_[node].label) &&
                 !(members < query_.quorum() && had_agreed(node, its))) {
        unconfirmed(node, not_said);
      }
    }
    return {};
  }

  /// The new member may have been one before. With a marker it would vote at once, also while
  /// leases live that the members of today confirmed without it.
  Result<void> clear_new_member(const SetConfiguration& its) {
    if (move_.to.empty()) return {};
    OfNodes commands(nodes_.size());
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const bool clears = accepted(node) && nodes_[node].address == move_.to && is_member(node) &&
                          markers_[node]->set_name == its.set && !its.has(markers_[node]->id);
      if (clears) commands[node] = {{"DEL", std::string(set_.layout.marker)}};
    }
    const auto answers = query_.ask(commands, query_.options().node_timeout);
    if (!answers) return tl::make_unexpected(answers.error());
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (commands[node].empty()) continue;
      const auto trouble = admin::trouble_of((*answers)[node].answers[0], nodes_[node]);
      if (trouble.cause != Cause::none) return failed_to_clear(trouble.detail, nodes_[node].label);
      markers_[node].reset();
    }
    return {};
  }
  static Result<void> failed_to_clear(const std::string& why, const std::string& node) {
    return tl::make_unexpected(Error{Errc::no_quorum,
                                     "the marker of " + node +
                                         ", which was a member before, could not be removed (" +
                                         why + "); when it can be, give the same command again",
                                     {}});
  }

  [[nodiscard]] static Member* place_of(SetConfiguration& its, const std::string& address) {
    const auto found = std::ranges::find(its.members, address, &Member::address);
    return found == its.members.end() ? nullptr : &*found;
  }
  /// Whether a member has that id already.
  [[nodiscard]] bool is_shown(const std::string& id) const {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (is_member(node) && markers_[node]->id == id) return true;
    }
    return false;
  }
  /// Whether the node forms this set, and no node of it is of another one by now.
  [[nodiscard]] bool had_agreed(std::size_t node, const SetConfiguration& its) const {
    if (!markers_[node] || markers_[node]->configuration() != its) return false;
    return std::ranges::none_of(markers_, [&](const auto& marker) {
      return marker && marker->configuration().set != its.set;
    });
  }

  [[nodiscard]] bool is_member(std::size_t node) const {
    return markers_[node] && !markers_[node]->set_name.empty();
  }

  std::vector<QueryCommand> as_member(std::size_t node, const SetConfiguration& its) {
    const wire::NodeMarker& marker = *markers_[node];
    if (marker.set_name != its.set) {
      disagrees(node, client::another_set(marker.set_name, its.set));
    } else if (marker.configuration().epoch > its.epoch) {
      disagrees(node, interrupted);
    } else if (!its.has(marker.id)) {
      disagrees(node, not_any_more);
    } else if (marker.configuration() != its) {
      return command(node, its, {marker.state(), false});
    } else if (!promotions_[node].empty()) {
      return command(node, its, {});
    } else {
      adoptions_[node].adoption = Adoption::already_there;
    }
    return {};
  }

  /// No set is known. A marker is left as it is: its name may be that of a quorum, if the nodes
  /// that could not be asked have it.
  void leave(std::size_t node) {
    if (!accepted(node)) return;
    if (!is_member(node)) return unconfirmed(node, no_set);
    const std::string& name = markers_[node]->set_name;
    std::uint32_t alike = 0;
    for (std::size_t other = 0; other < nodes_.size(); ++other) {
      const bool unknown = adoptions_[other].cause != Cause::none;
      alike += unknown || (is_member(other) && markers_[other]->set_name == name) ? 1 : 0;
    }
    if (alike < query_.quorum()) return disagrees(node, client::another_set(name, std::nullopt));
    adoptions_[node].adoption = Adoption::already_there;
  }

  [[nodiscard]] std::vector<QueryCommand> command(std::size_t node, const SetConfiguration& its,
                                                  const wire::AdoptionStep& step) const {
    const Member* const member = its.at(nodes_[node].address);
    const std::string id = is_member(node) || member == nullptr ? markers_[node]->id : member->id;
    return {wire::adoption_command(set_, {id, its}, step, promotions_[node])};
  }

  Result<void> write(const OfNodes& commands, const SetConfiguration& its) {
    const auto answers = query_.ask(commands, query_.options().node_timeout);
    if (!answers) return tl::make_unexpected(answers.error());
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!commands[node].empty())
        read(node, (*answers)[node].answers[0], commands[node][0][1], its);
    }
    return {};
  }

  void read(std::size_t node, const wire::Answer& answer, const std::string& script,
            const SetConfiguration& its) {
    auto& adoption = adoptions_[node];
    const auto trouble = admin::trouble_of(answer, nodes_[node], script);
    if (trouble.cause != Cause::none) return fail(node, trouble.cause, trouble.detail);
    if (const auto left = wire::stays_for(answer)) {
      adoption.adoption = Adoption::waits;
      adoption.detail =
          "the number of members was changed a moment ago, and can be changed again in " +
          std::to_string(std::chrono::ceil<std::chrono::seconds>(*left).count()) +
          " s, when all leases from before are over";
      return;
    }
    if (admin::text_of(answer) == "written") {
      adoption.adoption = is_member(node) ? Adoption::already_there : Adoption::written;
      return;
    }
    const auto marker = admin::read_marker(answer, nodes_[node]);
    if (!marker) return fail(node, Cause::protocol_error, "its answer is not a marker");
    // Another client has adopted the node meanwhile, or it was asked only to vouch.
    const auto how = marker->disagreement(set_);
    if (how || marker->configuration() != its) return disagrees(node, how.value_or(beside));
    adoption.adoption = Adoption::already_there;
  }

  [[nodiscard]] std::vector<NodeHealth> healths() const {
    std::vector<NodeHealth> all(nodes_.size());
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      all[node].trouble.cause = adoptions_[node].cause;
    }
    return all;
  }
  [[nodiscard]] bool accepted(std::size_t node) const {
    return adoptions_[node].cause == Cause::none &&
           adoptions_[node].adoption != Adoption::disagrees;
  }
  void fail(std::size_t node, Cause cause, const std::string& detail) {
    if (adoptions_[node].cause != Cause::none) return;
    adoptions_[node].adoption = Adoption::failed;
    adoptions_[node].cause = cause;
    adoptions_[node].detail = detail.empty() ? to_string(cause) : detail;
  }
  void disagrees(std::size_t node, const std::string& detail) {
    adoptions_[node].adoption = Adoption::disagrees;
    adoptions_[node].detail = detail;
  }
  void unconfirmed(std::size_t node, const char* why) {
    if (!accepted(node)) return;
    adoptions_[node].adoption = Adoption::unconfirmed;
    adoptions_[node].detail = why;
  }
  [[nodiscard]] std::string same_as(std::size_t other) const {
    return "it is the same server as " + nodes_[other].label + "; name every node once";
  }

  static std::string other_list(const SetConfiguration& begun) {
    std::string sentence = "it was being adopted into a set with other members (";
    for (const Member& member : begun.members) {
      sentence += (&member == &begun.members.front() ? "" : ", ") + member.address;
    }
    return sentence +
           "): finish that with this list; or, if none of them is a member of a set by now, DEL "
           "redlock:node here and adopt again";
  }

  admin::NodeQuery& query_;
  const std::vector<wire::NodeAddress>& nodes_;
  const std::set<std::string>& replaced_;
  const MemberMove move_;
  const wire::SetTerms set_;
  std::vector<NodeAdoption> adoptions_;
  std::vector<std::string> promotions_;
  std::vector<std::optional<wire::NodeMarker>> markers_;
  bool may_have_voted_ = false;    // the new member
  bool begins_ = false;            // a change of the number; otherwise it is finished, or undone
  std::uint32_t former_size_ = 0;  // of a set that gets one member more or less
};

/// As reports name them; the list may spell the same address in other ways.
Result<std::set<std::string>> labels_of(const std::vector<std::string>& uris,
                                        const std::vector<wire::NodeAddress>& nodes) {
  std::set<std::string> labels;
  for (const auto& uri : uris) {
    const auto parsed = wire::parse_node_uri(uri);
    const auto is_it = [&](const wire::NodeAddress& node) { return node.label == parsed->label; };
    if (parsed && std::ranges::any_of(nodes, is_it)) {
      labels.insert(parsed->label);
      continue;
    }
    return tl::make_unexpected(
        Error{Errc::invalid_argument,
              "the replaced node " + (parsed ? parsed->label : client::in_quotes(uri)) +
                  " is not in the list of nodes; write it as the list has it",
              {}});
  }
  return labels;
}

}  // namespace

namespace admin {

std::optional<wire::NodeMarker> read_marker(const wire::Answer& answer,
                                            const wire::NodeAddress& node) {
  auto marker = answer ? wire::NodeMarker::read(*answer) : std::nullopt;
  if (!marker) return std::nullopt;
  for (std::string* shown :
       {&marker->id, &marker->layout, &marker->nodes, &marker->max_lease_ms, &marker->set_name}) {
    *shown = client::cleaned(*shown, node);
  }
  return marker;
}

wire::NodeMarker as_written(const Marker& marker) {
  wire::NodeMarker written{marker.id, marker.layout, marker.nodes, marker.max_lease_ms};
  written.set_name = marker.set;
  written.epoch = marker.epoch;
  written.members = marker.members;
  return written;
}

std::string disagreement(const Marker& marker, const wire::SetTerms& expected) {
  return as_written(marker).disagreement(expected).value_or("");
}

namespace {

/// The members that the nodes of the client's list name.
Result<std::vector<wire::NodeAddress>> members_named(const Client& client) {
  auto query = NodeQuery::inspecting(*client.impl());
  if (!query) return tl::make_unexpected(query.error());
  const std::vector<QueryCommand> question{{"HGETALL", std::string(wire::redlock_layout.marker)}};
  const auto answers = query->ask(std::vector(query->nodes().size(), question), query->patience());
  if (!answers) return tl::make_unexpected(answers.error());
  std::vector<wire::NodeAddress> nodes;
  for (std::size_t node = 0; node < answers->size(); ++node) {
    const auto marker = read_marker((*answers)[node].answers[0], query->nodes()[node]);
    const wire::SetTerms terms{.max_lease = query->options().max_lease};
    if (!marker || marker->set_name.empty()) continue;
    if (const auto how = marker->disagreement(terms)) {
      return tl::make_unexpected(
          Error{Errc::invalid_argument, query->nodes()[node].label + ": " + *how, {}});
    }
    for (const auto& member : marker->configuration().members) {
      const auto address = wire::moved_to(query->nodes().front(), member.address);
      const auto same = std::ranges::find(nodes, address.address, &wire::NodeAddress::address);
      if (same == nodes.end()) nodes.push_back(address);
    }
  }
  if (nodes.empty()) {
    return tl::make_unexpected(
        Error{Errc::no_quorum,
              "none of the nodes that answer is a member of a set: start "
              "them, run redlock adopt if the set is new, or correct the list",
              {}});
  }
  return nodes;
}

Result<std::vector<NodeAdoption>> resize(const Client& client, std::string_view uri, bool joins) {
  const auto one = wire::parse_node_uri(uri);
  if (!one) return tl::make_unexpected(Error{Errc::invalid_argument, one.error(), {}});
  auto nodes = members_named(client);
  if (!nodes) return tl::make_unexpected(nodes.error());
  const wire::NodeAddress login = nodes->front();
  const std::string scheme(engine::scheme_of(one->address));
  if (scheme != engine::scheme_of(login.address)) {
    return tl::make_unexpected(Error{Errc::invalid_argument,
                                     one->label + " is reached by " + scheme +
                                         ", and programs that run would not go on to it from " +
                                         login.label + "; give an address of that kind",
                                     {}});
  }
  std::erase_if(*nodes, [&](const auto& node) { return node.address == one->address; });
  if (joins) nodes->push_back(*one);
  ClientOptions options = client.options();
  // Nobody waits for a lock meanwhile, and a slow answer would leave the change half-way.
  options.node_timeout = std::max(options.node_timeout, options.connect_timeout);
  options.nodes.clear();
  for (const auto& node : *nodes) options.nodes.push_back(wire::uri_of(node, login));
  const auto all = Client::create(std::move(options));
  if (!all) return tl::make_unexpected(all.error());
  auto query = NodeQuery::inspecting(*all->impl());
  if (!query) return tl::make_unexpected(query.error());
  const MemberMove move = joins ? MemberMove{.to = one->address} : MemberMove{.from = one->address};
  return Adopting(*query, {}, move).run();
}

}  // namespace

}  // namespace admin

Result<std::vector<NodeAdoption>> Admin::adopt(const std::vector<std::string>& replaced) const {
  auto labels = labels_of(replaced, client_->impl()->nodes());
  if (!labels) return tl::make_unexpected(labels.error());
  auto query = admin::NodeQuery::inspecting(*client_->impl());
  if (!query) return tl::make_unexpected(query.error());
  return Adopting(*query, *labels).run();
}

Result<std::vector<NodeAdoption>> Admin::replace(std::string_view from, std::string_view to,
                                                 OldLeases leases) const {
  const auto old_one = wire::parse_node_uri(from);
  const auto new_one = wire::parse_node_uri(to);
  if (!old_one || !new_one) {
    return tl::make_unexpected(
        Error{Errc::invalid_argument, !old_one ? old_one.error() : new_one.error(), {}});
  }
  // The questions are asked by other clients; whether this one may wait is asked here.
  if (auto query = admin::NodeQuery::inspecting(*client_->impl()); !query) {
    return tl::make_unexpected(query.error());
  }
  const std::string scheme(engine::scheme_of(new_one->address));
  if (scheme != engine::scheme_of(old_one->address)) {
    return tl::make_unexpected(Error{Errc::invalid_argument,
                                     new_one->label + " is reached by " + scheme +
                                         ", and programs that run would not go "
                                         "on to it from " +
                                         old_one->label + "; give an address of that kind",
                                     {}});
  }
  auto nodes = client_->impl()->nodes();
  std::erase_if(nodes, [](const wire::NodeAddress& node) { return node.label.empty(); });
  const auto in_list = [&](const wire::NodeAddress& node) {
    return std::ranges::find(nodes, node.address, &wire::NodeAddress::address);
  };
  // A client whose list has the new one goes on to the old one besides: the markers name it.
  if (in_list(*old_one) != nodes.end() && in_list(*new_one) != nodes.end()) {
    nodes.erase(in_list(*new_one));
  }
  ClientOptions options = client_->options();
  options.nodes.resize(nodes.size());
  for (std::size_t node = 0; node < nodes.size(); ++node) {  // as it is reached now
    options.nodes[node] = wire::uri_of(nodes[node], nodes[node]);
  }
  const auto old_entry = in_list(*old_one);
  const bool has_new = in_list(*new_one) != nodes.end();
  if (old_entry == nodes.end() && !has_new) {
    return tl::make_unexpected(
        Error{Errc::invalid_argument,
              "the list of nodes has neither " + old_one->label + " nor " + new_one->label +
                  "; give the list of the set with one of them, or a member of the set",
              {}});
  }
  const wire::NodeAddress& login = has_new ? *in_list(*new_one) : *old_entry;
  if (!has_new) {
    const auto at = static_cast<std::size_t>(old_entry - nodes.begin());
    options.nodes[at] = wire::uri_of(*new_one, login);
  }
  if (leases == OldLeases::are_over) {
    ClientOptions alone = options;
    alone.nodes = {wire::uri_of(*old_one, login)};
    const auto old_client = Client::create(std::move(alone));
    if (!old_client) return tl::make_unexpected(old_client.error());
    const auto there = Admin(*old_client).marked_set();
    if (!there) return tl::make_unexpected(there.error());
    if (*there) {
      return tl::make_unexpected(
          Error{Errc::invalid_argument,
                old_one->label + " still answers as a member of a set, so its leases are not over; "
                                 "replace it without saying that they are",
                {}});
    }
  }
  const auto client = Client::create(std::move(options));
  if (!client) return tl::make_unexpected(client.error());
  auto query = admin::NodeQuery::inspecting(*client->impl());
  if (!query) return tl::make_unexpected(query.error());
  return Adopting(*query, {}, {old_one->address, new_one->address, leases}).run();
}

Result<std::vector<NodeAdoption>> Admin::add(std::string_view node) const {
  return admin::resize(*client_, node, true);
}

Result<std::vector<NodeAdoption>> Admin::remove(std::string_view node) const {
  return admin::resize(*client_, node, false);
}

}  // namespace redlock
