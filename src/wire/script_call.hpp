// SPDX-License-Identifier: MIT
// The engine's commands as script calls, and the scripts' answers as the engine's replies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/messages.hpp"
#include "wire/reply_view.hpp"
#include "wire/script.hpp"
#include "wire/script_set.hpp"
#include "wire/secrets.hpp"

namespace redlock::wire {

/// The commands of one call, all of one script. A call has the keys of all of them before the
/// arguments of all.
class CallParts {
 public:
  void add(const engine::Command& command, const CallContext& context = {});
  void add(const CallParts& other);
  /// A key and an argument of the whole call, behind those of its commands, for a script that
  /// names members: the marker, and what it must say if it is there.
  void name_members(const CallContext& context);
  void clear();
  /// How many commands.
  [[nodiscard]] std::uint32_t count() const { return count_; }
  /// In Form::source the text goes along, and the node remembers it.
  void write(std::string& out, const ScriptSet& scripts, engine::Form form, Script script) const;

 private:
  std::string keys_;
  std::string arguments_;
  std::size_t key_count_ = 0;
  std::size_t argument_count_ = 0;
  std::uint32_t count_ = 0;
};

/// A call with one command.
void write_call(std::string& out, const ScriptSet& scripts, engine::Form form,
                const engine::Command& command, const CallContext& context = {});

/// The node's reply to a call with one command. None: this script cannot give such a reply. An
/// error's text goes through printable() with these secrets; the script's text shows which command
/// an error concerns.
[[nodiscard]] std::optional<engine::Reply> read_answer(Script script, const ReplyView& answer,
                                                       const Secrets& secrets,
                                                       std::string_view text = {});
/// The same for one element of the answer to a call with many.
[[nodiscard]] std::optional<engine::Reply> read_element(Script script, const ReplyView& element,
                                                        const Secrets& secrets,
                                                        std::string_view text = {});

}  // namespace redlock::wire
