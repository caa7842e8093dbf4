// SPDX-License-Identifier: MIT
// Bugs of scripts, each a change of a script's text: the nodes of the simulator run the text that
// has them. Of one name there may be several, and a bug of the library, too, that goes with them.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "wire/redlock_scripts.hpp"

namespace redlock::simulation {

struct ScriptBug {
  /// In which worlds it can matter.
  enum class Where : std::uint8_t { everywhere, forgetful, forced, waiting, cloned, changing };

  std::string_view name;
  wire::ScriptText script;   ///< a whole one, which others may contain
  std::string_view instead;  ///< of this, which is there once
  std::string_view stands;   ///< there is this
  Where where = Where::everywhere;
};

inline constexpr auto script_bugs = std::to_array<ScriptBug>({
    // The owner is not looked at.
    {"hold_without_owner_check", wire::scripts::hold,
     "  if not held then\n    return {is_there(forced) and -3 or -1}\n  end\n", ""},
    {"former_members_hold", wire::scripts::hold, "local marker = #KEYS % 3 == 1 and",
     "local marker = false and", ScriptBug::Where::changing},
    {"hold_shortens", wire::scripts::hold, "if left < tonumber(lease) then", "if true then"},
    {"hold_never_lowers_count", wire::scripts::hold, "  if held ~= count then",
     "  if tonumber(held) < tonumber(count) then"},
    {"release_without_owner_check", wire::scripts::release, "  had = had == 1\n",
     "  had = redis.call('EXISTS', lock) == 1\n"},
    {"other_set_is_granted", wire::scripts::acquire,
     "elseif '=' .. named[1] .. ':' .. (named[2] or '') ~= membership", "elseif false",
     ScriptBug::Where::forgetful},
    {"force_undone_by_healing", wire::scripts::acquire, "elseif there % 2 == 1 then",
     "elseif false then", ScriptBug::Where::forced},
    {"force_undone_by_healing", wire::scripts::hold, "return redis.pcall('EXISTS', forced) == 1",
     "return false", ScriptBug::Where::forced},
    {"own_already_is_a_grant", wire::scripts::acquire, "  return {4}\n",
     "  return {1, tonumber(call('GET', fence) or 1)}\n"},
    {"own_already_is_a_new_grant", wire::scripts::acquire, "  return {4}\n",
     "  return {1, call('INCR', fence)}\n", ScriptBug::Where::cloned},
    {"turn_given_silently", wire::scripts::line, "elseif how == 'w' then", "elseif false then",
     ScriptBug::Where::waiting},
    {"release_wakes_everybody", wire::scripts::line,
     "    local length\n    for _ = 1, most_in_a_call do\n",
     "    local length\n"
     "    for _, waiter in ipairs(redis.call('ZRANGE', line, '0', '-1')) do\n"
     "      local client, number = string.match(waiter, '^(%x+):(%d+)$')\n"
     "      redis.call('PUBLISH', 'redlock:wake:' .. client, number .. ' 0')\n"
     "    end\n"
     "    for _ = 1, most_in_a_call do\n",
     ScriptBug::Where::waiting},
    {"dead_head_kept", wire::scripts::line,
     "        if not how then -- it may come back, with its place\n",
     "        how = how or 'w'\n        if not how then\n", ScriptBug::Where::waiting},
    {"turn_not_passed_on", wire::scripts::line, "      if redis.call('EXISTS', lock) == 0 then",
     "      if false then", ScriptBug::Where::waiting},
    {"runner_up_let_in", wire::scripts::line, "number .. ' ' .. (length or 0)", "number .. ' 0'",
     ScriptBug::Where::waiting},
    {"runner_up_let_in", wire::scripts::line, "    local other, ends = read_turn(text, now_ms)",
     "    if waiter and redis.call('ZRANK', line, waiter) == 1 then\n"
     "      return nil\n"
     "    end\n"
     "    local other, ends = read_turn(text, now_ms)",
     ScriptBug::Where::waiting},
    // The place is that of the node's clock when it was told, not of when the call began.
    {"waited_time_overlooked", wire::scripts::line, "string.format('%.0f', now - waited)",
     "string.format('%.0f', now)", ScriptBug::Where::waiting},
    {"pass_without_owner_check", wire::scripts::pass, "redis.pcall('HEXISTS', lock, owner) == 1",
     "redis.pcall('EXISTS', lock) == 1", ScriptBug::Where::waiting},
    {"record_left_in_line", wire::scripts::line,
     "redis.call('HDEL', waiters, waiter, '@' .. waiter)\n", "\n", ScriptBug::Where::waiting},
    {"waiter_forgotten_late", wire::scripts::line, "how == 'w' and 2500", "how == 'w' and 25000",
     ScriptBug::Where::waiting},
    {"line_without_end", wire::scripts::line, "redis.pcall('PEXPIRE', line, '3000')", "0",
     ScriptBug::Where::waiting},
    {"line_of_one_without_rights", wire::scripts::line,
     "redis.call('ZREM', line, waiter)\n      end", "end", ScriptBug::Where::waiting},
    {"turn_far_ahead_counts", wire::scripts::line, "ends - now_ms <= longest_turn and ends or 0",
     "ends", ScriptBug::Where::everywhere},
    {"all_dead_passed_over", wire::scripts::line, "local most_in_a_call = 64",
     "local most_in_a_call = 1000000", ScriptBug::Where::waiting},
    {"dead_waiters_kept", wire::scripts::line, "if not place or place < few then", "if true then",
     ScriptBug::Where::waiting},
    {"pending_id_not_kept", wire::scripts::pending, "redis.call('HSET', notes, 'pending', ARGV[1])",
     "redis.call('HSET', notes, 'pending', '')", ScriptBug::Where::forgetful},
    {"note_of_one_without_rights", wire::scripts::pending, "    redis.call('DEL', notes)\n", "",
     ScriptBug::Where::forgetful},
    {"new_note_of_one_without_rights", wire::scripts::adopt, "      redis.call('DEL', notes)\n", "",
     ScriptBug::Where::forgetful},
    {"marker_never_given_back", wire::scripts::adopt, "if waits ~= pending then", "if true then",
     ScriptBug::Where::forgetful},
    {"forced_out_for_longer", wire::scripts::force, "redis.call('SET', forced, '', 'PX', ms)",
     "redis.call('SET', forced, '', 'PX', ms * 2)", ScriptBug::Where::forced},
    {"forced_key_with_a_text", wire::scripts::force, "redis.call('SET', forced, '', 'PX', ms)",
     "redis.call('SET', forced, ms, 'PX', ms)", ScriptBug::Where::forced},
    {"pass_out_of_turn", wire::scripts::pass, "front[1] == heir and", "front[1] and",
     ScriptBug::Where::waiting},
    // With those of the library.
    {"markers_ignored_without_quarantine", wire::scripts::acquire,
     "if call('EXISTS', marker, notes) > 0 then", "if false then", ScriptBug::Where::forgetful},
});

/// Of this thread; empty: none.
inline thread_local std::string_view the_planted_script_bug;

/// The text as a node runs it.
inline std::string with_planted_bugs(std::string_view text) {
  std::string changed(text);
  for (const ScriptBug& bug : script_bugs) {
    const std::size_t begin = text.find(bug.script.text);
    if (bug.name != the_planted_script_bug || begin == std::string_view::npos) continue;
    const std::size_t at = changed.find(bug.instead, begin);
    changed.replace(at, bug.instead.size(), bug.stands);
  }
  return changed;
}

/// The same without a copy where no bug is planted.
template <typename Use>
auto with_planted_bugs(std::string_view text, Use&& use) {
  if (the_planted_script_bug.empty()) return use(text);
  const std::string changed = with_planted_bugs(text);
  return use(std::string_view(changed));
}

}  // namespace redlock::simulation
