// SPDX-License-Identifier: MIT
// Keys and arguments in the order that the comments at the head of the scripts give. Token 2^53 and
// beyond, and negative numbers, are nothing that a script answers.
#include "wire/script.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "wire/redlock_scripts.hpp"

namespace redlock::wire {
namespace {

using engine::AcquireCommand;
using engine::Command;
using engine::ForceCommand;
using engine::HoldCommand;
using engine::LeaveCommand;
using engine::Place;
using engine::ReleaseCommand;

void name_key(CommandWriter& out, std::string_view prefix, const engine::Name& name) {
  out.bulk({prefix, "{", *name, "}"});
}

void lock_and_fence(CommandWriter& out, const CallContext& context, const engine::Name& name) {
  name_key(out, context.layout.lock_prefix, name);
  std::array<char, KeyLayout::longest_fence> fence;
  out.bulk(context.layout.fence(*name, fence));
}

void forced_key(CommandWriter& out, const CallContext& context, const engine::Name& name,
                const engine::OwnerId& owner) {
  const auto digits = engine::hex_digits(owner);
  out.bulk({context.layout.forced_prefix, "{", *name,
            "}:", std::string_view(digits.data(), digits.size())});
}

void line_keys(CommandWriter& out, const CallContext& context, const engine::Name& name) {
  name_key(out, context.layout.line_prefix, name);
  name_key(out, context.layout.waiters_prefix, name);
}

CommandWriter& owner(CommandWriter& out, const engine::OwnerId& id) {
  const auto digits = engine::hex_digits(id);
  return out.bulk(std::string_view(digits.data(), digits.size()));
}

std::uint64_t count_of(std::chrono::milliseconds lease) {
  assert(lease.count() > 0);
  return static_cast<std::uint64_t>(lease.count());
}

std::optional<engine::Token> token_at(const ReplyView& answer, std::size_t index) {
  std::int64_t value = 0;
  if (!answer.integer_at(index, value)) return {};
  if (value < 0 || static_cast<engine::Token>(value) >= engine::token_limit) return {};
  return static_cast<engine::Token>(value);
}

std::uint64_t whole_us(engine::Duration time) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(std::chrono::floor<std::chrono::microseconds>(time).count(), 0));
}

/// A client that nodes cannot name stands in no line.
bool stands(const CallContext& context, const Place& place) {
  return place.line != 0 && !context.client.empty();
}

void waiter(CommandWriter& out, const CallContext& context, std::uint64_t line) {
  std::array<char, 20> digits;
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), line).ptr;
  out.bulk({context.client, ":", {digits.data(), static_cast<std::size_t>(end - digits.data())}});
}

std::string_view manner(const CallContext& context) {
  return context.subscribed ? "w" : "p";
}

/// How long the call has waited, and its turns. A waiter that polls asks about 60 ms after an
/// answer, at the latest.
void waited_and_turn(CommandWriter& out, const CallContext& context, const Place& place) {
  constexpr std::chrono::milliseconds comes_later(60);
  auto turn = std::chrono::ceil<std::chrono::milliseconds>(place.turn);
  if (!context.subscribed) turn += comes_later;
  out.number(whole_us(place.waited)).number(static_cast<std::uint64_t>(turn.count()));
}

/// Of a call that keeps a place in a line without asking.
void manner_and_place(CommandWriter& out, const CallContext& context, const Place& place,
                      engine::Instant since) {
  out.bulk(manner(context));
  waited_and_turn(out, context, place);
  out.bulk(context.holder != nullptr ? context.holder->since(since) : std::string_view());
  if (place.is_new) out.bulk("1");
}

// acquire

void acquire_keys(CommandWriter& out, const CallContext& context, const Command& command) {
  const auto& what = std::get<AcquireCommand>(command);
  lock_and_fence(out, context, what.name);
  forced_key(out, context, what.name, what.owner);
  line_keys(out, context, what.name);
  out.bulk(context.layout.marker);
  if (!what.marker_wanted) out.bulk(context.layout.notes);
}

void acquire_arguments(CommandWriter& out, const CallContext& context, const Command& command) {
  const auto& what = std::get<AcquireCommand>(command);
  owner(out, what.owner).number(count_of(what.lease));
  out.number(std::max<engine::Token>(what.floor, 1));
  out.bulk(context.holder != nullptr ? context.holder->since(what.since) : std::string_view());
  if (what.marker_wanted) {
    out.bulk({"=", context.membership});
  } else {
    out.bulk("-");
  }
  if (!what.in_order || !stands(context, what.place)) {
    out.bulk(what.in_order ? "0" : "");
    return;
  }
  out.bulk(manner(context));
  waiter(out, context, what.place.line);
  waited_and_turn(out, context, what.place);
  if (what.next_waited) {
    out.number(whole_us(*what.next_waited));
  } else {
    out.bulk("");
  }
  if (what.place.is_new) out.bulk("1");
}

