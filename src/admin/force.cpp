// SPDX-License-Identifier: MIT
// Releasing by force: first finds the owner, then removes the lock of that owner and of no other.
// Deleting the key whoever owns it could hit the next holder, by a late message or on a slow node.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include <redlock/admin.hpp>

#include "client/call_for.hpp"
#include "client/options_check.hpp"
#include "wire/objection_text.hpp"

namespace redlock {
namespace {

/// Whether there is an owner that holds the lock, or may hold it with nodes that did not answer.
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
    result.nodes.push_back({{node.node, node.trouble}, what});
  }
  return result;
}

NodeForced on_node(const std::string& label, const engine::Reply& reply) {
  if (std::holds_alternative<engine::ReleasedHere>(reply))
    return {{label, {}}, ForcedHere::removed};
  if (std::holds_alternative<engine::NotHeld>(reply)) return {{label, {}}, ForcedHere::not_held};
  const auto* const why = std::get_if<engine::Unavailable>(&reply);
  if (why == nullptr) return {{label, {Cause::protocol_error, engine::answered_otherwise}}};
  return {{label, {why->cause, wire::sentence_of(why->objection, why->detail)}}};
}

struct AskForce {
  engine::Name of;
  engine::OwnerId owner;
  std::uint32_t quorum = 0;  // of the members, who may be more than those that are told

  [[nodiscard]] const std::string& name() const { return *of; }
  void ask_engine(Client::Impl& client, engine::Instant now, engine::RequestId id) const {
    client.core().engine().force_release(now, id, of, owner);
  }
  [[nodiscard]] Result<ForcedRelease> read(Client::Impl& client,
                                           const client::EngineResult& result) const {
    const auto& [replies] = std::get<engine::BroadcastDone>(result);
    ForcedRelease report;
    report.name = name();
    report.owner = engine::to_hex(owner);
    const auto nodes = client.nodes();
    for (engine::NodeIndex node = 0; node < replies.size(); ++node) {
      if (nodes[node].label.empty()) continue;
      report.nodes.push_back(on_node(nodes[node].label, replies[node]));
      report.removed += report.nodes.back().what == ForcedHere::removed;
      report.confirmed += report.nodes.back().what != ForcedHere::unreachable;
    }
    report.quorum = quorum;
    // A quorum that turns the owner away is enough for good, as no quorum can confirm the owner any
    // more. Nothing is owed to the other nodes: what they have ends with its lease.
    if (report.confirmed >= report.quorum) {
      report.outcome = report.removed > 0 ? Forced::released : Forced::nothing_held;
    }
    return report;
  }
};

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
  return client_->impl()->perform(Result<AskForce>(
      AskForce{std::make_shared<const std::string>(name), *owner, report->quorum}));
}

const char* to_string(Forced outcome) noexcept {
  switch (outcome) {
    case Forced::released:
      return "released";
    case Forced::nothing_held:
      return "nothing_held";
    case Forced::unknown:
      return "unknown";
  }
  return "unknown";
}

const char* to_string(ForcedHere what) noexcept {
  switch (what) {
    case ForcedHere::removed:
      return "removed";
    case ForcedHere::not_held:
      return "not_held";
    case ForcedHere::not_told:
      return "not_told";
    case ForcedHere::unreachable:
      return "unreachable";
  }
  return "unknown";
}

}  // namespace redlock
