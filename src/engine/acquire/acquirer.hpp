// SPDX-License-Identifier: MIT
// All calls of one client that acquire: which attempt belongs to which, which may begin now, and
// what follows when one ends: a lease, a release and another attempt, or the end of the call. It
// keeps the client's lines, and what the client has left in those of the nodes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "engine/acquire/acquisition.hpp"
#include "engine/acquire/admission.hpp"
#include "engine/acquire/attempt.hpp"
#include "engine/acquire/floor_estimate.hpp"
#include "engine/electorate.hpp"
#include "engine/lease/leases.hpp"
#include "engine/line/lines.hpp"
#include "engine/line/wake_allowance.hpp"
#include "engine/machine_table.hpp"
#include "engine/messages.hpp"
#include "engine/nodes/round_trips.hpp"
#include "engine/outbox.hpp"
#include "engine/release/releaser.hpp"
#include "engine/requests.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

class Acquirer {
 public:
  Acquirer(const Electorate& electorate, RandomSource& random, GrantIds& ids, Leases& leases,
           Releaser& releaser, Outbox& out);

  void acquire(Instant now, RequestId request, AcquireRequest what);
  /// False if there is no such acquire under way.
  bool cancel(Instant now, RequestId request, Errc why);

  /// False if it is not about an attempt under way.
  bool on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply);
  /// The node answered something after this time.
  void on_round_trip(NodeIndex node, Duration took);
  void node_ran_ahead(NodeIndex node, Duration by);
  void node_removed(NodeIndex node);
  /// Over which nodes quorums are counted, or whose votes count.
  void members_changed(Instant now);
  void on_node_up(Instant now, NodeIndex node);
  /// A node says that the turn of this client's line has come, or comes after that time.
  void on_wake(Instant now, NodeIndex node, std::uint64_t line, Duration after);
  /// Gives a lease back; a call of this client that waits for the same name may take the lock in
  /// the same messages. Request 0 asks for no Finish.
  void release(Instant now, RequestId request, GrantId grant);
  /// Attempts that wait for room and have it now.
  void admit(Instant now);
  [[nodiscard]] FloorEstimate& floors() { return floors_; }

  [[nodiscard]] Instant deadline() const {
    return std::min(calls_.deadline(), attempts_.deadline());
  }
  void on_deadline(Instant now);

 private:
  /// Nodes that have not answered a question of an attempt that has won, and the next call that
  /// each was named: they may stand the client in this line when they do.
  struct Departure {
    Name name;
    std::uint64_t line = 0;
    std::map<NodeIndex, RequestId> awaited;
  };

  void begin(Instant now, Acquisition& call);
  void begin_attempt(Instant now, Acquisition& call);
  /// Asks these nodes, for the first time or anew, as far as they may be asked.
  void ask(Instant now, Acquisition& call, Attempt& attempt, NodeSet nodes);
  void after_input(Instant now, GrantId grant);
  void tell_that_it_waits(Instant now, Acquisition& call, const Attempt& attempt, bool first);
  void finish_attempt(Instant now, Attempt attempt);
  void succeed(Instant now, Attempt attempt);
  void abandon_attempt(Instant now, GrantId grant);
  void due(Instant now, RequestId request);
  void end(Instant now, RequestId request, Failed failure);
  /// What a call comes to whose time is over.
  [[nodiscard]] Failed time_is_over(const Acquisition& call);
  /// Nodes that did not answer when they were asked last: an attempt does not wait for them.
  /// Forgets them where too few others may vote.
  [[nodiscard]] NodeSet renew_silent(Instant now);
  [[nodiscard]] std::size_t under_way() const { return attempts_.size() - idle_; }

  // The lines, ours and the nodes'.

  /// The queues that hold such a call; null if it does not wait.
  [[nodiscard]] Lines* lines_of(const AcquireRequest& what);
  [[nodiscard]] bool held_without(Instant now, GrantId grant, NodeIndex node);
  void overtake_pause(Instant now, const Name& name);
  [[nodiscard]] Duration length_of_turn() const;
  [[nodiscard]] bool turn_is_too_short(const Acquisition& call) const;
  void leave(Instant now, const Name& name, std::uint64_t line, Acquisition* next, NodeSet nodes);
  /// The call has the lock: the next one of its line has its place where nodes were told so.
  void hand_place_on(Instant now, const Acquisition& call, const Attempt& attempt);
  /// A question of an attempt that is gone was answered by the node, or never will be.
  void departed(Instant now, NodeIndex node, const Tag& tag, const Reply& reply);
  /// The next call of a line takes part from now on, and asks at `ask_by` if nothing makes it ask
  /// before.
  void take_part(RequestId request, Instant ask_by);
  [[nodiscard]] Place place_to_keep(Instant now, const Attempt& attempt);
  [[nodiscard]] std::optional<RequestId> next_to_ask(Instant now, const Name& name);
  [[nodiscard]] std::optional<RequestId> successor_at_once(Instant now, const Attempt& attempt);
  void give_way(Instant now, Acquisition& call, const Attempt& attempt);
  /// A lease of this name, held since then, is being released.
  void on_release(Instant now, const Name& name, Instant since);
  void pass_on_to_barging(Instant now, const Name& name);

  const Electorate& electorate_;
  RandomSource& random_;
  GrantIds& ids_;
  Leases& leases_;
  Releaser& releaser_;
  Outbox& out_;
  FloorEstimate floors_;
  RoundTrips round_trips_;
  Admission admission_;
  MachineTable<Acquisition> calls_;  // by request
  MachineTable<Attempt> attempts_;   // by grant
  std::size_t idle_ = 0;             // attempts of calls that are Idle
  Lines ordered_{1};
  Lines barging_{2};
  WakeAllowance wakes_;
  NodeSet silent_;
  std::unordered_map<GrantId, Departure> departures_;
};

}  // namespace redlock::engine
