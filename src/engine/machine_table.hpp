// SPDX-License-Identifier: MIT
// Machines of one kind by their id, and which of them must be called next. Every machine stands at
// most once in the order of deadlines, and leaves it when it leaves the table.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "engine/types.hpp"

namespace redlock::engine {

template <typename Machine>
class MachineTable {
 public:
  using Id = std::uint64_t;

  /// The machine's first deadline counts from touched().
  Machine& add(Id id, Machine machine) {
    const auto [place, inserted] = entries_.emplace(id, Entry{std::move(machine)});
    assert(inserted);
    return place->second.machine;
  }

  [[nodiscard]] Machine* find(Id id) {
    const auto found = entries_.find(id);
    return found == entries_.end() ? nullptr : &found->second.machine;
  }

  /// To be called after every input to the machine: its deadline may be another now.
  void touched(Id id) {
    Entry& entry = entries_.at(id);
    const Instant deadline = entry.machine.deadline();
    if (deadline == entry.queued) return;
    if (entry.queued != never) order_.erase({entry.queued, id});
    if (deadline != never) order_.emplace(deadline, id);
    entry.queued = deadline;
  }

  /// Takes the machine out of the table.
  Machine take(Id id) {
    const auto found = entries_.find(id);
    if (found->second.queued != never) order_.erase({found->second.queued, id});
    Machine machine = std::move(found->second.machine);
    entries_.erase(found);
    return machine;
  }
  void erase(Id id) { static_cast<void>(take(id)); }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] Instant deadline() const { return order_.empty() ? never : order_.begin()->first; }
  /// A machine whose deadline has come; after its input it must be touched or erased.
  [[nodiscard]] std::optional<Id> due(Instant now) const {
    if (deadline() > now || order_.empty()) return std::nullopt;
    return order_.begin()->second;
  }

 private:
  struct Entry {
    Machine machine;
    Instant queued = never;
  };
  std::unordered_map<Id, Entry> entries_;
  std::set<std::pair<Instant, Id>> order_;
};

}  // namespace redlock::engine
