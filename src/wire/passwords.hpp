// SPDX-License-Identifier: MIT
// The passwords of one node, while they are being changed: nodes and programs are given the new
// password at different times, in any order. So the newest is tried, and then the one that worked
// last.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/secrets.hpp"

namespace redlock::wire {

class Passwords {
 public:
  /// As in the node's URI; may be empty.
  explicit Passwords(std::string configured) : configured_(std::move(configured)) { offer({}); }

  /// The newest, for the next connection; empty: as configured.
  void offer(std::string newest) {
    newest_ = std::move(newest);
    if (newest_.empty()) newest_ = configured_;
    secrets_ = Secrets(configured_);
    secrets_.add(newest_);
    secrets_.add(worked_);
  }
  /// The node has taken it.
  void on_accepted(const std::string& password) { worked_ = password; }

  /// The passwords to try on a connection, one after the other; empty: none is sent to the node.
  [[nodiscard]] std::vector<std::string> to_try() const {
    std::vector<std::string> passwords;
    if (!newest_.empty()) passwords.push_back(newest_);
    if (!worked_.empty() && worked_ != newest_) passwords.push_back(worked_);
    return passwords;
  }
  [[nodiscard]] const Secrets& secrets() const { return secrets_; }

 private:
  std::string configured_;
  std::string newest_;
  std::string worked_;  // last; empty: none has yet
  Secrets secrets_;
};

}  // namespace redlock::wire
