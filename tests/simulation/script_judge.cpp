// SPDX-License-Identifier: MIT
#include "simulation/script_judge.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulation/commands.hpp"
#include "simulation/documented.hpp"
#include "simulation/invariants.hpp"
#include "simulation/promises.hpp"
#include "wire/key_layout.hpp"

namespace redlock::simulation {
namespace {

using wire::redlock_layout;

constexpr std::int64_t limit = std::int64_t{1} << 53U;  // tokens end below it

/// None: it is no number in decimal digits that Redis counts up exactly.
std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const bool counts = read_integer(text, number) && number >= 0 && number < limit;
  return counts ? std::optional(number) : std::nullopt;
}

/// The integers of a reply, of arrays and of errors, one behind the other.
class Answers {
 public:
  explicit Answers(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] char kind() const { return rest_.empty() ? '\0' : rest_.front(); }
  [[nodiscard]] std::string_view line() const { return rest_.substr(0, rest_.find("\r\n")); }
  std::int64_t take() {
    const std::string_view line = this->line();
    std::int64_t number = 0;
    std::from_chars(line.data() + 1, line.data() + line.size(), number);
    rest_.remove_prefix(std::min(rest_.size(), line.size() + 2));
    return number;
  }
  /// Those of an array, or a single one. None for an error.
  std::optional<std::vector<std::int64_t>> take_all() {
    std::vector<std::int64_t> numbers;
    if (kind() == '-') {
      take();
      return std::nullopt;
    }
    for (std::int64_t left = kind() == '*' ? take() : 1; left > 0; --left) {
      numbers.push_back(take());
    }
    return numbers;
  }

 private:
  std::string_view rest_;
};

class ScriptJudge {
 public:
  using Words = simulation::Words;

  ScriptJudge(const ScriptRun& run, const NodeData& after, std::int64_t now_ms, bool rules)
      : run_(run),
        before_(*run.before),
        after_(after),
        now_(now_ms),
        rules_(rules),
        replies_(run.reply) {}

  void judge() {
    if (run_.script == "acquire") {
      acquire(run_.keys, run_.arguments, false);
    } else if (run_.script == "hold") {
      hold();
    } else if (run_.script == "release") {
      release();
    } else if (run_.script == "pass") {
      pass();
    } else if (run_.script == "force") {
      force();
    } else if (run_.script == "leave") {
      leave();
    } else if (run_.script == "pending" || run_.script == "adopt") {
      mark();
    } else {
      only_read();
    }
  }

 private:
  void require(bool kept, const char* rule) const {
    if (kept || (!rules_ && promise_of(rule) == Promise::none)) return;
    throw Violation{rule, fmt::format("{} {} | {} -> {}", run_.script, fmt::join(run_.keys, " "),
                                      fmt::join(run_.arguments, " "), run_.reply)};
  }
  /// What the script could not do all of, as its node refuses some commands now, is not judged.
  void require_if_undisturbed(bool kept, const char* rule) const {
    require(kept || run_.disturbed, rule);
  }
  [[nodiscard]] const Keyspace::Entry* was(std::string_view key) const {
    return before_.keys.find(key, now_);
  }
  [[nodiscard]] const Keyspace::Entry* is(std::string_view key) const {
    return after_.keys.find(key, now_);
  }
  [[nodiscard]] static bool had(const Keyspace::Entry* lock, std::string_view owner) {
    const Hash* const hash = lock == nullptr ? nullptr : std::get_if<Hash>(&lock->value);
    return hash != nullptr && hash->find(owner) != nullptr;
  }
  /// None: there is none that counts.
  [[nodiscard]] static std::optional<std::int64_t> fence(const Keyspace::Entry* entry) {
    const auto* const text = entry == nullptr ? nullptr : std::get_if<std::string>(&entry->value);
    return text == nullptr ? std::nullopt : number_of(*text);
  }
  [[nodiscard]] static std::string_view field(const Keyspace::Entry* entry, std::string_view name) {
    const Hash* const hash = entry == nullptr ? nullptr : std::get_if<Hash>(&entry->value);
    const std::string* const text = hash == nullptr ? nullptr : hash->find(name);
    return text == nullptr ? std::string_view() : *text;
  }
  [[nodiscard]] static std::int64_t argument(Words arguments, std::size_t at) {
    return number_of(arguments[at]).value_or(0);
  }
  /// The reply, if it is one text.
  [[nodiscard]] std::string_view text() const {
    std::string_view text = run_.reply;
    if (!text.starts_with('$') && !text.starts_with('+')) return {};
    if (text.starts_with('$')) text.remove_prefix(std::min(text.size(), text.find('\n')));
    return text.substr(1, text.size() - std::min<std::size_t>(text.size(), 3));
  }
  /// Of one that was there it is not shortened.
  void require_lasting(std::string_view key, std::int64_t lease) const {
    const auto* const old = was(key);
    const auto* const entry = is(key);
    const std::int64_t ends = std::max(now_ + lease, old == nullptr ? 0 : old->ends_ms.value_or(0));
    require(entry != nullptr && entry->ends_ms == ends,
            "a script makes a key last as long as it was asked to");
  }

