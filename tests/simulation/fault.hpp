// SPDX-License-Identifier: MIT
// The faults of this world, the phases of the protocol that they can hit, and a count of which hit
// which.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "simulation/node_data.hpp"

namespace redlock::simulation {

enum class Fault : std::uint8_t {
  node_killed,         ///< and restarted with its data
  node_wiped,          ///< killed and restarted without its data
  node_flushed,        ///< FLUSHALL
  node_hung,           ///< SIGSTOP, then SIGCONT
  node_full,           ///< OOM
  node_misconf,        ///< MISCONF
  node_busy,           ///< BUSY
  node_loading,        ///< LOADING
  node_read_only,      ///< READONLY
  scripts_forgotten,   ///< NOSCRIPT
  node_clock_stepped,  ///< by less than the allowance
  node_clock_drifted,  ///< within the allowance
  node_clock_wild,     ///< stepped or running far beyond the allowance
  node_slow,           ///< its answers take long
  fence_lost,          ///< somebody deletes the counter of a name
  foreign_key,         ///< somebody puts a key of another type where a lock would be
  disconnected,        ///< a connection is reset
  half_open,           ///< a connection passes nothing any more and does not say so
  cut_to_node,         ///< messages to the node wait
  cut_from_node,       ///< answers wait
  cut_majority,        ///< a client sees only a minority of the nodes
  client_paused,       ///< stopped, suspended: its clock runs on
  client_interrupted,  ///< paused between a decision and what follows from it
  client_crashed,
  client_clock_drifted,
  client_clock_wild,
  client_clock_frozen,  ///< it stands still while the machine is suspended
  request_cancelled,
  release_races_hold,
  released_by_force,
  count,
};
inline constexpr auto fault_count = static_cast<std::size_t>(Fault::count);

/// What a client is doing; often several at once.
enum class Phase : std::uint8_t {
  idle,
  waiting,   ///< between two attempts
  voting,    ///< acquire under way
  settling,  ///< settle under way
  holding,   ///< has a lease
  renewing,  ///< hold under way
  healing,   ///< heal under way
  releasing,
  count,
};
inline constexpr auto phase_count = static_cast<std::size_t>(Phase::count);

[[nodiscard]] std::string in_words(Fault fault);
[[nodiscard]] constexpr bool happens_to_node(Fault fault) {
  return fault <= Fault::foreign_key;
}
[[nodiscard]] constexpr bool happens_to_client(Fault fault) {
  return fault >= Fault::client_paused;
}
/// What such a node answers; none if it is not that kind of fault.
[[nodiscard]] Ailment ailment_of(Fault fault);

class Coverage {
 public:
  void hit(Fault fault, Phase phase) {
    ++cells_[static_cast<std::size_t>(fault)][static_cast<std::size_t>(phase)];
  }
  void add(const Coverage& other);
  [[nodiscard]] std::size_t empty_cells() const;
  /// Those that hit no phase at all.
  [[nodiscard]] std::size_t absent_faults() const;
  /// One row for each fault, one column for each phase.
  [[nodiscard]] std::string table() const;

 private:
  std::array<std::array<std::uint64_t, phase_count>, fault_count> cells_{};
};

}  // namespace redlock::simulation