/// Nobody has so many waiters.
bool read_place(const ReplyView& answer, std::size_t index, std::uint32_t& place) {
  std::int64_t value = 0;
  if (!answer.integer_at(index, value) || value < 0 || value > UINT32_MAX) return false;
  place = static_cast<std::uint32_t>(value);
  return true;
}

std::optional<engine::Reply> read_grant(const ReplyView& answer) {
  const auto token = token_at(answer, 1);
  if (!token || *token == 0) return {};
  engine::Granted granted{*token};
  std::uint32_t place = 0;
  if (answer.size() > 2) {
    if (!read_place(answer, 2, place)) return {};
    granted.next_place = place;
  }
  return granted;
}

std::optional<engine::Reply> read_acquire(const ReplyView& answer) {
  std::int64_t code = 0;
  if (!answer.integer_at(0, code)) return {};
  if (code == 1) return read_grant(answer);
  if (code == 2) return engine::Refused{.expires_in = {}, .foreign_type = true};
  if (code == 3) return engine::ForcedOut{};
  if (code == 4) return engine::AlreadyOurs{};
  std::int64_t left = 0;
  if (code != 0 || !answer.integer_at(1, left) || left < -1) return {};
  engine::Refused refused;
  if (left >= 0) refused.expires_in = std::chrono::milliseconds(left);
  if (answer.size() > 2 && !read_place(answer, 2, refused.place)) return {};
  return refused;
}

// hold

void hold_keys(CommandWriter& out, const CallContext& context, const Command& command) {
  const auto& what = std::get<HoldCommand>(command);
  lock_and_fence(out, context, what.name);
  forced_key(out, context, what.name, what.owner);
}

void hold_arguments(CommandWriter& out, const CallContext& /*context*/, const Command& command) {
  const auto& what = std::get<HoldCommand>(command);
  owner(out, what.owner).number(what.count).number(what.token).number(count_of(what.lease));
}

std::optional<engine::Reply> read_hold(const ReplyView& answer) {
  std::int64_t code = 0;
  if (!answer.integer_at(0, code)) return {};
  if (code == 1) {
    const auto fence = token_at(answer, 1);
    if (!fence) return {};
    return engine::Held{*fence};
  }
  if (code == 0) return engine::Free{};
  if (code == -1) return engine::Taken{};
  if (code == -2) return engine::Taken{.foreign_type = true};
  if (code == -3) return engine::ForcedOut{};
  return {};
}

// release

void release_keys(CommandWriter& out, const CallContext& context, const Command& command) {
  const engine::Name& name = std::get<ReleaseCommand>(command).name;
  name_key(out, context.layout.lock_prefix, name);
  line_keys(out, context, name);
}

void release_arguments(CommandWriter& out, const CallContext& context, const Command& command) {
  const auto& what = std::get<ReleaseCommand>(command);
  owner(out, what.owner).bulk(what.first_only ? "1" : "2");
  if (!stands(context, what.place)) return;
  waiter(out, context, what.place.line);
  manner_and_place(out, context, what.place, what.since);
}

std::optional<engine::Reply> released_or_not(std::int64_t code) {
  if (code == 1) return engine::ReleasedHere{};
  if (code == 0) return engine::NotHeld{};
  return {};
}

std::optional<engine::Reply> read_release(const ReplyView& answer) {
  return answer.is(ReplyView::Kind::integer) ? released_or_not(answer.integer()) : std::nullopt;
}

// force

void force_keys(CommandWriter& out, const CallContext& context, const Command& command) {
  const auto& what = std::get<ForceCommand>(command);
  lock_and_fence(out, context, what.name);
  forced_key(out, context, what.name, what.owner);
  line_keys(out, context, what.name);
  out.bulk(context.layout.marker);
}

void force_arguments(CommandWriter& out, const CallContext& /*context*/, const Command& command) {
  const auto& what = std::get<ForceCommand>(command);
  owner(out, what.owner).number(count_of(what.keep_out)).number(count_of(what.longest_lease));
}

std::optional<engine::Reply> read_force(const ReplyView& answer) {
  std::int64_t code = 0;
  if (!answer.integer_at(0, code)) return {};
  return released_or_not(code);
}

// leave

