// SPDX-License-Identifier: MIT
#include "engine/acquire/acquisition.hpp"

#include <array>
#include <chrono>

#include "engine/rules.hpp"

namespace redlock::engine {
namespace {

/// An upper bound: 1,000 turns are far longer than `refresh`.
constexpr std::uint32_t most_places = 1'000;
/// Spread of what many waiters would do at one moment.
constexpr Duration spread = std::chrono::milliseconds(1);
constexpr Duration soonest = std::chrono::milliseconds(1);

/// What a waiter that nodes cannot wake pauses before it asks again; also the pause after an
/// attempt without a vote. Nodes keep the lock for its turn, and remember it, for no less than the
/// longest.
Duration between_polls(RandomSource& random) {
  return random_between(std::chrono::milliseconds(20), std::chrono::milliseconds(60), random);
}

/// Before votes are gathered anew: what was given back is on its way to the nodes, and another
/// waiter may need it. Waiters between whom the votes are split agree within a few rounds; where a
/// holder has a quorum and not all nodes, the others give theirs in vain for as long as its lease.
Duration between_rounds(std::uint32_t in_vain, RandomSource& random) {
  constexpr Duration longest = std::chrono::milliseconds(2);
  constexpr std::uint32_t last_quick_round = 3;
  constexpr std::uint32_t most_doublings = 5;
  const std::uint32_t doublings =
      std::min(in_vain - std::min(in_vain, last_quick_round), most_doublings);
  return random_between(longest / 4, longest, random) * (1 << doublings);
}

/// For so long after its first grant an attempt keeps what is not a quorum: refusals from before
/// may be out of date, as the holder's release may still be on its way to some nodes.
Duration time_to_gather(Duration round_trip) {
  constexpr Duration shortest = std::chrono::microseconds(500);
  return std::clamp<Duration>(4 * round_trip, shortest, 2 * rules::length_of_turn(round_trip));
}

/// The quorum-th smallest, or the largest of fewer.
template <typename T>
T quorum_th(std::array<T, NodeSet::max_nodes>& values, std::uint32_t count, std::uint32_t quorum) {
  const auto nth = std::min(quorum, count) - 1;
  std::nth_element(values.begin(), values.begin() + nth, values.begin() + count);
  return values[nth];
}

}  // namespace

Acquisition::Acquisition(const Electorate& electorate, RequestId request, AcquireRequest what,
                         Instant now)
    : electorate_(&electorate),
      request_(request),
      what_(std::move(what)),
      schedule_(electorate, what_.wait, what_.deadline, now),
      began_(now),
      in_line_since_(now) {
  if (waits_in_order()) nodes_.resize(electorate.slots());
}

GrantId Acquisition::attempt() const {
  return std::visit(
      [](const auto& state) -> GrantId {
        if constexpr (requires { state.attempt; }) {
          return state.attempt;
        } else {
          return 0;
        }
      },
      state_);
}

void Acquisition::entered(NodeIndex node, std::uint32_t place) {
  nodes_[node] = {.place = place, .stands = true};
}

void Acquisition::stands_at(NodeSet nodes) {
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (nodes.contains(node)) nodes_[node].stands = true;
  }
}

void Acquisition::comes_behind_questions_of(const Acquisition& ended) {
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    nodes_[node].before = ended.nodes_[node].before;
  }
}

NodeSet Acquisition::behind_earlier() const {
  NodeSet nodes;
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].before != 0) nodes.insert(node);
  }
  return nodes;
}

bool Acquisition::earlier_answered(NodeIndex node, GrantId grant) {
  GrantId& before = nodes_[node].before;
  if (before == grant) before = 0;
  return before == 0;
}

void Acquisition::attempt_begins(GrantId attempt) {
  state_ = Asking{attempt};
  attempted_ = true;
  rested_ = false;
  for (Node& node : nodes_) node.forget();
}

void Acquisition::asked(NodeSet nodes, RequestId next, bool blindly) {
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (!nodes.contains(node)) continue;
    nodes_[node].forget();
    nodes_[node].next = next;
    nodes_[node].asked_blindly = blindly;
    nodes_[node].asked = true;
  }
}

bool Acquisition::on_answer(Instant now, NodeIndex node, const Reply& reply) {
  if (!waits_in_order()) return false;
  Node& at = nodes_[node];
  at.asked = false;
  const auto* const unavailable = std::get_if<Unavailable>(&reply);
  if (unavailable == nullptr || unavailable->delivery == Delivery::unknown) at.stands = true;
  if (const auto* granted = std::get_if<Granted>(&reply)) at.next_place = granted->next_place;
  const auto* const refused = std::get_if<Refused>(&reply);
  if (refused != nullptr) {
    at.place = refused->place;
    const auto expires_in = refused->expires_in;
    at.free_at = expires_in && *expires_in < never - now ? now + *expires_in : never;
  }
  return std::exchange(at.woken, false) && refused != nullptr;
}

