// SPDX-License-Identifier: MIT
// What the command's exit status means, and the exception that ends it with one.
#pragma once

#include <stdexcept>
#include <string>

#include <redlock/error.hpp>

namespace redlock::cli {

// Those from 64 to 78 are of sysexits.h, those from 125 on of the shells, env(1) and timeout(1).
// The status of a lost lease is of none of them: timeout(1) exits 124, and sysexits.h ends at 78.
inline constexpr int exit_ok = 0;
inline constexpr int exit_disagrees = 1;  ///< adopt: a node belongs to another set, or has to be
                                          ///< named
inline constexpr int exit_degraded = 1;   ///< doctor: safe, but an operator should fix a warning
inline constexpr int exit_unsafe = 2;     ///< doctor: a guarantee is broken or unconfirmed
inline constexpr int exit_assertion = 3;  ///< bench: an assertion of --assert fails
inline constexpr int exit_usage = 64;
inline constexpr int exit_no_quorum = 69;
inline constexpr int exit_contended = 75;
inline constexpr int exit_stale = 77;  ///< fence: a larger token was there before
inline constexpr int exit_configuration = 78;
inline constexpr int exit_lost = 79;
inline constexpr int exit_internal = 125;
inline constexpr int exit_cannot_run = 126;
inline constexpr int exit_not_found = 127;
inline constexpr int exit_by_signal = 128;  ///< plus the number of the signal

/// Ends the command: the sentence goes to stderr behind "redlock: ", the code to the shell.
class Exit : public std::runtime_error {
 public:
  Exit(int code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

/// The exit status that stands for this error.
[[nodiscard]] int exit_code_for(const Error& error);

/// The error as an Exit: its sentence, and the reason of each node that did not vote.
[[nodiscard]] Exit failure(const Error& error);

/// Ends the process without waiting for anything but the log: for the time after a quorum has
/// confirmed a release, when the client would still wait for nodes that hang. Messages that were
/// written to them are on their way.
[[noreturn]] void leave_at_once(int code);

/// "NODE: why", for each node that was unavailable; empty if there is none.
[[nodiscard]] std::string unavailable_nodes(const std::vector<NodeVote>& votes);

}  // namespace redlock::cli
