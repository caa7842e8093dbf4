// SPDX-License-Identifier: MIT
// What kind of world a seed makes: how many nodes and clients, how fast the network, which faults
// and how often, and which promises can be judged in it.
#pragma once

#include <algorithm>
#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "simulation/fault.hpp"
#include "simulation/invariants.hpp"
#include "simulation/node_server.hpp"

namespace redlock::simulation {

using engine::Duration;
using engine::Instant;

/// Which promises hold depends on what may happen; each run is of one kind.
enum class WorldKind : std::uint8_t {
  orderly,    ///< clocks within the bound, no node forgets: everything is judged
  forgetful,  ///< nodes lose data and vote again only when old leases are over: exclusion is judged
  wild_clocks,           ///< clocks beyond the bound: tokens are judged
  forced,                ///< somebody releases other people's leases: tokens are judged
  forced_and_forgetful,  ///< both; who was forced out stays out, and nothing is left behind
  damaged,               ///< somebody deletes fences: exclusion is judged
};

/// Clocks run wrong by this much at most, client and node together: the default drift_factor.
inline constexpr std::int64_t drift_bound_ppm = 10'000;
/// Half of it each, less a little, for a client and a node.
inline constexpr std::int32_t drift_within = 4'500;

/// What is wrong with the counters of one node from the beginning; or a quorum's are far ahead of
/// the clocks, or of all floors, which is no damage.
enum class FenceDamage : std::uint8_t {
  none,
  ahead,
  far,
  text,
  other_type,
  of_quorum,
  of_quorum_last
};

/// What happens to the messages by which nodes wake waiters.
struct WakeFaults {
  std::uint32_t lost = 0;     ///< of a thousand
  std::uint32_t doubled = 0;  ///< likewise
  std::uint32_t late = 0;     ///< likewise: they arrive after all, perhaps on another connection
  Duration forged{};          ///< between two that no node has sent, at most; zero: there are none
};

/// What users may not do on some nodes alone, beside what they may do nowhere.
struct Withheld {
  std::uint32_t nodes = 0;  ///< the first ones
  Denied what = Denied::publish;
  bool on_and_off = false;  ///< and permitted again, and withheld
};

struct Plan {
  std::uint64_t seed = 0;
  WorldKind kind = WorldKind::orderly;
  std::uint32_t clients = 2;
  std::uint32_t users_per_client = 1;
  std::uint32_t owners_per_client = 0;  ///< whose calls share leases
  std::vector<std::string> names;
  engine::Config engine;
  std::vector<std::chrono::milliseconds> leases;
  Duration delay_min{};                    ///< of every message
  Duration delay_jitter{};                 ///< on top, most often little of it
  std::vector<Duration> distances = {};    ///< on top for each client; empty: all are near
  Duration apart{};                        ///< on top for each node but the first, added up
  bool careless = false;                   ///< the first client runs without quarantine
  bool other_sets = false;                 ///< addresses may come to lead to nodes of other sets
  bool flushed_twice = false;              ///< nodes, soon after they had their markers again
  bool promotions = false;                 ///< nodes become replicas, and masters again
  bool durable = true;                     ///< nodes write to disk before they answer
  std::uint32_t slow_per_mille = 0;        ///< messages that take about a node timeout
  Duration think{};                        ///< between two things that a user does, at most
  std::uint32_t contention_per_mille = 0;  ///< requests that wait
  std::uint32_t too_late_clients = 0;  ///< the first ones: nearly all their grants come too late
  std::uint32_t renew_per_mille = 0;
  std::uint32_t keep_per_mille = 0;     ///< steps after which a user keeps its lease
  std::uint32_t special_per_mille = 0;  ///< faults that are of the kind that names the world
  Duration between_probes{};            ///< two readings of a node's clock, at most
  Duration between_faults{};            ///< on average; zero: none
  std::bitset<fault_count> faults;
  FenceDamage fence = FenceDamage::none;  ///< of the first node
  Lie lie = Lie::none;                    ///< of the first node
  bool false_run_id = false;              ///< the last node reports that of the first
  bool absurd_clock = false;              ///< one node's is of the next century
  bool cloned = false;                    ///< now and then two clients draw the same random numbers
  bool older_states = false;              ///< nodes restart with what they had a while ago
  std::uint32_t spares = 0;               ///< servers that become members
  bool members_forget = false;            ///< one at a time, while members change
  std::chrono::milliseconds raised{};     ///< what the longest lease becomes, which some clients
                                          ///< were given before; zero: it stays as it is
  bool parted = false;             ///< clients, each from one node, now and then from another
  bool stopped_half_way = false;   ///< operators, when too few know of a change to make it
  bool crowd = false;              ///< the first client has 250 users, each with its own lock
  std::uint32_t in_order = 0;      ///< calls of three that do not overtake those who wait
  bool waits = false;              ///< clients near the nodes, and how they wait is judged
  std::uint32_t dead_waiters = 0;  ///< in the line of each node at first, before all others
  WakeFaults wakes = {};
  Withheld withheld;
  bool other_settings = false;             ///< the last client was given another longest lease
  std::vector<double> drift_factors = {};  ///< of the clients; all are at least what clocks do
  std::string password = {};               ///< empty: nodes need none
  DeniedCommands denied = {};              ///< what the clients' user may not do
  std::uint32_t cut_per_mille = 0;         ///< writes that arrive in pieces
  std::size_t window = 65'536;             ///< bytes on their way, or not read, on one stream
  bool judges_rules = true;                ///< not only what is promised but also how it is kept
  Duration length{};                       ///< until the faults end and everything is given back

