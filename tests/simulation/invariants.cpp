// SPDX-License-Identifier: MIT
#include "simulation/invariants.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "wire/words.hpp"

namespace redlock::simulation {

using Kind = engine::Tag::Kind;

namespace {

/// The name and the owner that it names.
template <typename Command>
constexpr bool names_owner = requires(const Command& command) {
  command.owner;
};

std::pair<engine::Name, engine::OwnerId> of_whom(const engine::Command& command) {
  return std::visit(
      [](const auto& c) -> std::pair<engine::Name, engine::OwnerId> {
        if constexpr (names_owner<std::remove_cvref_t<decltype(c)>>) return {c.name, c.owner};
        return {c.name, {}};
      },
      command);
}

constexpr Duration rounding = std::chrono::microseconds(1);

/// The words are only found when they are needed.
template <typename What>
void require(bool kept, const char* rule, What&& what) {
  if (!kept) [[unlikely]]
    throw Violation{rule, what()};
}

/// The same for how a promise is kept, which may be left open to see what follows.
template <typename What>
void rule(const Judged& judged, bool kept, const char* which, What&& what) {
  require(kept || !judged.rules, which, what);
}

}  // namespace

void Invariants::attempt_over(Instant world, Client& client, engine::RequestId request) {
  const auto found = client.attempts.find(request);
  if (found == client.attempts.end()) return;
  Grant& grant = *found->second;
  client.attempts.erase(found);
  const bool wanted = grant.state == State::live || grant.taken_up;
  if (!wanted) client.ended.push_back(&grant);
  if (grant.state != State::attempting) return;
  grant.state = State::over;
  grant.over_at = world;
}

void Invariants::attempt_replaced(Instant world, Client& client, engine::RequestId request) {
  const auto found = client.attempts.find(request);
  if (found == client.attempts.end()) return;
  client.replaced[request].push_back(found->second);
  attempt_over(world, client, request);
}

/// The attempt that is decided next; null if it sent nothing.
const Invariants::Grant* Invariants::take_undecided(Client& client, engine::RequestId request) {
  auto& replaced = client.replaced[request];
  if (!replaced.empty()) {
    const Grant* const first = replaced.front();
    replaced.pop_front();
    return first;
  }
  const auto found = client.attempts.find(request);
  return found != client.attempts.end() ? found->second : nullptr;
}

// --- messages

Invariants::Grant& Invariants::begin_grant(ClientId id, const engine::Send& send) {
  Client& client = clients_[id];
  const bool acquires = send.tag.kind == Kind::acquire;
  const auto [name, owner] = of_whom(send.command);
  Grant grant{.client = id,
              .id = send.tag.grant,
              .name = name,
              .owner = owner,
              .lease = send.tag.lease,
              .acquired = send.tag.lease,
              .started = send.tag.sent,
              .returned_before = names_[*name].largest_returned,
              .taken_up = !acquires,
              .counts = std::vector<std::uint32_t>(nodes_.size(), 1),
              .held_for = std::vector<std::chrono::milliseconds>(nodes_.size()),
              .belief = Belief(static_cast<std::uint32_t>(nodes_.size()), members_, drift_ppm_)};
  if (forced_.contains(owner.bits)) grant.forced_bound = Instant::min();
  Grant& kept = client.grants.emplace(grant.id, std::move(grant)).first->second;
  if (acquires) {
    ++counts_.attempts;
    const bool is_new = owners_.emplace(owner.bits, &kept).second;
    if (!is_new) drawn_twice_[owner.bits] |= *owners_.at(owner.bits)->name != *name;
    rule(judged_, is_new || judged_.clones, "an owner is used for one attempt",
         [&] { return fmt::format("grant {} of client {}", kept.id, id); });
  }
  if (const auto request = client.by_name.find(name.get()); request != client.by_name.end()) {
    client.attempts[request->second] = &kept;
    // Another call of its owner may enter it in the turn that tells of it.
    const Request& by = client.requests.at(request->second);
    if (by.owner) kept.by = &client.owners[{*by.name, by.owner->number}];
  }
  return kept;
}

void Invariants::sent(Instant world, ClientId client, const engine::Send& send) {
  if (send.tag.kind == Kind::leave) return;
  Grant* grant = find(client, send.tag.grant);
  if (grant == nullptr) {
    if (send.tag.kind == Kind::release || is_broadcast(send.tag.kind)) return;  // somebody else's
    const engine::Name name = of_whom(send.command).first;
    const auto& by_name = clients_[client].by_name;
    if (const auto request = by_name.find(name.get()); request != by_name.end()) {
      attempt_replaced(world, clients_[client], request->second);
    }
    grant = &begin_grant(client, send);
  }
  check_send(world, *grant, send);
  grant->lease = std::max(grant->lease, send.tag.lease);
  const engine::OwnerId owner = of_whom(send.command).second;
  if (const auto first = owners_.find(owner.bits); first != owners_.end()) {
    first->second->lease = std::max(first->second->lease, send.tag.lease);
  }
  grant->belief.sent(send.node, send.tag);
  const bool asks = send.tag.kind == Kind::acquire || send.tag.kind == Kind::heal;
  const auto what = [&] { return fmt::format("client {}: {}", client, wire::in_words(send)); };
  // What is asked again after NOSCRIPT was asked before.
  const bool asks_anew = asks && send.form != engine::Form::source;
  const Clock& clock = clients_[client].clocks[send.node];
  const Instant now = local(world, client);
  rule(judged_, !asks_anew || now >= clock.blamed_until,
       "a node whose clock moved is not asked for a lock", what);
  if (asks_anew && now < clock.noted_until) {
    clients_[client].asked_though_noted.insert({send.tag.grant, send.node});
  }
}

void Invariants::check_send(Instant world, Grant& grant, const engine::Send& send) {
  const auto what = [&] {
    return fmt::format("client {}: {}", grant.client, wire::in_words(send));
  };
  require(send.tag.sent <= local(world, grant.client), "no message is sent in the future", what);
  if (send.tag.kind == Kind::acquire) {
    const auto& acquire = std::get<engine::AcquireCommand>(send.command);
    const bool in_line = acquire.place.line != 0;
    const auto& by_name = clients_[grant.client].by_name;
    const auto request = by_name.find(acquire.name.get());
    require(!in_line || request != by_name.end(), "a client that left enters no line", what);
    rule(judged_, !grant.belief.owes_an_answer(send.node),
         "a node is asked again when it has answered", what);
    if (in_line) {
      asks_in_line(local(world, grant.client), *acquire.name, request->second, acquire.place);
    }
    // A call that waits asks a node several times, each after the reply to the one before. So does
    // one that sends a node the script.
    const bool again = (in_line || send.form == engine::Form::source) &&
                       send.tag.sent == local(world, grant.client);
    rule(judged_, send.tag.sent == grant.started || again, "time counts from the send", what);
    grant.started = std::max(grant.started, send.tag.sent);
    grant.in_line = in_line;
    // Seventy years before the end of floors. Not where a quorum of fences have come as far.
    constexpr engine::Token year_2040 = 2'209'000'000'000'000;
    const bool fences_are_far = damaged_.size() > members_ / 2;
    require(
        acquire.floor < year_2040 || (fences_are_far && acquire.floor <= documented::highest_floor),
        "one absurd clock lifts no floor", what);
  }
  grant.settles |= send.tag.kind == Kind::settle;
  rule(judged_, !grant.belief.released(send.node) || send.tag.kind == Kind::release,
       "nothing is sent behind a release", what);
  if (send.tag.kind == Kind::heal) check_heal(world, grant, send);
  if (std::holds_alternative<engine::HoldCommand>(send.command)) check_hold(world, grant, send);
  if (send.tag.kind == Kind::release) {
    if (judged_.clones) {
      twin_releases_[{*grant.name, grant.owner.bits}].emplace(&grant, send.node);
    }
    // What an attempt released before it had that answer is known to be at risk (A2a).
    rule(judged_,
         grant.belief.released(send.node) ||
             !grant.belief.shared(send.node, clients_[grant.client].next_heard),
         "the lock of another process is not released", what);
    rule(judged_,
         grant.token != 0 || grant.taken_up || grant.belief.released(send.node) ||
             grant.belief.owner_is_shared() ||
             !grant.belief.has_nothing(send.node, clients_[grant.client].next_heard),
         "what failed is not released where nothing is left of it", what);
    const bool failed_attempt = grant.state == State::attempting && !grant.taken_up;
    rule(judged_, failed_attempt || grant.state == State::over,
         "nothing is released that is wanted", what);
    if (failed_attempt) {
      grant.state = State::over;
      grant.over_at = world;
    }
  }
}

void Invariants::check_heal(Instant world, const Grant& grant, const engine::Send& send) const {
  const auto what = [&] {
    return fmt::format("client {}: {}", grant.client, wire::in_words(send));
  };
  // A lease that is taken up heals as soon as its round is won, and is told of it next.
  const bool live = grant.state == State::live || (grant.taken_up && grant.token == 0);
  rule(judged_, live, "nothing is healed after loss or release", what);
  // An answer of this turn that came behind the one that let it heal may have ended it.
  const Instant until = std::max(grant.valid_after_answer, grant.belief.valid_until());
  rule(judged_, local(world, grant.client) < until, "nothing is healed that is not valid", what);
  // An entry may have begun its renewal, of which is told next; and what is sent with its script
  // was sent without it before.
  const bool may_be_longer = grant.renewed_until != Instant::min() || grant.entering > 0 ||
                             grant.by != nullptr || send.form == engine::Form::source;
  rule(judged_,
       may_be_longer || send.tag.lease <= grant.held_for[send.node] ||
           send.tag.sent + send.tag.lease <= std::max(until, grant.valid_until),
       "what nobody renews lasts no longer where it is healed", what);
}

void Invariants::check_hold(Instant world, Grant& grant, const engine::Send& send) {
  const auto what = [&] {
    return fmt::format("client {}: {}", grant.client, wire::in_words(send));
  };
  const auto& hold = std::get<engine::HoldCommand>(send.command);
  // The client may be told next that it entered, or did not; turn_ends() knows.
  const std::uint32_t most =
      grant.count + grant.entering + may_be_entered(grant, local(world, grant.client));
  rule(judged_, hold.count >= grant.count && hold.count <= most,
       "a hold says the count that was told, and what is being entered", what);
  rule(judged_, grant.state != State::live || hold.token == grant.token, "a lease keeps its token",
       what);
  // Without renewals or requests a hold only tells the nodes of a level that was left.
  const bool is_requested = grant.entering + grant.extending > 0 || grant.by != nullptr;
  const bool is_renewed = grant.renewed_until != Instant::min();
  const bool is_asked = is_requested || is_renewed || send.form != engine::Form::digest;
  const Instant ends =
      std::max({grant.valid_until, grant.valid_after_answer, grant.belief.valid_until()});
  rule(judged_,
       is_asked || grant.state != State::live ||
           send.tag.sent + send.tag.lease <= ends + std::chrono::milliseconds(1),
       "leaving a level lengthens no lease", what);
  const bool renews = send.tag.kind == Kind::hold && grant.state == State::live && is_renewed &&
                      !is_requested && hold.count == grant.counts[send.node] &&
                      send.form == engine::Form::digest;
  rule(judged_, !renews || send.tag.lease >= grant.acquired,
       "a renewal asks for no less than the lease", what);
  grant.held |= send.tag.kind == Kind::hold && grant.state == State::live;
  grant.counts[send.node] = hold.count;
  if (send.tag.kind == Kind::hold) {
    grant.held_for[send.node] = std::max(grant.held_for[send.node], send.tag.lease);
  }
  grant.belief.sent_count(send.node, hold.count);
}

void Invariants::answered(Instant world, ClientId client, std::uint32_t node,
                          const engine::Tag& tag, const engine::Reply& reply) {
  Grant* const grant = find(client, tag.grant);
  if (grant == nullptr) return;
  const auto* why = std::get_if<engine::Unavailable>(&reply);
  const bool unsent = why != nullptr && why->delivery == engine::Delivery::not_sent;
  if (unsent) clients_[client].asked_though_noted.erase({tag.grant, node});
  if (tag.kind == Kind::acquire) waiter_asked(*grant, reply);
  if (grant->state == State::live && grant->forced_out == 0 &&
      std::holds_alternative<engine::ForcedOut>(reply)) {
    grant->forced_out = received_ + 1;
  }
  const bool trusted = local(world, client) >= clients_[client].clocks[node].blamed_until;
  if (why != nullptr && why->cause == Cause::marker_missing) marker_shown(world, client, node);
  // As far as the client can know.
  const Instant learned = clients_[client].learned[node];
  const bool quarantined =
      learned != Instant::min() &&
      world < learned + documented::quarantine(max_lease_, key_terms_.drift_factor);
  const auto confirmed = [&] {
    grant->confirmed_in_turn = std::max(grant->confirmed_in_turn, grant->belief.valid_until());
  };
  confirmed();
  grant->belief.answered(node, tag, reply,
                         {.trusted = trusted, .order = ++received_, .quarantined = quarantined});
  confirmed();
  grant->valid_after_answer = std::max(grant->valid_after_answer, grant->belief.valid_until());
}

// --- outputs

void Invariants::told(Instant world, ClientId client, const engine::Outputs& outputs) {
  for (const engine::NodeOutput& output : outputs.nodes) {
    if (const auto* send = std::get_if<engine::Send>(&output)) sent(world, client, *send);
  }
  for (const engine::ClientOutput& output : outputs.client) told(world, client, output);
}

void Invariants::told(Instant world, ClientId client, const engine::ClientOutput& output) {
  if (const auto* finish = std::get_if<engine::Finish>(&output)) {
    told_finish(world, client, *finish);
  } else if (const auto* decision = std::get_if<engine::AttemptDecided>(&output)) {
    told_decision(world, client, *decision);
  } else if (const auto* changed = std::get_if<engine::ValidityChanged>(&output)) {
    told_validity(world, client, changed->grant, changed->valid_until);
  } else if (const auto* lost = std::get_if<engine::LeaseLost>(&output)) {
    told_lost(world, client, *lost);
  } else if (const auto* moved = std::get_if<engine::NodeClockMoved>(&output)) {
    told_clock(local(world, client), client, *moved);
  } else if (const auto* renewal = std::get_if<engine::RenewalDecided>(&output)) {
    const Grant* grant = find(client, renewal->grant);
    require(grant != nullptr && grant->state == State::live,
            "a lost or released lease is not renewed",
            [&] { return fmt::format("grant {} of client {}", renewal->grant, client); });
    const Instant now = local(world, client);
    require(now - rounding <= grant->renewed_until || clients_[client].resumed == world,
            "a lease is renewed for as long as was asked",
            [&] { return fmt::format("grant {} of client {}", renewal->grant, client); });
  }
}

void Invariants::told_finish(Instant world, ClientId id, const engine::Finish& finish) {
  Client& client = clients_[id];
  const auto found = client.requests.find(finish.request);
  require(found != client.requests.end(), "every request ends exactly once",
          [&] { return fmt::format("request {} of client {} ends again", finish.request, id); });
  const Request request = found->second;
  client.requests.erase(found);
  const Instant now = local(world, id);
  require(now - rounding <= request.expected || client.resumed == world,
          "every request ends by its deadline", [&] {
            return fmt::format("request {} of client {}, {} us late", request.id, id,
                               us(now - request.expected));
          });
  if (const auto* success = std::get_if<engine::AcquireSucceeded>(&finish.result)) {
    told_success(world, id, request, *success);
  } else if (const auto* done = std::get_if<engine::BroadcastDone>(&finish.result)) {
    const auto confirmed = done->replied<engine::ReleasedHere, engine::NotHeld>();
    const bool by_quorum = confirmed.size() > members_ / 2;
    if (request.forces && by_quorum) told_forced(world, *request.forces);
  } else if (const auto* gone = std::get_if<engine::ReleaseDone>(&finish.result)) {
    if (const Grant* grant = find(id, request.releases)) told_released(*grant, gone->outcome);
  } else if (const auto* failed = std::get_if<engine::Failed>(&finish.result)) {
    const bool refuted = request.takes_up && failed->code == Errc::invalid_argument;
    require(!refuted || !judged_.tokens || !damaged_.empty(), "a right token is not called wrong",
            [&] { return fmt::format("client {}: {}", id, wire::in_words(now, finish)); });
  }
  if (Grant* grant = find(id, request.extends)) --grant->extending;
  if (request.enters != 0) told_entry(id, request, finish);
  if (request.owner) told_take(now, id, request, finish);
  wait_ends(world, id, request);
  attempt_over(world, client, request.id);
  if (request.name) client.by_name.erase(request.name.get());
}

void Invariants::told_success(Instant world, ClientId client, const Request& request,
                              const engine::AcquireSucceeded& success) {
  Grant* grant = find(client, success.grant);
  const auto what = [&] {
    return fmt::format("client {} was given grant {}", client, success.grant);
  };
  require(grant != nullptr && grant->state == State::attempting, "a lease follows an attempt",
          what);
  const Instant now = local(world, client);
  require(success.valid_until - now > request.min_validity,
          "no success with too little validity left", what);
  // What nodes said later in this turn the client did not know yet; it is told of that behind this.
  const Instant confirmed = std::max(grant->confirmed_in_turn, grant->belief.valid_until());
  rule(judged_, success.valid_until <= confirmed, "validity is what a quorum confirmed", what);
  if (!grant->taken_up) {
    const Instant bound = grant->belief.trusted_until(grant->started, request.lease);
    rule(judged_, success.valid_until <= bound, "validity counts from the send", what);
    rule(judged_, grant->belief.settled(success.token),
         "a token is returned once a quorum settled it", what);
    ++counts_.granted;
  }
  grant->token = success.token;
  if (request.renewed_for == Duration::zero()) {
    grant->renewed_until = Instant::min();
  } else if (request.renewed_for < engine::never - now) {
    grant->renewed_until = now + request.renewed_for;
  }
  set_validity(world, *grant, success.valid_until);
  grant->granted = world;
  grant->state = State::live;
  clients_[client].live.push_back(grant);
  check_forced(*grant);
  check_token(world, *grant);
  check_order(world, client, request);
  check_claim(world, *grant);
  check_possession(world, *grant);
  names_[*grant->name].claims.push_back(grant);
  if (const auto line = lines_.find(*grant->name); line != lines_.end()) {
    if (line->second.given_back) ++line->second.granted;
    line->second.free_since.reset();
    line->second.given_back.reset();
  }
}

/// By what the nodes answered. One that forgot the lock had it (docs/safety.md, A4).
void Invariants::told_released(const Grant& grant, Released outcome) const {
  const auto what = [&] { return fmt::format("grant {} of client {}", grant.id, grant.client); };
  require(outcome != Released::already_gone || grant.belief.may_have_had() <= members_ / 2 ||
              nodes_.size() != members_ || !judged_.first_counts,
          "a lock that a quorum may have had is not said to be gone", what);
  const auto forgot = [](const SimNode& node) { return !node.forgot.empty(); };
  require(outcome != Released::released || grant.belief.removed() > members_ / 2 ||
              std::ranges::any_of(nodes_, forgot) || nodes_.size() != members_,
          "released means that a quorum had the lock", what);
}

void Invariants::check_token(Instant world, const Grant& grant) {
  if (!judged_.tokens) return;
  NameState& name = names_[*grant.name];
  // A lease that was taken up may have a wrong token, but later grants have larger ones; and where
  // two that draw one owner do not exclude each other, the second is granted before the first has
  // raised the fences.
  if (grant.taken_up || may_lose_to_twin(world, grant)) {
    name.largest_returned = std::max(name.largest_returned, grant.token);
    return;
  }
  const auto what = [&] {
    return fmt::format("client {}, {}, token {}", grant.client, *grant.name, grant.token);
  };
  require(name.tokens.emplace(grant.token, grant.client).second, "tokens of a name are unique",
          what);
  require(grant.token > grant.returned_before,
          "a token is larger than every one returned before its attempt", what);
  name.largest_returned = std::max(name.largest_returned, grant.token);
}

/// Called whenever a lease begins or is lengthened: overlaps can begin at no other time.
void Invariants::check_claim(Instant world, const Grant& grant) {
  auto& claims = names_[*grant.name].claims;
  std::erase_if(claims, [&](const Grant* other) {
    return other->state == State::lost && local(world, other->client) >= other->valid_until;
  });
  if (!judged_.exclusion) return;
  for (const Grant* other : claims) {
    const bool twins = other->owner == grant.owner;
    // Handed over, or taken up anew.
    if (twins && (other->client == grant.client || other->taken_up || grant.taken_up)) continue;
    if (may_lose_to_twin(world, grant) || may_lose_to_twin(world, *other)) continue;
    require(local(world, other->client) >= other->valid_until,
            twins ? "two processes that drew one owner do not both hold the lock"
                  : "validity intervals of a name never overlap",
            [&] {
              return fmt::format("client {} grant {} is valid beside client {} grant {}",
                                 grant.client, grant.id, other->client, other->id);
            });
  }
}

/// Of two attempts that drew one owner, a release of one deletes the lock of the other on a node
/// that the other counts, and nobody can tell (docs/safety.md, A2a): it may have no quorum left.
/// Nodes whose confirmations are over may have ended it by themselves.
bool Invariants::may_lose_to_twin(Instant world, const Grant& grant) const {
  const auto found = twin_releases_.find({*grant.name, grant.owner.bits});
  if (found == twin_releases_.end()) return false;
  const Instant now = local(world, grant.client);
  std::uint32_t left = 0;
  bool loses = false;
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (!grant.belief.counts(node, now)) continue;
    const bool released = std::ranges::any_of(found->second, [&](const auto& release) {
      return release.first != &grant && release.second == node;
    });
    loses |= released;
    left += released ? 0 : 1;
  }
  return loses && left <= members_ / 2;
}

