// SPDX-License-Identifier: MIT
#include "admin/adopting.hpp"

#include <algorithm>

#include "admin/fences.hpp"
#include "admin/twins.hpp"
#include "client/client_impl.hpp"
#include "client/set_name.hpp"
#include "engine/quorum.hpp"
#include "engine/rules.hpp"
#include "net/kernel_random.hpp"
#include "wire/info_text.hpp"
#include "wire/key_layout.hpp"

namespace redlock::admin {
namespace {

constexpr auto* interrupted =
    "its marker is of a later epoch of the set than others: the list is old (compare it with "
    "redlock set show), or a change was interrupted; then finish it with the same redlock set "
    "command, or undo it: replace NEW OLD, remove what was to be added, add what was to be "
    "removed; "
    "if another one was made since, give that one again";
constexpr auto* without_fences =
    "it takes its place when it has the fences of the others, and too few could be read, or it "
    "refused; give the same command again";
constexpr auto* until_leases_are_over =
    "it takes its place when every lease is over that may have been confirmed in it before: a "
    "client gives it its marker when it has run for one longest lease from now on";
constexpr auto* not_reached =
    ": it shows former members, and was not told of the change that most know; run redlock adopt "
    "with the list of today (redlock set show), and give the same command again";
constexpr auto* beside = "another adoption has changed its marker at the same time; run it again";
constexpr auto* in_another =
    "another operator is changing the members at the same time; give the same command again when "
    "that one has ended";
constexpr auto* promise_gone =
    "it has lost what it noted a moment ago, perhaps with all its data; see to it (redlock "
    "doctor), and give the same command again";
constexpr auto* not_any_more =
    "it is no member of its set any more: another node has taken its place; correct the list";
constexpr auto* promoted_behind =
    "it was a replica, and may lack leases that are held, also longer ones than its marker knows; "
    "run redlock adopt when those are over, then give the same command again; if that does not "
    "help, too few were told of longer leases: give redlock set max-lease the former length";
constexpr auto* not_again_yet =
    "it is a member again, and keeps the marker of an earlier membership; give the same redlock "
    "set command again";

}  // namespace

std::optional<Error> other_scheme(const wire::NodeAddress& joins, const wire::NodeAddress& member) {
  const std::string scheme(engine::scheme_of(joins.address));
  if (scheme == engine::scheme_of(member.address)) return std::nullopt;
  return Error{Errc::invalid_argument,
               joins.label + " is reached by " + scheme +
                   ", and programs that run would not go on to it from " + member.label +
                   "; give an address of that kind",
               {}};
}

std::string new_id() {
  net::KernelRandom random;
  return wire::random_id(random);
}

namespace {

/// Of nodes that only markers name: a former member may be in a set of its own by now, and another
/// address may lead to a server that was asked.
bool counts_besides(const wire::NodeMarker& marker, const std::vector<wire::NodeMarker>& markers) {
  return marker.set_name == markers.front().set_name &&
         std::ranges::find(markers, marker.id, &wire::NodeMarker::id) == markers.end();
}

/// Why the first node with a damaged marker, or in another set than one before it, is unfit.
Result<std::optional<Error>> take_shown(NodeQuery& query, NamedMembers& named,
                                        std::vector<wire::NodeMarker>& markers, bool are_listed) {
  const auto shown = ask_markers(query);
  if (!shown) return tl::make_unexpected(shown.error());
  const wire::SetTerms any_lease;
  std::optional<Error> unfit;
  for (std::size_t node = 0; node < shown->size(); ++node) {
    const auto& marker = (*shown)[node];
    const std::string& label = query.nodes()[node].label;
    if (!marker || marker->set_name.empty()) continue;
    std::optional<Error> why;
    const auto how = marker->disagreement(any_lease);
    if (how) {
      why = Error{Errc::invalid_argument, label + ": " + *how, {}};
    } else if (!markers.empty() && markers.front().set_name != marker->set_name) {
      const auto other = client::another_set(marker->set_name, markers.front().set_name);
      why = Error{Errc::no_quorum, "no marker was changed: " + label + ": " + other, {}};
    }
    if (why && !unfit) unfit = std::move(why);
    if (how) continue;
    named.shown[query.nodes()[node].address] = marker->configuration();
    if (are_listed || counts_besides(*marker, markers)) markers.push_back(*marker);
  }
  return unfit;
}

}  // namespace

Result<NamedMembers> ask_named_members(const Client& client) {
  constexpr int most = 3;  // rounds: one node may be named only by a node that another one names
  NamedMembers named;
  std::vector<wire::NodeMarker> markers;
  std::vector<wire::NodeAddress> known;
  std::optional<Client> others;
  ClientOptions options = client.options();
  const auto find = [&](const std::string& address) {
    return std::ranges::find(known, address, &wire::NodeAddress::address);
  };
  for (int round = 0; round < most; ++round) {
    auto query = NodeQuery::inspecting(*(others ? others->impl() : client.impl()));
    if (!query) return tl::make_unexpected(query.error());
    if (round == 0) known = query->nodes();
    auto unfit = take_shown(*query, named, markers, round == 0);
    if (!unfit) return tl::make_unexpected(unfit.error());
    if (round == 0) named.unfit = std::move(*unfit);
    const auto agreed = agreed_set(markers);
    named.agreed = agreed.has_value();
    if (agreed) named.members.clear();
    options.nodes.clear();
    for (const auto& marker : markers) {
      for (const auto& member : agreed ? agreed->members : set_of(marker).members) {
        if (find(member) == known.end()) {
          // The password is not given to an address without TLS that a node names.
          if (engine::scheme_of(member) != engine::scheme_of(known.front().address)) continue;
          known.push_back(wire::moved_to(known.front(), member));
          options.nodes.push_back(wire::uri_of(known.back(), known.front()));
        }
        const bool is_there =
            std::ranges::count(named.members, member, &wire::NodeAddress::address) != 0;
        if (!is_there && (agreed || round == 0)) named.members.push_back(*find(member));
      }
    }
    if (named.are_of_two_sets() || options.nodes.empty()) break;
    auto next = Client::create(options);
    if (!next) return tl::make_unexpected(next.error());
    query = tl::make_unexpected(Error{});  // it ends before its client
    others = std::move(*next);
  }
  return named;
}

Result<std::vector<wire::NodeAddress>> members_to_change(const Client& client) {
  auto named = ask_named_members(client);
  if (!named) return tl::make_unexpected(named.error());
  if (named->unfit) return tl::make_unexpected(std::move(*named->unfit));
  if (!named->members.empty()) return std::move(named->members);
  return tl::make_unexpected(Error{Errc::no_quorum,
                                   "none of the nodes that answer is a member of a set: start "
                                   "them, run redlock adopt if the set is new, or correct the list",
                                   {}});
}

Result<std::vector<NodeAdoption>> change_among(
    const Client& client, const std::vector<wire::NodeAddress>& nodes,
    const wire::NodeAddress& login,
    const std::function<Result<std::vector<NodeAdoption>>(NodeQuery&)>& change) {
  ClientOptions options = client.options();
  // Nobody waits for a lock meanwhile, and a slow answer would leave the change half-way.
  options.node_timeout = std::max(options.node_timeout, options.connect_timeout);
  options.nodes.clear();
  for (const auto& node : nodes) options.nodes.push_back(wire::uri_of(node, login));
  const auto all = Client::create(std::move(options));
  if (!all) return tl::make_unexpected(all.error());
  auto query = NodeQuery::inspecting(*all->impl());
  if (!query) return tl::make_unexpected(query.error());
  return change(*query);
}

Adopting::Adopting(NodeQuery& query, MemberMove move, Vouching vouching)
    : query_(query),
      nodes_(query.nodes()),
      move_(std::move(move)),
      vouching_(vouching),
      set_{.max_lease = vouching == Vouching::yes ? query.options().max_lease
                                                  : std::chrono::milliseconds::zero(),
           .drift_factor = query.options().drift_factor},
      promotions_(nodes_.size()),
      markers_(nodes_.size()) {
  for (const auto& node : nodes_) {
    adoptions_.emplace_back();
    adoptions_.back().node = node.label;
  }
}

Result<void> Adopting::look() {
  const std::vector<QueryCommand> questions{{"INFO"}, {"HGETALL", std::string(set_.layout.marker)}};
  const auto infos = query_.ask_all(questions, query_.patience());
  if (!infos) return tl::make_unexpected(infos.error());
  std::vector<std::string> run_ids;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    run_ids.push_back(take_info(node, (*infos)[node].answers[0]));
    take_marker(node, (*infos)[node].answers[1]);
  }
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (!move_.resizes() && !has_no_say(node)) compare_number(node);
  }
  const auto twins = find_twins(query_, run_ids);
  if (!twins) return tl::make_unexpected(twins.error());
  for (std::size_t node = 0; node < twins->size(); ++node) {
    if (!(*twins)[node]) continue;
    fail(node, Cause::incompatible, same_as(*(*twins)[node]));
    fail(*(*twins)[node], Cause::incompatible, same_as(node));
  }
  return {};
}

