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

#include "admin/adopting.hpp"
#include "client/client_impl.hpp"
#include "client/sentence.hpp"
#include "client/set_name.hpp"
#include "engine/quorum.hpp"

namespace redlock {
namespace admin {
namespace {

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
constexpr auto* too_few_to_replace =
    "a set of one or two members has no quorum without one of them; while all of them answer, make "
    "the new node one more member (redlock set add), then remove the old one (redlock set remove); "
    "if one is dead, start it";
constexpr auto* none_is_member =
    "none of the members that stay shows a set; start them, and if they have lost their data, "
    "adopt the set anew, with the new node in its list, when all leases are over (redlock adopt)";
constexpr auto* not_all =
    "a new set is adopted when all its nodes can be asked: start the others and adopt again, or "
    "correct the list";

constexpr auto* not_known =
    "no marker was changed, as it is not known who the members are: too few nodes show it, or a "
    "quorum may have been told of others; finish or undo the change that was interrupted, start "
    "the nodes that do not answer, stop those that are no members any more, and if a member has "
    "lost its data, give it its marker again (redlock adopt --replaced NODE, with the list of "
    "today)";

/// Nodes without a marker, and one in the place of another.
class Joining final : Adopting {
 public:
  Joining(NodeQuery& query, const std::set<std::string>& replaced, MemberMove move = {},
          NamedMembers named = {})
      : Adopting(query, move, move.is_none() ? Vouching::yes : Vouching::no),
        replaced_(replaced),
        named_(std::move(named)) {}

  Result<std::vector<NodeAdoption>> run() {
    if (auto done = look(); !done) return tl::make_unexpected(done.error());
    const bool is_new = std::ranges::none_of(
        markers_, [](const auto& marker) { return marker && !marker->set_name.empty(); });
    if (!move_.to.empty()) {
      if (is_new) return refused(nodes_.size() <= 2 ? too_few_to_replace : none_is_member);
      if (auto done = may_join(); !done) return tl::make_unexpected(done.error());
      if (const auto node = that_shows_another_number()) {
        return refused(nodes_[*node].label + ": its marker names " +
                       std::to_string(markers_[*node]->configuration().members.size()) +
                       " members, and " + std::to_string(nodes_.size()) +
                       " are asked: " + other_change + way_out);
      }
      if (nodes_.size() <= 2) return refused(too_few_to_replace);
    }
    auto done = is_new ? form() : join();
    if (!done) return tl::make_unexpected(done.error());
    return std::move(adoptions_);
  }

 private:
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
      if (seen != its->set)
        commands[node] = command(node, *its, {seen, wire::AdoptionStep::Kind::forms});
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
      commands[node] = command(node, *its, {its->set});
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
    const bool is_given = set_.max_lease != set_.max_lease.zero();
    its = {new_id(), 1, {}, is_given ? set_.max_lease : engine::usual_max_lease};
    for (const auto& node : nodes_) its.members.push_back({new_id(), node.address});
    return its;
  }

  /// Nodes beside members of a set.
  Result<void> join() {
    auto its = configuration();
    if (!its) {
      if (lacks_promises_) return none_is_told();
      for (std::size_t node = 0; node < nodes_.size(); ++node) leave(node);
      return {};
    }
    // The change that this one undoes may have been made.
    may_have_voted_ = base_.at(move_.to) != nullptr || may_be_made(*its);
    if (auto done = take_places(*its); !done) return done;
    auto commands = as_members(*its);
    if (auto done = see_fences(commands, query_.quorum()); !done) {
      return lacks_promises_ ? none_is_told() : done;
    }
    if (!move_.is_none() || !std::ranges::all_of(commands, &std::vector<QueryCommand>::empty)) {
      const auto before = answering();
      const auto ready = prepare(*its);
      if (!ready) return tl::make_unexpected(ready.error());
      if (!*ready) return none_is_told();
      if (answering() < before) return join_without();
      if (auto done = write(commands, *its); !done) return done;
    }
    const auto with_it = std::ranges::count_if(adoptions_, [](const NodeAdoption& node) {
      return node.cause == Cause::none &&
             (node.adoption == Adoption::already_there || node.adoption == Adoption::written);
    });
    // A set of the first epoch was agreed on by all; any other by the quorum that it has now.
    const bool agreed = its->epoch == 1 || with_it >= query_.quorum();
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      commands[node].clear();
      if (!accepted(node) || (is_member(node) && !was_member(node, *its))) continue;
      if (!agreed) {
        unconfirmed(node, not_agreed);
      } else if (joins(node)) {
        const auto votes = admit(node, query_.quorum(), query_.quorum(), *its);
        if (!votes) return tl::make_unexpected(votes.error());
      }
      const auto found = adoptions_[node].adoption;
      if (found != Adoption::unconfirmed && found != Adoption::waits) {
        commands[node] = command(node, *its, {markers_[node] ? markers_[node]->state() : ""});
      }
    }
    return write(commands, *its);
  }