  void acquire(Words keys, Words arguments, bool given_back) {
    const std::string_view lock = keys[0];
    const std::string_view owner = arguments[0];
    const std::string_view order = arguments.size() > 5 ? arguments[5] : std::string_view();
    const bool waits = order == "w" || order == "p";
    const auto* const held = given_back ? nullptr : was(lock);
    const auto answers = replies_.take_all();
    if (!answers) {
      require(given_back || had(is(lock), owner) == had(was(lock), owner),
              "a script that fails leaves the lock as it was");
      failed(keys, arguments);
      return;
    }
    const std::int64_t code = answers->front();
    const bool turned_away = was(keys[2]) != nullptr;
    const bool theirs = held != nullptr && std::holds_alternative<Hash>(held->value);
    const bool ours = had(held, owner);
    const bool was_free = held == nullptr && !turned_away;
    const bool lined_up = was(keys[3]) != nullptr;
    require(code == 1   ? was_free
            : code == 0 ? (theirs && !ours) || (was_free && lined_up && !order.empty())
            : code == 2 ? held != nullptr && !theirs
            : code == 3 ? held == nullptr && turned_away
                        : code == 4 && ours,
            "a script replies what it found");
    if (code == 4) require_lasting(lock, argument(arguments, 1));
    if (code == 1) granted(keys, arguments, (*answers)[1]);
    if (code == 0 && was_free) {
      require((*answers)[1] <= documented::longest_turn.count(),
              "a free lock is kept for half a second at most");
    }
    // With the grant, the next call of the client may have the place; and the release before it in
    // the same script may have taken the client out.
    const bool passed_on = waits && code == 1 && !arguments[9].empty();
    const bool anew = waits && arguments.size() > 10 && arguments[10] == "1";
    judge_line(lock, anew || passed_on || (waits && given_back) ? arguments[6] : "");
    if (code == 1 && lined_up) {
      require_if_undisturbed(!after_.turn(NodeData::name_of(lock), now_), "a grant ends the turn");
    }
    if (code == 1 && waits && !passed_on) require_place(arguments[6], false);
    const bool known = answers->size() > 2;
    const bool stays = passed_on || (waits && code == 0);
    if (stays) require_if_undisturbed(known, "a waiter that asks is in the line");
    if (stays && known) {
      stands(lock, arguments[6], order, (*answers)[2]);
      joins(keys, arguments, (*answers)[2]);
    }
  }

  /// Tokens must last: what grants nothing uses up none.
  void failed(Words keys, Words arguments) const {
    const auto* const old = was(keys[1]);
    const auto* const entry = is(keys[1]);
    // A lock that got no end was granted before, and is taken back.
    const bool had_it = run_.reply.find("(PEXPIRE)") != std::string_view::npos;
    const bool same = old == nullptr ? entry == nullptr : entry != nullptr && *entry == *old;
    require_if_undisturbed(same || had_it, "a script that fails leaves the fence as it was");
    const auto floor = static_cast<engine::Token>(argument(arguments, 2));
    const bool too_high = run_.reply.find("the floor is beyond") != std::string_view::npos;
    require(!too_high || floor > documented::highest_floor, "a node takes every floor up to 2^52");
  }

