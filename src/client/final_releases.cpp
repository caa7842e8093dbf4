// SPDX-License-Identifier: MIT
// Waits for a quorum of confirmations; a node that hangs gets only a moment more, because its
// releases are under way whether the client waits or not. For grants that another client took each
// node gets a node timeout: it may be connected to only now, and may not have the script yet.
#include "client/final_releases.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "engine/quorum.hpp"

namespace redlock::client {

namespace {

using std::chrono::milliseconds;

constexpr std::chrono::microseconds longest_pause(5'000);
constexpr milliseconds moment_for_stragglers(20);
/// The most releases that the slowest nodes may leave unanswered when a quorum has answered: more
/// may not all have been written, so these nodes get a node timeout to go on.
constexpr std::size_t few_stragglers = 100;
/// Leases that are being released at once: a few calls to each node.
constexpr std::size_t releases_at_once = 200;

}  // namespace

void FinalReleases::begin(engine::Instant now, milliseconds at_most) {
  const auto longest = std::chrono::floor<milliseconds>(engine::Instant::max() - now);
  last_progress_ = now;
  end_ = at_most >= longest ? engine::Instant::max() : now + std::max(at_most, milliseconds(0));
}

void FinalReleases::add(engine::Engine& engine, engine::Instant now, engine::GrantId grant) {
  waiting_.push_back(grant);
  if (waiting_.size() > releases_at_once) engine.give_up(now, grant, LossReason::closed);
}

void FinalReleases::release_some(engine::Engine& engine) {
  while (under_way_.size() < releases_at_once && !waiting_.empty()) {
    under_way_.insert(++last_request_);
    engine.release(BootClock::now(), last_request_, waiting_.front());
    waiting_.pop_front();
  }
}

void FinalReleases::on_finish(engine::Engine& engine, const engine::Finish& finish) {
  if (under_way_.erase(finish.request) == 0) return;
  const auto* const done = std::get_if<engine::ReleaseDone>(&finish.result);
  if (done != nullptr && done->outcome == Released::released) {
    ++report_.released;
  } else if (done != nullptr && done->outcome == Released::already_gone) {
    ++report_.already_gone;
  } else {
    ++report_.unconfirmed;
  }
  release_some(engine);
}

std::optional<std::chrono::microseconds> FinalReleases::await_answers(engine::Engine& engine,
                                                                      bool others_under_way) {
  const Progress current = progress(engine, others_under_way);
  if (for_quorum_) {
    if (!quorum_is_worth_waiting(current)) {
      release_rest(engine);
      const auto now = BootClock::now();
      for_quorum_ = false;
      end_ = std::max(end_, now + moment_for_stragglers);
      last_progress_ = now;
      before_ = {};
      pause_ = std::chrono::microseconds(50);
    }
  } else if (!stragglers_are_worth_waiting(current)) {
    return std::nullopt;
  }
  const auto pause = pause_;
  pause_ = std::min(2 * pause, longest_pause);
  return pause;
}

bool FinalReleases::quorum_is_worth_waiting(const Progress& current) {
  if (!current.quorum_awaited) return false;
  const auto now = BootClock::now();
  // While leases are released, only a quorum is progress: answers of fewer nodes free no lock.
  const bool answered = current.only_dropped && current.unanswered < before_.unanswered;
  if (answered || current.confirmed > before_.confirmed) last_progress_ = now;
  before_ = current;
  return now < std::min(end_, last_progress_ + node_timeout_);
}

bool FinalReleases::stragglers_are_worth_waiting(const Progress& current) {
  if (current.unanswered == 0) return false;
  const auto now = BootClock::now();
  if (current.unanswered < before_.unanswered) last_progress_ = now;
  before_ = current;
  const auto patience = current.unanswered <= few_stragglers && !current.taken_elsewhere
                            ? moment_for_stragglers
                            : node_timeout_;
  return now < std::min(end_, last_progress_ + patience);
}

FinalReleases::Progress FinalReleases::progress(const engine::Engine& engine,
                                                bool others_under_way) const {
  // Counts a lease that was dropped without a request, as long as a quorum may not have released
  // it. A client that lists some members of a set may have fewer nodes than a quorum.
  const auto releasing = engine.nodes_releasing();
  const bool quorum_is_done =
      releasing == 0 || engine.nodes().size() - releasing >= engine.quorum();
  Progress progress;
  progress.confirmed = report_.released + report_.already_gone;
  progress.unanswered = engine.releases_under_way();
  progress.taken_elsewhere = engine.releases_taken_elsewhere();
  progress.only_dropped = under_way_.empty() && waiting_.empty();
  progress.quorum_awaited = others_under_way || !progress.only_dropped || !quorum_is_done;
  return progress;
}

void FinalReleases::release_rest(engine::Engine& engine) {
  const auto rest = std::exchange(waiting_, {});
  abandon(rest.size());
  for (const engine::GrantId grant : rest) engine.release(BootClock::now(), 0, grant);
}

void FinalReleases::abandon(std::size_t leases) {
  report_.unconfirmed += leases + under_way_.size() + waiting_.size();
  under_way_.clear();
  waiting_.clear();
}

}  // namespace redlock::client
