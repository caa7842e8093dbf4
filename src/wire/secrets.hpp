// SPDX-License-Identifier: MIT
// The secrets that no shown text may contain: the passwords that a node is, or was, given.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::wire {

class Secrets {
 public:
  Secrets() = default;
  Secrets(std::string_view word) { add(word); }                          // NOLINT: a set of one
  Secrets(const std::string& word) : Secrets(std::string_view(word)) {}  // NOLINT
  Secrets(const char* word) : Secrets(std::string_view(word)) {}         // NOLINT

  /// Nothing if it is empty.
  void add(std::string_view word) {
    if (word.empty() || std::ranges::find(words_, word) != words_.end()) return;
    // The longest first: one may be the beginning of another.
    const auto shorter = std::ranges::find_if(
        words_, [&](const std::string& other) { return other.size() < word.size(); });
    words_.emplace(shorter, word);
  }
  void add_all(const Secrets& others) {
    for (const std::string& word : others.words()) add(word);
  }
  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }

 private:
  std::vector<std::string> words_;
};

}  // namespace redlock::wire