  /// A member answers, and cannot promise: what it shows decides nothing any more.
  Result<void> join_without() {
    lacks_promises_ = true;
    for (NodeAdoption& node : adoptions_) {
      if (node.adoption == Adoption::already_there) node.adoption = Adoption::failed;  // for now
    }
    return join();
  }

  Result<void> none_is_told() {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (adoptions_[node].adoption != Adoption::already_there) unconfirmed(node, none_told);
    }
    return {};
  }

  /// A node of the list names more members, or fewer.
  [[nodiscard]] std::optional<std::size_t> that_shows_another_number() const {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const bool counts = is_member(node) && !has_no_say(node);
      if (counts && markers_[node]->configuration().members.size() != nodes_.size()) return node;
    }
    return std::nullopt;
  }

  /// Of the set that a quorum of the nodes name, or form: the configuration that a quorum shows, or
  /// the first one of several that is not past; but the next one if its new member is the one that
  /// is put in a place now, because that was interrupted. Of several that were begun this one goes
  /// on, under another epoch, if none of the others can have had a quorum; otherwise nothing.
  [[nodiscard]] std::optional<SetConfiguration> configuration() {
    std::map<std::string, std::uint32_t> named;
    std::vector<std::pair<SetConfiguration, std::uint32_t>> shown;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!accepted(node) || !markers_[node] || has_no_say(node)) continue;
      auto its = markers_[node]->configuration();
      ++named[its.set];
      if (!is_member(node)) continue;
      const auto same = std::ranges::find(shown, its, [](const auto& each) { return each.first; });
      same == shown.end() ? void(shown.emplace_back(std::move(its), 1)) : void(++same->second);
    }
    std::erase_if(shown, [&](const auto& each) { return named[each.first.set] < query_.quorum(); });
    if (shown.empty()) return std::nullopt;
    std::ranges::sort(shown, {}, [](const auto& each) { return each.first.epoch; });
    // A quorum of the nodes show later ones, of which one may be in force.
    const auto is_past = [&](const auto& each) {
      std::uint32_t later = 0;
      for (const auto& [next, count] : shown) later += next.epoch > each.first.epoch ? count : 0;
      return later >= query_.quorum();
    };
    shown.erase(shown.begin(), std::ranges::find_if_not(shown, is_past));
    const auto of_quorum = std::ranges::find_if(
        shown, [&](const auto& each) { return each.second >= query_.quorum(); });
    const auto& [base, count] = of_quorum != shown.end() ? *of_quorum : shown.front();
    const bool is_rivalled =
        count < query_.quorum() && shown.size() > 1 && shown[1].first.epoch == base.epoch;
    base_ = base;
    SetConfiguration its = base;
    later_.clear();
    for (const auto& [address, elsewhere] : named_.shown) later_.push_back(elsewhere);
    for (const auto& [next, its_count] : shown) {
      later_.push_back(next);
      if (next.epoch > its.epoch && is_this_move(base, next)) its = next;
    }
    // Where others may be the members, an adoption changes nothing that they show.
    const bool may_be_kept = !move_.is_none() || std::ranges::all_of(shown, [&](const auto& each) {
      return each.first.members == its.members;
    });
    const bool has_other_leases = may_be_kept && keep_longest_leases(its);
    if (may_be_left(its)) return std::nullopt;
    if (is_rivalled || has_other_leases) its.epoch = next_epoch();
    // Those that a quorum shows are made. Otherwise a node that does not answer may still be told
    // of others by an earlier change, and counts no more for these.
    const bool is_done = its.at(move_.to) != nullptr && its.at(move_.from) == nullptr;
    if (is_done && (last_epoch() > its.epoch || showing(its) < query_.quorum())) {
      its.epoch = next_epoch();
    }
    return its;
  }

  /// How many of those who stay show it.
  [[nodiscard]] std::uint32_t showing(const SetConfiguration& its) const {
    std::uint32_t count = 0;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const bool counts = !joins(node) && accepted(node) && is_member(node);
      count += counts && markers_[node]->configuration() == its ? 1 : 0;
    }
    return count;
  }

  /// Whether the new member may have had its marker already, and have lost it with what it granted:
  /// a quorum names it, or may have. That the former one's leases are over says nothing of these.
  [[nodiscard]] bool may_be_made(const SetConfiguration& its) const {
    if (move_.to.empty() || its.at(move_.to) == nullptr) return false;
    std::uint32_t may_name = 0;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const bool is_asked = adoptions_[node].cause == Cause::none;
      const bool names = is_member(node) && markers_[node]->configuration().at(move_.to) != nullptr;
      if (!joins(node) && (names || !is_asked)) ++may_name;
    }
    return may_name >= query_.quorum();
  }

  /// Whether others than `base_` and `its` may have been in force since: a quorum may have been
  /// told of them, which silent members may, and those that lost their marker. The member that
  /// leaves now is not told by this move, so that it can still be told of another one.
  [[nodiscard]] bool may_be_left(const SetConfiguration& its) const {
    const auto quorum = engine::quorum_of(static_cast<std::uint32_t>(base_.members.size()));
    std::uint32_t silent = 0;
    std::uint32_t elsewhere = 0;
    for (const Member& member : base_.members) {
      const auto shown = shown_by(member);
      const bool leaves_now = member.address == move_.from;
      silent += shown ? 0 : 1;
      elsewhere += !shown || leaves_now || shown->epoch > base_.epoch ? 1 : 0;
    }
    if (silent >= quorum) return true;
    return elsewhere >= quorum && std::ranges::any_of(later_, [&](const SetConfiguration& other) {
             const bool is_later = other.set == base_.set && other.epoch >= base_.epoch;
             const bool is_other = other != base_ && other.members != its.members;
             return is_later && is_other && !is_kept(other, its) && told_of(other) >= quorum;
           });
  }

  /// Whether it only announced longer leases to the members of before, which `its` does, too.
  [[nodiscard]] bool is_kept(const SetConfiguration& other, const SetConfiguration& its) const {
    return other.members == base_.members && !other.has_leases_of(base_) &&
           other.max_lease <= its.max_lease && other.longest_lease() <= its.longest_lease();
  }

  /// How many may have been told of these, without the member that is new: that one is given its
  /// marker only when a quorum of the others are told. If two are new, others were in force between
  /// `base_` and these, or these were begun earlier than `base_`: all may have been told.
  [[nodiscard]] std::size_t told_of(const SetConfiguration& its) const {
    std::size_t fresh = 0;
    std::size_t told = 0;
    for (const Member& member : its.members) {
      const auto shown = shown_by(member);
      const bool is_new = !base_.has(member.id);
      fresh += is_new ? 1 : 0;
      const bool leaves_now = member.address == move_.from && shown && shown->epoch <= base_.epoch;
      const bool knows = shown && shown->epoch >= its.epoch && may_follow(its, *shown);
      told += knows || leaves_now || (!shown && !is_new) ? 1 : 0;
    }
    return fresh > 1 ? its.members.size() : told;
  }

  /// Whether it may have been made after `its`: no member that this left out comes back by its id.
  [[nodiscard]] bool may_follow(const SetConfiguration& its, const SetConfiguration& shown) const {
    if (shown.epoch == its.epoch) return shown == its;
    return std::ranges::none_of(base_.members, [&](const Member& member) {
      return !its.has(member.id) && shown.has(member.id);
    });
  }

  /// What the member shows; nothing if it is silent, or has lost its marker, or if the node that
  /// joins at its address is another one by its marker.
  [[nodiscard]] std::optional<SetConfiguration> shown_by(const Member& member) const {
    const auto at = std::ranges::find(nodes_, member.address, &wire::NodeAddress::address);
    const auto node = static_cast<std::size_t>(at - nodes_.begin());
    if (at != nodes_.end()) {
      const bool is_it = !joins(node) || (markers_[node] && markers_[node]->id == member.id);
      const bool counts = is_it && accepted(node) && markers_[node];  // or forms the set
      return counts ? std::optional(markers_[node]->configuration()) : std::nullopt;
    }
    const auto found = named_.shown.find(member.address);
    const bool is_known = found != named_.shown.end() && found->second.has(member.id);
    return is_known ? std::optional(found->second) : std::nullopt;
  }

  [[nodiscard]] bool is_this_move(const SetConfiguration& before,
                                  const SetConfiguration& after) const {
    return after.epoch > before.epoch && before.at(move_.from) != nullptr &&
           after.at(move_.from) == nullptr &&
           std::ranges::all_of(after.members, [&](const Member& member) {
             return member.address == move_.to || before.has(member.id);
           });
  }

  /// Leaves alone each node that is no member, unless the operator names it, or all had agreed that
  /// it is one and too few members are there for a lock to have been granted without it.
  Result<void> take_places(SetConfiguration& its) {
    Member* const place = place_of(its, move_.from);
    const bool has_new = its.at(move_.to) != nullptr;
    if (!move_.to.empty() && ((place == nullptr && !has_new) || new_node() == nodes_.size())) {
      return no_member(its);
    }
    if (place != nullptr && has_new) {
      return refused(move_.to + " took the place of a member meanwhile: " + other_change);
    }
    const auto old = named_.shown.find(move_.from);
    const bool is_old = old != named_.shown.end() && old->second.set == its.set;
    if (place != nullptr && is_old && old->second.members.size() != its.members.size()) {
      return refused(
          move_.from + ": its marker names " + std::to_string(old->second.members.size()) +
          " members, and the others " + std::to_string(its.members.size()) +
          ": a change of their number was interrupted, which is to be finished or undone "
          "first; or stop it, for good, and give the same command again");
    }
    std::uint32_t members = 0;
    for (std::size_t node = 0; node < nodes_.size(); ++node) members += is_member(node) ? 1 : 0;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!accepted(node)) continue;
      const std::string& address = nodes_[node].address;
      if (address == move_.to && place != nullptr) {
        its.epoch = next_epoch();
        *place = {new_id(), address};
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

  /// No set is known. A marker is left as it is: its name may be that of a quorum, if the nodes
  /// that could not be asked have it.
  void leave(std::size_t node) {
    if (!accepted(node)) return;
    if (!move_.to.empty()) return unconfirmed(node, not_known);
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

  static std::string other_list(const SetConfiguration& begun) {
    std::string sentence = "it was being adopted into a set with other members (";
    for (const Member& member : begun.members) {
      sentence += (&member == &begun.members.front() ? "" : ", ") + member.address;
    }
    return sentence +
           "): finish that with this list; or, if none of them is a member of a set by now, DEL "
           "redlock:node here and adopt again";
  }

  const std::set<std::string>& replaced_;
  const NamedMembers named_;
  bool lacks_promises_ = false;          // of nodes that answered before; each has its reason
  SetConfiguration base_;                // the members of before
  std::vector<SetConfiguration> later_;  // and all others that a node shows
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

/// As the client's list reaches it, or the other one of a replacement, or else its first node.
std::string uri_by_list(const std::vector<wire::NodeAddress>& own, const wire::NodeAddress& node,
                        const wire::NodeAddress& other) {
  for (const auto* address : {&node.address, &other.address}) {
    const auto found = std::ranges::find(own, *address, &wire::NodeAddress::address);
    if (found != own.end()) return wire::uri_of(node, *found);
  }
  return wire::uri_of(node, own.front());
}

/// Whom a replacement asks: the members, with the new node in the place of the old one.
Result<std::vector<std::string>> uris_to_ask(const std::vector<wire::NodeAddress>& own,
                                             const NamedMembers& named,
                                             const wire::NodeAddress& from,
                                             const wire::NodeAddress& to, const std::string& uri) {
  auto nodes = named.agreed ? named.members : own;
  const bool has_old = std::ranges::count(nodes, from.address, &wire::NodeAddress::address) != 0;
  const auto new_entry = std::ranges::find(nodes, to.address, &wire::NodeAddress::address);
  const bool has_new = new_entry != nodes.end();
  if (!named.agreed && named.are_of_two_sets()) return tl::make_unexpected(*named.unfit);
  if (named.agreed && has_old && has_new) {
    return tl::make_unexpected(
        Error{Errc::invalid_argument,
              to.label + " is a member of the set already; give the address of another node",
              {}});
  }
  // If it is by their markers that none is known, the nodes will say so.
  if (!named.agreed && !named.unfit && !has_old && !has_new) {
    return tl::make_unexpected(
        Error{Errc::invalid_argument,
              "the list of nodes has neither " + from.label + " nor " + to.label +
                  "; give the list of the set with one of them, or a member of the set",
              {}});
  }
  // A client whose list has the new one goes on to the old one besides: the markers name it.
  if (has_old && has_new) nodes.erase(new_entry);
  std::vector<std::string> uris;
  for (const auto& node : nodes) {
    const bool is_the_place = node.address == from.address || node.address == to.address;
    uris.push_back(is_the_place ? uri : wire::uri_of(node, node));
  }
  return uris;
}

/// The leases of a member that runs are not over, whatever is said.
Result<void> answers_no_more(ClientOptions options, const std::string& uri) {
  options.nodes = {uri};
  const auto client = Client::create(std::move(options));
  if (!client) return tl::make_unexpected(client.error());
  const auto there = Admin(*client).marked_set();
  if (!there) return tl::make_unexpected(there.error());
  if (!*there) return {};
  return tl::make_unexpected(
      Error{Errc::invalid_argument,
            client->impl()->nodes().front().label +
                " still answers as a member of a set, so its leases are not over; replace it "
                "without saying that they are",
            {}});
}

}  // namespace
}  // namespace admin

