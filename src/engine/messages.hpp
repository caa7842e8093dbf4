// SPDX-License-Identifier: MIT
// The messages of the engine to a node, and the possible replies. The driver turns a Command into
// one script call and one answer (or one failure) into a Reply; it decides nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include <redlock/error.hpp>

#include "engine/nodes/objection.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

/// A call that waits for a lock, as the nodes know it: for its whole life, whatever owners its
/// attempts have. Nodes order waiters by ticket, then by client and number.
struct Waiter {
  std::uint64_t number = 0;  ///< of this client, never used again; 0: nobody waits
  std::int64_t ticket = 0;   ///< the nodes' clock, as estimated when the call began, in us
};

/// Take the lock for this owner unless somebody else has it; a new grant's token is at least floor.
struct AcquireCommand {
  Name name;
  OwnerId owner;
  std::chrono::milliseconds lease{};
  Token floor = 0;
  bool marker_wanted = false;  ///< refused by a node without a marker
  Instant since{};             ///< when the attempt began; for people who look at the lock
  bool in_order = false;       ///< refused while the lock is free and another waiter is before it
  Waiter waiter{};             ///< is put into the node's queue by a refusal
};

/// If the lock is still this owner's: set the absolute count, raise the fence to the token (0:
/// leave it alone), make the lease last this long from now if it would end earlier.
struct HoldCommand {
  Name name;
  OwnerId owner;
  std::chrono::milliseconds lease{};
  std::uint32_t count = 1;
  Token token = 0;
  /// Equal names that are different objects make different holds.
  friend bool operator==(const HoldCommand&, const HoldCommand&) = default;
};

/// Delete the lock if it is this owner's, and wake the next waiter.
struct ReleaseCommand {
  Name name;
  OwnerId owner;
  bool alone = false;       ///< in a call of its own: an error of another release must not fail it
  Waiter waiter{};          ///< leaves the queue
  bool stays = false;       ///< false: the waiter is put into the queue, in its place, before the
                            ///< next one is woken
  Instant since{};          ///< when that waiter's attempt began; for people who look at the queue
  bool first_only = false;  ///< other nodes tell the second waiter when it may ask
};

/// Delete the lock if it is this owner's, and refuse this owner for that long, so that no late
/// message and no heal brings the lock back.
struct ForceCommand {
  Name name;
  OwnerId owner;
  std::chrono::milliseconds keep_out{};
};

using Command = std::variant<AcquireCommand, HoldCommand, ReleaseCommand, ForceCommand>;

/// Comes back with the reply, so that the command need not be kept. The driver adds the
/// node, which it knows.
struct Tag {
  /// The purpose of the message. Observers see it as a NodeCommand, or not at all.
  enum class Kind : std::uint8_t {
    acquire,
    heal,    ///< an AcquireCommand for a lease that is held, on a node that has it no more
    settle,  ///< a HoldCommand that carries a token to its attempt's nodes
    hold,
    release,
    force,
  };
  GrantId grant = 0;
  Instant sent{};
  std::chrono::milliseconds lease{};  ///< the number of levels that a confirmation of this message
                                      ///< confirms
  std::uint32_t round = 0;
  Kind kind = Kind::acquire;
  GrantId enters = 0;  ///< of a release: the attempt whose waiter it puts into the queue
};

/// How a script is sent: by its digest, or in full after NOSCRIPT.
enum class Form : std::uint8_t { digest, source };

// Replies to acquire.
struct Granted {
  Token token = 0;
};
/// The lock is this owner's already; it lasts one lease from now, if it would have ended earlier.
/// Right for a heal; to a first acquire it means that another process has drawn the same owner.
struct AlreadyOurs {};
struct Refused {
  std::optional<std::chrono::milliseconds>
      expires_in;             ///< PTTL; none if it never expires by itself
  bool foreign_type = false;  ///< a key of another type stands in the lock's place
  std::uint32_t place = 0;    ///< how many waiters are before the asking one
};
// Replies to hold.
struct Held {
  Token fence = 0;
};
struct Free {};
struct Taken {
  bool foreign_type = false;
};
// Reply to acquire and hold.
/// The lock is not this owner's, and will not be again: the owner was forced out.
struct ForcedOut {};
// Replies to release and force.
// How many are before the waiter that was put into the queue, if one was.
struct ReleasedHere {
  std::optional<std::uint32_t> place;
};
struct NotHeld {
  std::optional<std::uint32_t> place;
};
// Replies to anything.
struct NoScript {};

/// Whether the node may have seen the command that got no proper answer.
enum class Delivery : std::uint8_t {
  not_sent,  ///< not one byte of it left this process
  unknown,   ///< it may have been executed, or may be executed later on that connection
  refused,   ///< the node answered with an error and changed nothing
};

struct Unavailable {
  Cause cause = Cause::none;
  Delivery delivery = Delivery::unknown;
  std::string detail;     ///< the words of the node or the connection
  Objection objection{};  ///< the engine's objection to the node
};

using Reply = std::variant<Granted, Refused, Held, Free, Taken, ReleasedHere, NotHeld, NoScript,
                           Unavailable, ForcedOut, AlreadyOurs>;

/// The place in which the release has put the waiter that it named, if it did.
[[nodiscard]] inline std::optional<std::uint32_t> entered_place(const Reply& reply) {
  if (const auto* released = std::get_if<ReleasedHere>(&reply)) return released->place;
  if (const auto* not_held = std::get_if<NotHeld>(&reply)) return not_held->place;
  return {};
}

/// Whether the node has dealt with the command, so that it cannot do so later.
[[nodiscard]] inline bool executed(const Reply& reply) {
  const auto* unavailable = std::get_if<Unavailable>(&reply);
  return unavailable == nullptr || unavailable->delivery == Delivery::refused;
}

/// For a node whose reply is not one that the command can have.
inline constexpr const char* answered_otherwise = "its answer belongs to another command";

/// The result for a node that has not answered when the node timeout is over.
[[nodiscard]] inline Unavailable no_answer() {
  return {Cause::timed_out, Delivery::unknown, "no answer within the node timeout"};
}

/// The same for a node that was never connected, while the first attempt to connect has not ended.
[[nodiscard]] inline Unavailable not_connected_yet() {
  return {Cause::connecting, Delivery::not_sent, "its first connection is still being made"};
}

}  // namespace redlock::engine