void Invariants::check_possession(Instant world, const Grant& grant) const {
  if (!judged_.possession || may_lose_to_twin(world, grant)) return;
  const auto holding = std::ranges::count_if(nodes_, [&](const SimNode& node) {
    return node.data.holds(*grant.name, grant.owner, node.now_ms(world));
  });
  require(static_cast<std::size_t>(holding) > members_ / 2,
          "while a lease is valid a quorum of nodes has it", [&] {
            return fmt::format("grant {} of client {} is on {} nodes", grant.id, grant.client,
                               holding);
          });
}

void Invariants::told_decision(Instant world, ClientId id, const engine::AttemptDecided& decision) {
  Client& client = clients_[id];
  const auto request = client.by_name.find(decision.name.get());
  if (request == client.by_name.end()) return;
  const Grant* const attempt = take_undecided(client, request->second);
  if (attempt == nullptr) return;
  const Grant& grant = *attempt;
  const auto count = [&](Vote vote) {
    return static_cast<std::uint32_t>(
        std::ranges::count(decision.ballots, vote, &engine::Ballot::vote));
  };
  const auto what = [&] { return fmt::format("client {}: {}", id, wire::in_words({}, decision)); };
  rule(judged_,
       count(Vote::granted) <= grant.belief.granted() &&
           count(Vote::refused) <= grant.belief.refused(),
       "votes are what nodes answered", what);
  const std::size_t voted = count(Vote::granted) + count(Vote::refused);
  if (decision.failure == Errc::contended) {
    const std::size_t answered = grant.belief.granted() + grant.belief.refused();
    require(std::min(voted, answered) > members_ / 2, "contended means that a quorum voted", what);
  }
  if (decision.failure == Errc::no_quorum) check_no_quorum(world, id, grant, decision);
  if (decision.failure && decision.failure != Errc::contended) {
    const bool too_late = decision.failure == Errc::too_late;
    gives_way(world, *decision.name, request->second, too_late);
  }
  const auto latest = client.attempts.find(request->second);
  const bool is_latest = latest != client.attempts.end() && latest->second == attempt;
  if (decision.failure && is_latest) attempt_over(world, client, request->second);
}

