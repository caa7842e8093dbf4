// SPDX-License-Identifier: MIT
// The sentences of errors. Names are escaped and cut here; replies of nodes were when they were
// read.
#include "client/sentence.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "engine/quorum.hpp"
#include "wire/error_reply.hpp"
#include "wire/objection_text.hpp"

namespace redlock::client {

namespace {

constexpr std::size_t longest_detail = 200;
/// Once a message is this long, further nodes are only counted.
constexpr std::size_t long_message = 800;

struct VoteCount {
  std::size_t nodes = 0;
  std::size_t granted = 0;
  std::size_t refused = 0;
  std::size_t pending = 0;

  explicit VoteCount(const std::vector<engine::Ballot>& ballots) {
    for (const auto& ballot : ballots) {
      if (!ballot.counts) continue;
      ++nodes;
      granted += ballot.vote == Vote::granted ? 1 : 0;
      refused += ballot.vote == Vote::refused ? 1 : 0;
      pending += ballot.vote == Vote::pending ? 1 : 0;
    }
  }
  [[nodiscard]] std::size_t quorum() const {
    return engine::quorum_of(static_cast<std::uint32_t>(nodes));
  }
};

std::string count_of(std::size_t count, std::size_t nodes) {
  return std::to_string(count) + " of " + std::to_string(nodes) + (nodes == 1 ? " node" : " nodes");
}

std::string who_refused(const VoteCount& tally) {
  std::string text;
  if (tally.granted > 0) text = count_of(tally.granted, tally.nodes) + " granted it, ";
  return text + count_of(tally.refused, tally.nodes) + " refused (" +
         std::to_string(tally.quorum()) + " must grant it)";
}

/// Nodes whose answer would have changed nothing may be as alive as any: they are not among those
/// that could not vote.
std::string who_voted(const VoteCount& tally, const char* said_of_pending) {
  std::string text = count_of(tally.granted + tally.refused, tally.nodes) + " voted (" +
                     std::to_string(tally.quorum()) + " must)";
  if (tally.pending > 0) text += ", " + std::to_string(tally.pending) + said_of_pending;
  return text;
}

const char* in_words(Cause cause) {
  switch (cause) {
    case Cause::timed_out:
      return "no answer in time";
    case Cause::connecting:
      return "not connected yet";
    case Cause::connection_failed:
      return "could not connect";
    case Cause::connection_lost:
      return "the connection broke";
    case Cause::authentication:
      return "user or password is wrong or missing";
    case Cause::permission:
      return "the user may not do this";
    case Cause::tls:
      return "TLS is not trusted";
    default:
      return to_string(cause);
  }
}

/// "; NODE: why" for each node that has a reason.
void append_nodes(std::string& message, const std::vector<NodeVote>& votes) {
  std::size_t untold = 0;
  for (const NodeVote& node : votes) {
    if (node.vote != Vote::unavailable && node.detail.empty()) continue;
    if (message.size() > long_message) {
      ++untold;
      continue;
    }
    message += "; " + text::visible(node.node, longest_detail) + ": " +
               (node.detail.empty() ? in_words(node.cause) : node.detail);
  }
  if (untold > 0) message += "; and " + std::to_string(untold) + " more";
}

constexpr const char* held_here =
    "this client holds it itself, by another Lease, thread or Owner (only a RedLock of the same "
    "Owner takes it once more)";

std::string contended(const std::string& name, const VoteCount& tally, Rival rival) {
  if (rival == Rival::this_client) {
    return name + " was not granted, because " + held_here + ": " + who_refused(tally);
  }
  return name + " is held " + (tally.granted > 0 ? "or being taken " : "") +
         (rival == Rival::somebody ? "by somebody else: "
                                   : "by another owner, perhaps of this client: ") +
         who_refused(tally);
}

std::string timed_out(const std::string& name, const VoteCount& tally, Rival rival) {
  std::string text = name + " was not granted in the time given";
  if (rival == Rival::this_client) text += std::string(", because ") + held_here;
  if (tally.nodes == 0) return text;
  const bool quorum_voted = tally.granted + tally.refused >= tally.quorum();
  return text + ": " + (quorum_voted ? who_refused(tally) : who_voted(tally, " had not answered"));
}

std::string first_part(Errc code, const std::string& name, const VoteCount& tally, Rival rival) {
  switch (code) {
    case Errc::contended:
      return contended(name, tally, rival);
    case Errc::no_quorum:
      return "no quorum for " + name + ": " + who_voted(tally, " not waited for");
    case Errc::too_late:
      return name + " was granted too late to be of use, and was given back";
    case Errc::timed_out:
      return timed_out(name, tally, rival);
    case Errc::lost:
      return name + " is no longer ours";
    case Errc::cancelled:
      return "the call for " + name + " was cancelled; it holds nothing";
    case Errc::closed:
      return "the client was destroyed while " + name + " was being worked on";
    case Errc::invalid_argument:
    case Errc::would_deadlock:
      break;
  }
  return name + ": " + make_error_code(code).message();
}

}  // namespace

std::string cleaned(std::string_view text, const wire::NodeAddress& node) {
  return wire::printable(text, node.secrets());
}

std::vector<NodeVote> name_ballots(const std::vector<engine::Ballot>& ballots,
                                   const std::vector<wire::NodeAddress>& nodes) {
  std::vector<NodeVote> votes;
  votes.reserve(ballots.size());
  for (std::size_t i = 0; i < ballots.size(); ++i) {
    const engine::Ballot& ballot = ballots[i];
    if (!ballot.counts) continue;
    votes.push_back({nodes[i].label, ballot.vote, ballot.cause,
                     wire::sentence_of(ballot.objection, ballot.detail)});
  }
  return votes;
}

Error describe(std::string_view name, const engine::Failed& failed,
               const std::vector<wire::NodeAddress>& nodes, Rival rival) {
  Error error{failed.code, {}, name_ballots(failed.ballots, nodes)};
  error.message =
      first_part(failed.code, client::in_quotes(name), VoteCount(failed.ballots), rival);
  if (!failed.detail.empty()) error.message += ": " + text::visible(failed.detail, longest_detail);
  append_nodes(error.message, error.votes);
  return error;
}

}  // namespace redlock::client
