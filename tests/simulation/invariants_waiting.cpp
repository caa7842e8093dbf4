// SPDX-License-Identifier: MIT
// What calls that wait in order are promised: which one is next, that a free lock is granted, that
// no client stays in a line that it left, and what that costs the nodes (docs/waiting.md).
//
// Order and progress are judged for calls with which nothing was wrong: all nodes were well to
// their clients since before the calls began. What a fault does to others is not their fault: those
// behind a waiter that is stopped lose its turn, and no more.
#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "simulation/documented.hpp"
#include "simulation/invariants.hpp"

namespace redlock::simulation {
void Invariants::begins_to_wait(ClientId client, const Request& request) {
  if (!request.in_order || !request.name || !well_since_) return;
  if (waiting_.free_at_most == Duration::zero()) return;
  if (request.waits_until <= local(request.began, client)) return;  // it does not wait
  // A call of an owner begins to wait when those before it have ended.
  Line& line = lines_[*request.name];
  if (line.given_back) ++line.begun;
  const Duration left = request.lease -
                        documented::drift_allowance(request.lease, waiting_.drift_factor) -
                        request.min_validity;
  line.waiting.push_back({.request = request.id,
                          .client = client,
                          .began = request.began,
                          .stands_since = request.began,
                          .waits_until = request.waits_until,
                          .by_owner = request.owner.has_value(),
                          .short_lease = left < waiting_.grant_takes});
  numbered_.emplace(request.id, client);
  const auto pause = line.pauses.find(client);
  if (pause != line.pauses.end() && pause->second.too_late) {
    must_ask_again(request.began, client, line, true);
  }
}

void Invariants::wait_ends(Instant world, ClientId client, const Request& request) {
  if (!request.name) return;
  const auto line = lines_.find(*request.name);
  if (line == lines_.end()) return;
  std::uint64_t number = 0;
  Instant began = request.began;
  const auto left = std::erase_if(line->second.waiting, [&](const Waiting& who) {
    const bool it = who.request == request.id && who.client == client;
    // A call that never asked may stand there since the one before it was granted, or left.
    if (!it) return false;
    const auto& newest = line->second.numbers[client];
    number = who.line == 0 ? newest.number : who.line;
    // Its client may stand where a node could not be told that the one before it left.
    if (who.line == 0 && who.known_at.empty()) began = newest.since;
    return true;
  });
  if (left > 0) line->second.departed.push_back({request.id, client, number, began, world});
}

void Invariants::given_back(Instant world, const Grant& grant) {
  const auto line = lines_.find(*grant.name);
  if (line == lines_.end()) return;
  const auto holding = std::ranges::count_if(nodes_, [&](const SimNode& node) {
    return node.data.holds(*grant.name, grant.owner, node.now_ms(world));
  });
  if (static_cast<std::size_t>(holding) > members_ / 2) line->second.given_back = world;
}

void Invariants::gives_way(Instant world, const std::string& name, engine::RequestId request,
                           bool too_late) {
  const auto line = lines_.find(name);
  if (line == lines_.end()) return;
  for (Waiting& who : line->second.waiting) {
    if (who.request != request) continue;
    who.gave_way = true;
    who.stands_since = world;
    if (too_late) who.came_late = local(world, who.client);
    const auto& attempts = clients_[who.client].attempts;
    // What was sent in this turn is known before what was decided.
    const bool another_asks = std::ranges::any_of(line->second.waiting, [&](const Waiting& other) {
      return other.client == who.client && other.request != request &&
             attempts.contains(other.request);
    });
    if (!another_asks) must_ask_again(world, who.client, line->second, too_late);
  }
}

/// The first call of the client failed for a reason of its own. If it came too late one that has
/// not failed so asks at once, also one that comes during the pause; otherwise a pause is before.
void Invariants::must_ask_again(Instant world, ClientId client, Line& line, bool too_late) const {
  const bool at_once = too_late && std::ranges::any_of(line.waiting, [&](const Waiting& who) {
                         return who.client == client && !who.gave_way && !who.by_owner;
                       });
  const Duration pause = at_once ? Duration(std::chrono::milliseconds(2)) : waiting_.pauses_at_most;
  line.pauses[client] = {world, world + pause, too_late};
}

void Invariants::check_asked_again(Instant world, const std::string& name, Line& line) const {
  std::erase_if(line.pauses, [&](const auto& of_client) {
    const ClientId client = of_client.first;
    const Line::Pause& pause = of_client.second;
    if (world <= pause.ends) return false;
    const WellSince since = clients_[client].alive ? well_with_all(client) : std::nullopt;
    const bool waits = std::ranges::any_of(line.waiting, [&](const Waiting& who) {
      return who.client == client && !who.by_owner && who.began <= pause.since &&
             local(world, client) < who.waits_until;
    });
    if (!waits || !since || *since > pause.since) return true;
    throw Violation{"a call behind one that failed asks when it is to",
                    fmt::format("{}: client {} has not asked for {} us", name, client,
                                us(world - pause.since))};
  });
}

void Invariants::asks_in_line(Instant now, const std::string& name, engine::RequestId request,
                              const engine::Place& place) {
  const auto line = lines_.find(name);
  if (line == lines_.end()) return;
  for (Waiting& who : line->second.waiting) {
    if (who.request != request) continue;
    who.line = place.line;
    if (who.came_late != Instant::min() && place.waited > now - who.came_late) {
      throw Violation{"a call that came too late goes behind the others",
                      fmt::format("{}: it waited {} us", name, us(place.waited))};
    }
    line->second.pauses.erase(who.client);
    auto& newest = line->second.numbers[who.client];
    if (newest.number != place.line) newest = {place.line, who.began};
  }
}

/// A line has the number of the call with which it began.
std::optional<ClientId> Invariants::client_of(const NodeData::Waiter& waiter) const {
  const auto found = numbered_.find(waiter.line);
  return found == numbered_.end() ? std::nullopt : std::optional(found->second);
}

/// Whether its client stands there for this very call: with its place.
bool Invariants::is_placed(Instant world, std::uint32_t node, const Waiting& who,
                           const std::vector<NodeData::Waiter>& there) const {
  const auto has_waited = std::chrono::duration_cast<std::chrono::microseconds>(world - who.began);
  return std::ranges::any_of(there, [&](const NodeData::Waiter& waiter) {
    if (client_of(waiter) != who.client) return false;
    const auto age = static_cast<double>(nodes_[node].now_us(world)) - waiter.place;
    const auto apart = std::abs(age - static_cast<double>(has_waited.count()));
    return apart * 1'000 <= static_cast<double>(waiting_.delays_differ.count());
  });
}

/// A call that stands in the line of a node, or has its lock, is known there.
void Invariants::look_at_line(Instant world, std::uint32_t node, std::string_view name,
                              const HeldLock& lock) {
  const SimNode& at = nodes_[node];
  entered_.resize(nodes_.size(), Instant::min());
  if (at.data.has_line(name, at.now_ms(world))) entered_[node] = world;
  const auto line = lines_.find(name);
  const auto is_new = [&](const Waiting& who) { return !who.known_at.contains(node); };
  if (line == lines_.end() || std::ranges::none_of(line->second.waiting, is_new)) return;
  const auto there = at.data.waiters(name, at.now_ms(world));
  const auto has_it = [&](const Waiting& who) {
    const auto& attempts = clients_[who.client].attempts;
    const auto attempt = attempts.find(who.request);
    return lock && attempt != attempts.end() && attempt->second->owner == lock->owner;
  };
  for (Waiting& who : line->second.waiting) {
    if (!is_new(who) || !(is_placed(world, node, who, there) || has_it(who))) continue;
    who.known_at.insert(node);
    const bool by_quorum = who.known_at.size() > members_ / 2;
    if (by_quorum) who.known_since = std::min(who.known_since, world);
  }
}

/// Counted while the lock goes from one to the next.
void Invariants::waiter_asked(const Grant& grant, const engine::Reply& reply) {
  const auto line = lines_.find(*grant.name);
  const bool asked = grant.in_line && !std::holds_alternative<engine::Unavailable>(reply);
  if (line == lines_.end()) return;
  // A call that cannot succeed tries again and again.
  const auto& waiting = line->second.waiting;
  if (std::ranges::any_of(waiting, [](const Waiting& who) { return who.gave_way; })) return;
  if (asked && line != lines_.end() && line->second.given_back) ++line->second.asked;
}

Invariants::WellSince Invariants::well_with_all(ClientId client) const {
  Instant latest = Instant::min();
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    const WellSince since = well_since_(client, node);
    if (!since) return std::nullopt;
    latest = std::max(latest, *since);
  }
  return latest;
}

