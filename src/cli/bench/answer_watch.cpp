// SPDX-License-Identifier: MIT
#include "cli/bench/answer_watch.hpp"

#include <algorithm>

namespace redlock::cli {

void AnswerWatch::on_attempt(std::string_view /*name*/, const Errc* code,
                             const std::vector<NodeVote>& votes,
                             std::chrono::nanoseconds /*elapsed*/) {
  if (nodes_.empty()) {
    for (const auto& vote : votes) nodes_.push_back(vote.node);
  }
  recorder_.voted(votes, code == nullptr);
}

void AnswerWatch::on_answer(const NodeAnswer& answer) {
  const auto node = std::find(nodes_.begin(), nodes_.end(), answer.node);
  if (node == nodes_.end()) return;
  if (answer.command == NodeCommand::settle) {
    AttemptAnswers& seen = answers_to(answer.attempt);
    if (!seen.settled) recorder_.settled_again();
    seen.settled = true;
  }
  if (answer.command != NodeCommand::acquire) return;
  recorder_.node_answered(static_cast<std::size_t>(node - nodes_.begin()), answer.round_trip);
  if (++answers_to(answer.attempt).count == quorum_) {
    recorder_.time(Timed::quorum, answer.round_trip);
  }
}

AnswerWatch::AttemptAnswers& AnswerWatch::answers_to(std::uint64_t attempt) {
  AttemptAnswers& place = attempts_[attempt % attempts_.size()];
  if (place.attempt != attempt) place = {.attempt = attempt};
  return place;
}

}  // namespace redlock::cli