std::string Adopting::take_info(std::size_t node, const wire::Answer& answer) {
  const auto trouble = trouble_of(answer, nodes_[node]);
  if (!answer) {
    fail(node, trouble.cause, trouble.detail);
    return {};
  }
  const auto text = text_of(answer).value_or("");
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

void Adopting::take_marker(std::size_t node, const wire::Answer& answer) {
  const auto trouble = trouble_of(answer, nodes_[node]);
  if (trouble.cause != Cause::none) return fail(node, trouble.cause, trouble.detail);
  markers_[node] = read_marker(answer, nodes_[node]);
  const auto how = markers_[node] ? markers_[node]->disagreement(set_) : std::nullopt;
  if (how) disagrees(node, *how);
}

void Adopting::compare_number(std::size_t node) {
  if (!markers_[node] || !accepted(node)) return;
  const std::size_t members = markers_[node]->configuration().members.size();
  if (members == nodes_.size()) return;
  disagrees(node, "its marker says nodes " + std::to_string(members) + ", this client " +
                      std::to_string(nodes_.size()) +
                      "; give the whole list, or one or two of its members");
}

tl::unexpected<Error> Adopting::no_member(const SetConfiguration& its) const {
  std::string sentence = move_.from + " is no member of the set, whose members are";
  for (const Member& member : its.members) sentence += " " + member.address;
  return tl::make_unexpected(Error{Errc::invalid_argument,
                                   sentence + "; give one of these as the node that " +
                                       (move_.to.empty() ? "leaves" : "is replaced"),
                                   {}});
}

Result<void> Adopting::see_fences(const OfNodes& commands, std::uint32_t quorum) {
  if (move_.to.empty() || std::ranges::all_of(commands, &std::vector<QueryCommand>::empty)) {
    return {};
  }
  const auto fences = read_fences(query_, healths());
  if (!fences) return tl::make_unexpected(fences.error());
  const std::size_t to = new_node();
  if (can_be_carried(*fences, to, quorum + 1)) return {};
  return too_few_fences(nodes_[to].label + " and of a quorum of the others");
}

Result<bool> Adopting::admit(std::size_t node, std::uint32_t read, std::uint32_t quorum,
                             const SetConfiguration& its) {
  const auto carried = carry_fences(query_, healths(), node, read + 1, quorum);
  if (!carried) return tl::make_unexpected(carried.error());
  if (!*carried) {
    unconfirmed(node, without_fences);
    return false;
  }
  // From now on a client may give it a new one.
  if (was_member(node, its)) {
    if (auto done = clear_former(node, its); !done) return tl::make_unexpected(done.error());
    if (is_member(node)) return false;
  }
  if (move_.leases == OldLeases::may_live || may_have_voted_) {
    adoptions_[node].adoption = Adoption::waits;
    adoptions_[node].detail = until_leases_are_over;
  }
  return adoptions_[node].adoption != Adoption::waits;
}

std::uint64_t Adopting::last_epoch() const {
  std::uint64_t last = 0;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (markers_[node] && is_member(node)) {
      last = std::max(last, markers_[node]->configuration().epoch);
    }
  }
  return last;
}

