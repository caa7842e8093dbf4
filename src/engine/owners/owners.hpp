// SPDX-License-Identifier: MIT
// All owners of one client that hold or take something: which call belongs to which queue, and what
// the queues have the acquisitions and leases do.
#pragma once

#include <unordered_map>

#include "engine/acquire/acquirer.hpp"
#include "engine/electorate.hpp"
#include "engine/lease/leases.hpp"
#include "engine/machine_table.hpp"
#include "engine/outbox.hpp"
#include "engine/owners/owner_queue.hpp"
#include "engine/requests.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

class Owners {
 public:
  Owners(const Electorate& electorate, RandomSource& random, Acquirer& acquirer, Leases& leases,
         Outbox& out)
      : electorate_(electorate), random_(random), acquirer_(acquirer), leases_(leases), out_(out) {}

  void take(Instant now, RequestId request, TakeRequest what);
  /// The grant of the lease that is released with its last level; 0 if there are levels left.
  GrantId leave(Instant now, RequestId request, const OwnerKey& key);
  /// False if there is no such call of an owner.
  bool cancel(Instant now, RequestId request, Errc why);
  /// Continues with the results of acquisitions and leases for the queues. False if there were
  /// none.
  bool advance(Instant now);

  [[nodiscard]] Instant deadline() const { return queues_.deadline(); }
  void on_deadline(Instant now);

 private:
  using QueueId = std::uint64_t;

  [[nodiscard]] QueueId queue_of(const OwnerKey& key);
  /// After every input to a queue: performs the queue's next steps.
  void perform(Instant now, QueueId id);
  [[nodiscard]] RequestId begin_inner(QueueId id);

  const Electorate& electorate_;
  RandomSource& random_;
  Acquirer& acquirer_;
  Leases& leases_;
  Outbox& out_;
  QueueId last_queue_ = 0;
  RequestId last_inner_ = first_inner_request;
  MachineTable<OwnerQueue> queues_;
  std::unordered_map<OwnerKey, QueueId, OwnerKey::Hash> by_key_;
  std::unordered_map<RequestId, QueueId> calls_;
  /// What is under way for a queue, one at a time.
  std::unordered_map<RequestId, QueueId> inner_;
  OwnerQueue::Steps steps_;
};

}  // namespace redlock::engine
