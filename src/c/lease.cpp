// SPDX-License-Identifier: MIT
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <redlock/lease.hpp>
#include <redlock/lock.hpp>
#include <redlock/redlock.h>

#include "c/client.hpp"
#include "c/last_error.hpp"
#include "c/lost_descriptor.hpp"
#include "c/options.hpp"

using redlock::c::fail;
using redlock::c::guarded;
using redlock::c::refuse;

struct redlock_lease {
  explicit redlock_lease(redlock::Lease granted)
      : lease(std::move(granted)), name(lease.name()), owner(lease.owner()) {}

  redlock::Lease lease;
  std::string name;   // kept, as the lease may be given back
  std::string owner;  // kept, too
  std::mutex making;
  std::optional<redlock::c::LostDescriptor> descriptor;
};

namespace redlock::c {
namespace {

static_assert(static_cast<int>(LossReason::expired) + 1 == REDLOCK_LOSS_EXPIRED);
static_assert(static_cast<int>(LossReason::taken) + 1 == REDLOCK_LOSS_TAKEN);
static_assert(static_cast<int>(LossReason::nodes_unavailable) + 1 ==
              REDLOCK_LOSS_NODES_UNAVAILABLE);
static_assert(static_cast<int>(LossReason::closed) + 1 == REDLOCK_LOSS_CLOSED);
static_assert(static_cast<int>(LossReason::forced) + 1 == REDLOCK_LOSS_FORCED);
static_assert(static_cast<int>(Released::released) == REDLOCK_RELEASED);
static_assert(static_cast<int>(Released::already_gone) == REDLOCK_ALREADY_GONE);
static_assert(static_cast<int>(Released::unknown) == REDLOCK_UNKNOWN);

constexpr const char* no_lease = "lease is NULL";

int make_descriptor(redlock_lease& lease) {
  const std::lock_guard lock(lease.making);
  if (!lease.descriptor) lease.descriptor.emplace(lease.lease.lost());
  const int descriptor = lease.descriptor->get();
  if (descriptor < 0) lease.descriptor.reset();
  return descriptor;
}

}  // namespace
}  // namespace redlock::c

redlock_status redlock_acquire(redlock_client* client, const char* name,
                               const redlock_acquire_options* options, redlock_lease** lease) {
  return guarded([=] {
    if (lease == nullptr) return refuse("lease is NULL: give the address of a pointer");
    *lease = nullptr;
    if (client == nullptr) return refuse("client is NULL");
    if (name == nullptr) return refuse("name is NULL: say which lock to take");
    const auto known = redlock::c::to_options(options);
    if (!known) return fail(known.error());
    auto granted = client->client.lock(name).acquire(known->options, known->stop);
    if (!granted) return fail(granted.error());
    *lease = std::make_unique<redlock_lease>(std::move(*granted)).release();
    return REDLOCK_OK;
  });
}

uint64_t redlock_lease_token(const redlock_lease* lease) {
  return lease == nullptr ? 0 : lease->lease.token();
}

const char* redlock_lease_name(const redlock_lease* lease) {
  return lease == nullptr ? "" : lease->name.c_str();
}

const char* redlock_lease_owner(const redlock_lease* lease) {
  return lease == nullptr ? "" : lease->owner.c_str();
}

int redlock_lease_valid(const redlock_lease* lease) {
  return lease != nullptr && lease->lease.valid() ? 1 : 0;
}

int64_t redlock_lease_remaining_ms(const redlock_lease* lease) {
  if (lease == nullptr) return 0;
  return std::chrono::duration_cast<std::chrono::milliseconds>(lease->lease.remaining()).count();
}

int redlock_lease_lost_fd(redlock_lease* lease) {
  int descriptor = -1;
  [[maybe_unused]] const auto status = guarded([lease, &descriptor] {
    if (lease == nullptr) return refuse(redlock::c::no_lease);
    descriptor = redlock::c::make_descriptor(*lease);
    if (descriptor >= 0) return REDLOCK_OK;
    return redlock::c::out_of_resources("this program has no descriptor left");
  });
  return descriptor;
}

redlock_loss redlock_lease_loss(const redlock_lease* lease) {
  const auto reason = lease == nullptr ? std::nullopt : lease->lease.loss_reason();
  return reason ? static_cast<redlock_loss>(static_cast<int>(*reason) + 1) : REDLOCK_NOT_LOST;
}

redlock_status redlock_lease_extend(redlock_lease* lease, int64_t lease_ms) {
  return guarded([=] {
    if (lease == nullptr) return refuse(redlock::c::no_lease);
    const auto until = lease->lease.extend(std::chrono::milliseconds(lease_ms));
    return until ? REDLOCK_OK : fail(until.error());
  });
}

redlock_status redlock_lease_confirm(redlock_lease* lease) {
  return guarded([=] {
    if (lease == nullptr) return refuse(redlock::c::no_lease);
    const auto until = lease->lease.confirm();
    return until ? REDLOCK_OK : fail(until.error());
  });
}

redlock_status redlock_lease_release(redlock_lease* lease, redlock_released* found) {
  return guarded([=] {
    if (lease == nullptr) return refuse(redlock::c::no_lease);
    const auto released = lease->lease.release();
    if (!released) return fail(released.error());
    if (found != nullptr) *found = static_cast<redlock_released>(*released);
    return REDLOCK_OK;
  });
}

void redlock_lease_destroy(redlock_lease* lease) {
  const std::unique_ptr<redlock_lease> owned(lease);
}