/// A node that is well, and was when the attempt began, votes, unless its answer is late or an
/// error: the client has no reason of its own not to count it. Not judged where it may have one,
/// nor where a quorum granted the lock and did not settle the token in time.
void Invariants::check_no_quorum(Instant world, ClientId client, const Grant& grant,
                                 const engine::AttemptDecided& decision) const {
  const auto forgot = [](const SimNode& node) { return !node.forgot.empty(); };
  if (!judged_.clocks || judged_.clones || !well_since_ || !damaged_.empty()) return;
  if (nodes_.size() != members_) return;  // a new member waits
  if (std::ranges::any_of(nodes_, forgot)) return;
  const Instant began = world - (local(world, client) - grant.started);
  const auto granted = std::ranges::count(decision.ballots, Vote::granted, &engine::Ballot::vote);
  if (static_cast<std::size_t>(granted) > members_ / 2 && grant.settles) return;
  std::uint32_t voters = 0;
  std::uint32_t by_fence = 0;  // granted the lock, with a fence that the client takes for damaged
  for (std::uint32_t node = judged_.first_counts ? 0 : 1; node < nodes_.size(); ++node) {
    const engine::Ballot& ballot = decision.ballots[node];
    const WellSince since = well_since_(client, node);
    const bool well = since && *since < began;
    const bool by_engine = ballot.cause == Cause::none || ballot.cause == Cause::clock_moved ||
                           (judged_.all_fit && ballot.cause == Cause::incompatible);
    // A call that waits may have judged that fence when other nodes had refused.
    const bool fence = ballot.cause == Cause::server_error && grant.belief.counts(node);
    by_fence += fence && !grant.in_line ? 1 : 0;
    voters += ballot.vote == Vote::granted || ballot.vote == Vote::refused || (well && by_engine);
  }
  require(std::max(voters, by_fence) <= members_ / 2,
          "a quorum that is well is not said to be missing",
          [&] { return fmt::format("client {}: {}", client, wire::in_words({}, decision)); });
}

