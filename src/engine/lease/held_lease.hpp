// SPDX-License-Identifier: MIT
// A lease that was granted (or is taken up from elsewhere): stragglers of its attempt, rounds that
// renew or extend it, nodes that are healed, and the moment when it can no longer be trusted. It
// never releases anything and, once lost, is never revived.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/electorate.hpp"
#include "engine/lease/hold_round.hpp"
#include "engine/lease/lease_key.hpp"
#include "engine/lease/node_grants.hpp"
#include "engine/messages.hpp"
#include "engine/outbox.hpp"
#include "engine/requests.hpp"

namespace redlock::engine {

/// Programs hold many: every byte counts.
class HeldLease {
 public:
  struct Plan {
    GrantId grant = 0;
    Name name;
    OwnerId owner;
    Token token = 0;
    std::chrono::milliseconds lease{};
    Instant renew_until = Instant::min();  ///< by the watchdog; never: without end
    Instant since{};                       ///< when its attempt began; if that waited, when it won
  };

  /// A lease just granted.
  HeldLease(const Electorate& electorate, Plan plan, NodeGrants nodes, Instant now);
  /// A grant made elsewhere, to be confirmed: the request ends with the round.
  HeldLease(const Electorate& electorate, Plan plan, RequestId request, Instant now, Outbox& out);

  /// Makes it last `lease` from now; the request ends with the round.
  void extend(Instant now, RequestId request, std::chrono::milliseconds lease, Outbox& out);
  /// One more level, and `lease` from now; the request ends with the round.
  void enter(Instant now, RequestId request, const EnterRequest& what, Outbox& out);
  /// One level less, if there are several. The nodes are told at once.
  void leave(Instant now, Outbox& out);
  /// Lost: its holder has decided so, before this machine noticed.
  void give_up(Instant now, LossReason reason, Outbox& out);
  /// Ends every round that a caller waits for.
  void end_requests(Errc why, const char* detail, Outbox& out);

  void on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply, Outbox& out);
  /// `full`: nodes that have enough to answer, and are sent a renewal only if it is urgent.
  void on_deadline(Instant now, NodeSet full, Outbox& out);
  /// The node's clock ran ahead of ours by this much: it ends what it confirmed that much earlier.
  void node_ran_ahead(Instant now, NodeIndex node, Duration by, Outbox& out);
  /// See Leases.
  void node_removed(NodeIndex node);
  void majorities_changed();
  [[nodiscard]] Instant deadline() const;

  /// Whether the watchdog's time has come.
  [[nodiscard]] bool renewal_due(Instant now) const { return !lost_ && next_renewal_ <= now; }
  /// Puts a due renewal off, once, by up to a thirtieth of the lease: those that are due together
  /// and have numbers in a row do not come together again. False if it cannot wait.
  bool postpone_renewal(Instant now, std::uint32_t number);
  /// Whether a due renewal can wait until nodes have room for it: not for ever.
  [[nodiscard]] bool may_wait(Instant now) const { return now < urgent_at(); }
  /// It waits, until this time at the latest.
  Instant wait_for_room();
  /// The renewal is due now, if it has waited.
  bool end_waiting(Instant now);

  [[nodiscard]] GrantId id() const { return grant_; }
  [[nodiscard]] const SharedLeaseKey& key() const { return key_; }
  [[nodiscard]] Name name() const { return name_of(key_); }
  /// When its attempt began; when it was granted, if it had waited on nodes.
  [[nodiscard]] Instant since() const { return since_; }
  [[nodiscard]] Instant valid_until() const { return valid_until_; }
  [[nodiscard]] LossDeadline loss_deadline() const { return {lost_at_, reason_at(lost_at_)}; }
  [[nodiscard]] const NodeGrants& nodes() const { return nodes_; }
  /// The longest lease that any message of this grant asked for.
  [[nodiscard]] std::chrono::milliseconds longest_lease() const { return longest_lease_; }
  /// Made elsewhere: somebody there may have sent what is still on its way.
  [[nodiscard]] bool taken_up() const { return taken_up_; }
  /// A taken-up grant whose first round has failed: there is no lease.
  [[nodiscard]] bool attach_failed() const { return attach_failed_; }
  /// It is being taken up: the round of the request that asked for it is under way.
  [[nodiscard]] bool attaching() const { return attaching_; }

