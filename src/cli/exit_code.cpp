// SPDX-License-Identifier: MIT
#include "cli/exit_code.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "cli/event_log.hpp"

namespace redlock::cli {
namespace {

// A wait that ended has the code timed_out; the votes of its last attempt show the reason.
bool quorum_voted(const std::vector<NodeVote>& votes) {
  const auto voted = std::count_if(votes.begin(), votes.end(), [](const NodeVote& vote) {
    return vote.vote == Vote::granted || vote.vote == Vote::refused;
  });
  // Half of an even number of nodes is enough to refuse.
  return static_cast<std::size_t>(voted) * 2 >= votes.size();
}

}  // namespace

int exit_code_for(const Error& error) {
  if (error.is_configuration()) return exit_configuration;
  switch (error.code) {
    case Errc::invalid_argument:
      return exit_usage;
    case Errc::no_quorum:
      return exit_no_quorum;
    case Errc::contended:
    case Errc::too_late:
    case Errc::lost:
      return exit_contended;
    case Errc::timed_out:
      return quorum_voted(error.votes) ? exit_contended : exit_no_quorum;
    case Errc::cancelled:
    case Errc::closed:
    case Errc::would_deadlock:
      break;
  }
  return exit_internal;
}

std::string unavailable_nodes(const std::vector<NodeVote>& votes) {
  std::string text;
  for (const auto& vote : votes) {
    if (vote.vote != Vote::unavailable) continue;
    if (!text.empty()) text += "; ";
    text += vote.node + ": " + (vote.detail.empty() ? to_string(vote.cause) : vote.detail);
  }
  return text;
}

void leave_at_once(int code) {
  finish_log();
  std::fflush(nullptr);
  std::_Exit(code);
}

Exit failure(const Error& error) {
  return {exit_code_for(error), error.message};
}

}  // namespace redlock::cli
