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

#include "wire/redlock_scripts.hpp"

namespace redlock::wire {
namespace {

using engine::AcquireCommand;
using engine::Command;
using engine::ForceCommand;
using engine::HoldCommand;
using engine::ReleaseCommand;

void lock_key(CommandWriter& out, const CallContext& context, const engine::Name& name) {
  out.bulk({context.layout.lock_prefix, *name, context.layout.lock_suffix});
}

void lock_and_fence(CommandWriter& out, const CallContext& context, const engine::Name& name) {
  lock_key(out, context, name);
  std::array<char, KeyLayout::longest_fence> fence;
  out.bulk(context.layout.fence(*name, fence));
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

/// A waiter as the scripts' argument `order` names it.
class WaiterText {
 public:
  enum class Place : std::uint8_t { left, kept };

  WaiterText(const CallContext& context, const engine::Waiter& waiter, Place place) {
    char* end = std::ranges::copy(context.client.substr(0, longest_client), text_.data()).out;
    *end++ = ':';
    end = append(end, waiter.number);
    if (place == Place::kept) {
      *end++ = ' ';
      end = append(end, static_cast<std::uint64_t>(std::max<std::int64_t>(waiter.ticket, 0)));
      *end++ = ' ';
      *end++ = context.subscribed ? 'w' : 'p';
    }
    size_ = static_cast<std::size_t>(end - text_.data());
  }
  [[nodiscard]] std::string_view view() const { return {text_.data(), size_}; }

 private:
  static constexpr std::size_t longest_client = 16;

  char* append(char* at, std::uint64_t number) {
    return std::to_chars(at, text_.data() + text_.size(), number).ptr;
  }

  std::array<char, 64> text_;
  std::size_t size_;
};

bool waits(const CallContext& context, const engine::Waiter& waiter) {
  return waiter.number != 0 && !context.client.empty();
}

// acquire

void acquire_order(CommandWriter& out, const CallContext& context, const AcquireCommand& what) {
  if (!what.in_order) {
    out.bulk("");
  } else if (waits(context, what.waiter)) {
    out.bulk(WaiterText(context, what.waiter, WaiterText::Place::kept).view());
  } else {
    out.bulk("0");
  }
}

void acquire_keys(CommandWriter& out, const CallContext& context, const Command& command) {
  lock_and_fence(out, context, std::get<AcquireCommand>(command).name);
  out.bulk(context.layout.marker);
}

void acquire_arguments(CommandWriter& out, const CallContext& context, const Command& command) {
  const auto& what = std::get<AcquireCommand>(command);
  owner(out, what.owner).number(count_of(what.lease));
  out.number(std::max<engine::Token>(what.floor, 1));
  acquire_order(out, context, what);
  const auto holder =
      context.holder != nullptr ? context.holder->since(what.since) : std::string_view();
  if (what.marker_wanted || !holder.empty()) out.bulk(holder);
  if (what.marker_wanted) out.bulk(context.set);
}

std::optional<engine::Reply> read_acquire(const ReplyView& answer) {
  std::int64_t code = 0;
  if (!answer.integer_at(0, code)) return {};
  if (code == 1) {
    const auto token = token_at(answer, 1);
    if (!token || *token == 0) return {};
    return engine::Granted{*token};
  }
  if (code == 2) return engine::Refused{.expires_in = {}, .foreign_type = true};
  if (code == 3) return engine::ForcedOut{};
  if (code == 4) return engine::AlreadyOurs{};
  std::int64_t left = 0;
  if (code != 0 || !answer.integer_at(1, left) || left < -1) return {};
  engine::Refused refused;
  if (left >= 0) refused.expires_in = std::chrono::milliseconds(left);
  std::int64_t place = 0;
  if (answer.size() > 2 && (!answer.integer_at(2, place) || place < 0)) return {};
  refused.place = static_cast<std::uint32_t>(std::min<std::int64_t>(place, UINT32_MAX));
  return refused;
}

// hold

void hold_keys(CommandWriter& out, const CallContext& context, const Command& command) {
  lock_and_fence(out, context, std::get<HoldCommand>(command).name);
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
  lock_key(out, context, std::get<ReleaseCommand>(command).name);
}

void release_arguments(CommandWriter& out, const CallContext& context, const Command& command) {
  const auto& what = std::get<ReleaseCommand>(command);
  owner(out, what.owner);
  const std::string_view prefix = what.first_only ? "!" : "";
  if (!waits(context, what.waiter)) {
    out.bulk(prefix);
    return;
  }
  const auto place = what.stays ? WaiterText::Place::kept : WaiterText::Place::left;
  const WaiterText waiter(context, what.waiter, place);
  if (!what.stays || context.holder == nullptr) {
    out.bulk({prefix, waiter.view()});
  } else {
    out.bulk({prefix, waiter.view(), " ", context.holder->since(what.since)});
  }
}

std::optional<engine::Reply> released_or_not(std::int64_t code) {
  if (code == 1) return engine::ReleasedHere{};
  if (code == 0) return engine::NotHeld{};
  return {};
}

/// Of a waiter that was put into the queue. Nobody has so many waiters.
std::optional<std::uint32_t> place_of(std::int64_t count) {
  if (count < 0 || count >= UINT32_MAX) return {};
  return static_cast<std::uint32_t>(count);
}

std::optional<engine::Reply> read_release(const ReplyView& answer) {
  if (!answer.is(ReplyView::Kind::integer)) return {};
  const std::int64_t code = answer.integer();
  if (code == 0 || code == 1) return released_or_not(code);
  const auto place = place_of(code > 1 ? code - 2 : -1 - code);
  if (!place) return {};
  return code > 1 ? engine::Reply(engine::ReleasedHere{place}) : engine::NotHeld{place};
}

// force

void force_keys(CommandWriter& out, const CallContext& context, const Command& command) {
  const engine::Name& name = std::get<ForceCommand>(command).name;
  lock_and_fence(out, context, name);
  out.bulk({context.layout.lock_prefix, *name, context.layout.lock_suffix,
            context.layout.forced_suffix});
}

void force_arguments(CommandWriter& out, const CallContext& /*context*/, const Command& command) {
  const auto& what = std::get<ForceCommand>(command);
  owner(out, what.owner).number(count_of(what.keep_out));
}

std::optional<engine::Reply> read_force(const ReplyView& answer) {
  std::int64_t code = 0;
  if (!answer.integer_at(0, code)) return {};
  return released_or_not(code);
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

}  // namespace

std::span<const ScriptRow, script_count> script_rows() {
  return rows;
}

const ScriptRow& row_of(Script script) {
  return rows[static_cast<std::size_t>(script)];
}

}  // namespace redlock::wire
