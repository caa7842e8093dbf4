// SPDX-License-Identifier: MIT
// The machines of one client and how inputs reach them. Every input ends with the machines that it
// reached either gone or touched, so that they are called at their next deadline.
#pragma once

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <variant>
#include <vector>

#include "engine/acquisition.hpp"
#include "engine/admission.hpp"
#include "engine/attempt.hpp"
#include "engine/clock_watch.hpp"
#include "engine/engine.hpp"
#include "engine/floor_estimate.hpp"
#include "engine/forcing.hpp"
#include "engine/holding.hpp"
#include "engine/machine_table.hpp"
#include "engine/node_standing.hpp"
#include "engine/outbox.hpp"
#include "engine/release_ledger.hpp"
#include "engine/releasing.hpp"
#include "engine/terms.hpp"

namespace redlock::engine {

/// When the watchdog of a lease stops.
inline Instant renew_until(Instant now, bool renew, const std::optional<Duration>& max_hold) {
  if (!renew) return Instant::min();
  return max_hold ? now + *max_hold : never;
}

class Engine::Impl {
  static constexpr std::size_t renewals_in_one_message = 100;

 public:
  Impl(const Config& config, RandomSource& random);

  void acquire(Instant now, RequestId request, AcquireRequest what);
  void attach(Instant now, RequestId request, AttachRequest what);
  void cancel(Instant now, RequestId request, Errc why);
  void extend(Instant now, RequestId request, GrantId grant, std::chrono::milliseconds lease);
  void enter(Instant now, RequestId request, const EnterRequest& what);
  void leave(Instant now, GrantId grant);
  void release(Instant now, RequestId request, GrantId grant);
  void release(Instant now, RequestId request, Name name, OwnerId owner,
               std::chrono::milliseconds lease);
  void force_release(Instant now, RequestId request, Name name, OwnerId owner,
                     std::chrono::milliseconds lease);
  void give_up(Instant now, GrantId grant, LossReason reason);
  void detach(Instant now, GrantId grant);

  void on_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply);
  void on_node_facts(Instant now, NodeIndex node, const NodeFacts& facts) {
    standing_.on_node_facts(now, node, facts);
  }
  void on_marker(Instant now, NodeIndex node, Marker marker, std::string set) {
    standing_.on_marker(now, node, marker, std::move(set));
  }
  [[nodiscard]] std::optional<Unavailable> objection(Instant now, NodeIndex node) const {
    return terms_.objection(now, node);
  }
  void on_node_up(Instant now, NodeIndex node) { ledger_.on_node_up(now, node, out_); }
  void on_own_clock(Instant now, std::int64_t unix_us) { floors_.on_own_clock(now, unix_us); }
  void on_node_clock(Instant now, NodeIndex node, std::int64_t unix_us, Duration uncertainty);

  [[nodiscard]] Instant deadline() const {
    return std::min({acquisitions_.deadline(), attempts_.deadline(), holdings_.deadline(),
                     releasings_.deadline(), forcings_.deadline(), ledger_.deadline(),
                     standing_.deadline()});
  }
  void on_deadline(Instant now);

  void take_outputs(std::vector<Output>& out) { out_.take(out); }
  [[nodiscard]] std::size_t releases_under_way() const { return ledger_.under_way(); }
  [[nodiscard]] std::uint32_t nodes_releasing() const { return ledger_.nodes_under_way(); }

 private:
  struct Extension {
    GrantId grant = 0;
    std::chrono::milliseconds lease{};
  };
  struct WaitingRound {
    RequestId request = 0;
    std::variant<Extension, EnterRequest> what;
  };

  void attempt_or_wait(Instant now, Acquisition& acquisition);
  void round_or_wait(Instant now, const WaitingRound& round);
  void begin_round(Instant now, const WaitingRound& round);
  /// What waits for its turn and has it now. At the end of every input that may have made room.
  void admit(Instant now);
  void begin_attempt(Instant now, Acquisition& acquisition);
  void on_release_reply(Instant now, NodeIndex node, const Tag& tag, const Reply& reply);
  void node_ran_ahead(Instant now, NodeIndex node, Duration by);
  void on_force_reply(NodeIndex node, const Tag& tag, const Reply& reply);
  void after_attempt_input(Instant now, GrantId grant, bool was_lost);
  void finish_attempt(Instant now, Attempt attempt);
  void succeed(Instant now, Attempt attempt);
  void after_holding_input(GrantId grant);
  void abandon_attempt(Instant now, GrantId grant);
  void release_attempt(Instant now, const Attempt& attempt);
  void begin_release(Instant now, RequestId request, const ReleaseLedger::Grant& grant,
                     NodeSet nodes, NodeSet confirmed);
  void after_releasing_input(GrantId grant);
  void after_forcing_input(GrantId id);
  void end_acquisition(RequestId request, Failed failure);
  void holdings_due(Instant now);
  [[nodiscard]] std::size_t renewals_at_once() const;
  void acquisition_due(Instant now, RequestId request);

  NodeStanding standing_;
  ClockWatch clocks_;
  Terms terms_;
  RandomSource& random_;
  Outbox out_;
  FloorEstimate floors_;
  ReleaseLedger ledger_;
  GrantId last_grant_ = 0;
  MachineTable<Acquisition> acquisitions_;  // by request
  MachineTable<Attempt> attempts_;          // by grant, as all below
  MachineTable<Holding> holdings_;
  MachineTable<Releasing> releasings_;
  MachineTable<Forcing> forcings_;
  Admission admission_;
  std::deque<WaitingRound> waiting_rounds_;
  std::unordered_map<RequestId, GrantId> attaching_;
  std::uint32_t postponed_renewals_ = 0;  // so far
};

}  // namespace redlock::engine
