// SPDX-License-Identifier: MIT
// Releasing by force: first who holds it, then away with that owner and with nobody else. Deleting
// whatever a node has could hit the next holder, by a message that is late or by a node that is
// slow.
#include <redlock/admin.hpp>

#include "client/client_impl.hpp"
#include "client/options_check.hpp"

namespace redlock {
namespace {

/// Whether there is an owner who holds it, or may hold it with nodes that did not answer.
bool may_be_held(const LockReport& report) {
  const bool possible = report.verdict == Verdict::held || report.verdict == Verdict::unknown;
  return possible && !report.owner.empty();
}

ForcedRelease nobody_found(const LockReport& report) {
  ForcedRelease result;
  result.name = report.name;
  result.outcome = report.verdict == Verdict::unknown ? Forced::unknown : Forced::nothing_held;
  result.quorum = report.quorum;
  for (const NodeLock& node : report.nodes) {
    const auto what = node.answered() ? ForcedHere::not_told : ForcedHere::unreachable;
    result.nodes.push_back({node.node, what, node.trouble});
  }
  return result;
}

}  // namespace

Result<ForcedRelease> Admin::force_release(std::string_view name) const {
  const auto report = inspect(name);
  if (!report) return tl::make_unexpected(report.error());
  if (!may_be_held(*report)) return nobody_found(*report);
  const auto owner = client::parse_owner(report->owner);
  if (!owner) {
    return tl::make_unexpected(
        Error{Errc::invalid_argument,
              "only what redlock holds can be released by force: " + owner.error().message,
              {}});
  }
  return client_->impl()->perform<client::AskForce>(client::AskForce{
      std::make_shared<const std::string>(name), *owner, client_->impl()->options().max_lease});
}

}  // namespace redlock
