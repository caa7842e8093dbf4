// SPDX-License-Identifier: MIT
// Takes apart what this layer writes: a command is an array of texts, as a reply could be.
#pragma once

#include <cstddef>
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

}  // namespace redlock::wire