void Invariants::told_validity(Instant world, ClientId client, engine::GrantId id,
                               Instant valid_until) {
  Grant* grant = find(client, id);
  const auto what = [&] { return fmt::format("grant {} of client {}", id, client); };
  // The user was told of the lease in this turn, and gave it back before this output.
  if (grant != nullptr && grant->state == State::over && grant->over_at == world) return;
  require(grant != nullptr && (grant->state == State::live || grant->state == State::lost),
          "a released lease is not confirmed again", what);
  const bool lost = grant->state == State::lost;
  require(!lost || valid_until < grant->valid_until, "a lost lease only ends earlier", what);
  // Of several changes in one turn the last is judged when the turn ends.
  const Instant confirmed = std::max(grant->confirmed_in_turn, grant->belief.valid_until());
  rule(judged_, valid_until <= confirmed || (lost && valid_until <= local(world, client)),
       "validity is what a quorum confirmed", what);
  if (valid_until > grant->valid_until) {
    require(local(world, client) < grant->valid_until, "an ended validity is never extended", what);
  } else {
    grant->shortened = true;
  }
  set_validity(world, *grant, valid_until);
  check_forced(*grant);
  if (local(world, client) < valid_until) check_claim(world, *grant);
}

/// Its owner is to be told of a loss a tenth of the lease before the end, or when half of what is
/// left now is over (docs/safety.md, "Exclusion, timed").
void Invariants::set_validity(Instant world, Grant& grant, Instant valid_until) const {
  const Instant now = local(world, grant.client);
  const Duration left = std::max(valid_until - now, Duration::zero());
  const Duration margin = std::min<Duration>(Duration(grant.acquired) / 10, left / 2);
  grant.valid_until = valid_until;
  grant.loss_told_by = std::max(now, valid_until - margin);
}

