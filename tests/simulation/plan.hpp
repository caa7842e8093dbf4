// SPDX-License-Identifier: MIT
// What kind of world a seed makes: how many nodes and clients, how fast the network, which faults
// and how often, and which promises can be judged in it.
#pragma once

#include <bitset>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "simulation/fault.hpp"

namespace redlock::simulation {

using engine::Duration;
using engine::Instant;

/// Which promises hold depends on what may happen; each run is of one kind.
enum class WorldKind : std::uint8_t {
  orderly,    ///< clocks within the bound, no node forgets: everything is judged
  forgetful,  ///< nodes lose data and vote again only when old leases are over: exclusion is judged
  wild_clocks,  ///< clocks beyond the bound: tokens are judged
  forced,       ///< somebody releases other people's leases: tokens are judged
};
[[nodiscard]] const char* in_words(WorldKind kind);

struct Plan {
  std::uint64_t seed = 0;
  WorldKind kind = WorldKind::orderly;
  std::uint32_t clients = 2;
  std::uint32_t users_per_client = 1;
  std::vector<std::string> names;
  engine::Config engine;
  std::vector<std::chrono::milliseconds> leases;
  Duration delay_min{};                    ///< of every message
  Duration delay_jitter{};                 ///< on top, most often little of it
  bool careless = false;                   ///< the first client runs without quarantine
  bool other_sets = false;                 ///< addresses may come to lead to nodes of other sets
  bool durable = true;                     ///< nodes write to disk before they answer
  std::uint32_t slow_per_mille = 0;        ///< messages that take about a node timeout
  Duration think{};                        ///< between two things that a user does, at most
  std::uint32_t contention_per_mille = 0;  ///< requests that wait
  std::uint32_t renew_per_mille = 0;
  std::uint32_t keep_per_mille = 0;     ///< steps after which a user keeps its lease
  std::uint32_t special_per_mille = 0;  ///< faults that are of the kind that names the world
  Duration between_probes{};            ///< two readings of a node's clock, at most
  Duration between_faults{};            ///< on average; zero: none
  std::bitset<fault_count> faults;
  bool damaged_fence = false;  ///< one node's is far beyond the others
  bool absurd_clock = false;   ///< one node's is of the next century
  bool cloned = false;         ///< now and then two clients draw the same random numbers
  bool judges_rules = true;    ///< not only what is promised but also how it is kept
  Duration length{};           ///< until the faults end and everything is given back

  [[nodiscard]] bool judges_tokens() const { return kind != WorldKind::forgetful; }
  [[nodiscard]] bool judges_exclusion() const {
    return kind == WorldKind::orderly || kind == WorldKind::forgetful;
  }
  /// Whether a confirmed lease is really on a quorum of nodes until its validity ends.
  [[nodiscard]] bool judges_possession() const { return kind == WorldKind::orderly; }
  [[nodiscard]] std::chrono::milliseconds max_lease() const;
  [[nodiscard]] std::string in_words() const;
};

/// The world of a seed.
[[nodiscard]] Plan plan_of(std::uint64_t seed);

}  // namespace redlock::simulation