std::uint64_t Adopting::next_epoch() const {
  net::KernelRandom random;
  constexpr std::uint64_t most_skipped = 1'000'000;
  return last_epoch() + 1 + random.next() % most_skipped;
}

Result<void> Adopting::may_join() const {
  const std::size_t node = new_node();
  if (node == nodes_.size() || !is_member(node)) return {};
  for (std::size_t other = 0; other < nodes_.size(); ++other) {
    if (other == node || !is_member(other)) continue;
    const auto its = markers_[other]->configuration().members;
    const auto same = std::ranges::find(its, markers_[node]->id, &Member::id);
    if (same != its.end() && same->address != move_.from && same->address != move_.to) {
      return refused(move_.to + ": it has the data of another member; start it empty");
    }
  }
  std::optional<std::string> another;
  for (std::size_t other = 0; other < nodes_.size(); ++other) {
    if (other == node || !is_member(other)) continue;
    if (markers_[other]->set_name == markers_[node]->set_name) return {};
    another = markers_[other]->set_name;
  }
  if (!another) return {};
  return refused(move_.to + ": " + client::another_set(markers_[node]->set_name, another));
}

Result<void> Adopting::clear_former(std::size_t node, const SetConfiguration& its) {
  OfNodes commands(nodes_.size());
  commands[node] = command(node, its, {markers_[node]->state(), wire::AdoptionStep::Kind::leaves});
  const auto answers = query_.ask(commands, query_.options().node_timeout);
  if (!answers) return tl::make_unexpected(answers.error());
  const auto& answer = (*answers)[node].answers[0];
  const auto trouble = trouble_of(answer, nodes_[node], commands[node][0][1]);
  if (wire::was_adopted(answer)) {
    markers_[node].reset();
  } else if (trouble.cause == Cause::none) {
    disagrees(node, beside);
  } else {
    unconfirmed(node, "it was a member before, and its marker of then could not be removed (" +
                          trouble.detail + "); when it can be, give the same command again");
  }
  return {};
}