/// A call is granted the lock. No other call may still wait that began earlier, and that a quorum
/// of the nodes knew before this one began.
void Invariants::check_order(Instant world, ClientId client, const Request& request) {
  if (!waiting_.order || !request.in_order || !request.acquires) return;
  const auto line = lines_.find(*request.name);
  if (line == lines_.end()) return;
  const Instant now = request.began;
  const bool waits = request.waits_until > local(now, client);
  const WellSince its_own = well_with_all(client);
  const bool well = its_own && *its_own <= now;
  for (Waiting& who : line->second.waiting) {
    // Each says how long it has waited by a clock of its own.
    const Duration apart = waiting_.delays_differ + rates_differ(world, who.began);
    const bool later = !waits || who.began + apart < now;
    const bool comparable = !waits || (!who.by_owner && well);
    if (who.request == request.id || !later || !comparable || who.known_since >= now) continue;
    if (who.gave_way) continue;
    const WellSince since = well_with_all(who.client);
    if (!since || *since > who.began) continue;
    if (++who.overtaken <= waiting_.overtaken_at_most) continue;
    throw Violation{"a waiting call is not overtaken by a later one",
                    fmt::format("{}: client {} request {}, before client {} request {}, which had "
                                "begun {} us before it, and was overtaken {} times",
                                *request.name, client, request.id, who.client, who.request,
                                us(now - who.began), who.overtaken)};
  }
}

