// SPDX-License-Identifier: MIT
// The machines of one client and how inputs reach them. Every input method ends with the machines
// that it touched either gone or queued for their next deadline.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "engine/acquisition.hpp"
#include "engine/attempt.hpp"
#include "engine/engine.hpp"
#include "engine/floor_estimate.hpp"
#include "engine/holding.hpp"
#include "engine/outbox.hpp"
#include "engine/release_ledger.hpp"
#include "engine/releasing.hpp"
#include "engine/terms.hpp"
#include "engine/timer_heap.hpp"

namespace redlock::engine {

class Engine::Impl {
 public:
  Impl(const Config& config, RandomSource& random);

  void acquire(Instant now, RequestId request, AcquireRequest what);
  void attach(Instant now, RequestId request, AttachRequest what);
  void cancel(Instant now, RequestId request, Errc why);
  void extend(Instant now, RequestId request, GrantId grant, std::chrono::milliseconds lease);
  void release(Instant now, RequestId request, GrantId grant);
  void release(Instant now, RequestId request, Name name, OwnerId owner,
               std::chrono::milliseconds lease);
  void detach(GrantId grant);

  void on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply);
  void on_node_up(Instant now, NodeIndex node) { ledger_.on_node_up(now, node, out_); }
  void on_node_clock(Instant now, NodeIndex node, std::int64_t unix_us) {
    floors_.on_node_clock(now, node, unix_us);
  }

  [[nodiscard]] Instant deadline() const { return std::min(timers_.next(), ledger_.deadline()); }
  void on_deadline(Instant now);

  void take_outputs(std::vector<Output>& out) { out_.take(out); }
  [[nodiscard]] std::size_t releases_under_way() const { return ledger_.under_way(); }

 private:
  /// A machine, and for when it is queued.
  template <typename Machine>
  struct Timed {
    Machine machine;
    Instant queued = never;
  };
  template <typename Machine>
  using Machines = std::unordered_map<std::uint64_t, Timed<Machine>>;

  /// Sees to it that the machine is called at its deadline.
  template <typename Machine>
  void queue(Timed<Machine>& timed, std::uint64_t id, Timer::Of of) {
    const Instant deadline = timed.machine.deadline();
    if (deadline >= timed.queued) return;
    timed.queued = deadline;
    timers_.add({deadline, id, of});
  }

  /// The machine that this timer is for, unless it is gone or has another timer by now.
  template <typename Machine>
  static Timed<Machine>* due(Machines<Machine>& machines, const Timer& timer) {
    const auto found = machines.find(timer.id);
    if (found == machines.end() || found->second.queued != timer.when) return nullptr;
    found->second.queued = never;
    return &found->second;
  }

  void begin_attempt(Instant now, Timed<Acquisition>& acquisition);
  void on_acquire_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply);
  void on_release_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply);
  void after_attempt_input(Instant now, GrantId grant, bool was_lost);
  void finish_attempt(Instant now, Attempt attempt);
  void succeed(Instant now, Attempt attempt);
  void after_holding_input(GrantId grant);
  void abandon_attempt(Instant now, GrantId grant);
  void begin_release(Instant now, RequestId request, const ReleaseLedger::Grant& grant,
                     NodeSet nodes);
  void finish_releasing_if_certain(GrantId grant);
  void end_acquisition(RequestId request, Failed failure);

  void acquisition_due(Instant now, const Timer& timer);
  void attempt_due(Instant now, const Timer& timer);
  void holding_due(Instant now, const Timer& timer);
  void releasing_due(Instant now, const Timer& timer);

  Terms terms_;
  RandomSource& random_;
  Outbox out_;
  FloorEstimate floors_;
  ReleaseLedger ledger_;
  TimerHeap timers_;
  GrantId last_grant_ = 0;
  Machines<Acquisition> acquisitions_;  // by request
  Machines<Attempt> attempts_;          // by grant, as all below
  Machines<Holding> holdings_;
  Machines<Releasing> releasings_;
  std::unordered_map<RequestId, GrantId> attaching_;
};

}  // namespace redlock::engine