bool Adopting::is_listed(std::size_t node) const {
  for (std::size_t other = 0; other < nodes_.size() && is_member(node); ++other) {
    if (other == node || !is_member(other) || !accepted(other)) continue;
    const auto its = markers_[other]->configuration();
    const Member* const member = its.at(nodes_[node].address);
    const bool is_it = member != nullptr && member->id == markers_[node]->id;
    if (is_it && its.set == markers_[node]->set_name) return true;
  }
  return false;
}

Adopting::OfNodes Adopting::as_members(const SetConfiguration& its) {
  OfNodes commands(nodes_.size());
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    const bool stays = accepted(node) && is_member(node) && !was_member(node, its);
    if (stays) commands[node] = as_member(node, its);
  }
  return commands;
}

bool Adopting::is_behind_another(const SetConfiguration& its) const {
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (!accepted(node) || !is_member(node)) continue;
    const auto other = markers_[node]->configuration();
    const bool counts = other.set == its.set && its.has(markers_[node]->id);
    if (counts && engine::rules::is_behind(its.longest_lease(), other.longest_lease())) return true;
  }
  return false;
}

std::vector<QueryCommand> Adopting::as_member(std::size_t node, const SetConfiguration& its) {
  const wire::NodeMarker& marker = *markers_[node];
  const bool was_replica = !promotions_[node].empty();
  const auto shown = marker.configuration();
  if (marker.set_name != its.set) {
    disagrees(node, client::another_set(marker.set_name, its.set));
  } else if (shown.epoch > its.epoch) {
    disagrees(node, interrupted);
  } else if (!its.has(marker.id)) {
    disagrees(node, its.at(nodes_[node].address) == nullptr ? not_any_more : not_again_yet);
  } else if (was_replica && vouching_ == Vouching::no && is_behind_another(shown)) {
    // A client may have vouched for it that did not know for how long to wait.
    disagrees(node, promoted_behind);
  } else if (shown != its) {
    return command(node, its, {marker.state(), wire::AdoptionStep::Kind::joins, change_});
  } else if (was_replica && vouching_ == Vouching::yes) {
    return command(node, its, {});
  } else {
    adoptions_[node].adoption = Adoption::already_there;
  }
  return {};
}

