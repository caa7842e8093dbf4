// SPDX-License-Identifier: MIT
#include "cli/redlock/lock_wait.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <fmt/core.h>
#include <poll.h>

#include <redlock/admin.hpp>

#include "cli/exit_code.hpp"
#include "cli/redlock/holder.hpp"
#include "cli/redlock/wait_progress.hpp"

namespace redlock::cli {
namespace {

// The result of the acquisition, passed from the client's thread to ours. Shared with the callback,
// which may run after wait_for_lock() has returned.
class Slot {
 public:
  void put(Result<Lease> result) {
    {
      const std::lock_guard lock(mutex_);
      result_.emplace(std::move(result));
    }
    event_.notify();
  }
  [[nodiscard]] std::optional<Result<Lease>> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(result_, std::nullopt);
  }
  [[nodiscard]] int fd() const noexcept { return event_.fd(); }

 private:
  std::mutex mutex_;
  std::optional<Result<Lease>> result_;
  Event event_;
};

std::string holder_of(const Client& client, const std::string& name) {
  // Signals and the result of the acquisition are handled after this.
  const auto patience = std::min(client.options().node_timeout, std::chrono::milliseconds(1000));
  const auto report = Admin(client).inspect(name, patience);
  if (!report || report->verdict != Verdict::held) return "somebody else holds it";
  return fmt::format("held by {} on {} of {} nodes, taken by: {}", report->owner,
                     report->nodes_of_owner, report->nodes.size(), in_words(report->holder));
}

std::string reason_of(const Client& client, const std::string& name, const Error& failed) {
  return failed.code == Errc::no_quorum ? "no quorum of nodes: " + unavailable_nodes(failed.votes)
                                        : holder_of(client, name);
}

class LockWait {
 public:
  LockWait(const Client& client, AttemptWatch& watch, const Signals& signals, std::string name,
           AcquireOptions options, IfUnreachable if_unreachable, Progress shown)
      : client_(client),
        watch_(watch),
        signals_(signals),
        name_(std::move(name)),
        options_(options),
        is_silent_(shown == Progress::silent) {
    if (options_.wait != forever) until_ = began_ + options_.wait;
    if (if_unreachable == IfUnreachable::give_up) give_up_at_ = began_ + unreachable_for;
  }