/// A process that was stopped finds the loss when it goes on.
bool Invariants::may_be_told_now(Instant world, const Grant& grant) const {
  const Client& client = clients_[grant.client];
  return local(world, grant.client) <= grant.loss_told_by + rounding || client.resumed == world;
}

void Invariants::told_lost(Instant world, ClientId client, const engine::LeaseLost& loss) {
  Grant* grant = find(client, loss.grant);
  const auto what = [&] { return fmt::format("grant {} of client {}", loss.grant, client); };
  require(grant != nullptr && grant->state == State::live, "a lease is lost once", what);
  require(may_be_told_now(world, *grant),
          "a loss is told a tenth of the lease before the validity ends", what);
  // A process that was stopped, or that gives the lease up, need not have asked.
  const bool excused = grant->given_up || grant->shortened || !judged_.clocks ||
                       clients_[client].resumed > grant->granted;
  require(loss.reason != LossReason::nodes_unavailable || grant->held || excused,
          "a lease is not lost before a renewal was asked for", what);
  // In the turn of that answer it may have been lost before.
  const bool by_force = grant->forced_out != 0 && grant->forced_out < clients_[client].next_heard;
  require(loss.reason != LossReason::taken || !by_force, "who was forced out is told so", what);
  ++counts_.lost;
  grant->state = State::lost;
  std::erase(clients_[client].live, grant);
  // A client that finds the lock gone reports that the validity was never there.
  if (loss.reason == LossReason::taken || loss.reason == LossReason::forced) {
    grant->valid_until = Instant::min();
    end_claim(*grant);
  }
}

