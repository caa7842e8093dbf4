// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <redlock/clock.hpp>
#include <redlock/metrics.hpp>

#include "metrics/exposition.hpp"

namespace redlock {

using metrics::DurationHistogram;
using metrics::Exposition;
using std::chrono::nanoseconds;

class REDLOCK_NO_EXPORT Metrics::Impl {
 public:
  [[nodiscard]] std::string text() const;

  void count_client(std::string_view node) {
    const std::lock_guard lock(mutex_);
    ++of_node(node).clients;
  }
  void forget_client(std::string_view node) {
    const std::lock_guard lock(mutex_);
    NodeCounts& counts = of_node(node);
    // The last report of a client that has ended is not shown as the current state.
    if (--counts.clients == 0) counts.state.reset();
  }
  void count_node_up(std::string_view node, bool has_warning) {
    const std::lock_guard lock(mutex_);
    of_node(node).state = {.down_for = Cause::none, .has_warning = has_warning};
  }
  void count_node_down(std::string_view node, Cause cause) {
    const std::lock_guard lock(mutex_);
    NodeCounts& counts = of_node(node);
    // The warning belongs to the connection that was up; the next connection brings its own.
    counts.state = {.down_for = cause, .has_warning = false};
    ++counts.downs[cause];
  }
  void count_clock_move(std::string_view node, bool ours) {
    const std::lock_guard lock(mutex_);
    ++(ours ? own_clock_moves_ : of_node(node).clock_moves);
  }
  void count_attempt(const Errc* code, const std::vector<NodeVote>& votes);
  void count_call(std::string_view name, const Errc* code) {
    const std::lock_guard lock(mutex_);
    ++(code == nullptr ? granted_calls_ : failed_calls_[*code]);
    if (name == last_waiting_) last_place_ = 0;
  }
  void count_place(std::string_view name, std::size_t place) {
    const std::lock_guard lock(mutex_);
    last_place_ = place;
    last_waiting_ = name;
    if (contended_.contains(name) || contended_.size() >= most_contended_names) return;
    contended_.emplace(name, BootClock::time_point{});
  }
  void count_acquired(std::string_view name, nanoseconds waited);
  void count_released(std::string_view name, nanoseconds held);
  void count_renewal(bool ok) {
    const std::lock_guard lock(mutex_);
    ++(ok ? renewals_ : failed_renewals_);
  }
  void count_loss(LossReason reason) {
    const std::lock_guard lock(mutex_);
    ++losses_[reason];
  }
  void count_failed_release() {
    const std::lock_guard lock(mutex_);
    ++failed_releases_;
  }
  void count_answer(const NodeAnswer& answer);
  void count_close(const CloseReport& report) {
    const std::lock_guard lock(mutex_);
    closed_.released += report.released;
    closed_.already_gone += report.already_gone;
    closed_.unconfirmed += report.unconfirmed;
  }

 private:
  using Range = DurationHistogram::Range;

  struct Standing {
    Cause down_for = Cause::none;  ///< none: it is up
    bool has_warning = false;
  };
  struct NodeCounts {
    int clients = 0;
    std::optional<Standing> state;  ///< as last reported; none: no client has the node
    std::uint64_t clock_moves = 0;
    std::map<Cause, std::uint64_t> downs;
    std::map<std::pair<Vote, Cause>, std::uint64_t> votes;
    std::map<NodeCommand, DurationHistogram> round_trips;
  };

  /// Names for which somebody here waits, and when the last holder here gave it back. The number of
  /// names is limited; further names are not timed.
  static constexpr std::size_t most_contended_names = 1'024;
  /// Attempts that settled, the last of them: each has an answer of every node. Clients number them
  /// each for itself, so of two that settle at once with the same number one is counted.
  static constexpr std::size_t recent_settles = 64;

  NodeCounts& of_node(std::string_view node) {
    const auto known = nodes_.find(node);
    return known != nodes_.end() ? known->second : nodes_[std::string(node)];
  }

  void write_calls(Exposition& out) const;
  void write_leases(Exposition& out) const;
  void write_nodes(Exposition& out) const;