  Lease run() {
    client_.lock(name_)
        .async_acquire(options_, stop_.get_token())
        .start([slot = slot_](Result<Lease> result) { slot->put(std::move(result)); });
    for (;;) {
      if (auto result = slot_->take()) return conclude(std::move(*result));
      hear_attempt();
      hear_signals();
      if (watch_.reached_a_node()) give_up_at_.reset();
      show_progress();
      give_up_on_silence();
      std::array<pollfd, 3> waiting{
          {{slot_->fd(), POLLIN, 0}, {watch_.event().fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
      ::poll(waiting.data(), waiting.size(), until_next());
    }
  }

 private:
  void hear_attempt() {
    const auto failed = watch_.take();
    if (!failed) return;
    failed_ = failed;
    if (!failed->is_configuration()) return;
    hopeless_ = failed;
    stop_.request_stop();
  }

  [[nodiscard]] bool shows_progress() const {
    return !is_silent_ && failed_ && options_.wait > std::chrono::milliseconds(0) &&
           !stop_.stop_requested();
  }

  void show_progress() {
    const auto now = BootClock::now();
    if (!shows_progress()) return;
    progress_.move_to(now, place());
    if (now < progress_.due()) return;
    std::optional<std::string> reason;
    if (progress_.wants_reason(now)) reason = reason_of(client_, name_, *failed_);
    progress_.show(now, name_, std::move(reason), give_up_at_ ? give_up_at_ : until_);
  }

  /// A call that reaches no quorum has left the line.
  [[nodiscard]] std::optional<std::size_t> place() const {
    return failed_->code == Errc::contended ? watch_.place() : std::nullopt;
  }

  void give_up_on_silence() {
    if (!give_up_at_ || silent_ || BootClock::now() < *give_up_at_) return;
    silent_ = true;
    stop_.request_stop();
  }

  /// For poll: milliseconds until the progress has to be shown again; -1: never.
  [[nodiscard]] int until_next() const {
    auto next = BootClock::time_point::max();
    if (shows_progress()) next = std::min(next, progress_.due());
    if (give_up_at_ && !silent_) next = std::min(next, *give_up_at_);
    if (next == BootClock::time_point::max()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - BootClock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
  }

  void hear_signals() {
    while (const auto signal = signals_.take()) {
      if (!asks_to_end(*signal)) continue;
      ended_by_ = *signal;
      stop_.request_stop();
    }
  }

  Lease conclude(Result<Lease> result) {
    // A grant that arrived at the same moment as the signal is released by its destructor.
    if (ended_by_ != 0) throw Exit(exit_by_signal + ended_by_, "");
    if (result) return std::move(*result);
    if (hopeless_ && result.error().code == Errc::cancelled) {
      throw Exit(exit_configuration, fmt::format("{} will never be granted: {}", name_,
                                                 unavailable_nodes(hopeless_->votes)));
    }
    if (silent_ && result.error().code == Errc::cancelled) {
      throw Exit(
          exit_no_quorum,
          fmt::format("no node has answered within {} s: {}; start the nodes, or give --wait "
                      "forever (or how long) to wait for them",
                      unreachable_for.count(),
                      failed_ ? unavailable_nodes(failed_->votes) : "not even a refusal"));
    }
    throw failure(result.error());
  }

  const Client& client_;
  AttemptWatch& watch_;
  const Signals& signals_;
  std::string name_;
  AcquireOptions options_;
  bool is_silent_;
  std::stop_source stop_;
  std::shared_ptr<Slot> slot_ = std::make_shared<Slot>();
  BootClock::time_point began_ = BootClock::now();
  std::optional<BootClock::time_point> until_;       // the end of --wait
  std::optional<BootClock::time_point> give_up_at_;  // unless a node has answered by then
  WaitProgress progress_{began_};
  std::optional<Error> failed_;  // the last attempt
  std::optional<Error> hopeless_;
  int ended_by_ = 0;
  bool silent_ = false;
};

}  // namespace

void AttemptWatch::on_node_up(std::string_view node, std::string_view warning) {
  Metrics::on_node_up(node, warning);
  reached_ = true;
}

// A node that refuses the connection, breaks it or is silent has not answered.
void AttemptWatch::on_node_down(std::string_view node, Cause cause, std::string_view detail) {
  Metrics::on_node_down(node, cause, detail);
  if (cause == Cause::timed_out || cause == Cause::connection_failed ||
      cause == Cause::connection_lost) {
    return;
  }
  reached_ = true;
}

void AttemptWatch::on_attempt(std::string_view name, const Errc* code,
                              const std::vector<NodeVote>& votes,
                              std::chrono::nanoseconds elapsed) {
  Metrics::on_attempt(name, code, votes, elapsed);
  if (code == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    failed_ = Error{*code, {}, votes};
  }
  event_.notify();
}

std::optional<Error> AttemptWatch::take() {
  event_.clear();
  const std::lock_guard lock(mutex_);
  return std::exchange(failed_, std::nullopt);
}

void AttemptWatch::on_waiting(std::string_view name, std::size_t place) {
  Metrics::on_waiting(name, place);
  {
    const std::lock_guard lock(mutex_);
    place_ = place;
  }
  event_.notify();
}

std::optional<std::size_t> AttemptWatch::place() const {
  const std::lock_guard lock(mutex_);
  return place_;
}

Lease wait_for_lock(const Client& client, AttemptWatch& watch, const Signals& signals,
                    const std::string& name, AcquireOptions options, IfUnreachable if_unreachable,
                    Progress progress) {
  return LockWait(client, watch, signals, name, options, if_unreachable, progress).run();
}

}  // namespace redlock::cli
