// SPDX-License-Identifier: MIT
// All acquires of one client: which attempt belongs to which, which may begin now, and what follows
// when one ends: a lease, a release and another attempt, or the end of the call.
#pragma once

#include <algorithm>

#include "engine/acquire/acquisition.hpp"
#include "engine/acquire/admission.hpp"
#include "engine/acquire/attempt.hpp"
#include "engine/acquire/floor_estimate.hpp"
#include "engine/lease/leases.hpp"
#include "engine/machine_table.hpp"
#include "engine/messages.hpp"
#include "engine/outbox.hpp"
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
  /// Attempts that wait for their turn and have it now.
  void admit(Instant now);
  [[nodiscard]] FloorEstimate& floors() { return floors_; }

  [[nodiscard]] Instant deadline() const {
    return std::min(acquisitions_.deadline(), attempts_.deadline());
  }
  void on_deadline(Instant now);

 private:
  void attempt_or_wait(Instant now, Acquisition& acquisition);
  void begin_attempt(Instant now, Acquisition& acquisition);
  void after_attempt_input(Instant now, GrantId grant, bool was_lost);
  void finish_attempt(Instant now, Attempt attempt);
  void succeed(Instant now, Attempt attempt);
  void abandon_attempt(Instant now, GrantId grant);
  void due(Instant now, RequestId request);
  void end(RequestId request, Failed failure);

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
};

}  // namespace redlock::engine
