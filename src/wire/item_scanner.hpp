// SPDX-License-Identifier: MIT
// Finds the ends of the items of RESP (a line, or a text together with the line that announces it)
// and looks at each byte once, in whatever pieces the bytes arrive. hiredis begins an item again
// with every piece: a line without end, from a server that is broken, would cost the square of its
// length on the thread that serves all nodes. An item that cannot be a reply is refused at its
// first byte: also attributes and errors with a length, which no server has sent yet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <utility>

namespace redlock::wire {

class ItemScanner {
 public:
  enum class Defect : std::uint8_t { none, not_redis, long_line };

  /// With its type and its end. Errors have the longest ones, a few hundred bytes.
  static constexpr std::size_t longest_line = std::size_t{16} << 10;

  /// Looks at the next bytes, and returns how many of them belong to items that are now whole. The
  /// others are the beginning of one that is not.
  [[nodiscard]] std::size_t scan(std::string_view bytes);

  /// Why the item behind the whole ones never will be one. It is then not looked at any more.
  [[nodiscard]] Defect defect() const { return defect_; }

  /// Whether there are items of RESP3 alone among those that were whole since the last call.
  [[nodiscard]] bool take_resp3() { return std::exchange(resp3_, false); }

  /// Arrays of all kinds are numbered from 0, nested ones too, in the order in which they begin;
  /// this says whether the array of that number is a push. To be asked of each one, in order.
  [[nodiscard]] bool take_push(std::uint64_t number);

  /// How long the text of the unfinished item will be; 0 while that is not known.
  [[nodiscard]] std::uint64_t announced() const { return announced_; }

 private:
  [[nodiscard]] std::size_t scan_line(std::string_view bytes);
  [[nodiscard]] bool is_line(std::string_view part, bool ends) const;
  void finish_line();
  [[nodiscard]] bool is_number(char type, std::int64_t& number) const;
  [[nodiscard]] bool finish_counted(char type);
  [[nodiscard]] bool is_word(char type) const;

  std::array<char, 24> head_{};  // of the line: its type and as much as a number can have
  std::size_t line_ = 0;         // bytes of the unfinished line
  bool after_return_ = false;    // the last of them is '\r'
  std::uint64_t announced_ = 0;
  std::uint64_t text_left_ = 0;  // of the text, with its end
  std::uint64_t arrays_ = 0;
  std::deque<std::uint64_t> pushes_;  // the numbers of those arrays that were not asked for
  bool resp3_item_ = false;           // the unfinished one
  bool resp3_ = false;
  Defect defect_ = Defect::none;
};

}  // namespace redlock::wire
