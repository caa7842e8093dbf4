// SPDX-License-Identifier: MIT
// The messages of the engine to a node, and the possible replies. The driver turns
// Commands into calls of scripts, of which holds and releases share some, and each answer (or
// failure) into a Reply; it decides nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include <redlock/error.hpp>
#include <redlock/observer.hpp>

#include "engine/nodes/objection.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

/// Where a client stands among those that wait for a lock. It stands once in the line of a name,
/// for the first of its calls.
struct Place {
  std::uint64_t line = 0;  ///< the client's number of its own line for the name; 0: it waits not
  Duration waited{};       ///< how long the call has waited when this is sent
  Duration turn{};         ///< for how long a node is to keep the lock for it
  bool is_new = false;     ///< of another call than before, which may have begun later
  friend bool operator==(const Place&, const Place&) = default;
};

/// Take the lock for this owner unless somebody else has it; a new grant's token is at least floor.
struct AcquireCommand {
  Name name;
  OwnerId owner;
  std::chrono::milliseconds lease{};
  Token floor = 0;
  bool marker_wanted = false;  ///< refused by a node without a marker
  Instant since{};             ///< when it is asked; for people who look at the lock
  bool in_order = false;       ///< refused while the lock is free and somebody waits before it
  Place place{};               ///< a refusal stands the client there
  /// From the grant on the client stands there for its next call, which has waited so long.
  std::optional<Duration> next_waited{};
  friend bool operator==(const AcquireCommand&, const AcquireCommand&) = default;
};

/// If the lock is still this owner's: set the absolute count, raise the fence to the token (0:
/// leave it alone), make the lease last this long from now if it would end earlier.
struct HoldCommand {
  Name name;
  OwnerId owner;
  std::chrono::milliseconds lease{};
  std::uint32_t count = 1;
  Token token = 0;
  friend bool operator==(const HoldCommand&, const HoldCommand&) = default;
};

/// Delete the lock if it is this owner's, and tell the next waiter.
struct ReleaseCommand {
  Name name;
  OwnerId owner;
  bool alone = false;       ///< in a call of its own: what is wrong with another must not fail it
  bool first_only = false;  ///< other nodes tell the second waiter when it may ask
  Place place{};    ///< the client goes on waiting, and stands there before the next is told
  Instant since{};  ///< when it is sent; for people who look at the line
  friend bool operator==(const ReleaseCommand&, const ReleaseCommand&) = default;
};

/// Take the client out of the line of a name, or stand it there for another of its calls.
struct LeaveCommand {
  Name name;
  std::uint64_t line = 0;
  Place next{};     ///< of that call, in the same line; line 0: there is none
  Instant since{};  ///< when it is sent; for people who look at the line
  friend bool operator==(const LeaveCommand&, const LeaveCommand&) = default;
};

/// Delete the lock if it is this owner's, and refuse this owner for that long, so that no late
/// message and no heal brings the lock back. A node whose marker names a longer lease than is known
/// here, where nothing may have been read yet, refuses it for longer by as much.
struct ForceCommand {
  Name name;
  OwnerId owner;
  std::chrono::milliseconds keep_out{};
  std::chrono::milliseconds longest_lease{};  ///< for which that is enough
  friend bool operator==(const ForceCommand&, const ForceCommand&) = default;
};

/// Equal names that are different objects make different commands.
using Command =
    std::variant<AcquireCommand, HoldCommand, ReleaseCommand, ForceCommand, LeaveCommand>;

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
    leave,  ///< the line of a name
    // Those behind are sent to every node once (Broadcasts).
    force,
    count,
  };
  static constexpr auto kinds = static_cast<std::size_t>(Kind::count);
  GrantId grant = 0;
  Instant sent{};
  std::chrono::milliseconds lease{};  ///< how long a confirmation makes the lease last, from `sent`
  std::uint32_t round = 0;
  Kind kind = Kind::acquire;
};

