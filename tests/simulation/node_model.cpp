// SPDX-License-Identifier: MIT
// The order of things follows the scripts line by line: what fails before anything is written, and
// what is written although something later fails.
#include "simulation/node_model.hpp"

#include <algorithm>
#include <limits>

#include "engine/planted_bug.hpp"
#include "engine/stripe.hpp"

namespace redlock::simulation {

using engine::Bug;
using engine::Delivery;
using engine::planted;
using engine::Token;
using engine::Unavailable;

namespace {

Unavailable refused(Cause cause, const char* detail) {
  return {cause, Delivery::refused, detail};
}

}  // namespace

void NodeModel::forget_everything() {
  locks_.clear();
  forced_.clear();
  queues_.clear();
  fences_.clear();
  marker_.reset();
  pending_.clear();
}

Token NodeModel::fence(std::uint32_t stripe) const {
  const auto found = fences_.find(stripe);
  if (found == fences_.end()) return 0;
  const Token* token = std::get_if<Token>(&found->second);
  return token != nullptr ? *token : 0;
}

const NodeModel::Lock* NodeModel::find(const std::string& name, std::int64_t now_ms) const {
  const auto found = locks_.find(name);
  if (found == locks_.end()) return nullptr;
  // Redis: a key is gone when the clock has passed its time, not when it has reached it.
  const auto& ends = found->second.ends_ms;
  return ends && now_ms > *ends ? nullptr : &found->second;
}

bool NodeModel::holds(const std::string& name, const engine::OwnerId& owner,
                      std::int64_t now_ms) const {
  const Lock* lock = find(name, now_ms);
  return lock != nullptr && !lock->foreign_type && lock->owner == owner;
}

const NodeModel::ForcedOwners* NodeModel::find_forced(const std::string& name,
                                                      std::int64_t now_ms) const {
  const auto found = forced_.find(name);
  return found == forced_.end() || now_ms > found->second.ends_ms ? nullptr : &found->second;
}

bool NodeModel::turns_away(const std::string& name, const engine::OwnerId& owner,
                           std::int64_t now_ms) const {
  if (planted(Bug::force_undone_by_healing)) return false;
  const ForcedOwners* forced = find_forced(name, now_ms);
  return forced != nullptr && std::ranges::count(forced->owners, owner) > 0;
}

bool& NodeModel::loaded(const engine::Command& command) {
  if (std::holds_alternative<engine::AcquireCommand>(command)) return scripts_.acquire;
  if (std::holds_alternative<engine::HoldCommand>(command)) return scripts_.hold;
  return std::holds_alternative<engine::ForceCommand>(command) ? scripts_.force : scripts_.release;
}

/// What the dispatcher says before a script runs. All but acquire declare that they write.
std::optional<Unavailable> NodeModel::refusal(const engine::Command& command) const {
  const bool declared = !std::holds_alternative<engine::AcquireCommand>(command);
  switch (ailment_) {
    case Ailment::loading:
      return refused(Cause::loading, "LOADING");
    case Ailment::busy:
      return refused(Cause::busy, "BUSY");
    case Ailment::misconf:
      if (declared) return refused(Cause::write_error, "MISCONF");
      break;
    case Ailment::read_only:
      if (declared) return refused(Cause::read_only, "READONLY");
      break;
    case Ailment::none:
    case Ailment::full:
      break;
  }
  return std::nullopt;
}

std::optional<engine::Reply> NodeModel::begin_pass(engine::Form form) {
  const bool deaf = ailment_ == Ailment::loading || ailment_ == Ailment::busy;
  if (deaf) return *refusal(engine::ReleaseCommand{});
  if (form == engine::Form::digest && !scripts_.pass) return engine::NoScript{};
  scripts_.pass = true;
  return std::nullopt;
}

bool NodeModel::would_pass(const std::string& name, const engine::OwnerId& owner,
                           const std::string& waiter, std::int64_t now_ms) const {
  const auto* const queue = queues_.find(name, now_ms);
  if (queue == nullptr || waiter.empty() || find(name, now_ms) == nullptr) return false;
  const bool is_next = !queue->entries.empty() && queue->entries.front().waiter == waiter;
  const bool ours = holds(name, owner, now_ms);
  return (is_next || planted(Bug::pass_out_of_turn)) &&
         (ours || planted(Bug::pass_without_owner_check));
}

void NodeModel::not_passed(const std::string& name, std::int64_t now_ms, Publisher& publisher) {
  const Order nobody;
  queues_.after_release({name, nobody, now_ms, NodeQueues::Writes::all, &publisher}, true, true);
}

engine::Reply NodeModel::execute(const engine::Command& command, engine::Form form,
                                 std::int64_t now_ms, const ScriptCaller& caller) {
  if (ailment_ == Ailment::loading || ailment_ == Ailment::busy) return *refusal(command);
  if (!caller.in_pass) {
    bool& known = loaded(command);
    if (form == engine::Form::digest && !known) return engine::NoScript{};
    // A script that declares what it does is judged before it is taken in.
    if (auto why = refusal(command)) return *why;
    known = true;
  }
  const std::string& name = *std::visit([](const auto& what) { return what.name; }, command);
  // What a script finds over is deleted, and does not come back when the clock is set back.
  if (ailment_ != Ailment::read_only && find(name, now_ms) == nullptr) locks_.erase(name);
  if (const auto* what = std::get_if<engine::AcquireCommand>(&command)) {
    return acquire(*what, now_ms, caller);
  }
  if (const auto* what = std::get_if<engine::HoldCommand>(&command)) return hold(*what, now_ms);
  if (const auto* what = std::get_if<engine::ForceCommand>(&command)) {
    return force(*what, now_ms, caller);
  }
  return release(std::get<engine::ReleaseCommand>(command), now_ms, caller);
}

NodeQueues::Writes NodeModel::writes() const {
  if (ailment_ == Ailment::none) return NodeQueues::Writes::all;
  return ailment_ == Ailment::full ? NodeQueues::Writes::no_growth : NodeQueues::Writes::none;
}

engine::Reply NodeModel::acquire(const engine::AcquireCommand& command, std::int64_t now_ms,
                                 const ScriptCaller& caller) {
  const bool careful = !planted(Bug::markers_ignored_without_quarantine);
  if (!command.marker_wanted && (marker_ || is_pending(now_ms)) && careful) {
    return refused(Cause::incompatible, "HASMARKER");
  }
  if (command.marker_wanted && !marker_) return refused(Cause::marker_missing, "NOMARKER");
  if (command.marker_wanted && marker_->set != caller.set) {
    return refused(Cause::incompatible, "OTHERSET");
  }
  const Lock* lock = find(*command.name, now_ms);
  if (lock == nullptr) {
    if (turns_away(*command.name, command.owner, now_ms)) return engine::ForcedOut{};
    return take_free(command, now_ms, caller);
  }
  if (lock->foreign_type) return engine::Refused{std::nullopt, true};
  if (lock->owner != command.owner) {
    engine::Refused refused;
    if (lock->ends_ms) refused.expires_in = std::chrono::milliseconds(*lock->ends_ms - now_ms);
    if (caller.order.waiter.empty()) return refused;
    if (ailment_ != Ailment::read_only) queues_.expire(*command.name, now_ms);
    const auto place = queues_.enter({*command.name, caller.order, now_ms, writes()});
    refused.place = place.value_or(0);
    return refused;
  }
  if (planted(Bug::own_already_is_a_grant)) {
    return engine::Granted{fence(engine::stripe_of(*command.name))};
  }
  const std::int64_t ends = now_ms + command.lease.count();
  if (!lock->ends_ms || *lock->ends_ms <= ends) {
    if (ailment_ == Ailment::misconf) return refused(Cause::write_error, "MISCONF");
    if (ailment_ == Ailment::read_only) return refused(Cause::read_only, "READONLY");
    locks_.at(*command.name).ends_ms = ends;
  }
  return engine::AlreadyOurs{};
}

engine::Reply NodeModel::take_free(const engine::AcquireCommand& command, std::int64_t now_ms,
                                   const ScriptCaller& caller) {
  if (queues_.find(*command.name, now_ms) == nullptr) {
    if (ailment_ != Ailment::read_only) queues_.expire(*command.name, now_ms);
    return grant(command, now_ms, caller);
  }
  const NodeQueues::Call call{*command.name, caller.order, now_ms, writes(), caller.publisher};
  if (caller.order.in_order && !caller.passes) {
    if (const auto kept = queues_.kept_for_another(call)) {
      return engine::Refused{.expires_in = std::chrono::milliseconds(kept->for_ms),
                             .place = kept->place};
    }
  }
  engine::Reply reply = grant(command, now_ms, caller);
  if (std::holds_alternative<engine::Granted>(reply)) queues_.after_grant(call);
  return reply;
}

engine::Reply NodeModel::grant(const engine::AcquireCommand& command, std::int64_t now_ms,
                               const ScriptCaller& caller) {
  if (command.floor > engine::floor_limit) {
    return refused(Cause::server_error, "the floor is beyond 2^52");
  }
  // SET is the first command that writes, unless a release stands before it in the same call.
  if (ailment_ == Ailment::misconf) return refused(Cause::write_error, "MISCONF");
  if (ailment_ == Ailment::read_only) return refused(Cause::read_only, "READONLY");
  if (ailment_ == Ailment::full && !caller.wrote) return refused(Cause::out_of_memory, "OOM");
  Token token = 0;
  const std::uint32_t stripe = engine::stripe_of(*command.name);
  if (auto why = raise(stripe, std::max<Token>(command.floor, 1), token)) return *why;
  locks_[*command.name] = {command.owner, 1, now_ms + command.lease.count(), false};
  return engine::Granted{token};
}

std::optional<Unavailable> NodeModel::raise(std::uint32_t stripe, Token floor, Token& token) {
  Fence& fence = fences_.try_emplace(stripe, Token{0}).first->second;
  if (std::holds_alternative<WrongType>(fence)) return refused(Cause::server_error, "WRONGTYPE");
  // The link cannot tell that this error comes before the first write.
  if (std::holds_alternative<Damaged>(fence)) {
    return Unavailable{Cause::server_error, Delivery::unknown, "not an integer"};
  }
  token = std::get<Token>(fence) + 1;
  if (token >= engine::token_limit) {
    return refused(Cause::server_error, "the fence has reached 2^53");
  }
  token = std::max(token, floor);
  fence = token;
  return std::nullopt;
}

/// What the fence is after it was raised to the token, if it could be; 0 otherwise.
Token NodeModel::raised_to(std::uint32_t stripe, Token token) {
  Fence& fence = fences_.try_emplace(stripe, Token{0}).first->second;
  Token* reached = std::get_if<Token>(&fence);
  if (reached == nullptr || *reached >= engine::token_limit) return 0;
  const bool far_apart = token > engine::floor_limit && *reached <= engine::floor_limit &&
                         !planted(Bug::damaged_fence_carried);
  if (!far_apart && token < engine::token_limit) *reached = std::max(*reached, token);
  return *reached;
}

engine::Reply NodeModel::hold(const engine::HoldCommand& command, std::int64_t now_ms) {
  const std::uint32_t stripe = engine::stripe_of(*command.name);
  if (planted(Bug::hold_without_owner_check)) {
    return engine::Held{raised_to(stripe, command.token)};
  }
  const bool away = turns_away(*command.name, command.owner, now_ms);
  if (find(*command.name, now_ms) == nullptr) {
    if (away) return engine::ForcedOut{};
    return engine::Free{};
  }
  Lock& lock = locks_.at(*command.name);
  if (lock.foreign_type) return engine::Taken{.foreign_type = true};
  if (lock.owner != command.owner) {
    if (away) return engine::ForcedOut{};
    return engine::Taken{};
  }
  const std::int64_t ends = now_ms + command.lease.count();
  if (!lock.ends_ms || *lock.ends_ms < ends || planted(Bug::hold_shortens)) lock.ends_ms = ends;
  const bool lowers = command.count < lock.count;
  if (!lowers || !planted(Bug::hold_never_lowers_count)) lock.count = command.count;
  return engine::Held{raised_to(stripe, command.token)};
}

engine::Reply NodeModel::release(const engine::ReleaseCommand& command, std::int64_t now_ms,
                                 const ScriptCaller& caller) {
  const std::string& name = *command.name;
  const bool ours = holds(name, command.owner, now_ms);
  const bool anybodys = find(name, now_ms) != nullptr;
  const bool deletes =
      ours || caller.passes || (anybodys && planted(Bug::release_without_owner_check));
  // In pass.lua it is its own command that fails, and not the script before it runs.
  const NodeQueues::Writes may_write =
      caller.in_pass && (!deletes || writes() == NodeQueues::Writes::none)
          ? writes()
          : NodeQueues::Writes::all;
  if (may_write == NodeQueues::Writes::none) {
    if (deletes && ailment_ == Ailment::misconf) return refused(Cause::write_error, "MISCONF");
    return deletes ? engine::Reply(refused(Cause::read_only, "READONLY")) : engine::NotHeld{};
  }
  if (deletes) locks_.erase(name);
  queues_.expire(name, now_ms);
  if (caller.passes) {
    if (caller.order.manner != 0) {
      static_cast<void>(queues_.enter({name, caller.order, now_ms, may_write, nullptr}));
    }
    return engine::ReleasedHere{};
  }
  const bool queued = queues_.find(name, now_ms) != nullptr;
  const bool waits = !caller.order.waiter.empty();
  if ((deletes || waits) && (queued || caller.order.manner != 0)) {
    queues_.after_release({name, caller.order, now_ms, may_write, caller.publisher}, deletes,
                          find(name, now_ms) == nullptr);
  }
  if (deletes) return engine::ReleasedHere{};
  return engine::NotHeld{};
}

engine::Reply NodeModel::force(const engine::ForceCommand& command, std::int64_t now_ms,
                               const ScriptCaller& caller) {
  const std::string& name = *command.name;
  if (find_forced(name, now_ms) == nullptr) forced_.erase(name);
  ForcedOwners& forced = forced_[name];
  if (std::ranges::count(forced.owners, command.owner) == 0) forced.owners.push_back(command.owner);
  forced.ends_ms = std::max(forced.ends_ms, now_ms + command.keep_out.count());
  if (!holds(name, command.owner, now_ms)) return engine::NotHeld{};
  locks_.erase(name);
  // If it cannot rise it stays as it is.
  Token token = 0;
  static_cast<void>(raise(engine::stripe_of(name), 1, token));
  queues_.expire(name, now_ms);
  if (queues_.find(name, now_ms) != nullptr) {
    const Order nobody;
    queues_.after_release({name, nobody, now_ms, NodeQueues::Writes::all, caller.publisher}, true,
                          true);
  }
  return engine::ReleasedHere{};
}

std::optional<Unavailable> NodeModel::refusal_to_write() const {
  switch (ailment_) {
    case Ailment::loading:
      return refused(Cause::loading, "LOADING");
    case Ailment::busy:
      return refused(Cause::busy, "BUSY");
    case Ailment::misconf:
      return refused(Cause::write_error, "MISCONF");
    case Ailment::read_only:
      return refused(Cause::read_only, "READONLY");
    case Ailment::full:
      return refused(Cause::out_of_memory, "OOM");
    case Ailment::none:
      break;
  }
  return std::nullopt;
}

NodeModel::MarkerReply NodeModel::mark_as_pending(const std::string& id,
                                                  std::chrono::milliseconds kept,
                                                  std::int64_t now_ms) {
  if (marker_) return MarkerReply::marked;
  if (!is_pending(now_ms)) pending_ = id;
  pending_end_ms_ = now_ms + kept.count();
  return MarkerReply::pending;
}

NodeModel::MarkerReply NodeModel::adopt(const Marker& marker, const std::string& promotion,
                                        const std::optional<std::string>& pending,
                                        std::int64_t now_ms) {
  const bool is_new = !marker_;
  if (is_new && pending) {
    const bool was_pending = is_pending(now_ms);
    if (!was_pending) {
      pending_ = marker.id;
      pending_end_ms_ = std::numeric_limits<std::int64_t>::max();  // nobody has set an end
    }
    if (!was_pending || pending_ != *pending) return MarkerReply::pending;
  }
  if (is_new) {
    marker_ = marker;
    marker_->vouched.clear();
    pending_.clear();
  }
  const bool same = marker_->layout == marker.layout && marker_->nodes == marker.nodes &&
                    marker_->max_lease_ms == marker.max_lease_ms;
  if (same && !pending && marker_->set.empty()) marker_->set = marker.set;
  if (same && !promotion.empty() && marker_->set == marker.set) marker_->vouched = promotion;
  return is_new ? MarkerReply::written : MarkerReply::marked;
}

}  // namespace redlock::simulation
