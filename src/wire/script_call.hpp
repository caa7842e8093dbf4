// SPDX-License-Identifier: MIT
// The engine's commands as script calls, and the scripts' answers as the engine's replies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/messages.hpp"
#include "wire/reply_view.hpp"
#include "wire/script_set.hpp"

namespace redlock::wire {

[[nodiscard]] Script script_of(const engine::Command& command);

/// Writes the call. In Form::source the text goes along, and the node remembers it. With an acquire
/// go `holder` (see holder_text.hpp), unless it is empty, and, if it wants a marker, the set that
/// this marker must name (empty: it must name none).
void write_call(std::string& out, const ScriptSet& scripts, engine::Form form,
                const engine::Command& command, std::string_view holder = {},
                std::string_view set = {});

/// Holds, or releases, for one call, which has the keys of all of them before the arguments of all.
class CallParts {
 public:
  void add(const engine::HoldCommand& command);
  void add(const engine::ReleaseCommand& command);
  void add(const CallParts& other);
  void clear();
  [[nodiscard]] std::uint32_t count() const { return count_; }
  /// The call's reply has one element for each, to be read with read_hold() or read_release().
  void write(std::string& out, const ScriptSet& scripts, engine::Form form, Script script) const;

 private:
  std::string keys_;
  std::string arguments_;
  std::uint32_t count_ = 0;
};

/// What the node answered to one command (for hold: one call with one lock). None: that is nothing
/// that this script can answer. An error's text goes through printable() with this secret.
[[nodiscard]] std::optional<engine::Reply> read_answer(Script script, const ReplyView& answer,
                                                       std::string_view secret);
[[nodiscard]] std::optional<engine::Reply> read_hold(const ReplyView& answer,
                                                     std::string_view secret);
[[nodiscard]] std::optional<engine::Reply> read_release(const ReplyView& answer);

}  // namespace redlock::wire
