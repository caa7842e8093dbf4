// SPDX-License-Identifier: MIT
#include "simulation/words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <variant>

namespace redlock::simulation {
namespace {

std::int64_t ms(engine::Instant instant) {
  return instant.time_since_epoch().count() / 1'000'000;
}

std::int64_t in_us(engine::Duration duration) {
  return duration / std::chrono::microseconds(1);
}

std::string ballots_in_words(const std::vector<engine::Ballot>& ballots) {
  std::string text;
  for (const engine::Ballot& ballot : ballots) {
    if (!text.empty()) text += ", ";
    switch (ballot.vote) {
      case Vote::pending:
        text += "pending";
        break;
      case Vote::granted:
        text += "granted";
        break;
      case Vote::refused:
        text += "refused";
        break;
      case Vote::unavailable:
        text += in_words(ballot.cause);
        break;
    }
  }
  return text;
}

struct ReplyWords {
  std::string operator()(const engine::Granted& r) const {
    return fmt::format("granted {}", r.token);
  }
  std::string operator()(const engine::Refused& r) const {
    if (r.foreign_type) return "refused, a foreign key";
    return r.expires_in ? fmt::format("refused, free in {} ms", r.expires_in->count()) : "refused";
  }
  std::string operator()(const engine::Held& r) const { return fmt::format("held {}", r.fence); }
  std::string operator()(const engine::Free&) const { return "free"; }
  std::string operator()(const engine::Taken& r) const {
    return r.foreign_type ? "taken, a foreign key" : "taken";
  }
  std::string operator()(const engine::ReleasedHere&) const { return "released"; }
  std::string operator()(const engine::NotHeld&) const { return "not held"; }
  std::string operator()(const engine::Left&) const { return "left"; }
  std::string operator()(const engine::NoScript&) const { return "no script"; }
  std::string operator()(const engine::ForcedOut&) const { return "forced out"; }
  std::string operator()(const engine::AlreadyOurs&) const { return "this owner's already"; }
  std::string operator()(const engine::Unavailable& r) const {
    static constexpr const char* deliveries[] = {"not sent", "perhaps executed", "refused"};
    return fmt::format("unavailable: {} ({})", in_words(r.cause),
                       deliveries[static_cast<int>(r.delivery)]);
  }
};

struct ResultWords {
  std::string operator()(const engine::AcquireSucceeded& r) const {
    return fmt::format("acquired, grant {} token {} valid until {} ms of its clock", r.grant,
                       r.token, ms(r.valid_until));
  }
  std::string operator()(const engine::ReleaseDone& r) const { return in_words(r.outcome); }
  std::string operator()(const engine::ExtendSucceeded& r) const {
    return fmt::format("extended until {} ms of its clock", ms(r.valid_until));
  }
  std::string operator()(const engine::ForceDone& r) const {
    return fmt::format("forced, {} removed, {} confirmed", r.removed.size(), r.confirmed);
  }
  std::string operator()(const engine::EnterSucceeded& r) const {
    return fmt::format("entered, count {} valid until {} ms of its clock", r.count,
                       ms(r.valid_until));
  }
  std::string operator()(const engine::Failed& r) const {
    return fmt::format("{} [{}] {}", in_words(r.code), ballots_in_words(r.ballots), r.detail);
  }
};

struct OutputWords {
  std::string operator()(const engine::Send& o) const { return in_words(o); }
  std::string operator()(const engine::ReadClocks&) const { return "reads every node's clock"; }
  std::string operator()(const engine::Finish& o) const {
    return fmt::format("request {} ends: {}", o.request, std::visit(ResultWords{}, o.result));
  }
  std::string operator()(const engine::ValidityChanged& o) const {
    return fmt::format("grant {} now valid until {} ms of its clock", o.grant, ms(o.valid_until));
  }
  std::string operator()(const engine::LeaseLost& o) const {
    return fmt::format("grant {} is lost: {}", o.grant, in_words(o.reason));
  }
  std::string operator()(const engine::AttemptDecided& o) const {
    return fmt::format("attempt for {} decided: {} [{}]", *o.name,
                       o.failure ? in_words(*o.failure) : "won", ballots_in_words(o.ballots));
  }
  std::string operator()(const engine::RenewalDecided& o) const {
    return fmt::format("grant {}: renewal {}", o.grant, o.ok ? "confirmed" : "failed");
  }
  std::string operator()(const engine::TendMarker& o) const {
    return fmt::format("{} the marker of node {}", o.write ? "writes" : "looks for", o.node);
  }
  std::string operator()(const engine::AttemptWaits& o) const {
    return fmt::format("{} waits behind {}", *o.name, o.place);
  }
  std::string operator()(const engine::WaitEnded& o) const {
    return fmt::format("grant {} came after {} us", o.grant,
                       o.waited / std::chrono::microseconds(1));
  }
  std::string operator()(const engine::HoldEnded& o) const {
    return fmt::format("grant {} was held for {} us", o.grant,
                       o.held / std::chrono::microseconds(1));
  }
  std::string operator()(const engine::NodeClockMoved& o) const {
    return fmt::format("the clock of node {} moved by {} ms{}", o.node,
                       o.by / std::chrono::milliseconds(1), o.ours ? ", so it is our own" : "");
  }
};

}  // namespace

std::string in_words(const ScriptRun& run) {
  std::string reply(run.reply);
  for (std::size_t at = 0; (at = reply.find("\r\n", at)) != std::string::npos; ++at) {
    reply.replace(at, 2, " ");
  }
  return fmt::format("{} {} | {} -> {}", run.script, fmt::join(run.keys, " "),
                     fmt::join(run.arguments, " "), reply);
}

std::string in_words(const engine::Send& send) {
  static constexpr const char* kinds[] = {"acquire", "heal",  "settle", "hold",
                                          "release", "force", "leave"};
  std::string text = fmt::format("{} to node {} for grant {}",
                                 kinds[static_cast<int>(send.tag.kind)], send.node, send.tag.grant);
  if (const auto* acquire = std::get_if<engine::AcquireCommand>(&send.command)) {
    text += fmt::format(" floor {} lease {} ms", acquire->floor, acquire->lease.count());
    const engine::Place& place = acquire->place;
    if (place.line != 0)
      text += fmt::format(" line {} waited {} us", place.line, in_us(place.waited));
    if (acquire->next_waited) text += fmt::format(" next {} us", in_us(*acquire->next_waited));
  } else if (const auto* hold = std::get_if<engine::HoldCommand>(&send.command)) {
    text += fmt::format(" token {} count {} lease {} ms round {}", hold->token, hold->count,
                        hold->lease.count(), send.tag.round);
  }
  if (send.form == engine::Form::source) text += " (with its source)";
  return text;
}

std::string in_words(const engine::Reply& reply) {
  return std::visit(ReplyWords{}, reply);
}

std::string in_words(const engine::NodeOutput& output) {
  return std::visit(OutputWords{}, output);
}

std::string in_words(const engine::ClientOutput& output) {
  return std::visit(OutputWords{}, output);
}

const char* in_words(Errc code) {
  static constexpr const char* words[] = {
      "",     "contended", "no_quorum",        "too_late", "timed_out",
      "lost", "cancelled", "invalid_argument", "closed",   "would_deadlock"};
  return words[static_cast<int>(code)];
}

const char* in_words(Cause cause) {
  return to_string(cause);
}

const char* in_words(LossReason reason) {
  static constexpr const char* words[] = {"expired", "taken", "nodes_unavailable", "closed",
                                          "forced"};
  return words[static_cast<int>(reason)];
}

const char* in_words(Released released) {
  static constexpr const char* words[] = {"released", "already_gone", "unknown", "still_held"};
  return words[static_cast<int>(released)];
}

}  // namespace redlock::simulation