void Invariants::look_at_lines(Instant world) {
  for (auto& [name, line] : lines_) {
    check_departed(world, name, line);
    check_asked_again(world, name, line);
    check_free(world, name, line);
  }
}

/// Each node tells the first waiter, two nodes tell the second. If both are of clients that do not
/// run, the others come when they ask by themselves, once a second.
bool Invariants::two_are_away(Instant since) const {
  int away = 0;
  for (ClientId client = 0; client < clients_.size(); ++client) {
    const WellSince well = clients_[client].alive ? well_with_all(client) : std::nullopt;
    if (!well || *well > since) ++away;
  }
  return away >= 2;
}

/// A lock is free for a call if it is free on a quorum of nodes that its client reaches. What
/// failed attempts left there must go soon, if the nodes are well to the clients that made them.
void Invariants::check_free(Instant world, const std::string& name, Line& line) {
  std::vector<bool> free_at(nodes_.size());
  Instant settled = Instant::min();
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    const auto lock = nodes_[node].data.lock(name, nodes_[node].now_ms(world));
    free_at[node] = !lock;
    if (!lock || lock->foreign_type) continue;
    const auto found = owners_.find(lock->owner.bits);
    if (found == owners_.end()) continue;
    const Grant& grant = *found->second;
    const bool wanted = grant.state != State::attempting && grant.state != State::over;
    const WellSince since =
        wanted || !clients_[grant.client].alive ? std::nullopt : well_with_all(grant.client);
    free_at[node] = since.has_value();
    settled = std::max(settled, since.value_or(Instant::min()));
  }
  const auto free_nodes = static_cast<std::size_t>(std::ranges::count(free_at, true));
  if (free_nodes <= members_ / 2) return line.free_since.reset();
  if (!line.free_since) line.free_since = world;
  // Nodes may not know as yet that a client has died.
  const auto dead = std::ranges::count(clients_, false, &Client::alive);
  const Duration turns_of_the_dead = dead * documented::length_of_turn({});
  for (const Waiting& who : line.waiting) {
    if (who.known_since == engine::never || local(world, who.client) >= who.waits_until) continue;
    if (who.short_lease && who.gave_way) continue;  // it cannot be granted it
    std::vector<Instant> reached;
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      if (!free_at[node]) continue;
      if (const WellSince since = well_since_(who.client, node)) reached.push_back(*since);
    }
    if (reached.size() <= members_ / 2) continue;
    std::ranges::sort(reached);
    const Instant from =
        std::max({*line.free_since, settled, who.known_since, reached[members_ / 2]});
    counts_.longest_free = std::max(counts_.longest_free, world - from);
    // Whose turn it is was told so, when the holder gave it back.
    const Instant passed_on = std::max(from, line.given_back.value_or(world));
    // A call that failed for a reason of its own pauses.
    const bool passed_on_late = waiting_.passed_on_within > Duration::zero() && !who.gave_way &&
                                world - passed_on > waiting_.passed_on_within + turns_of_the_dead &&
                                !two_are_away(passed_on) && !order_is_disputed(world, line, who);
    if (world - from <= waiting_.free_at_most && !passed_on_late) continue;
    throw Violation{
        "a free lock is granted to a waiting call",
        fmt::format("{}: client {} request {} waits for {} us{}", name, who.client, who.request,
                    us(world - from), passed_on_late ? ", since it was given back" : "")};
  }
}