  mutable std::mutex mutex_;
  std::map<std::string, NodeCounts, std::less<>> nodes_;
  std::map<std::string, BootClock::time_point, std::less<>> contended_;
  // Present from the beginning, because alerts look at increases: a counter that appears with its
  // first event has none.
  std::map<Errc, std::uint64_t> failed_attempts_{
      {Errc::contended, 0}, {Errc::no_quorum, 0}, {Errc::too_late, 0}};
  std::uint64_t granted_attempts_ = 0;
  std::uint64_t connecting_attempts_ = 0;
  std::map<Errc, std::uint64_t> failed_calls_{
      {Errc::contended, 0}, {Errc::no_quorum, 0}, {Errc::too_late, 0}, {Errc::timed_out, 0},
      {Errc::lost, 0},      {Errc::cancelled, 0}, {Errc::closed, 0}};
  std::uint64_t granted_calls_ = 0;
  std::uint64_t settles_ = 0;
  std::array<std::uint64_t, recent_settles> settled_{};
  std::size_t next_settled_ = 0;
  std::size_t last_place_ = 0;
  std::string last_waiting_;  // the name of the lock that it waits for
  DurationHistogram waits_{Range::work};
  DurationHistogram holds_{Range::work};
  DurationHistogram handoffs_{Range::network};
  std::uint64_t renewals_ = 0;
  std::uint64_t failed_renewals_ = 0;
  std::uint64_t failed_releases_ = 0;
  std::uint64_t own_clock_moves_ = 0;
  std::map<LossReason, std::uint64_t> losses_{{LossReason::expired, 0},
                                              {LossReason::taken, 0},
                                              {LossReason::nodes_unavailable, 0},
                                              {LossReason::closed, 0},
                                              {LossReason::forced, 0}};
  CloseReport closed_;
};

namespace {

/// Whether a quorum could not vote only because the client had just begun and was not connected.
bool was_too_early(const Errc* code, const std::vector<NodeVote>& votes) {
  if (code == nullptr || *code != Errc::no_quorum) return false;
  const auto away = std::ranges::count_if(votes, [](const NodeVote& vote) {
    return vote.vote == Vote::unavailable && vote.cause != Cause::connecting;
  });
  const bool connects = std::ranges::count(votes, Cause::connecting, &NodeVote::cause) > 0;
  return connects && votes.size() - static_cast<std::size_t>(away) > votes.size() / 2;
}

}  // namespace

void Metrics::Impl::count_attempt(const Errc* code, const std::vector<NodeVote>& votes) {
  const std::lock_guard lock(mutex_);
  if (code == nullptr) {
    ++granted_attempts_;
  } else if (was_too_early(code, votes)) {
    ++connecting_attempts_;
  } else {
    ++failed_attempts_[*code];
  }
  for (const NodeVote& vote : votes) ++of_node(vote.node).votes[{vote.vote, vote.cause}];
}

void Metrics::Impl::count_acquired(std::string_view name, nanoseconds waited) {
  const std::lock_guard lock(mutex_);
  waits_.add(waited);
  const auto contended = contended_.find(name);
  if (contended == contended_.end()) return;
  if (contended->second != BootClock::time_point{}) {
    handoffs_.add(BootClock::now() - contended->second);
  }
  contended_.erase(contended);
}

void Metrics::Impl::count_released(std::string_view name, nanoseconds held) {
  const std::lock_guard lock(mutex_);
  holds_.add(held);
  const auto contended = contended_.find(name);
  if (contended != contended_.end()) contended->second = BootClock::now();
}

void Metrics::Impl::count_answer(const NodeAnswer& answer) {
  const std::lock_guard lock(mutex_);
  of_node(answer.node)
      .round_trips.try_emplace(answer.command, Range::network)
      .first->second.add(answer.round_trip);
  if (answer.command != NodeCommand::settle) return;
  if (std::find(settled_.begin(), settled_.end(), answer.attempt) != settled_.end()) return;
  settled_[next_settled_] = answer.attempt;
  next_settled_ = (next_settled_ + 1) % recent_settles;
  ++settles_;
}

void Metrics::Impl::write_calls(Exposition& out) const {
  out.family("redlock_calls_total", "counter", "Calls for a lock that ended, by result.");
  out.value({{"result", "granted"}}, granted_calls_);
  for (const auto& [code, count] : failed_calls_) {
    out.value({{"result", to_string(code)}}, count);
  }
  out.family("redlock_attempts_total", "counter",
             "Attempts to take a lock that were decided, by result; contended also counts when an "
             "attempt that goes on begins to wait, and connecting counts those that found no "
             "quorum because the client had just begun.");
  out.value({{"result", "granted"}}, granted_attempts_);
  out.value({{"result", "connecting"}}, connecting_attempts_);
  for (const auto& [code, count] : failed_attempts_) {
    out.value({{"result", to_string(code)}}, count);
  }
  out.family("redlock_acquire_duration_seconds", "histogram",
             "From the beginning of a successful call for a lock to the grant.");
  out.value({}, waits_);
  out.family("redlock_handoff_duration_seconds", "histogram",
             "From a release here to the next grant here of a name for which a call here waited in "
             "order.");
  out.value({}, handoffs_);
  out.family("redlock_waiting_place", "gauge",
             "How many clients were before the waiting call whose place was reported last; 0 when "
             "it ended.");
  out.value({}, last_place_);
  out.family("redlock_second_round_trips_total", "counter",
             "Attempts whose token had to be settled by a second round trip.");
  out.value({}, settles_);
}

void Metrics::Impl::write_leases(Exposition& out) const {
  out.family("redlock_hold_duration_seconds", "histogram",
             "From the grant of a lease to its release.");
  out.value({}, holds_);
  out.family("redlock_renewals_total", "counter",
             "Renewals by result: confirmed by a quorum, or not within the node timeout.");
  out.value({{"result", "confirmed"}}, renewals_);
  out.value({{"result", "unconfirmed"}}, failed_renewals_);
  out.family("redlock_leases_lost_total", "counter",
             "Leases that could no longer be trusted while they were held, by reason.");
  for (const auto& [reason, count] : losses_) out.value({{"reason", to_string(reason)}}, count);
  out.family("redlock_failed_releases_total", "counter",
             "Calls of unlock() that could not confirm the release.");
  out.value({}, failed_releases_);
  out.family("redlock_closed_leases_total", "counter",
             "Leases that clients still had when they ended, by what became of them.");
  out.value({{"result", "released"}}, closed_.released);
  out.value({{"result", "already_gone"}}, closed_.already_gone);
  out.value({{"result", "unconfirmed"}}, closed_.unconfirmed);
}

void Metrics::Impl::write_nodes(Exposition& out) const {
  out.family("redlock_node_up", "gauge", "1 while the node answers and may vote, otherwise 0.");
  for (const auto& [node, counts] : nodes_) {
    if (counts.state) out.value({{"node", node}}, counts.state->down_for == Cause::none ? 1U : 0U);
  }
  out.family("redlock_node_down", "gauge",
             "1 for the cause for which the node cannot vote now, 0 for earlier causes.");
  for (const auto& [node, counts] : nodes_) {
    if (!counts.state) continue;
    for (const auto& [cause, count] : counts.downs) {
      out.value({{"node", node}, {"cause", to_string(cause)}},
                counts.state->down_for == cause ? 1U : 0U);
    }
  }
  out.family("redlock_node_warning", "gauge",
             "1 while the node votes and something about it is unsafe; redlock doctor says what.");
  for (const auto& [node, counts] : nodes_) {
    if (counts.state) out.value({{"node", node}}, counts.state->has_warning ? 1U : 0U);
  }
  out.family("redlock_node_downs_total", "counter",
             "How often the node became unable to vote, by cause.");
  for (const auto& [node, counts] : nodes_) {
    for (const auto& [cause, count] : counts.downs) {
      out.value({{"node", node}, {"cause", to_string(cause)}}, count);
    }
  }
  out.family("redlock_votes_total", "counter",
             "Votes in attempts that were decided; pending if the result did not wait for it.");
  for (const auto& [node, counts] : nodes_) {
    for (const auto& [vote, count] : counts.votes) {
      out.value(
          {{"node", node}, {"vote", to_string(vote.first)}, {"cause", to_string(vote.second)}},
          count);
    }
  }
  out.family("redlock_node_round_trip_seconds", "histogram",
             "From the decision to send a command until its answer was read.");
  for (const auto& [node, counts] : nodes_) {
    for (const auto& [command, times] : counts.round_trips) {
      out.value({{"node", node}, {"command", to_string(command)}}, times);
    }
  }
  out.family("redlock_clock_moves_total", "counter",
             "How often a node's clock moved by more than clocks may differ; without a node: the "
             "clock of this machine.");
  out.value({{"node", ""}}, own_clock_moves_);
  for (const auto& [node, counts] : nodes_) out.value({{"node", node}}, counts.clock_moves);
}

std::string Metrics::Impl::text() const {
  const std::lock_guard lock(mutex_);
  Exposition out;
  write_calls(out);
  write_leases(out);
  write_nodes(out);
  return std::move(out).take();
}

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

std::string Metrics::text() const {
  return impl_->text();
}

void Metrics::on_node_added(std::string_view node) {
  impl_->count_client(node);
}
void Metrics::on_node_removed(std::string_view node) {
  impl_->forget_client(node);
}
void Metrics::on_node_up(std::string_view node, std::string_view warning) {
  impl_->count_node_up(node, !warning.empty());
}
void Metrics::on_node_down(std::string_view node, Cause cause, std::string_view /*detail*/) {
  impl_->count_node_down(node, cause);
}
void Metrics::on_clock_moved(std::string_view node, nanoseconds /*by*/, bool ours) {
  impl_->count_clock_move(node, ours);
}
void Metrics::on_attempt(std::string_view /*name*/, const Errc* code,
                         const std::vector<NodeVote>& votes, nanoseconds /*elapsed*/) {
  impl_->count_attempt(code, votes);
}
void Metrics::on_waiting(std::string_view name, std::size_t place) {
  impl_->count_place(name, place);
}
void Metrics::on_call(std::string_view name, const Errc* code) {
  impl_->count_call(name, code);
}
void Metrics::on_acquired(std::string_view name, std::uint64_t /*token*/, nanoseconds waited) {
  impl_->count_acquired(name, waited);
}
void Metrics::on_released(std::string_view name, std::uint64_t /*token*/, nanoseconds held) {
  impl_->count_released(name, held);
}
void Metrics::on_renewal(std::string_view /*name*/, bool ok, nanoseconds /*remaining*/) {
  impl_->count_renewal(ok);
}
void Metrics::on_lost(std::string_view /*name*/, std::uint64_t /*token*/, LossReason reason) {
  impl_->count_loss(reason);
}
void Metrics::on_release_failed(std::string_view /*name*/, const Error& /*error*/) {
  impl_->count_failed_release();
}
void Metrics::on_answer(const NodeAnswer& answer) {
  impl_->count_answer(answer);
}
void Metrics::on_closed(const CloseReport& report) {
  impl_->count_close(report);
}

}  // namespace redlock
