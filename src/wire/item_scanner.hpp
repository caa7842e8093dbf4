// SPDX-License-Identifier: MIT
// Stands between a connection and hiredis' reader, which begins an item of RESP (a line, or a text
// together with the line that announces it) again with every piece: a line without end, from a
// server that is broken, would cost the square of its length on the thread that serves all nodes.
// So hiredis is given whole items, and here each byte is looked at once. hiredis 0.14 knows RESP2:
// what RESP3 adds is brought down to that (maps, sets and pushes become arrays, verbatim texts
// texts, booleans integers, doubles and big numbers texts). What cannot be a reply is refused at
// its first byte: also attributes and errors with a length, which no server has sent yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace redlock::wire {

inline constexpr const char* not_redis = "it answered something that is not the Redis protocol";

class ItemScanner {
 public:
  /// With its type and its end. Errors have the longest ones, a few hundred bytes.
  static constexpr std::size_t longest_line = std::size_t{16} << 10;

  /// Appends the next bytes as RESP2, lines when they are whole, and returns how much of `out`
  /// belongs to whole items: those are to be taken out of it before the next call.
  [[nodiscard]] std::size_t scan(std::string_view bytes, std::string& out);

  /// Why the item behind the whole ones never will be one: a sentence, or null. It is then not
  /// looked at any more.
  [[nodiscard]] const char* defect() const { return defect_; }

  /// Whether the next array was a push. To be asked once of each array of RESP2, nested ones too,
  /// in the order in which they begin.
  [[nodiscard]] bool take_push();

  /// How long the text of the unfinished item will be; 0 while that is not known.
  [[nodiscard]] std::uint64_t announced() const { return announced_; }

  /// Whether an item has begun that is not the head of a push.
  [[nodiscard]] bool amid_item() const {
    return text_left_ > 0 || (!line_.empty() && line_.front() != '>');
  }

 private:
  void take_line(std::string& out);
  [[nodiscard]] bool append_line(std::string& out);
  [[nodiscard]] bool append_counted(char type, std::string_view digits, std::string& out);

  std::string line_;  // the unfinished one
  std::uint64_t announced_ = 0;
  std::uint64_t text_left_ = 0;  // of the text, with its end
  std::uint64_t kind_left_ = 0;  // of that, what begins a verbatim text
  std::deque<bool> arrays_;      // whether they are pushes
  const char* defect_ = nullptr;
};

}  // namespace redlock::wire
