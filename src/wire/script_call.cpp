// SPDX-License-Identifier: MIT
// Keys and arguments are assembled in place, in the order that the comments at the head of the
// scripts give. Token 2^53 and beyond, and negative numbers, are no answers of ours.
#include "wire/script_call.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <type_traits>

#include "engine/stripe.hpp"
#include "wire/command_writer.hpp"
#include "wire/error_reply.hpp"
#include "wire/key_layout.hpp"

namespace redlock::wire {
namespace {

// The part that all calls share: EVALSHA digest keys, or EVAL source keys.
CommandWriter begin(std::string& out, const ScriptSet& scripts, engine::Form form, Script script,
                    std::size_t keys, std::size_t arguments) {
  CommandWriter writer(out, 3 + keys + arguments);
  if (form == engine::Form::digest) {
    writer.bulk("EVALSHA").bulk(scripts.digest(script));
  } else {
    writer.bulk("EVAL").bulk(scripts.source(script));
  }
  return writer.number(keys);
}

void lock_key(CommandWriter& writer, const engine::Name& name) {
  writer.bulk({KeyLayout::lock_prefix, *name, KeyLayout::lock_suffix});
}

void keys(CommandWriter& writer, const engine::Name& name) {
  lock_key(writer, name);
  std::array<char, KeyLayout::longest_fence> fence;
  writer.bulk(KeyLayout::fence(*name, fence));
}

CommandWriter& owner(CommandWriter& writer, const engine::OwnerId& id) {
  const auto digits = engine::hex_digits(id);
  return writer.bulk(std::string_view(digits.data(), digits.size()));
}

std::uint64_t count_of(std::chrono::milliseconds lease) {
  assert(lease.count() > 0);
  return static_cast<std::uint64_t>(lease.count());
}

void write(std::string& out, const ScriptSet& scripts, engine::Form form,
           const engine::AcquireCommand& command, std::string_view holder, std::string_view set) {
  const bool wanted = command.marker_wanted;
  const std::size_t arguments = wanted ? 5 : holder.empty() ? 3 : 4;
  CommandWriter writer = begin(out, scripts, form, Script::acquire, 3, arguments);
  keys(writer, command.name);
  writer.bulk(KeyLayout::marker);
  owner(writer, command.owner).number(count_of(command.lease));
  writer.number(std::max<engine::Token>(command.floor, 1));
  if (arguments > 3) writer.bulk(holder);
  if (wanted) writer.bulk(set);
}

void write(std::string& out, const ScriptSet& scripts, engine::Form form,
           const engine::HoldCommand& command) {
  CallParts parts;
  parts.add(command);
  parts.write(out, scripts, form, Script::hold);
}

void write(std::string& out, const ScriptSet& scripts, engine::Form form,
           const engine::ReleaseCommand& command) {
  CommandWriter writer = begin(out, scripts, form, Script::release, 1, 1);
  lock_key(writer, command.name);
  owner(writer, command.owner);
}

void write(std::string& out, const ScriptSet& scripts, engine::Form form,
           const engine::ForceCommand& command) {
  CommandWriter writer = begin(out, scripts, form, Script::force, 3, 2);
  keys(writer, command.name);
  writer.bulk(KeyLayout::forced(*command.name));
  owner(writer, command.owner).number(count_of(command.keep_out));
}

std::optional<engine::Token> token_at(const ReplyView& answer, std::size_t index) {
  std::int64_t value = 0;
  if (!answer.integer_at(index, value)) return {};
  if (value < 0 || static_cast<engine::Token>(value) >= engine::token_limit) return {};
  return static_cast<engine::Token>(value);
}

engine::Unavailable read_error(std::string_view error, std::string_view secret) {
  engine::Unavailable why = to_unavailable(error);
  why.detail = printable(why.detail, secret);
  return why;
}

std::optional<engine::Reply> read_acquire(const ReplyView& answer, std::int64_t code) {
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
  if (left == -1) return engine::Refused{};
  return engine::Refused{.expires_in = std::chrono::milliseconds(left)};
}

}  // namespace

Script script_of(const engine::Command& command) {
  if (std::holds_alternative<engine::AcquireCommand>(command)) return Script::acquire;
  if (std::holds_alternative<engine::HoldCommand>(command)) return Script::hold;
  return std::holds_alternative<engine::ForceCommand>(command) ? Script::force : Script::release;
}

void write_call(std::string& out, const ScriptSet& scripts, engine::Form form,
                const engine::Command& command, std::string_view holder, std::string_view set) {
  if (const auto* acquire = std::get_if<engine::AcquireCommand>(&command)) {
    return write(out, scripts, form, *acquire, holder, set);
  }
  std::visit(
      [&]<typename What>(const What& what) {
        if constexpr (!std::is_same_v<What, engine::AcquireCommand>) {
          write(out, scripts, form, what);
        }
      },
      command);
}

void CallParts::add(const engine::HoldCommand& command) {
  CommandWriter writer(keys_);
  keys(writer, command.name);
  CommandWriter arguments(arguments_);
  owner(arguments, command.owner).number(command.count);
  arguments.number(command.token).number(count_of(command.lease));
  ++count_;
}

void CallParts::add(const engine::ReleaseCommand& command) {
  CommandWriter writer(keys_);
  lock_key(writer, command.name);
  CommandWriter arguments(arguments_);
  owner(arguments, command.owner);
  ++count_;
}

void CallParts::add(const CallParts& other) {
  keys_ += other.keys_;
  arguments_ += other.arguments_;
  count_ += other.count_;
}

void CallParts::clear() {
  keys_.clear();
  arguments_.clear();
  count_ = 0;
}

void CallParts::write(std::string& out, const ScriptSet& scripts, engine::Form form,
                      Script script) const {
  const std::size_t keys_each = script == Script::hold ? 2 : 1;
  const std::size_t arguments_each = script == Script::hold ? 4 : 1;
  begin(out, scripts, form, script, keys_each * count_, arguments_each * count_);
  out += keys_;
  out += arguments_;
}

std::optional<engine::Reply> read_hold(const ReplyView& answer, std::string_view secret) {
  if (answer.is(ReplyView::Kind::error)) return read_error(answer.text(), secret);
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

std::optional<engine::Reply> read_release(const ReplyView& answer) {
  if (!answer.is(ReplyView::Kind::integer)) return {};
  if (answer.integer() == 1) return engine::ReleasedHere{};
  if (answer.integer() == 0) return engine::NotHeld{};
  return {};
}

std::optional<engine::Reply> read_answer(Script script, const ReplyView& answer,
                                         std::string_view secret) {
  if (answer.is(ReplyView::Kind::error)) {
    return is_no_script(answer.text()) ? engine::Reply(engine::NoScript{})
                                       : read_error(answer.text(), secret);
  }
  if (script == Script::hold) {
    return answer.size() == 1 ? read_hold(answer.first(), secret) : std::nullopt;
  }
  std::int64_t code = 0;
  if (!answer.integer_at(0, code)) return {};
  if (script == Script::acquire) return read_acquire(answer, code);
  if (code == 1) return engine::ReleasedHere{};
  if (code == 0) return engine::NotHeld{};
  return {};
}

}  // namespace redlock::wire