/// Nearly every attempt has its quorum at once. So the timer, which costs a system call and a
/// wake-up, is only for one that has to give back what it was granted, unless a refusal changes.
void Acquisition::on_votes(const Attempt& attempt) {
  if (auto* gathering = std::get_if<Gathering>(&state_))
    gathering->ends_at = attempt.out_of_reach() ? gathering->gather_until : never;
}

bool Acquisition::on_wake(Instant now, NodeIndex node, Duration after, const Attempt* attempt,
                          RandomSource& random) {
  if (!rules::wakes_are_heeded() || nodes_[node].before != 0) return false;
  const bool later = after > Duration::zero();
  const Instant when = later ? now + after + random_between({}, 2 * spread, random) : now;
  if (auto* entering = std::get_if<Entering>(&state_)) {
    entering->ask_by = std::min(entering->ask_by, when);
    woken_ = true;
    return false;  // by the timer, which is due
  }
  if (auto* pausing = std::get_if<Pausing>(&state_)) {
    // Not by a node that says so because this call has just given the lock back there.
    if (later || !pausing->keeps_places || pausing->gave_back.contains(node)) return false;
    rounds_in_vain_ = 0;
    pausing->until = now;
    woken_ = true;
    return false;
  }
  if (attempt == nullptr || attempt->phase() != Attempt::Phase::voting || !still_waits())
    return false;
  Node& at = nodes_[node];
  woken_ = true;
  at.wake_at = later ? when : never;
  if (later) {
    at.place = 1;  // behind the one whose turn it is
    return false;
  }
  const bool asked = attempt->is_asked(node);
  if (asked) at.woken = true;
  // If a question is under way there, that node alone is asked again, should it refuse: the refusal
  // may be older than the turn.
  return !asked;
}

NodeSet Acquisition::take_nodes_to_leave() {
  NodeSet left;
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].asked || nodes_[node].stands) left.insert(node);
    nodes_[node] = {};
  }
  return left;
}

bool Acquisition::entered_by_quorum() const {
  const auto known = std::ranges::count_if(nodes_, &Node::is_in_line);
  return known >= static_cast<std::ptrdiff_t>(electorate_->quorum());
}

bool Acquisition::is_next() const {
  const auto next = std::ranges::count(nodes_, std::optional<std::uint32_t>(0), &Node::place);
  return next >= static_cast<std::ptrdiff_t>(electorate_->quorum());
}

std::uint32_t Acquisition::place() const {
  std::array<std::uint32_t, NodeSet::max_nodes> places{};
  std::uint32_t count = 0;
  for (const Node& node : nodes_) {
    if (node.place) places[count++] = *node.place;
  }
  return count == 0 ? 0 : quorum_th(places, count, electorate_->quorum());
}

Acquisition::Step Acquisition::follow(Instant now, const Attempt& attempt, Duration round_trip,
                                      RandomSource& random) {
  const GrantId grant = attempt.plan().grant;
  const bool was_idle = is<Idle>();
  if (attempt.phase() != Attempt::Phase::voting || !still_waits()) {
    state_ = Asking{grant};
  } else if (attempt.granted().size() > 0) {
    if (!is<Gathering>()) state_ = Gathering{grant, now + time_to_gather(round_trip)};
    on_votes(attempt);
    Instant& ask_at = std::get<Gathering>(state_).ask_at;
    const bool polls = !can_be_woken() && attempt.tally().pending() == NodeSet() &&
                       std::ranges::any_of(nodes_, &Node::is_in_line);
    if (polls && ask_at == never) ask_at = now + between_polls(random);
  } else if (attempt.tally().pending() != NodeSet()) {
    if (!is<Asking>()) state_ = Asking{grant};
    Instant& ask_at = std::get<Asking>(state_).ask_at;
    if (ask_at == never) ask_at = now + refresh;
  } else if (!was_idle) {
    state_ = Idle{grant, ask_again_at(now, random)};
    rested_ = true;
    rounds_in_vain_ = 0;
    return Step::rests;
  }
  return was_idle && !is<Idle>() ? Step::asks : Step::same;
}

bool Acquisition::may_wait(Instant now, const Attempt& attempt) const {
  if (!still_waits() || electorate_->quorum_unavailable(attempt.tally())) return false;
  // Also what does not count: the lock is not there for others meanwhile.
  if (attempt.granted().size() > 0) {
    const auto* const gathering = std::get_if<Gathering>(&state_);
    return gathering == nullptr || now < gathering->gather_until;
  }
  // With a new owner the nodes that this one cannot ask any more can be asked again.
  return attempt.spent() == NodeSet();
}

