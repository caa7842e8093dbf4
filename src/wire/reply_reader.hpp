// SPDX-License-Identifier: MIT
// Turns the bytes of a connection into replies. hiredis parses; we build the result ourselves,
// because hiredis 0.14 allocates, and on failure walks, as many elements as a server merely
// announces, and because a reply must not grow beyond the limit of its question. hiredis gets whole
// items only: the cost of a reply is linear in its length, whatever the pieces it arrives in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "wire/item_scanner.hpp"
#include "wire/reply_view.hpp"

struct redisReader;

namespace redlock::wire {

class ReplyReader {
 public:
  ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;

  /// A push is an unrequested message of a server, in RESP3.
  enum class Outcome { incomplete, complete, push, broken };

  /// Takes bytes in. next() reports any fault in them.
  void feed(std::string_view bytes);

  /// Decodes the next reply, which may take up `limit` bytes (text and 32 for each part; a line
  /// never more than ItemScanner::longest_line). One that announces more is broken at once.
  /// `broken` is final: the connection must be dropped.
  [[nodiscard]] Outcome next(std::size_t limit);

  /// After `complete` or `push`, until the next call.
  [[nodiscard]] ReplyView reply() const { return {parts_.data(), texts_.data()}; }
  /// How much of its limit it took up.
  [[nodiscard]] std::size_t reply_size() const {
    return parts_.size() * sizeof(ReplyPart) + texts_.size();
  }
  /// After `incomplete`: whether it is a reply that has begun to arrive, and not a push.
  [[nodiscard]] bool amid_reply() const;
  /// After `broken`: a sentence.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  struct Builder;  // what hiredis calls

  [[nodiscard]] bool fits(std::size_t parts, std::uint64_t text) const;
  [[nodiscard]] bool add(const ReplyPart& part);
  [[nodiscard]] bool add(ReplyPart::Kind kind, const char* text, std::size_t length);
  [[nodiscard]] bool add_array(bool outermost, std::size_t count);

  ItemScanner scanner_;
  std::string resp2_;       // what hiredis was not given yet: the beginning of an item
  bool push_ = false;       // what parts_ has is one
  bool no_memory_ = false;  // for what hiredis reported
  std::unique_ptr<redisReader, void (*)(redisReader*)> reader_;
  std::vector<ReplyPart> parts_;
  std::string texts_;
  std::size_t limit_ = 0;
  bool finished_ = true;  // what parts_ has is a whole reply, handed out before
  std::string problem_;
};

}  // namespace redlock::wire