  void granted(Words keys, Words arguments, std::int64_t token) const {
    const auto* const lock = is(keys[0]);
    require(had(lock, arguments[0]) && field(lock, arguments[0]) == "1" &&
                lock->ends_ms == now_ + argument(arguments, 1),
            "a lock that is granted is its owner's, once, for one lease");
    const std::int64_t before = fence(was(keys[1])).value_or(0);
    require(token > before && token >= argument(arguments, 2) && token < limit &&
                fence(is(keys[1])) == token,
            "a token is the fence of the node, and larger than before");
    const std::string_view membership = arguments.size() > 4 ? arguments[4] : std::string_view();
    if (keys.size() < 6 || membership.empty()) return;
    const auto* const marker = was(keys[5]);
    require(membership == "-" ? marker == nullptr && was(keys[6]) == nullptr
                              : marker != nullptr && named_by(marker) == membership,
            "a node grants nothing to clients of another set");
  }

  [[nodiscard]] static std::string named_by(const Keyspace::Entry* marker) {
    return fmt::format("={}:{}", field(marker, "set"), field(marker, "epoch"));
  }

  void stands(std::string_view lock, std::string_view waiter, std::string_view order,
              std::int64_t place) const {
    const auto waiters = after_.waiters(NodeData::name_of(lock), now_);
    const auto its = std::ranges::find(waiters, waiter, &NodeData::Waiter::name);
    require(its != waiters.end() && its - waiters.begin() == place,
            "a waiter learns how many are before it");
    if (its == waiters.end()) return;
    const std::int64_t lives =
        documented::waiter_forgotten_within.count() / (order == "w" ? 1 : 10);
    require(its->alive_until_ms >= now_ + lives * 4 / 5, "a waiter that asks is in the line");
  }

  /// What is known of it for people; and two of many before it were looked at: of two neighbours
  /// one at least was not alive, so it is gone.
  void joins(Words keys, Words arguments, std::int64_t place) const {
    const std::string_view name = NodeData::name_of(keys[0]);
    const std::string_view waiter = arguments[6];
    const auto then = before_.waiters(name, now_);
    const auto waiters = after_.waiters(name, now_);
    const bool is_new = std::ranges::count(then, waiter, &NodeData::Waiter::name) == 0;
    const std::string about = fmt::format("@{}", waiter);
    require_if_undisturbed(!is_new || field(is(keys[4]), about) == arguments[3],
                           "a node knows of a waiter who it is, for people");
    if (place < documented::not_looked_at || waiters.size() < then.size() + (is_new ? 1 : 0))
      return;
    const auto ahead = std::span(waiters).first(static_cast<std::size_t>(place));
    const auto both_live = [&](const NodeData::Waiter& one, const NodeData::Waiter& next) {
      return one.alive_until_ms > now_ && next.alive_until_ms > now_;
    };
    require_if_undisturbed(std::ranges::adjacent_find(ahead, both_live) != ahead.end(),
                           "of many waiters those that are dead are taken out");
  }

  void hold() {
    if (replies_.kind() == '-') return;
    if (run_.keys.size() % 3 == 1) {
      const auto* const marker = was(run_.keys.back());
      require(marker == nullptr || named_by(marker) == run_.arguments.back(),
              "a node lengthens no lease of former members");
    }
    replies_.take();
    for (std::size_t i = 0; 3 * i + 2 < run_.keys.size(); ++i) {
      const Words keys = run_.keys.subspan(3 * i, 3);
      const Words arguments = run_.arguments.subspan(4 * i, 4);
      // Redis 7.0 does not say which command the user may not run.
      require(replies_.kind() != '-' || replies_.line().ends_with(')'),
              "an error in place of a lock names the command");
      const auto answers = replies_.take_all();
      const bool alone = std::ranges::count(run_.keys, keys[0]) == 1;
      if (answers && alone) confirmed(keys, arguments, *answers);
    }
  }

  void confirmed(Words keys, Words arguments, const std::vector<std::int64_t>& answers) const {
    const auto* const held = was(keys[0]);
    const bool ours = had(held, arguments[0]);
    const bool foreign = held != nullptr && !std::holds_alternative<Hash>(held->value);
    const bool turned_away = was(keys[2]) != nullptr;
    const std::int64_t code = ours ? 1 : foreign ? -2 : turned_away ? -3 : held == nullptr ? 0 : -1;
    require(answers.front() == code, "a script replies what it found");
    if (!ours) return;
    require(field(is(keys[0]), arguments[0]) == arguments[1],
            "a hold sets the count of its message");
    require_lasting(keys[0], argument(arguments, 3));
    if (std::ranges::count(run_.keys, keys[1]) > 1) return;  // the other lock may have raised it
    const auto before = fence(was(keys[1]));
    const bool counts = before || was(keys[1]) == nullptr;
    const std::int64_t token = argument(arguments, 2);
    require(answers[1] == (counts ? std::max(before.value_or(0), token) : 0) &&
                (!counts || fence(is(keys[1])).value_or(0) == answers[1]),
            "a hold raises the fence to its token, and replies it");
  }