void leave_keys(CommandWriter& out, const CallContext& context, const Command& command) {
  const engine::Name& name = std::get<LeaveCommand>(command).name;
  name_key(out, context.layout.lock_prefix, name);
  line_keys(out, context, name);
}

void leave_arguments(CommandWriter& out, const CallContext& context, const Command& command) {
  const auto& what = std::get<LeaveCommand>(command);
  waiter(out, context, what.line);
  if (stands(context, what.next)) manner_and_place(out, context, what.next, what.since);
}

std::optional<engine::Reply> read_leave(const ReplyView& answer) {
  if (!answer.is(ReplyView::Kind::integer) || answer.integer() != 0) return {};
  return engine::LineLeft{};
}

constexpr std::array<ScriptRow, script_count> rows{
    // Not at maxmemory: a full node can then still say that somebody else has the lock, which is a
    // vote; with the flag it would be refused before it looks.
    ScriptRow{.script = script_for<AcquireCommand>,
              .source = scripts::acquire,
              .in_order = true,
              .loaded = true,
              .write_keys = acquire_keys,
              .write_arguments = acquire_arguments,
              .read = read_acquire},
    ScriptRow{.script = script_for<HoldCommand>,
              .source = scripts::hold,
              .loaded = true,
              .at_maxmemory = true,
              .many_in_a_call = true,
              .names_members = true,
              .write_keys = hold_keys,
              .write_arguments = hold_arguments,
              .read = read_hold},
    ScriptRow{.script = script_for<ReleaseCommand>,
              .source = scripts::release,
              .in_order = true,
              .loaded = true,
              .at_maxmemory = true,
              .many_in_a_call = true,
              .write_keys = release_keys,
              .write_arguments = release_arguments,
              .read = read_release},
    ScriptRow{.script = script_for<ForceCommand>,
              .source = scripts::force,
              .in_order = true,
              .at_maxmemory = true,
              .write_keys = force_keys,
              .write_arguments = force_arguments,
              .read = read_force},
    ScriptRow{.script = script_for<LeaveCommand>,
              .source = scripts::leave,
              .in_order = true,
              .loaded = true,
              .at_maxmemory = true,
              .write_keys = leave_keys,
              .write_arguments = leave_arguments,
              .read = read_leave},
    // Each of its two commands is written and read by the row of its own.
    ScriptRow{.script = pass_script,
              .source = scripts::pass,
              .in_order = true,
              .loaded = true,
              .many_in_a_call = true},
};

constexpr bool each_stands_at_its_place() {
  for (std::size_t place = 0; place < script_count; ++place) {
    if (rows[place].script != static_cast<Script>(place)) return false;
  }
  return true;
}
static_assert(each_stands_at_its_place());

// The texts are put together by the compiler, so that no program spends memory on them.

using Parts = std::array<std::string_view, 13>;

constexpr Parts parts_of(const ScriptRow& row) {
  Parts parts;
  std::size_t count = 0;
  const auto add_as_function = [&](const ScriptText& script) {
    for (const std::string_view part :
         {std::string_view("local function "), script.name, std::string_view("(KEYS, ARGV)\n"),
          script.text, std::string_view("end\n")}) {
      parts[count++] = part;
    }
  };
  if (row.at_maxmemory) parts[count++] = maxmemory_flags;
  if (row.in_order) parts[count++] = scripts::line;
  // To which it passes the keys and arguments.
  if (row.script == pass_script) {
    add_as_function(scripts::release);
    add_as_function(scripts::acquire);
  }
  parts[count++] = row.source;
  return parts;
}

constexpr std::size_t length_of(const Parts& parts) {
  std::size_t length = 0;
  for (const std::string_view part : parts) length += part.size();
  return length;
}

template <std::size_t place>
constexpr auto whole_text = [] {
  constexpr Parts parts = parts_of(rows[place]);
  std::array<char, length_of(parts)> text{};
  std::size_t length = 0;
  for (const std::string_view part : parts) {
    for (const char character : part) text[length++] = character;
  }
  return text;
}();

template <std::size_t... places>
constexpr std::array<std::string_view, script_count> whole_texts(
    std::index_sequence<places...> /*all*/) {
  return {std::string_view(whole_text<places>.data(), whole_text<places>.size())...};
}

}  // namespace

std::span<const ScriptRow, script_count> script_rows() {
  return rows;
}

const ScriptRow& row_of(Script script) {
  return rows[static_cast<std::size_t>(script)];
}

std::string_view whole_source(Script script) {
  static constexpr auto texts = whole_texts(std::make_index_sequence<script_count>());
  return texts[static_cast<std::size_t>(script)];
}

}  // namespace redlock::wire