bool Acquisition::can_be_woken() const {
  return electorate_->is_quorum(electorate_->nodes_that_wake());
}

Duration Acquisition::waits_untold(RandomSource& random) const {
  return can_be_woken() ? refresh : between_polls(random);
}

Instant Acquisition::ask_again_at(Instant now, RandomSource& random) const {
  Instant when = now + waits_untold(random);
  std::array<Instant, NodeSet::max_nodes> ends;
  std::uint32_t count = 0;
  std::uint32_t place = most_places;
  for (const Node& node : nodes_) {
    if (!node.place) continue;
    ends[count++] = node.free_at;
    place = std::min(place, *node.place);
  }
  // By the quorum-th of the leases' ends enough nodes may be free. A waiter that is behind comes
  // when each of those before it could have taken the lock, by the shortest turn for each.
  const Instant end = count > 0 ? quorum_th(ends, count, electorate_->quorum()) : never;
  if (end < never - std::chrono::hours(1))
    when = std::min(when, end + place * rules::length_of_turn({}));
  return std::max(when, now + soonest) + random_between({}, spread, random);
}

std::optional<Failed> Acquisition::on_failure(Instant now, const Attempt& attempt,
                                              RandomSource& random) {
  // What it was granted could not become a quorum: it was given back, and the place is kept.
  if (attempt.failure() == Errc::contended && still_waits() && now < schedule_.waits_until()) {
    // Without a vote for it there is nothing that another round soon could complete.
    const Duration pause = attempt.tally().yes != NodeSet()
                               ? between_rounds(rounds_in_vain_++, random)
                               : between_polls(random);
    state_ = Pausing{std::min(now + pause, schedule_.waits_until()), true,
                     attempt.granted() | attempt.asked()};
    schedule_.place_is_kept(now, {attempt.failure(), {}, attempt.ballots()});
    return std::nullopt;
  }
  auto final = schedule_.on_failure(now, {attempt.failure(), {}, attempt.ballots()},
                                    attempt.expires_in(), random);
  if (attempt.failure() == Errc::too_late && rules::too_late_begins_anew()) in_line_since_ = now;
  state_ = Pausing{schedule_.retry_at()};
  return final;
}

/// The first attempt is made whatever the waiting time, also where it waits for room; but not while
/// the call stands behind others of its client.
Instant Acquisition::ends_at() const {
  const bool asks = attempt() != 0;
  if (is<Local>() || (asks && still_waits())) return schedule_.waits_until();
  const bool first_to_come = is<AwaitingRoom>() && !attempted_;
  return asks || first_to_come ? what_.deadline : schedule_.waits_until();
}

Instant Acquisition::deadline() const {
  Instant first = ends_at();
  if (const auto* entering = std::get_if<Entering>(&state_)) {
    return std::min(first, entering->ask_by);
  }
  if (const auto* pausing = std::get_if<Pausing>(&state_)) return std::min(first, pausing->until);
  if (attempt() == 0 || !still_waits()) return first;
  if (const auto* idle = std::get_if<Idle>(&state_)) first = std::min(first, idle->ask_at);
  if (const auto* asking = std::get_if<Asking>(&state_)) first = std::min(first, asking->ask_at);
  if (const auto* gathering = std::get_if<Gathering>(&state_))
    first = std::min({first, gathering->ends_at, gathering->ask_at});
  for (const Node& node : nodes_) first = std::min(first, node.wake_at);
  return first;
}

bool Acquisition::ask_due(Instant now) {
  bool due = false;
  for (Node& node : nodes_) {
    if (now < node.wake_at) continue;
    node.wake_at = never;
    due = true;
  }
  if (auto* idle = std::get_if<Idle>(&state_); idle != nullptr && now >= idle->ask_at) {
    idle->ask_at = never;
    due = true;
  }
  if (auto* asking = std::get_if<Asking>(&state_); asking != nullptr && now >= asking->ask_at) {
    asking->ask_at = now + refresh;
    due = true;
  }
  if (auto* gathering = std::get_if<Gathering>(&state_);
      gathering != nullptr && now >= gathering->ask_at) {
    gathering->ask_at = never;
    due = true;
  }
  return due;
}

Failed Acquisition::time_is_over(const Attempt* under_way) const {
  // A quorum refused it: others hold the lock, whatever earlier attempts failed for.
  if (under_way != nullptr && rested_) return {Errc::timed_out, {}, under_way->ballots()};
  return schedule_.time_is_over(under_way != nullptr ? under_way->ballots()
                                                     : std::vector<Ballot>());
}

}  // namespace redlock::engine