  void release() {
    if (replies_.kind() == '-') return;
    replies_.take();
    for (std::size_t i = 0; 3 * i + 2 < run_.keys.size(); ++i) {
      const auto answers = replies_.take_all();
      if (!answers || std::ranges::count(run_.keys, run_.keys[3 * i]) > 1) continue;
      given_back(run_.keys[3 * i], run_.arguments[2 * i], answers->front() == 1);
      const bool keeps_place = run_.keys.size() == 3 && run_.arguments.size() > 2;
      const bool anew = run_.arguments.size() > 7 && run_.arguments[7] == "1";
      judge_line(run_.keys[3 * i], keeps_place && anew ? run_.arguments[2] : "");
      if (keeps_place) require_place(run_.arguments[2], true);
    }
    const std::uint32_t most = run_.arguments[1] == "1" ? 1 : 2;
    require(run_.keys.size() > 3 || run_.told <= most,
            "a release tells no more waiters than it is asked to");
  }

  void given_back(std::string_view lock, std::string_view owner, bool had_it) const {
    require(had_it == had(was(lock), owner) && !had(is(lock), owner),
            "a script replies what it found");
    if (had_it) require_turn(lock);
  }

  void pass() {
    if (replies_.kind() == '-') return;
    replies_.take();
    require(replies_.kind() != '*', "a script replies what it found");  // one number, or an error
    const auto answers = replies_.take_all();
    if (!answers) return;
    const bool same_owner = run_.arguments[0] == run_.arguments[2];  // of two copies of a process
    if (!same_owner) given_back(run_.keys[0], run_.arguments[0], answers->front() == 1);
    acquire(run_.keys.subspan(3), run_.arguments.subspan(2), answers->front() == 1);
  }

  void force() {
    const auto answers = replies_.take_all();
    if (!answers) return;
    require_lasting(run_.keys[2], argument(run_.arguments, 1));
    given_back(run_.keys[0], run_.arguments[0], answers->front() == 1);
    judge_line(run_.keys[0], "");
  }

  void leave() {
    if (replies_.kind() == '-') return;
    const bool stays = run_.arguments.size() > 1;
    judge_line(run_.keys[0], run_.arguments[0]);
    if (was(run_.keys[1]) != nullptr) require_place(run_.arguments[0], stays);
    const auto turn = before_.turn(NodeData::name_of(run_.keys[0]), now_);
    if (turn && turn->waiter == run_.arguments[0]) require_turn(run_.keys[0]);
  }

  // --- lines

  [[nodiscard]] std::vector<NodeData::Waiter> alive(const NodeData& data,
                                                    std::string_view name) const {
    auto waiters = data.waiters(name, now_);
    std::erase_if(waiters, [&](const auto& waiter) { return waiter.alive_until_ms <= now_; });
    return waiters;
  }

  /// Somebody who waits for a lock that is free now has its turn.
  void require_turn(std::string_view lock) const {
    const std::string_view name = NodeData::name_of(lock);
    if (is(lock) != nullptr || alive(after_, name).empty()) return;
    const std::size_t left = after_.waiters(name, now_).size();
    if (before_.waiters(name, now_).size() >= left + documented::passed_over) return;
    const auto turn = after_.turn(name, now_);
    require_if_undisturbed(turn && turn->until_ms > now_, "a release gives a waiter its turn");
  }

  void require_place(std::string_view waiter, bool stays) const {
    const auto waiters = after_.waiters(NodeData::name_of(run_.keys[0]), now_);
    const auto there = std::ranges::count(waiters, waiter, &NodeData::Waiter::name);
    require_if_undisturbed(there == (stays ? 1 : 0),
                           stays ? "a call that keeps its place is in the line"
                                 : "a call that is granted the lock or leaves is in no line");
  }