/// At the end of the turn: replies that came behind the one that decided are dealt with by then.
/// What is taken up may come late to any node, from the process that detached it.
void Invariants::check_ended(Client& client) const {
  for (const Grant* grant : std::exchange(client.ended, {})) {
    const bool everywhere = grant->taken_up && grant->state == State::over;
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      const bool left = everywhere && !grant->belief.released(node);
      rule(judged_, !left && !grant->belief.left_behind(node),
           "a grant that is over is released on every node that may have it", [&] {
             return fmt::format("grant {} of client {}, node {}", grant->id, grant->client, node);
           });
    }
  }
}

void Invariants::turn_ends(Instant world, ClientId id) {
  Client& client = clients_[id];
  client.next_heard = received_ + 1;
  client.replaced.clear();
  check_ended(client);
  for (Grant* grant : client.live) {
    check_live(world, *grant);
    grant->confirmed_in_turn = grant->valid_after_answer = Instant::min();
  }
  check_lost(world, id);
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    rule(judged_, !client.clocks[node].must_be_noticed, "a clock that moved is noticed",
         [&] { return fmt::format("client {}, node {}", id, node); });
  }
  for (const auto& [grant, node] : std::exchange(client.asked_though_noted, {})) {
    throw Violation{"a client that starts asks no node whose clock others saw move",
                    fmt::format("client {} asks node {} for grant {}", id, node, grant)};
  }
  const Instant now = local(world, id);
  for (const auto& entry : client.requests) {
    const auto& request = entry.first;
    const auto& what = entry.second;
    require(now - rounding <= what.expected || client.resumed == world,
            "every request ends by its deadline", [&] {
              return fmt::format("request {} of client {} has not ended, {} us late", request, id,
                                 us(now - what.expected));
            });
  }
}

void Invariants::check_live(Instant world, const Grant& grant) const {
  const auto what = [&] { return fmt::format("grant {} of client {}", grant.id, grant.client); };
  require(may_be_told_now(world, grant),
          "a loss is told a tenth of the lease before the validity ends", what);
  require(!grant.given_up, "a lease whose loss was told is lost", what);
  rule(judged_, grant.valid_until <= grant.belief.valid_until(),
       "validity is what a quorum confirmed", what);
  rule(judged_, grant.belief.confirmed() > members_ / 2,
       "with fewer than a quorum a lease is lost at once", what);
  // Of an owner's calls one at a time enters.
  const bool enters =
      grant.counts.front() > grant.count && may_be_entered(grant, local(world, grant.client)) > 0;
  const std::uint32_t told = grant.count + grant.entering + (enters ? 1 : 0);
  const auto says_so = [&](std::uint32_t count) { return count == told; };
  rule(judged_, grant.belief.owner_is_shared() || std::ranges::all_of(grant.counts, says_so),
       "every node is told the count at once", what);
}

}  // namespace redlock::simulation
