// SPDX-License-Identifier: MIT
// All acquires of one client: which attempt belongs to which, which may begin now, and what follows
// when one ends: a lease, a release and another attempt, or the end of the call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "engine/acquire/acquisition.hpp"
#include "engine/acquire/admission.hpp"
#include "engine/acquire/attempt.hpp"
#include "engine/acquire/floor_estimate.hpp"
#include "engine/lease/leases.hpp"
#include "engine/machine_table.hpp"
#include "engine/messages.hpp"
#include "engine/outbox.hpp"
#include "engine/queue/local_queues.hpp"
#include "engine/queue/wake_allowance.hpp"
#include "engine/release/releases.hpp"
#include "engine/requests.hpp"
#include "engine/terms.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

class Acquisitions {
 public:
  Acquisitions(const Terms& terms, RandomSource& random, GrantIds& ids, Leases& leases,
               Releases& releases, Outbox& out);

  void acquire(Instant now, RequestId request, AcquireRequest what);
  /// False if there is no such acquire under way.
  bool cancel(Instant now, RequestId request, Errc why);

  /// False if it is not about an attempt under way.
  bool on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply);
  void node_ran_ahead(NodeIndex node, Duration by);
  void on_node_up(Instant now, NodeIndex node);
  /// A node tells one of this client's waiters that its turn has come, or will.
  void on_wake(Instant now, NodeIndex node, RequestId waiter, Duration after);
  /// Gives a lease back. Of those that wait here for the same name the first may have it next, and
  /// another enters the nodes' queues in the same messages. Request 0 asks for no Finish.
  void release(Instant now, RequestId request, GrantId grant);
  /// To a release that was to put the waiter of this attempt into the node's queue.
  void on_entry_reply(Instant now, NodeIndex node, GrantId attempt, const Reply& reply);
  /// To the acquire of an attempt that was won or given up: the node may have put its waiter into
  /// the queue since.
  void on_late_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply);
  /// Attempts that wait for their turn and have it now.
  void admit(Instant now);
  [[nodiscard]] FloorEstimate& floors() { return floors_; }
  /// What the nodes' clocks show is known from now on. Tickets by our own, which may be hours
  /// ahead, would put this client behind everybody for so long.
  void take_new_tickets();

  [[nodiscard]] Instant deadline() const {
    return std::min(acquisitions_.deadline(), attempts_.deadline());
  }
  void on_deadline(Instant now);

 private:
  void attempt_or_wait(Instant now, Acquisition& acquisition);
  /// `enters_at`: nodes where a release puts its waiter into the queue, so that they are not asked.
  void begin_attempt(Instant now, Acquisition& acquisition, NodeSet enters_at = {});
  [[nodiscard]] Releases::Entry enter_with_release(Instant now, const Holding& holding);
  /// A lease of this name, held since then, is being released.
  void on_release(Instant now, const Name& name, Instant since);
  /// The node has dealt with a question of an attempt that is over.
  void departed(Instant now, NodeIndex node, GrantId attempt, bool may_be_queued);
  /// What an attempt was before an input.
  struct Before {
    bool lost = false;
    bool idle = false;
    bool has_waited = false;
    Before() = default;
    explicit Before(const Attempt& attempt)
        : lost(attempt.lost_the_vote()), idle(attempt.idle()), has_waited(attempt.has_waited()) {}
  };
  void after_attempt_input(Instant now, GrantId grant, Before before);
  void tell_that_it_waits(Instant now, const Attempt& attempt, Before before);
  void finish_attempt(Instant now, Attempt attempt);
  void succeed(Instant now, Attempt attempt);
  /// Nodes that were told that its waiter leaves.
  NodeSet abandon_attempt(Instant now, GrantId grant);
  void due(Instant now, RequestId request);
  /// `told`: nodes that know already that its waiter leaves.
  void end(Instant now, RequestId request, Failed failure, NodeSet told = {});
  /// What a call comes to whose time is over.
  [[nodiscard]] Failed time_is_over(const Acquisition& acquisition);
  /// Nodes that did not answer when they were asked last: an attempt does not wait for them.
  [[nodiscard]] NodeSet silent_nodes();
  [[nodiscard]] std::size_t under_way() const { return attempts_.size() - idle_; }
  [[nodiscard]] std::int64_t next_ticket(Instant now);
  /// Takes a waiter out of the nodes' queues. One that is not reached forgets it soon.
  void leave_queues(Instant now, const Name& name, Waiter waiter, NodeSet nodes);
  void leave_after_win(Instant now, const Attempt& attempt);
  /// In which such a call stands; null if it does not wait.
  [[nodiscard]] LocalQueues* local_queues(const AcquireRequest& what);
  /// One of this client's calls that barge asks behind a release of its own.
  void pass_on_to_barging(Instant now, const Name& name);
  /// A call has ended: if it waited, the next for that name takes part in its place.
  void let_next_take_part(Instant now, const AcquireRequest& what, RequestId request, bool granted);

  const Terms& terms_;
  RandomSource& random_;
  GrantIds& ids_;
  Leases& leases_;
  Releases& releases_;
  Outbox& out_;
  FloorEstimate floors_;
  Admission admission_;
  MachineTable<Acquisition> acquisitions_;  // by request
  MachineTable<Attempt> attempts_;          // by grant
  std::size_t idle_ = 0;                    // attempts that wait for others
  LocalQueues local_;                       // of calls that wait in order
  LocalQueues barging_;                     // of those that wait in no order
  std::int64_t last_ticket_ = 0;
  WakeAllowance wakes_;
  NodeSet silent_;
  /// Attempts that are over and were patient, with questions that nodes have not answered.
  struct Departure {
    Name name;
    Waiter waiter;
    NodeSet awaited;
  };
  std::unordered_map<GrantId, Departure> departures_;
};

}  // namespace redlock::engine
