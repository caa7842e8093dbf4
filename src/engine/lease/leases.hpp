// SPDX-License-Identifier: MIT
// All leases of one client: those it was granted and those it took up, the rounds that callers ask
// for and that wait for room, and which renewals go together.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "engine/electorate.hpp"
#include "engine/lease/held_lease.hpp"
#include "engine/lease/renewal_pace.hpp"
#include "engine/machine_table.hpp"
#include "engine/messages.hpp"
#include "engine/outbox.hpp"
#include "engine/release/releaser.hpp"
#include "engine/requests.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

class Leases {
 public:
  Leases(const Electorate& electorate, GrantIds& ids, Releaser& releaser, Outbox& out)
      : electorate_(electorate),
        ids_(ids),
        releaser_(releaser),
        out_(out),
        pace_(electorate, out) {}

  /// A lease just granted.
  const HeldLease& add(GrantId grant, HeldLease lease);
  void attach(Instant now, RequestId request, AttachRequest what);
  /// Ends an attach that is under way; otherwise it does nothing.
  void cancel(RequestId request, Errc why);
  void extend(Instant now, RequestId request, GrantId grant, std::chrono::milliseconds lease) {
    round_or_wait(now, {request, {grant, lease}, false});
  }
  void enter(Instant now, RequestId request, const EnterRequest& what) {
    round_or_wait(now, {request, what, true});
  }
  void leave(Instant now, GrantId grant);
  /// Null if there is no such lease.
  [[nodiscard]] const HeldLease* find(GrantId grant) { return held_.find(grant); }
  struct Freed {
    Name name;
    Instant since;  ///< as in HeldLease::Plan
  };
  /// What is released; nothing if there is no such lease.
  std::optional<Freed> release(Instant now, RequestId request, GrantId grant);
  void give_up(Instant now, GrantId grant, LossReason reason);
  void detach(GrantId grant);

  /// Instant::min() if there is no such lease.
  [[nodiscard]] Instant valid_until(GrantId grant);

  /// False if it is not about a lease of ours.
  bool on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply);
  /// Every hold of a lease, also of one that is over, is answered once.
  void on_hold_ended(Instant now, NodeIndex node, const Tag& tag, const Reply& reply);
  void node_ran_ahead(Instant now, NodeIndex node, Duration by);
  /// The node lost its place to another one. What it confirmed counts for as long as every lease
  /// was valid with it, and not together with what the others confirm from now on: a quorum of the
  /// later members may be without any of these.
  void node_removed(NodeIndex node);
  /// What is a quorum is counted in another way from now on: the members of the set change.
  void majorities_changed();
  /// Rounds and renewals that wait for room and have it now.
  void admit(Instant now);

  [[nodiscard]] Instant deadline() const { return held_.deadline(); }
  void on_deadline(Instant now);

 private:
  static constexpr std::size_t renewals_in_one_message = 100;

  struct WaitingRound {
    RequestId request = 0;
    EnterRequest what;
    bool enters = false;  // otherwise it extends
  };

  void round_or_wait(Instant now, const WaitingRound& round);
  void begin_round(Instant now, const WaitingRound& round);
  void renew_what_waited(Instant now);
  void after_input(GrantId grant);
  [[nodiscard]] std::size_t renewals_at_once() const;

  const Electorate& electorate_;
  GrantIds& ids_;
  Releaser& releaser_;
  Outbox& out_;
  RenewalPace pace_;
  MachineTable<HeldLease> held_;  // by grant
  std::deque<WaitingRound> waiting_rounds_;
  std::unordered_map<RequestId, GrantId> attaching_;
  std::uint32_t postponed_renewals_ = 0;  // so far
};

/// When the watchdog of a lease stops.
[[nodiscard]] inline Instant renew_until(Instant now, bool renew,
                                         const std::optional<Duration>& max_hold) {
  if (!renew) return Instant::min();
  return max_hold ? now + *max_hold : never;
}

}  // namespace redlock::engine