std::vector<QueryCommand> Adopting::command(std::size_t node, const SetConfiguration& its,
                                            const wire::AdoptionStep& step) const {
  const Member* const member = its.at(nodes_[node].address);
  const std::string id = is_member(node) || member == nullptr ? markers_[node]->id : member->id;
  wire::SetTerms set = set_;
  set.max_lease = std::max(set.max_lease, its.longest_lease());
  const bool vouches = vouching_ == Vouching::yes;
  return {wire::adoption_command(set, {id, its}, step, vouches ? promotions_[node] : "")};
}

Result<bool> Adopting::prepare(const SetConfiguration& its) {
  OfNodes asks(nodes_.size());
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (!accepted(node) || !is_member(node) || was_member(node, its)) continue;
    const wire::AdoptionStep step{markers_[node]->state(), wire::AdoptionStep::Kind::asks, change_};
    asks[node] = command(node, its, step);
  }
  if (auto done = write(asks, its); !done) return tl::make_unexpected(done.error());
  OfNodes promised(nodes_.size());
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    const bool takes = accepted(node) && adoptions_[node].adoption != Adoption::waits;
    if (!asks[node].empty() && takes) promised[node] = {wire::change_command(set_)};
  }
  // Of two changes that ask at once each might be the last at some, and tell these.
  const auto answers = query_.ask(promised, query_.options().node_timeout);
  if (!answers) return tl::make_unexpected(answers.error());
  bool all_ready = true;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (!promised[node].empty()) {
      const auto& answer = (*answers)[node].answers[0];
      const auto trouble = trouble_of(answer, nodes_[node]);
      if (trouble.cause != Cause::none) fail(node, trouble.cause, trouble.detail);
      const auto noted = text_of(answer);
      if (accepted(node) && noted != change_) disagrees(node, noted ? in_another : promise_gone);
    }
    const auto found = adoptions_[node].adoption;
    const bool refuses = found == Adoption::waits || found == Adoption::disagrees;
    all_ready = all_ready && (asks[node].empty() || !refuses);
  }
  return all_ready;
}

Result<bool> Adopting::all_would(const SetConfiguration& its) {
  const auto before = answering();
  auto ready = prepare(its);
  if (ready) *ready = *ready && answering() == before;
  return ready;
}

Result<void> Adopting::tell_in_turn(const OfNodes& all, const std::vector<std::size_t>& order,
                                    const SetConfiguration& its) {
  for (const std::size_t node : order) {
    if (all[node].empty()) continue;
    OfNodes commands(nodes_.size());
    commands[node] = all[node];
    if (auto done = write(commands, its); !done) return done;
    if (adoptions_[node].adoption != Adoption::already_there) return {};
  }
  return {};
}

std::uint32_t Adopting::told() const {
  std::uint32_t count = 0;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    count += !joins(node) && adoptions_[node].adoption == Adoption::already_there ? 1 : 0;
  }
  return count;
}

/// Fewer than all, as some may be back with older data. (Of two members no more than one can be.)
std::size_t Adopting::enough_to_know(std::size_t members) {
  return std::min<std::size_t>(engine::quorum_of(static_cast<std::uint32_t>(members)),
                               std::max<std::size_t>(members, 2) - 1);
}

