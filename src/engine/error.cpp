// SPDX-License-Identifier: MIT
// Names of codes, votes, causes and results, and the std::error_category "redlock". The sentences
// for people are made in sentence.cpp, where the names and the votes are known.
#include <algorithm>
#include <string>

#include <redlock/error.hpp>
#include <redlock/lease.hpp>
#include <redlock/observer.hpp>

#include "engine/quorum.hpp"

namespace redlock {

namespace {

const char* meaning(Errc code) noexcept {
  switch (code) {
    case Errc::contended:
      return "another owner holds the lock";
    case Errc::no_quorum:
      return "fewer than a quorum of nodes could vote";
    case Errc::too_late:
      return "granted too late to be of use";
    case Errc::timed_out:
      return "the waiting time ended";
    case Errc::lost:
      return "the lease is over or can no longer be trusted";
    case Errc::cancelled:
      return "cancelled by the caller";
    case Errc::invalid_argument:
      return "an argument or option cannot work";
    case Errc::closed:
      return "the client is closed";
    case Errc::would_deadlock:
      return "waiting here would never end";
  }
  return "unknown redlock error";
}

class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "redlock"; }
  [[nodiscard]] std::string message(int code) const override {
    return meaning(static_cast<Errc>(code));
  }
  [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
    switch (static_cast<Errc>(code)) {
      case Errc::timed_out:
        return std::errc::timed_out;
      case Errc::cancelled:
        return std::errc::operation_canceled;
      case Errc::invalid_argument:
        return std::errc::invalid_argument;
      case Errc::would_deadlock:
        return std::errc::resource_deadlock_would_occur;
      default:
        return {code, *this};
    }
  }
};

/// Whether only a change of the configuration can make such a node vote.
bool needs_configuration(const NodeVote& node) {
  if (node.vote != Vote::unavailable) return false;
  return node.cause == Cause::authentication || node.cause == Cause::permission ||
         node.cause == Cause::incompatible || node.cause == Cause::moved ||
         node.cause == Cause::read_only || node.cause == Cause::tls;
}

}  // namespace

bool Error::is_configuration() const {
  const auto fit = std::count_if(votes.begin(), votes.end(),
                                 [](const NodeVote& vote) { return !needs_configuration(vote); });
  const auto nodes = static_cast<std::uint32_t>(votes.size());
  return nodes > 0 && fit < engine::quorum_of(nodes);
}

const std::error_category& error_category() noexcept {
  static const Category category;
  return category;
}

std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

const char* to_string(Errc code) noexcept {
  switch (code) {
    case Errc::contended:
      return "contended";
    case Errc::no_quorum:
      return "no_quorum";
    case Errc::too_late:
      return "too_late";
    case Errc::timed_out:
      return "timed_out";
    case Errc::lost:
      return "lost";
    case Errc::cancelled:
      return "cancelled";
    case Errc::invalid_argument:
      return "invalid_argument";
    case Errc::closed:
      return "closed";
    case Errc::would_deadlock:
      return "would_deadlock";
  }
  return "unknown";
}

const char* to_string(Vote vote) noexcept {
  switch (vote) {
    case Vote::pending:
      return "pending";
    case Vote::granted:
      return "granted";
    case Vote::refused:
      return "refused";
    case Vote::unavailable:
      return "unavailable";
  }
  return "unknown";
}

const char* to_string(Cause cause) noexcept {
  switch (cause) {
    case Cause::none:
      return "none";
    case Cause::timed_out:
      return "timed_out";
    case Cause::connecting:
      return "connecting";
    case Cause::connection_failed:
      return "connection_failed";
    case Cause::connection_lost:
      return "connection_lost";
    case Cause::authentication:
      return "authentication";
    case Cause::permission:
      return "permission";
    case Cause::incompatible:
      return "incompatible";
    case Cause::loading:
      return "loading";
    case Cause::busy:
      return "busy";
    case Cause::write_error:
      return "write_error";
    case Cause::out_of_memory:
      return "out_of_memory";
    case Cause::read_only:
      return "read_only";
    case Cause::master_down:
      return "master_down";
    case Cause::too_few_replicas:
      return "too_few_replicas";
    case Cause::moved:
      return "moved";
    case Cause::marker_missing:
      return "marker_missing";
    case Cause::quarantined:
      return "quarantined";
    case Cause::clock_moved:
      return "clock_moved";
    case Cause::tls:
      return "tls";
    case Cause::protocol_error:
      return "protocol_error";
    case Cause::server_error:
      return "server_error";
  }
  return "unknown";
}

const char* to_string(LossReason reason) noexcept {
  switch (reason) {
    case LossReason::expired:
      return "expired";
    case LossReason::taken:
      return "taken";
    case LossReason::nodes_unavailable:
      return "nodes_unavailable";
    case LossReason::closed:
      return "closed";
    case LossReason::forced:
      return "forced";
  }
  return "unknown";
}

const char* to_string(Released released) noexcept {
  switch (released) {
    case Released::released:
      return "released";
    case Released::already_gone:
      return "already_gone";
    case Released::unknown:
      return "unknown";
    case Released::still_held:
      return "still_held";
  }
  return "unknown";
}

}  // namespace redlock