/// By how much what two calls say of how long they have waited differs, where one began then.
Duration Invariants::rates_differ(Instant world, Instant began) const {
  return (world - began) / 1'000'000 * waiting_.rates_differ_ppm;
}

/// Of the calls up to this one two began at so nearly the same time that nodes may have them in
/// different orders. Each keeps some votes from the other, until one of them pauses for longer than
/// its turn.
bool Invariants::order_is_disputed(Instant world, const Line& line, const Waiting& who) const {
  const Instant last =
      who.stands_since + waiting_.delays_differ + rates_differ(world, who.stands_since);
  return std::ranges::any_of(line.waiting, [&](const Waiting& one) {
    const Duration most = waiting_.delays_differ + rates_differ(world, one.stands_since);
    return std::ranges::any_of(line.waiting, [&](const Waiting& other) {
      const Duration apart = other.stands_since - one.stands_since;
      return one.client != other.client && other.stands_since <= last &&
             apart >= Duration::zero() && apart <= most;
    });
  });
}

bool Invariants::stands_in(Instant world, std::uint32_t node, const std::string& name,
                           std::uint64_t line) const {
  const std::int64_t now_ms = nodes_[node].now_ms(world);
  return std::ranges::any_of(nodes_[node].data.waiters(name, now_ms), [&](const auto& waiter) {
    return waiter.line == line && waiter.alive_until_ms > now_ms;
  });
}

/// A client without a waiting call is in no line of a node that was well to it all the time.
void Invariants::check_departed(Instant world, const std::string& name, Line& line) const {
  while (!line.departed.empty() && world - line.departed.front().at > waiting_.leaves_within) {
    const Departed who = line.departed.front();
    line.departed.pop_front();
    // Calls that an engine makes for an owner have numbers that other clients give, too.
    const bool unique = who.line != 0 && who.line < engine::first_inner_request;
    if (!clients_[who.client].alive || !unique) continue;
    // It stands there for others of its calls, or for one that ended later.
    if (std::ranges::count(line.waiting, who.client, &Waiting::client) > 0) continue;
    if (std::ranges::count(line.departed, who.client, &Departed::client) > 0) continue;
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      const WellSince since = well_since_(who.client, node);
      if (!since || *since > who.began) continue;
      if (!stands_in(world, node, name, who.line)) continue;
      throw Violation{
          "a client that left is in no line",
          fmt::format("{}: node {} still has client {}, whose request {} ended {} us ago", name,
                      node, who.client, who.request, us(world - who.at))};
    }
  }
}

void Invariants::must_be_no_lines(Instant world, const std::string& name) const {
  if (!waiting_.lines_end) return;
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    const SimNode& at = nodes_[node];
    const bool lined = at.data.has_line(name, at.now_ms(world));
    // What a broken connection carried may have come late.
    if (!lined || world - entered_[node] < std::chrono::milliseconds(3'050)) continue;
    throw Violation{"long after the last client left there is no line",
                    fmt::format("{}: node {} has {} entries", name, node,
                                at.data.waiters(name, at.now_ms(world)).size())};
  }
  const auto line = lines_.find(name);
  if (line == lines_.end() || waiting_.asks_per_grant == 0) return;
  const Line& what = line->second;
  const double asked = static_cast<double>(what.asked) / static_cast<double>(nodes_.size());
  const double per_grant = (asked - static_cast<double>(what.begun)) /
                           static_cast<double>(std::max<std::uint64_t>(what.granted, 1));
  if (what.granted < 20 || per_grant <= waiting_.asks_per_grant) return;
  throw Violation{"a hand-off costs few messages",
                  fmt::format("{}: {:.2f} questions to each node for each of {} hand-offs, "
                              "beside those of {} calls that began",
                              name, per_grant, what.granted, what.begun)};
}

}  // namespace redlock::simulation
