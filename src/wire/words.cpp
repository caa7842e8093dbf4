// SPDX-License-Identifier: MIT
#include "wire/words.hpp"

#include <chrono>
#include <cstdint>
#include <variant>

#include "text/characters.hpp"
#include "wire/objection_text.hpp"

namespace redlock::wire {
namespace {

using engine::Instant;
using std::to_string;
using text::in_quotes;

template <typename Unit, typename Duration>
std::string count(Duration duration) {
  return to_string(std::chrono::duration_cast<Unit>(duration).count());
}

std::string in_ms(engine::Duration duration) {
  return count<std::chrono::milliseconds>(duration) + " ms";
}

std::string in_us(engine::Duration duration) {
  return count<std::chrono::microseconds>(duration) + " us";
}

std::string of_grant(engine::GrantId grant) {
  return "grant " + to_string(grant);
}

std::string of_node(engine::NodeIndex node, NodeAddresses nodes) {
  std::string words = "node " + to_string(node);
  if (node < nodes.size()) words += " (" + text::visible(nodes[node].label) + ")";
  return words;
}

/// What the message is for. Without a grant it is about no attempt: a client leaves a line, say.
std::string purpose(const engine::Tag& tag) {
  const std::string kind = engine::in_words(tag.kind);
  return tag.grant == 0 ? kind : kind + " for " + of_grant(tag.grant);
}

std::string behind_colon(const std::string& detail) {
  return detail.empty() ? detail : ": " + text::visible(detail);
}

std::string votes_in(const std::vector<engine::Ballot>& ballots) {
  std::string words = "[";
  for (const engine::Ballot& ballot : ballots) {
    if (!ballot.counts) continue;
    if (words.size() > 1) words += ", ";
    words += ballot.vote == Vote::unavailable ? to_string(ballot.cause) : to_string(ballot.vote);
  }
  return words + "]";
}

struct CommandWords {
  std::string operator()(const engine::AcquireCommand& c) const {
    std::string words = ", floor " + to_string(c.floor) + ", lease " + in_ms(c.lease);
    words += at(c.place);
    if (c.next_waited) words += ", the next call waited " + in_us(*c.next_waited);
    return words;
  }
  std::string operator()(const engine::HoldCommand& c) const {
    return ", token " + to_string(c.token) + ", count " + to_string(c.count) + ", lease " +
           in_ms(c.lease);
  }
  std::string operator()(const engine::ReleaseCommand& c) const { return at(c.place); }
  std::string operator()(const engine::LeaveCommand& c) const {
    const bool heir = c.next.line != 0;
    return in_line(c.line) + (heir ? ", for a call that waited " + in_us(c.next.waited) : "");
  }
  /// Others have no more to add to their purpose and name than a lease.
  std::string operator()(const auto& c) const {
    if constexpr (requires { c.lease; }) return ", lease " + in_ms(c.lease);
    return "";
  }

 private:
  static std::string in_line(std::uint64_t line) { return ", line " + to_string(line); }
  static std::string at(const engine::Place& place) {
    return place.line == 0 ? "" : in_line(place.line) + ", waited " + in_us(place.waited);
  }
};

struct ReplyWords {
  std::string operator()(const engine::Granted& r) const {
    const std::string words = "granted " + to_string(r.token);
    return r.next_place ? words + ", the next call behind " + to_string(*r.next_place) : words;
  }
  std::string operator()(const engine::Refused& r) const {
    if (r.foreign_type) return "refused, a foreign key";
    const std::string words = r.expires_in ? "refused, free in " + in_ms(*r.expires_in) : "refused";
    return r.place == 0 ? words : words + ", behind " + to_string(r.place);
  }
  std::string operator()(const engine::Held& r) const { return "held " + to_string(r.fence); }
  std::string operator()(const engine::Taken& r) const {
    return r.foreign_type ? "taken, a foreign key" : "taken";
  }
  std::string operator()(const engine::Unavailable& r) const {
    static constexpr const char* deliveries[] = {"not sent", "perhaps executed", "refused"};
    return std::string("unavailable: ") + to_string(r.cause) + " (" +
           deliveries[static_cast<int>(r.delivery)] + ")";
  }
  /// The others always read the same.
  std::string operator()(const auto& r) const { return r.words; }
};

struct ResultWords {
  Instant now;

  [[nodiscard]] std::string valid_for(Instant until) const {
    return "valid for " + in_ms(until - now);
  }