bool Adopting::keep_longest_leases(SetConfiguration& its) const {
  const SetConfiguration before = its;
  std::vector<SetConfiguration> shown;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    const bool counts = accepted(node) && is_member(node) && its.has(markers_[node]->id);
    if (counts && markers_[node]->set_name == its.set) {
      shown.push_back(markers_[node]->configuration());
    }
  }
  const auto size = its.members.size();
  const auto may_be_known = [&](std::chrono::milliseconds lease) {
    const auto silent = size - std::min(size, shown.size());
    const auto know = std::ranges::count_if(
        shown, [&](const SetConfiguration& each) { return each.longest_lease() >= lease; });
    return static_cast<std::size_t>(know) + silent >= enough_to_know(size);
  };
  auto longest = its.longest_lease();
  for (const SetConfiguration& each : shown) {
    if (may_be_known(each.max_lease)) its.max_lease = std::max(its.max_lease, each.max_lease);
    if (may_be_known(each.longest_lease())) longest = std::max(longest, each.longest_lease());
  }
  its.announced = longest > its.max_lease ? longest : longest.zero();
  return its != before;
}

std::optional<std::string> Adopting::missed_change() const {
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (!accepted(node) || !is_member(node)) continue;
    const SetConfiguration its = markers_[node]->configuration();
    for (const auto& other : markers_) {
      if (!other || other->set_name != its.set) continue;
      const SetConfiguration later = other->configuration();
      const auto showing = std::ranges::count_if(
          markers_, [&](const auto& marker) { return marker && marker->configuration() == later; });
      const auto size = static_cast<std::uint32_t>(later.members.size());
      const bool is_other = later.epoch > its.epoch && later.members != its.members;
      if (is_other && size == its.members.size() && later.has(markers_[node]->id) &&
          static_cast<std::uint32_t>(showing) >= engine::quorum_of(size)) {
        return nodes_[node].label + not_reached;
      }
    }
  }
  return std::nullopt;
}

Result<void> Adopting::write(const OfNodes& commands, const SetConfiguration& its) {
  const auto answers = query_.ask(commands, query_.options().node_timeout);
  if (!answers) return tl::make_unexpected(answers.error());
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (!commands[node].empty()) read(node, (*answers)[node].answers[0], commands[node][0][1], its);
  }
  return {};
}

void Adopting::read(std::size_t node, const wire::Answer& answer, const std::string& script,
                    const SetConfiguration& its) {
  auto& adoption = adoptions_[node];
  const auto trouble = trouble_of(answer, nodes_[node], script);
  if (trouble.cause != Cause::none) return fail(node, trouble.cause, trouble.detail);
  if (const auto left = wire::stays_for(answer)) {
    adoption.adoption = Adoption::waits;
    adoption.left = *left;
    adoption.detail =
        "the number of members was changed a moment ago, and can be changed again in " +
        std::to_string(std::chrono::ceil<std::chrono::seconds>(*left).count()) +
        " s, when all leases from before are over";
    return;
  }
  if (text_of(answer) == "ready") return;
  if (wire::promised_another(answer)) return disagrees(node, in_another);
  if (text_of(answer) == "written") {
    adoption.adoption = is_member(node) ? Adoption::already_there : Adoption::written;
    return;
  }
  const auto marker = read_marker(answer, nodes_[node]);
  if (!marker) return fail(node, Cause::protocol_error, "its answer is not a marker");
  // Another client has adopted the node meanwhile, or it was asked only to vouch.
  const auto how = marker->disagreement(set_);
  if (how || marker->configuration() != its) return disagrees(node, how.value_or(beside));
  adoption.adoption = Adoption::already_there;
}

std::vector<NodeHealth> Adopting::healths() const {
  std::vector<NodeHealth> all(nodes_.size());
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    const bool is_one = accepted(node) || adoptions_[node].cause != Cause::none;
    all[node].trouble.cause = is_one ? adoptions_[node].cause : Cause::incompatible;
  }
  return all;
}

void Adopting::fail(std::size_t node, Cause cause, const std::string& detail) {
  if (adoptions_[node].cause != Cause::none) return;
  adoptions_[node].adoption = Adoption::failed;
  adoptions_[node].cause = cause;
  adoptions_[node].detail = detail.empty() ? to_string(cause) : detail;
}

}  // namespace redlock::admin
