// SPDX-License-Identifier: MIT
// Takes apart what this layer writes: a command is an array of texts, as a reply could be.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "support/stub_replies.hpp"
#include "wire/reply_reader.hpp"

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

/// A call of a script by its keys: its name, and of how many locks it is where that may be several.
/// Empty: it is none.
inline std::string call_in(const testing::RedisCommand& command) {
  if (command.size() < 3 || !command[0].starts_with("EVAL")) return {};
  const std::size_t keys = std::stoul(command[2]);
  if (keys == 7) return "acquire";
  if (keys == 10) return "pass";
  if (keys == 5) return "force";
  if (command.size() == 3 + keys + 1) return "leave";
  const bool holds = command.at(4).starts_with("redlock:fence:");
  return (holds ? "hold " : "release ") + std::to_string(keys / 3);
}

}  // namespace redlock::wire
