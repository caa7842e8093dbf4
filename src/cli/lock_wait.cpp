// SPDX-License-Identifier: MIT
#include "cli/lock_wait.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <poll.h>

#include <redlock/admin.hpp>

#include "cli/duration.hpp"
#include "cli/exit_code.hpp"
#include "cli/holder.hpp"
#include "cli/output.hpp"

namespace redlock::cli {
namespace {

// The result of the acquisition, on its way from the client's thread to ours. Shared with the
// callback, which may come after we have gone.
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
  // Signals, and the lock itself, wait meanwhile.
  const auto patience = std::min(client.options().node_timeout, std::chrono::milliseconds(1000));
  const auto report = Admin(client).inspect(name, patience);
  if (!report || report->verdict != Verdict::held) return "somebody else holds it";
  return fmt::format("held by {} on {} of {} nodes, taken by: {}", report->owner,
                     report->nodes_of_owner, report->nodes.size(), in_words(report->holder));
}

void say_what_for(const Client& client, const std::string& name, const Error& failed,
                  std::chrono::milliseconds wait) {
  const auto how_long = wait == forever ? std::string() : " up to " + format_duration(wait);
  const auto why = failed.code == Errc::no_quorum
                       ? "no quorum of nodes: " + unavailable_nodes(failed.votes)
                       : holder_of(client, name);
  say(fmt::format("waiting{} for {} ({})", how_long, name, why));
}

class LockWait {
 public:
  LockWait(const Client& client, AttemptWatch& watch, const Signals& signals, std::string name,
           AcquireOptions options)
      : client_(client),
        watch_(watch),
        signals_(signals),
        name_(std::move(name)),
        options_(std::move(options)) {}

  Lease run() {
    options_.stop = stop_.get_token();
    client_.lock(name_).acquire(
        options_, [slot = slot_](Result<Lease> result) { slot->put(std::move(result)); });
    for (;;) {
      if (auto result = slot_->take()) return conclude(std::move(*result));
      hear_attempt();
      hear_signals();
      std::array<pollfd, 3> waiting{
          {{slot_->fd(), POLLIN, 0}, {watch_.event().fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
      ::poll(waiting.data(), waiting.size(), -1);
    }
  }

 private:
  void hear_attempt() {
    const auto failed = watch_.take();
    if (!failed) return;
    if (failed->is_configuration()) {
      hopeless_ = failed;
      stop_.request_stop();
    } else if (!told_ && options_.wait > std::chrono::milliseconds(0) && ended_by_ == 0) {
      told_ = true;
      say_what_for(client_, name_, *failed, options_.wait);
    }
  }

  void hear_signals() {
    while (const auto signal = signals_.take()) {
      if (!asks_to_end(*signal)) continue;
      ended_by_ = *signal;
      stop_.request_stop();
    }
  }

  Lease conclude(Result<Lease> result) {
    // A grant that came in the same moment as the signal is given back by its destructor.
    if (ended_by_ != 0) throw Exit(exit_by_signal + ended_by_, "");
    if (result) return std::move(*result);
    if (hopeless_ && result.error().code == Errc::cancelled) {
      throw Exit(exit_configuration, fmt::format("{} will never be granted: {}", name_,
                                                 unavailable_nodes(hopeless_->votes)));
    }
    throw failure(result.error());
  }

  const Client& client_;
  AttemptWatch& watch_;
  const Signals& signals_;
  std::string name_;
  AcquireOptions options_;
  std::stop_source stop_;
  std::shared_ptr<Slot> slot_ = std::make_shared<Slot>();
  std::optional<Error> hopeless_;
  int ended_by_ = 0;
  bool told_ = false;
};

}  // namespace

void AttemptWatch::on_attempt(std::string_view /*name*/, const Errc* code,
                              const std::vector<NodeVote>& votes,
                              std::chrono::nanoseconds /*elapsed*/) {
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

Lease wait_for_lock(const Client& client, AttemptWatch& watch, const Signals& signals,
                    const std::string& name, AcquireOptions options) {
  return LockWait(client, watch, signals, name, std::move(options)).run();
}

}  // namespace redlock::cli