Result<std::vector<NodeAdoption>> Admin::adopt(const std::vector<std::string>& replaced) const {
  auto labels = admin::labels_of(replaced, client_->impl()->nodes());
  if (!labels) return tl::make_unexpected(labels.error());
  auto query = admin::NodeQuery::inspecting(*client_->impl());
  if (!query) return tl::make_unexpected(query.error());
  return admin::Joining(*query, *labels).run();
}

Result<std::vector<NodeAdoption>> Admin::replace(std::string_view from, std::string_view to,
                                                 OldLeases leases) const {
  const auto old_one = wire::parse_node_uri(from);
  const auto new_one = wire::parse_node_uri(to);
  if (!old_one || !new_one) {
    return tl::make_unexpected(
        Error{Errc::invalid_argument, !old_one ? old_one.error() : new_one.error(), {}});
  }
  if (old_one->address == new_one->address) {
    return tl::make_unexpected(
        Error{Errc::invalid_argument, "a node is replaced by another one; give two addresses", {}});
  }
  if (auto error = admin::other_scheme(*new_one, *old_one)) {
    return tl::make_unexpected(std::move(*error));
  }
  auto named = admin::ask_named_members(*client_);
  if (!named) return tl::make_unexpected(named.error());
  auto own = client_->impl()->nodes();
  std::erase_if(own, [](const wire::NodeAddress& node) { return node.label.empty(); });
  auto uris = admin::uris_to_ask(own, *named, *old_one, *new_one,
                                 admin::uri_by_list(own, *new_one, *old_one));
  if (!uris) return tl::make_unexpected(uris.error());
  ClientOptions options = client_->options();
  options.nodes = std::move(*uris);
  if (leases == OldLeases::are_over) {
    const auto done = admin::answers_no_more(options, admin::uri_by_list(own, *old_one, *new_one));
    if (!done) return tl::make_unexpected(done.error());
  }
  const auto client = Client::create(std::move(options));
  if (!client) return tl::make_unexpected(client.error());
  auto query = admin::NodeQuery::inspecting(*client->impl());
  if (!query) return tl::make_unexpected(query.error());
  return admin::Joining(*query, {}, {old_one->address, new_one->address, leases}, std::move(*named))
      .run();
}

const char* to_string(Adoption adoption) noexcept {
  switch (adoption) {
    case Adoption::written:
      return "written";
    case Adoption::already_there:
      return "already_there";
    case Adoption::disagrees:
      return "disagrees";
    case Adoption::unconfirmed:
      return "unconfirmed";
    case Adoption::waits:
      return "waits";
    case Adoption::failed:
      return "failed";
  }
  return "unknown";
}

}  // namespace redlock
