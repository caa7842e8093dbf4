// SPDX-License-Identifier: MIT
// The scripts that carry out the engine's commands, as a table: one row for each command has all
// that the rest of this layer needs. A new operation is a command, a script, and a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>

#include "engine/messages.hpp"
#include "wire/command_writer.hpp"
#include "wire/holder_text.hpp"
#include "wire/key_layout.hpp"
#include "wire/reply_view.hpp"
#include "wire/script_text.hpp"

namespace redlock::wire {

/// A script by the place of its command in engine::Command; behind these `pass`.
enum class Script : std::uint8_t {};
/// A release and the acquire behind it, of the same name, in one call.
inline constexpr auto pass_script = static_cast<Script>(std::variant_size_v<engine::Command>);
inline constexpr std::size_t script_count = std::variant_size_v<engine::Command> + 1;

template <typename What, typename... All>
[[nodiscard]] constexpr Script script_among(const std::variant<All...>* /*of*/) {
  bool found = false;
  int place = 0;
  ((found = found || std::is_same_v<What, All>, place += found ? 0 : 1), ...);
  return static_cast<Script>(place);
}
template <typename What>
inline constexpr Script script_for = script_among<What>(static_cast<engine::Command*>(nullptr));

[[nodiscard]] inline Script script_of(const engine::Command& command) {
  return static_cast<Script>(command.index());
}

/// What a call contains beside its command.
struct CallContext {
  const KeyLayout& layout = redlock_layout;
  HolderText* holder = nullptr;      ///< who takes the lock; null: no text is sent
  std::string_view membership = {};  ///< that the node's marker must name
  std::string_view client = {};  ///< whose waiters they are (see Handshake::Config); empty: none
  bool subscribed = false;       ///< whether this node can wake this client's waiters
};

struct ScriptRow {
  Script script{};
  ScriptText source;
  bool in_order = false;        ///< line.lua stands in front of it
  bool loaded = false;          ///< by every connection; others, which are rare, go in full
  bool at_maxmemory = false;    ///< may run when the node is out of memory
  bool many_in_a_call = false;  ///< the reply is then an array with an element for each
  bool names_members = false;   ///< the whole call, behind its commands: see CallParts
  void (*write_keys)(CommandWriter& out, const CallContext& context,
                     const engine::Command& command) = nullptr;
  void (*write_arguments)(CommandWriter& out, const CallContext& context,
                          const engine::Command& command) = nullptr;
  /// What it answers to one command, if that is no error; none if it cannot answer that.
  std::optional<engine::Reply> (*read)(const ReplyView& answer) = nullptr;
};

[[nodiscard]] std::span<const ScriptRow, script_count> script_rows();
[[nodiscard]] const ScriptRow& row_of(Script script);

/// In front of a script that may run at maxmemory, for servers that know such lines.
inline constexpr std::string_view maxmemory_flags = "#!lua flags=allow-oom\n";
/// What a node runs: the flags, the scripts that it calls, and its own text.
[[nodiscard]] std::string_view whole_source(Script script);

}  // namespace redlock::wire
