// SPDX-License-Identifier: MIT
// Which of its promises a violation breaks. The others are rules by which promises are kept.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace redlock::simulation {

enum class Promise {
  none,
  exclusion,  ///< two leases on a name never overlap, and who was forced out is out
  tokens,     ///< unique, rising, and one node's damage stays there
  knowledge,  ///< what callers are told is true, complete and in time
  tidiness,   ///< an ended grant leaves nothing behind
  order,      ///< who waits is served in turn
  progress,   ///< and soon, and costs the nodes little
};

struct Promised {
  std::string_view rule;
  Promise promise;
};

inline constexpr auto promised = std::to_array<Promised>({
    {"validity intervals of a name never overlap", Promise::exclusion},
    {"two processes that drew one owner do not both hold the lock", Promise::exclusion},
    {"while a lease is valid a quorum of nodes has it", Promise::exclusion},
    {"a node lengthens no lease of former members", Promise::exclusion},
    {"a node without a marker is pending", Promise::exclusion},
    {"a marker that is given back names no former members", Promise::exclusion},
    {"the number of members is changed once in one longest lease", Promise::exclusion},
    {"an owner that was forced out has no quorum any more", Promise::exclusion},
    {"an owner that was forced out is not confirmed again", Promise::exclusion},
    {"a client that starts asks no node whose clock others saw move", Promise::exclusion},
    {"tokens of a name are unique", Promise::tokens},
    {"a token is larger than every one returned before its attempt", Promise::tokens},
    {"a fenced register loses no update", Promise::tokens},
    {"the damage of one fence stays on its node", Promise::tokens},
    {"one absurd clock lifts no floor", Promise::tokens},
    {"every request ends exactly once", Promise::knowledge},
    {"every request ends by its deadline", Promise::knowledge},
    {"no success with too little validity left", Promise::knowledge},
    {"contended means that a quorum voted", Promise::knowledge},
    {"a lease follows an attempt", Promise::knowledge},
    {"a right token is not called wrong", Promise::knowledge},
    {"a lease is not lost before a renewal was asked for", Promise::knowledge},
    {"a lease is renewed for as long as was asked", Promise::knowledge},
    {"a lock that a quorum may have had is not said to be gone", Promise::knowledge},
    {"released means that a quorum had the lock", Promise::knowledge},
    {"a lease is lost once", Promise::knowledge},
    {"who was forced out is told so", Promise::knowledge},
    {"a loss is told a tenth of the lease before the validity ends", Promise::knowledge},
    {"an ended validity is never extended", Promise::knowledge},
    {"a lost lease only ends earlier", Promise::knowledge},
    {"a released lease is not confirmed again", Promise::knowledge},
    {"a lost or released lease is not renewed", Promise::knowledge},
    {"a lost or released lease is not entered", Promise::knowledge},
    {"a lease whose loss was told is lost", Promise::knowledge},
    {"a count is told once a quorum confirmed it", Promise::knowledge},
    {"an entry is one level more than was told before", Promise::knowledge},
    {"an entry tells the validity", Promise::knowledge},
    {"the holder of a lease enters it", Promise::knowledge},
    {"a loss is told to the holder of the lease", Promise::knowledge},
    {"clocks within the bound are not blamed", Promise::knowledge},
    {"it is found out which clock moved", Promise::knowledge},
    {"an ended grant leaves nothing behind", Promise::tidiness},
    {"a key lasts one lease from the last message at most", Promise::tidiness},
    {"with its last level a lease is given back", Promise::tidiness},
    {"a hold sets the count of its message", Promise::tidiness},
    {"a waiting call is not overtaken by a later one", Promise::order},
    {"a call that came too late goes behind the others", Promise::order},
    {"a free lock is granted to a waiting call", Promise::progress},
    {"a call behind one that failed asks when it is to", Promise::progress},
    {"a quorum that is well is not said to be missing", Promise::progress},
    {"a node that is well again is connected to", Promise::progress},
    {"a client that reaches the members of its set knows them", Promise::progress},
    {"a member that lost its data gets its marker back", Promise::progress},
    {"a release gives a waiter its turn", Promise::progress},
    {"a free lock is kept for half a second at most", Promise::progress},
    {"a hand-off costs few messages", Promise::progress},
    {"a client that left is in no line", Promise::tidiness},
    {"a call passes over 64 waiters at most", Promise::progress},
    {"of many waiters those that are dead are taken out", Promise::tidiness},
    {"a key that is no fence and no marker has an end", Promise::tidiness},
    {"a key ends when documents say", Promise::tidiness},
    {"a key holds no more than documents say", Promise::tidiness},
    {"a waiter and a turn end when documents say", Promise::tidiness},
    {"every key on a node is in the documents", Promise::tidiness},
    {"a client that left enters no line", Promise::tidiness},
    {"long after the last client left there is no line", Promise::tidiness},
    // Of scenarios.
    {"locks are where they must be", Promise::tidiness},
    {"counts are what they must be", Promise::tidiness},
});

[[nodiscard]] constexpr Promise promise_of(std::string_view rule) {
  const auto* const found = std::ranges::find(promised, rule, &Promised::rule);
  return found == promised.end() ? Promise::none : found->promise;
}

}  // namespace redlock::simulation