/// What each kind is called, and as what observers see it; none: they do not.
struct KindRow {
  const char* words = nullptr;
  std::optional<NodeCommand> seen_as;
};
inline constexpr std::array<KindRow, Tag::kinds> kind_rows{{{"acquire", NodeCommand::acquire},
                                                            {"heal", NodeCommand::heal},
                                                            {"settle", NodeCommand::settle},
                                                            {"hold", NodeCommand::hold},
                                                            {"release", NodeCommand::release},
                                                            {"leave", {}},
                                                            {"force", NodeCommand::force}}};
static_assert(kind_rows.back().words != nullptr);

[[nodiscard]] constexpr const KindRow& row_of(Tag::Kind kind) {
  return kind_rows[static_cast<std::size_t>(kind)];
}
[[nodiscard]] constexpr const char* in_words(Tag::Kind kind) {
  return row_of(kind).words;
}
[[nodiscard]] constexpr bool is_broadcast(Tag::Kind kind) {
  return kind > Tag::Kind::leave;
}

/// How a script is sent: by its digest, or in full after NOSCRIPT.
enum class Form : std::uint8_t { digest, source };

// The replies. One that always reads the same has its words here, the others in wire/words.cpp.

// Replies to acquire.
struct Granted {
  Token token = 0;
  std::optional<std::uint32_t> next_place = {};  ///< how many waiters are before the next call
};
/// The lock is this owner's already; it lasts one lease from now, if it would have ended earlier.
/// Right for a heal; to a first acquire it means that another process has drawn the same owner.
struct AlreadyOurs {
  static constexpr const char* words = "this owner's already";
};
struct Refused {
  std::optional<std::chrono::milliseconds>
      expires_in;  ///< PTTL, or what is left of another waiter's turn; none if it never expires
  bool foreign_type = false;  ///< a key of another type stands where the lock would be
  std::uint32_t place = 0;    ///< how many waiters are before this one
};
// Replies to hold.
struct Held {
  Token fence = 0;
};
struct Free {
  static constexpr const char* words = "free";
};
struct Taken {
  bool foreign_type = false;
};
// Reply to acquire and hold.
/// The lock is not this owner's, and will not be again: the owner was forced out.
struct ForcedOut {
  static constexpr const char* words = "forced out";
};
// Replies to release and force.
struct ReleasedHere {
  static constexpr const char* words = "released";
};
struct NotHeld {
  static constexpr const char* words = "not held";
};
// Reply to leave.
struct LineLeft {
  static constexpr const char* words = "left";
};
// Replies to anything.
struct NoScript {
  static constexpr const char* words = "no script";
};

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

using Reply = std::variant<Granted, Refused, Held, Free, Taken, ReleasedHere, NotHeld, LineLeft,
                           NoScript, Unavailable, ForcedOut, AlreadyOurs>;

/// Whether the node cannot be reached: it has answered nothing. Of one that is connected to for the
/// first time nothing is known.
[[nodiscard]] inline bool unreached(const Reply& reply) {
  const auto* unavailable = std::get_if<Unavailable>(&reply);
  if (unavailable == nullptr) return false;
  return unavailable->cause == Cause::timed_out || unavailable->cause == Cause::connection_failed ||
         unavailable->cause == Cause::connection_lost;
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

/// What is known of a node that did not answer earlier attempts.
[[nodiscard]] inline Unavailable not_waited_for() {
  return {Cause::timed_out, Delivery::unknown,
          "it was out of reach before, and is not waited for until it answers"};
}

/// What is known of a node that has the lock for another process of the same owner.
[[nodiscard]] inline Unavailable shared_owner() {
  return {Cause::server_error, Delivery::refused,
          "another process locks with the same random numbers"};
}

/// What is known of a node that was never connected to, while the first attempt to do so goes on.
[[nodiscard]] inline Unavailable not_connected_yet() {
  return {Cause::connecting, Delivery::not_sent, "its first connection is still being made"};
}

/// What is known of two nodes of which one names members of the set without the other, or a longest
/// lease that the other does not know of.
[[nodiscard]] inline Unavailable other_members() {
  return {Cause::quarantined, Delivery::refused,
          "another node names other members of the set, or leases that may be longer: redlock "
          "doctor tells what is being changed"};
}

}  // namespace redlock::engine