 private:
  void begin_round(Instant now, HoldRound::Purpose purpose, RequestId request,
                   std::chrono::milliseconds lease, Outbox& out);
  void begin_renewal(Instant now, NodeSet full, Outbox& out);
  [[nodiscard]] bool is_asked_to_renew(Instant now, NodeIndex node, NodeSet full) const;
  [[nodiscard]] Instant urgent_at() const { return lost_at_ - lease() / 3; }
  [[nodiscard]] Instant renewal_by_validity() const;
  HoldRound& add_round(Instant now, HoldRound::Purpose purpose, RequestId request,
                       std::chrono::milliseconds lease, Outbox& out);
  void begin_round_unless_over(Instant now, HoldRound::Purpose purpose, RequestId request,
                               std::chrono::milliseconds lease, Outbox& out);
  /// What every hold says: the levels that are held, and those that are being entered.
  [[nodiscard]] std::uint32_t asked_count() const;
  void tell_count(Instant now, Outbox& out);
  void entered(Instant now, const HoldRound& round, Outbox& out);
  void send_hold(Instant now, NodeIndex node, const HoldRound& round, Form form, Outbox& out);
  void send_heal(Instant now, NodeIndex node, std::chrono::milliseconds lease, Form form,
                 Outbox& out);
  void heal(Instant now, NodeIndex node, std::chrono::milliseconds asked, Outbox& out);
  void heal_free_nodes(Instant now, HoldRound& round, Outbox& out);

  void on_reply_after_loss(Instant now, NodeIndex node, const Tag& tag, const Reply& reply,
                           Outbox& out);
  void shorten_after_loss(Instant now, Outbox& out);
  void on_forced_out(Instant now, NodeIndex node, const Tag& tag);
  void on_straggler(Instant now, NodeIndex node, const Tag& tag, const Reply& reply);
  void on_hold_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply, Outbox& out);
  void on_held(Instant now, NodeIndex node, const Tag& tag, HoldRound* round);
  void on_free(Instant now, NodeIndex node, const Tag& tag, HoldRound* round, Outbox& out);
  [[nodiscard]] bool explained_by_quarantine(Instant now, NodeIndex node) const;
  void deny(Instant now, NodeIndex node, const Tag& tag);
  void on_denied_by_voter();
  [[nodiscard]] bool contradicts(Instant now, NodeIndex node) const;
  std::optional<Unavailable> confirm(Instant now, NodeIndex node, const Tag& tag);
  void on_heal_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply, Outbox& out);

  void conclude_rounds(Instant now, Outbox& out);
  void conclude(Instant now, HoldRound& round, Outbox& out);
  [[nodiscard]] Instant confirmed_until() const;
  void update_validity(Instant now, Outbox& out);
  void set_lost_at(Instant now);
  [[nodiscard]] Duration renewal_interval(Instant now) const;
  [[nodiscard]] Instant in_step(Instant when) const;
  /// Of a loss that comes because nothing was confirmed.
  [[nodiscard]] LossReason reason_at(Instant when) const {
    return when < renew_until_ ? LossReason::nodes_unavailable : LossReason::expired;
  }
  void lose_if_over(Instant now, Outbox& out);
  void lose(LossReason reason, Outbox& out);
  [[nodiscard]] HoldRound* find_round(std::uint32_t number);

  [[nodiscard]] std::chrono::milliseconds lease() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(lease_ms_));
  }
  void set_lease(std::chrono::milliseconds lease) {
    lease_ms_ = static_cast<std::uint64_t>(lease.count()) & ((std::uint64_t{1} << 39) - 1);
  }

  /// Of a second: 32 bits last for more than a year. Programs hold many leases.
  using Hundredths = std::chrono::duration<std::uint32_t, std::centi>;

  const Electorate* electorate_;
  GrantId grant_;
  SharedLeaseKey key_;
  Instant renew_until_;
  Instant since_;
  Instant valid_until_ = Instant::min();
  Instant lost_at_ = never;
  Instant next_renewal_ = never;
  HoldRounds rounds_;
  [[no_unique_address]] NodeGrants nodes_;  // whose end has room for what follows
  std::uint64_t lease_ms_ : 39 = 0;         // 17 years
  bool is_kept_ : 1 = false;         // its validity is, by a quorum of members from before a change
  bool postponed_ : 1 = false;       // the next renewal was
  bool waits_for_room_ : 1 = false;  // so does that
  bool retries_ : 1 = false;         // the next renewal: the last was not confirmed in time
  bool attaching_ : 1 = false;
  bool attach_failed_ : 1 = false;
  bool taken_up_ : 1 = false;
  bool lost_ : 1 = false;
  bool forced_ : 1 = false;  // a node said that this owner was forced out
  bool denied_ : 1 = false;  // by a node that votes and should have it, since a quorum held last
  std::uint32_t count_ = 1;  // as confirmed by a quorum, less what was left since
  Hundredths longest_lease_;
  std::uint32_t round_ = 0;
};

}  // namespace redlock::engine
