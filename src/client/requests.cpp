// SPDX-License-Identifier: MIT
#include "client/requests.hpp"

#include <optional>
#include <utility>

#include "client/options_check.hpp"
#include "client/sentence.hpp"

namespace redlock::client {

namespace {

bool renews(const AcquireOptions& options) {
  switch (options.renewal) {
    case Renewal::always:
      return true;
    case Renewal::never:
      return false;
    case Renewal::when_no_lease_given:
      break;
  }
  return !options.lease.has_value();
}

/// Waiting for longer than a century is waiting for ever, and does not overflow.
engine::Duration waiting_time(std::chrono::milliseconds wait) {
  constexpr std::chrono::milliseconds century = std::chrono::hours(24 * 36'525);
  return wait > century ? engine::Duration::max() : engine::Duration(wait);
}

/// The lease to ask for, if everything about the call can work.
Result<std::chrono::milliseconds> check_call(const std::string& name, const AcquireOptions& options,
                                             const ClientOptions& client) {
  if (auto ok = check_name(name); !ok) return tl::make_unexpected(std::move(ok.error()));
  return check_acquire_options(options, client);
}

}  // namespace

Result<AskAcquire> ask_acquire(engine::Name name, const AcquireOptions& options,
                               const ClientOptions& client) {
  const auto lease = check_call(*name, options, client);
  if (!lease) return tl::make_unexpected(lease.error());
  AskAcquire ask;
  ask.request.name = std::move(name);
  ask.request.lease = *lease;
  ask.request.min_validity = options.min_validity.value_or(client.min_validity);
  ask.request.renew = renews(options);
  ask.request.max_hold = options.max_hold;
  ask.request.wait = waiting_time(options.wait);
  ask.request.deadline = options.deadline.value_or(engine::never);
  ask.request.in_order = options.ordering.value_or(client.ordering) == Ordering::fifo;
  ask.stop = options.stop;
  return ask;
}

Result<AskAttach> ask_attach(engine::Name name, const Grant& grant, const AcquireOptions& options,
                             const ClientOptions& client) {
  const auto lease = check_call(*name, options, client);
  if (!lease) return tl::make_unexpected(lease.error());
  const auto owner = parse_owner(grant.owner);
  if (!owner) return tl::make_unexpected(owner.error());
  if (grant.token >= engine::token_limit) {
    return tl::make_unexpected(
        Error{Errc::invalid_argument,
              "the token " + std::to_string(grant.token) + " was never given: tokens end at 2^53",
              {}});
  }
  AskAttach ask;
  ask.request.name = std::move(name);
  ask.request.owner = *owner;
  ask.request.token = grant.token;
  ask.request.lease = *lease;
  ask.request.renew = renews(options);
  ask.request.max_hold = options.max_hold;
  ask.deadline = options.deadline.value_or(engine::never);
  ask.stop = options.stop;
  return ask;
}

Result<AskTake> ask_take(HeldLocks::Key key, std::weak_ptr<HeldLocks::Handle> handle,
                         const AcquireOptions& options, const ClientOptions& client) {
  auto ask = ask_acquire(key.name, options, client);
  if (!ask) return tl::make_unexpected(std::move(ask.error()));
  return AskTake{std::move(key), std::move(handle), std::move(ask->request), std::move(ask->stop)};
}

Result<AskReleaseGrant> ask_release(engine::Name name, const Grant& grant,
                                    const ClientOptions& client) {
  if (auto ok = check_name(*name); !ok) return tl::make_unexpected(std::move(ok.error()));
  const auto owner = parse_owner(grant.owner);
  if (!owner) return tl::make_unexpected(owner.error());
  return AskReleaseGrant{std::move(name), *owner, client.max_lease};
}

}  // namespace redlock::client