  /// Nodes lose data.
  [[nodiscard]] bool forgets() const {
    return kind == WorldKind::forgetful || kind == WorldKind::forced_and_forgetful;
  }
  [[nodiscard]] bool forces() const {
    return kind == WorldKind::forced || kind == WorldKind::forced_and_forgetful;
  }
  /// What a slow message takes longer than others, at most.
  [[nodiscard]] Duration slowest() const { return engine.node_timeout * 3 / 2; }
  [[nodiscard]] Duration distance_of(std::uint32_t client, std::uint32_t node) const {
    return apart * node + (distances.empty() ? Duration::zero() : distances[client]);
  }
  /// What a handshake takes, but for jitter: it writes some 30,000 bytes, scripts above all.
  [[nodiscard]] Duration handshake() const { return conversation(3, 30'000); }
  /// What a node's marker takes to be written: a script of some 5,000 bytes with its arguments.
  [[nodiscard]] Duration adoption() const { return conversation(1, 5'000); }
  /// So many round trips, and one more for each window of what is written.
  [[nodiscard]] Duration conversation(std::size_t round_trips, std::size_t bytes) const {
    const Duration one_way = delay_min + (slow_per_mille > 0 ? slowest() : Duration::zero());
    return one_way * (2 * round_trips + 2 * bytes / window);
  }
  /// What a message takes that is not slow, at most.
  [[nodiscard]] Duration longest_way() const {
    const auto farthest = std::ranges::max_element(distances);
    return delay_min + delay_jitter + apart * (engine.nodes - 1) +
           (farthest == distances.end() ? Duration::zero() : *farthest);
  }
  [[nodiscard]] bool denies(Denied what) const {
    return denied.test(static_cast<std::size_t>(what));
  }

  /// Every waiter may stand in every line, and the messages that wake it all arrive, in time.
  [[nodiscard]] bool all_wakes_arrive() const {
    return wakes.lost == 0 && wakes.late == 0 && withheld.nodes == 0;
  }

  [[nodiscard]] bool is_fence_of_quorum() const {
    return fence == FenceDamage::of_quorum || fence == FenceDamage::of_quorum_last;
  }
  /// How far a set with spare servers may shrink.
  [[nodiscard]] std::uint32_t fewest_members() const {
    return spares == 0 ? engine.nodes : std::max(2U, engine.nodes - 1);
  }
  [[nodiscard]] bool judges_tokens() const {
    return !forgets() && !members_forget && kind != WorldKind::damaged;
  }
  [[nodiscard]] bool judges_exclusion() const {
    return kind == WorldKind::orderly || kind == WorldKind::forgetful || kind == WorldKind::damaged;
  }
  /// Whether a confirmed lease is really on a quorum of nodes until its validity ends.
  [[nodiscard]] bool judges_possession() const {
    return (kind == WorldKind::orderly || kind == WorldKind::damaged) && spares == 0;
  }
  /// Whether nodes must have nothing of what is over. What a lost connection carried may come at
  /// any time, unless the next one can end it; an older state has what was given back; and what may
  /// be a copy's, by the word of one node, is not deleted. What a replaced member has ends there.
  [[nodiscard]] bool judges_leftovers() const {
    return !denies(Denied::client_kill) && !denies(Denied::client_id) && !older_states &&
           lie != Lie::shared_owner && lie != Lie::any && spares == 0;
  }

  /// Whether two attempts of one owner must exclude each other.
  [[nodiscard]] bool judges_clones() const { return cloned && judges_exclusion(); }
  /// Nothing goes wrong but for the messages that wake waiters.
  [[nodiscard]] bool is_calm() const { return between_faults == Duration::zero(); }
  /// What waiting callers are promised here (docs/waiting.md).
  [[nodiscard]] JudgedWaiting judged_waiting() const;

  /// The first client runs without quarantine.
  [[nodiscard]] bool is_careless(std::uint32_t client) const { return careless && client == 0; }
  [[nodiscard]] std::uint32_t users_of(std::uint32_t client) const {
    return crowd && client == 0 ? static_cast<std::uint32_t>(names.size()) : users_per_client;
  }
  /// How long attempts that wait for each other's turn may take: each asks and settles. One that
  /// waits in order may be told of turns while it has some votes, and asks again each time before
  /// it gives those back: seldom more than thrice.
  [[nodiscard]] Duration turns_of(std::uint32_t client) const {
    const std::uint32_t attempts = users_of(client) + owners_per_client;
    return engine.node_timeout * (in_order > 0 ? 8 : 2) * static_cast<int>(attempts);
  }
  /// Whether the call with this number is one of those.
  [[nodiscard]] bool keeps_order(engine::RequestId request) const { return request % 3 < in_order; }
  [[nodiscard]] engine::Config engine_of(std::uint32_t client) const;
  [[nodiscard]] std::chrono::milliseconds max_lease() const;
  /// Whether the client takes leases of the raised length; and was told so, or goes by the nodes.
  [[nodiscard]] bool takes_raised(std::uint32_t client) const {
    return raised > raised.zero() && client % 3 > 0;
  }
  [[nodiscard]] bool has_raised(std::uint32_t client) const {
    return takes_raised(client) && client % 3 == 1;
  }
  /// Of the client whose keys may last longest.
  [[nodiscard]] testing::KeyTerms key_terms() const;
  [[nodiscard]] std::string in_words() const;
};

/// The world of a seed.
[[nodiscard]] Plan plan_of(std::uint64_t seed);

}  // namespace redlock::simulation