  std::string operator()(const engine::AcquireSucceeded& r) const {
    return "acquired, " + of_grant(r.grant) + ", token " + to_string(r.token) + ", " +
           valid_for(r.valid_until);
  }
  std::string operator()(const engine::ReleaseDone& r) const { return to_string(r.outcome); }
  std::string operator()(const engine::ExtendSucceeded& r) const {
    return "extended, " + valid_for(r.valid_until);
  }
  std::string operator()(const engine::BroadcastDone& r) const {
    std::string words = "replies [";
    for (const engine::Reply& reply : r.replies) {
      if (&reply != r.replies.data()) words += ", ";
      words += in_words(reply);
    }
    return words + "]";
  }
  std::string operator()(const engine::EnterSucceeded& r) const {
    return "entered, count " + to_string(r.count) + ", " + valid_for(r.valid_until);
  }
  std::string operator()(const engine::Failed& r) const {
    return to_string(r.code) + (" " + votes_in(r.ballots)) + behind_colon(r.detail);
  }
};

struct OutputWords {
  Instant now;
  NodeAddresses nodes;

  std::string operator()(const engine::Finish& o) const {
    return "request " + to_string(o.request) + " ends: " + std::visit(ResultWords{now}, o.result);
  }
  std::string operator()(const engine::ValidityChanged& o) const {
    return of_grant(o.grant) + " is now " + ResultWords{now}.valid_for(o.valid_until);
  }
  std::string operator()(const engine::LeaseLost& o) const {
    return of_grant(o.grant) + " is lost: " + to_string(o.reason);
  }
  std::string operator()(const engine::AttemptDecided& o) const {
    return "attempt for " + in_quotes(*o.name) +
           " decided: " + (o.failure ? to_string(*o.failure) : "won") + " " + votes_in(o.ballots);
  }
  std::string operator()(const engine::RenewalDecided& o) const {
    return of_grant(o.grant) + ": renewal " + (o.ok ? "confirmed" : "failed");
  }
  std::string operator()(const engine::AttemptWaits& o) const {
    return "attempt for " + in_quotes(*o.name) + " waits behind " + to_string(o.place) +
           (o.first ? " " + votes_in(o.ballots) : "");
  }
  std::string operator()(const engine::WaitEnded& o) const {
    return of_grant(o.grant) + " of " + in_quotes(*o.name) + " came after " + in_us(o.waited);
  }
  std::string operator()(const engine::HoldEnded& o) const {
    return of_grant(o.grant) + " of " + in_quotes(*o.name) + " was held for " + in_us(o.held);
  }
  std::string operator()(const engine::NodeClockMoved& o) const {
    return "the clock of " + of_node(o.node, nodes) + " moved by " + in_ms(o.by) +
           (o.ours ? ", so it is our own" : "");
  }
};

}  // namespace

std::string in_words(const engine::Reply& reply) {
  return std::visit(ReplyWords{}, reply);
}

std::string in_words(const engine::Send& send, NodeAddresses nodes) {
  const auto& name = std::visit([](const auto& command) { return command.name; }, send.command);
  std::string words = of_node(send.node, nodes) + " <- " + purpose(send.tag) + ": " +
                      in_quotes(*name) + std::visit(CommandWords{}, send.command);
  if (send.form == engine::Form::source) words += " (with its source)";
  return words;
}

std::string in_words(Instant now, engine::NodeIndex node, const engine::Tag& tag,
                     const engine::Reply& reply, NodeAddresses nodes) {
  std::string words = of_node(node, nodes) + " -> " + in_words(reply) + " (" + purpose(tag) + ", " +
                      in_us(now - tag.sent) + ")";
  const auto* const why = std::get_if<engine::Unavailable>(&reply);
  return why == nullptr ? words : words + behind_colon(sentence_of(why->objection, why->detail));
}

std::string in_words(engine::NodeIndex node, const Wake& wake, NodeAddresses nodes) {
  std::string words = of_node(node, nodes) + " -> wakes line " + to_string(wake.line);
  if (wake.after.count() != 0) words += ", whose turn comes in " + in_ms(wake.after);
  return words;
}

std::string in_words(engine::NodeIndex node, std::string_view warning, NodeAddresses nodes) {
  return of_node(node, nodes) + " may vote" + behind_colon(std::string(warning));
}

std::string in_words(engine::NodeIndex node, const engine::Unavailable& why, NodeAddresses nodes) {
  return of_node(node, nodes) + " cannot vote: " + to_string(why.cause) +
         behind_colon(sentence_of(why.objection, why.detail));
}

std::string in_words(Instant now, const engine::ClientOutput& output, NodeAddresses nodes) {
  return std::visit(OutputWords{now, nodes}, output);
}

}  // namespace redlock::wire
