// SPDX-License-Identifier: MIT
// What a node has, read and changed by the product's names of keys: for judges, which look, and for
// faults, which change it. Only this file and its .cpp know what is in a lock, or in a line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/messages.hpp"
#include "simulation/drifting_clock.hpp"
#include "simulation/keyspace.hpp"
#include "wire/node_marker.hpp"

namespace redlock::simulation {

/// What can be wrong with a node that answers.
enum class Ailment : std::uint8_t {
  none,
  loading,    ///< refuses nearly everything
  busy,       ///< refuses nearly everything: a script runs without end
  misconf,    ///< refuses what writes, because it cannot persist
  read_only,  ///< refuses what writes: a replica
  full,       ///< at maxmemory: refuses what may grow
};

struct NodeData {
  struct Lock {
    engine::OwnerId owner;
    std::uint32_t count = 1;
    std::optional<std::int64_t> ends_ms;  ///< none: it never expires
    bool foreign_type = false;            ///< not a lock of ours but a key of another type
  };
  /// An owner that was forced out, and until when the node turns it away.
  using ForcedOut = std::pair<engine::OwnerId, std::int64_t>;
  struct Waiter {
    std::string name;  ///< of its client and its line
    std::string client;
    std::uint64_t line = 0;
    double place = 0;                 ///< when its call began, in us of the node's clock
    std::int64_t alive_until_ms = 0;  ///< then it is forgotten, though the entry may stay
  };

  struct Turn {
    std::string waiter;
    std::int64_t until_ms = 0;
    bool operator==(const Turn&) const = default;
  };

  /// What is known of waiters, beside their places. Times are the latest of all, in ms.
  struct LineRecords {
    std::size_t fields = 0;
    std::int64_t subscribed_until = 0;  ///< they count as alive
    std::int64_t polling_until = 0;
    std::int64_t turn_until = 0;
  };

  /// The name of a lock of which this is the key; empty: it is no lock's key.
  [[nodiscard]] static std::string_view name_of(std::string_view key);

  /// The lock of that name; none if it is free or has expired by then.
  [[nodiscard]] std::optional<Lock> lock(std::string_view name, std::int64_t now_ms) const;
  [[nodiscard]] bool is_free(std::string_view name, std::int64_t now_ms) const;
  [[nodiscard]] bool holds(std::string_view name, const engine::OwnerId& owner,
                           std::int64_t now_ms) const;
  /// The names of all locks.
  [[nodiscard]] std::vector<std::string_view> locks(std::int64_t now_ms) const;
  /// By a key of that name; none if it is no such key, or over.
  [[nodiscard]] std::optional<ForcedOut> forced_out(std::string_view key,
                                                    std::int64_t now_ms) const;
  /// Those that wait for it, in their order.
  [[nodiscard]] std::vector<Waiter> waiters(std::string_view name, std::int64_t now_ms) const;
  [[nodiscard]] LineRecords line_records(std::string_view name, std::int64_t now_ms) const;
  /// The waiter for which the lock of that name is kept, or was.
  [[nodiscard]] std::optional<Turn> turn(std::string_view name, std::int64_t now_ms) const;
  /// Each waiter has its record, and there is nothing of any other.
  [[nodiscard]] bool line_is_whole(std::string_view name, std::int64_t now_ms) const;
  /// Whether there is anything of a line.
  [[nodiscard]] bool has_line(std::string_view name, std::int64_t now_ms) const;
  /// Of a fence's key. 0: there is none, or it is no number, or it is no fence's key.
  [[nodiscard]] engine::Token fence(std::string_view key) const;
  [[nodiscard]] bool is_marked(std::int64_t now_ms) const;
  /// Of its marker: the set and the epoch.
  [[nodiscard]] std::string marker_state() const { return marker().state(); }
  /// Its set, epoch and longest leases.
  [[nodiscard]] wire::NodeMarker marker() const;

  /// A restart with data from before the locks were granted.
  void forget_locks();
  /// Fields without a value are left out.
  void set_marker(std::initializer_list<Hash::Field> fields);
  /// Puts a key of another type where the lock would be.
  void put_foreign(std::string_view name);
  void remove_foreign(std::string_view name);
  /// A number, text that is none, or a value of another type.
  void put_fence(std::uint32_t stripe, Keyspace::Value value);
  void lose_fence(std::uint32_t stripe);
  /// A waiter that counts as dead, of no client that is there. Its keys end as any line's.
  void put_dead_waiter(std::string_view name, std::uint32_t number, std::int64_t now_us);

  Keyspace keys;
  Ailment ailment = Ailment::none;
};

/// A node with its wall clock, as the judges of a run see it.
struct SimNode {
  NodeData data;
  DriftingClock wall;                 ///< from 1970
  std::vector<Instant> forgot = {};   ///< when it lost data or was promoted, by the world's time
  Instant unmarked = Instant::min();  ///< when it last lost its marker, if it had one, likewise
  Instant marked = Instant::min();    ///< when a client last wrote its marker, likewise

  [[nodiscard]] std::int64_t now_us(Instant world) const {
    return wall.read(world).time_since_epoch().count() / 1'000;
  }
  [[nodiscard]] std::int64_t now_ms(Instant world) const { return now_us(world) / 1'000; }
};

}  // namespace redlock::simulation
