// SPDX-License-Identifier: MIT
// What the subcommands share that ask every node once. A report of theirs is one of Admin's, with
// its `quorum` and its `nodes`, each a NodeReport.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <redlock/admin.hpp>

#include "cli/exit_code.hpp"
#include "cli/nodes.hpp"

namespace redlock::cli {

/// Those that an acquisition would get now, if none of the nodes granted it.
template <typename Report>
[[nodiscard]] std::vector<NodeVote> votes_of(const Report& report) {
  std::vector<NodeVote> votes;
  for (const NodeReport& node : report.nodes) {
    const auto vote = node.answered() ? Vote::refused : Vote::unavailable;
    votes.push_back({node.node, vote, node.trouble.cause, node.trouble.detail});
  }
  return votes;
}

/// The status of a command that could not find out enough: no quorum, or a configuration that the
/// nodes refuse.
template <typename Report>
[[nodiscard]] int exit_code_of_unknown(const Report& report) {
  return exit_code_for({Errc::no_quorum, {}, votes_of(report)});
}

/// The same, unless a quorum answered.
template <typename Report>
[[nodiscard]] int exit_code_of_nodes(const Report& report) {
  const auto answered = std::ranges::count_if(report.nodes, &NodeReport::answered);
  return std::cmp_less(answered, report.quorum) ? exit_code_of_unknown(report) : exit_ok;
}

/// The report that `call` makes of an Admin. Throws Exit where the call fails, or the list lacks
/// too many members.
template <typename Call>
[[nodiscard]] auto report_of(const Client& client, const Call& call) {
  auto report = call(Admin(client));
  if (!report) throw failure(report.error());
  if (report->quorum > report->nodes.size() || exit_code_of_nodes(*report) == exit_configuration) {
    NodeOptions::check_markers(client);
  }
  return std::move(*report);
}

}  // namespace redlock::cli