  /// `anew`: the waiter that may stand there for a later call.
  void judge_line(std::string_view lock, std::string_view anew) const {
    const std::string_view name = NodeData::name_of(lock);
    const auto after = after_.waiters(name, now_);
    // One that counts as dead may be taken out, and come back behind another delay of messages.
    for (const auto& was_there : alive(before_, name)) {
      const auto same = std::ranges::find(after, was_there.name, &NodeData::Waiter::name);
      require(same == after.end() || same->place <= was_there.place || same->name == anew,
              "no waiter is moved back");
    }
    // A pass may do both of its parts. Two more by their place, and the caller.
    const std::size_t most = documented::passed_over * (run_.script == "pass" ? 2 : 1) + 3;
    require(before_.waiters(name, now_).size() <= after.size() + most,
            "a call passes over 64 waiters at most");
    // A clock that is set back may revive one of the two keys alone.
    require_if_undisturbed(after_.line_is_whole(name, now_) || !before_.line_is_whole(name, now_),
                           "a line holds only what its waiters need");
    const auto turn = after_.turn(name, now_);
    const auto before_it = before_.turn(name, now_);
    if (!turn || turn == before_it) return;
    const auto its = std::ranges::find(after, turn->waiter, &NodeData::Waiter::name);
    const bool used_none = before_it && before_it->waiter == turn->waiter &&
                           before_it->until_ms <= now_ && anew != turn->waiter;
    require(is(lock) == nullptr && its != after.end() && its->alive_until_ms > now_ && !used_none,
            "a turn is for a waiter that lives, and for a free lock");
  }

  // --- markers

  void mark() const {
    const std::string_view marker = run_.keys[0];
    const std::string_view notes = run_.keys[1];
    const std::string_view pending = field(was(notes), "pending");
    if (replies_.kind() == '-') {
      require(pending.empty() || field(is(notes), "pending") == pending,
              "a node that forgot keeps its id until it has a marker");
      return require_if_undisturbed(run_.script != "pending", "a node without a marker is pending");
    }
    const bool written = was(marker) == nullptr && is(marker) != nullptr;
    require(written ? run_.script == "adopt" && is(notes) == nullptr
                    : pending.empty() || field(is(notes), "pending") == pending,
            "a node that forgot keeps its id until it has a marker");
    const std::string_view waits = field(is(notes), "pending");
    const bool asked = run_.script == "pending" || run_.arguments.size() > 11;  // by a client
    require(!asked || is(marker) != nullptr || (!waits.empty() && text() == waits),
            "a node without a marker is pending");
    if (run_.script == "adopt") judge_size();
    const bool vouched = field(is(marker), "vouched") != field(was(marker), "vouched");
    if (run_.script == "pending" || !vouched) return;
    require(field(is(marker), "layout") == run_.arguments[3] &&
                field(is(marker), "nodes") == run_.arguments[4] &&
                field(is(marker), "max_lease_ms") == run_.arguments[5] &&
                field(is(marker), "set") == run_.arguments[6],
            "a promotion is vouched for in a marker that agrees");
  }

  /// A set changes the number of its members once in one longest lease, by the node's clock.
  void judge_size() const {
    const auto* const old = was(run_.keys[0]);
    const auto* const marker = is(run_.keys[0]);
    const auto resized = std::min(number_of(field(old, "resized")).value_or(0), now_);
    const bool refused = text().starts_with("resized ");
    const bool changed =
        field(old, "set") == field(marker, "set") && field(old, "nodes") != field(marker, "nodes");
    require(refused ? now_ < resized + argument(run_.arguments, 10)
                    : !changed || now_ >= resized + argument(run_.arguments, 5),
            "the number of members is changed once in one longest lease");
  }

  // --- all others

  void only_read() const {
    for (const std::string_view key : run_.keys) {
      const auto* const old = was(key);
      const auto* const entry = is(key);
      require(old == nullptr ? entry == nullptr : entry != nullptr && *entry == *old,
              "a script that is not judged otherwise changes nothing");
    }
  }

  const ScriptRun& run_;
  const NodeData& before_;
  const NodeData& after_;
  std::int64_t now_;
  bool rules_;
  Answers replies_;
};

}  // namespace

void judge_script(const ScriptRun& run, const NodeData& after, std::int64_t now_ms, bool rules) {
  ScriptJudge(run, after, now_ms, rules).judge();
}

}  // namespace redlock::simulation
