// SPDX-License-Identifier: MIT
// Takes apart what src/wire writes: a command is an array of texts, as a reply could be.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "support/stub_replies.hpp"
#include "wire/reply_reader.hpp"
#include "wire/script_set.hpp"

namespace redlock::wire {

/// The commands that `reader` has got whole with these bytes.
inline std::vector<testing::RedisCommand> commands_in(std::string_view bytes, ReplyReader& reader) {
  reader.feed(bytes);
  std::vector<testing::RedisCommand> commands;
  while (reader.next(std::size_t{64} << 20) == ReplyReader::Outcome::complete) {
    commands.emplace_back();
    ReplyView word = reader.reply().first();
    for (std::size_t i = 0; i < reader.reply().size(); ++i, word = word.next()) {
      commands.back().emplace_back(word.text());
    }
  }
  return commands;
}

/// A call of a script: its name, and of how many locks it is where that may be several. Empty: it
/// is none.
inline std::string call_in(const testing::RedisCommand& command) {
  if (command.size() < 3 || !command[0].starts_with("EVAL")) return {};
  for (const ScriptRow& row : script_rows()) {
    for (const auto flags : {ScriptSet::Flags::understood, ScriptSet::Flags::unknown}) {
      const ScriptSet scripts(flags);
      const std::string_view source = scripts.source(row.script);
      if (command[1] != source && command[1] != testing::stub_digest(source)) continue;
      const std::string name(row.source.name);
      const bool several = row.many_in_a_call && row.script != pass_script;
      return several ? name + " " + std::to_string(std::stoul(command[2]) / 3) : name;
    }
  }
  return {};
}

}  // namespace redlock::wire
