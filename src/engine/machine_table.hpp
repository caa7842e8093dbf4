// SPDX-License-Identifier: MIT
// Machines of one kind by their id, and which of them must be called next. Every machine stands at
// most once in the order of deadlines, and leaves it when it leaves the table.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/id_table.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

template <typename Machine>
class MachineTable {
 public:
  using MachineId = std::uint64_t;

  /// The machine's first deadline counts from touched().
  Machine& add(MachineId id, Machine machine) {
    assert(find(id) == nullptr);
    latest_ = &entries_.add(Entry(id, std::move(machine)));
    return latest_->machine;
  }

  [[nodiscard]] Machine* find(MachineId id) {
    // One input asks several times for the same machine.
    if (latest_ == nullptr || latest_->id() != id) {
      Entry* const found = entries_.find(id);
      if (found == nullptr) return nullptr;
      latest_ = found;
    }
    return &latest_->machine;
  }

  /// To be called after every input to the machine: its deadline may be another now.
  void touched(MachineId id) {
    if (find(id) == nullptr) return;
    Entry& entry = *latest_;
    const Instant deadline = entry.machine.deadline();
    if (entry.place == not_queued) {
      if (deadline == never) return;
      entry.place = make_place();
      slots_[entry.place] = entries_.slot_of(id);
    } else if (deadline == times_[entry.place]) {
      return;
    } else if (deadline == never) {
      return leave(entry);
    }
    settle(entry.place, deadline, slots_[entry.place]);
  }

  /// Takes the machine out of the table.
  Machine take(MachineId id) {
    [[maybe_unused]] const Machine* const found = find(id);
    assert(found != nullptr);
    Entry& entry = *std::exchange(latest_, nullptr);
    if (entry.place != not_queued) leave(entry);
    return std::move(entries_.take(entry).machine);
  }
  void erase(MachineId id) { static_cast<void>(take(id)); }

  /// All machines, for an event that concerns each; seldom.
  [[nodiscard]] std::vector<MachineId> ids() const { return entries_.ids(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] Instant deadline() const { return times_.empty() ? never : times_.front(); }
  /// A machine whose deadline has come; after its input it must be touched or erased.
  [[nodiscard]] std::optional<MachineId> due(Instant now) const {
    if (deadline() > now || times_.empty()) return std::nullopt;
    return entries_.in_slot(slots_.front()).id();
  }

 private:
  static constexpr std::uint32_t not_queued = UINT32_MAX;

  /// A machine that stores its id is not given it again: of some kinds there are many.
  static constexpr bool knows_id = requires(const Machine& machine) { machine.id(); };
  struct Unnamed {};

  struct Entry {
    Entry(MachineId id, Machine of) : machine(std::move(of)) {
      if constexpr (!knows_id) name = id;
      assert(this->id() == id);
    }
    [[nodiscard]] MachineId id() const {
      if constexpr (knows_id) {
        return machine.id();
      } else {
        return name;
      }
    }

    [[no_unique_address]] Machine machine;
    [[no_unique_address]] std::conditional_t<knows_id, Unnamed, MachineId> name{};
    std::uint32_t place = not_queued;  // in the heap
  };

  // The heap. Its times stand there as well, so that comparing does not reach for the machines.
  // Which of those that are due at once comes first depends on the calls before, on nothing of the
  // machine.

  /// The times of four children stand in a cache line or two, and moving a machine touches the
  /// machine.
  static constexpr std::size_t ways = 4;

  void put(std::size_t place, Instant when, std::uint32_t slot) {
    times_[place] = when;
    slots_[place] = slot;
    entries_.in_slot(slot).place = static_cast<std::uint32_t>(place);
  }

  /// Puts it where it belongs, above or below this place, whose content it replaces.
  void settle(std::size_t place, Instant when, std::uint32_t slot) {
    while (place > 0 && when < times_[(place - 1) / ways]) {
      put(place, times_[(place - 1) / ways], slots_[(place - 1) / ways]);
      place = (place - 1) / ways;
    }
    for (std::size_t child = ways * place + 1; child < times_.size(); child = ways * place + 1) {
      const auto begin = times_.begin() + static_cast<std::ptrdiff_t>(child);
      const auto end = begin + static_cast<std::ptrdiff_t>(std::min(ways, times_.size() - child));
      const auto first = std::min_element(begin, end);
      if (*first >= when) break;
      const auto at = static_cast<std::size_t>(first - times_.begin());
      put(place, *first, slots_[at]);
      place = at;
    }
    put(place, when, slot);
  }

  void leave(Entry& entry) {
    const Instant when = times_.back();
    const std::uint32_t slot = slots_.back();
    times_.pop_back();
    slots_.pop_back();
    if (entry.place != times_.size()) settle(entry.place, when, slot);
    entry.place = not_queued;
  }

  /// The last place. Doubling the memory would be much where there are many machines.
  std::uint32_t make_place() {
    const std::size_t size = times_.size();
    if (size == slots_.capacity()) {
      times_.reserve(size + size / 8 + ways);
      slots_.reserve(size + size / 8 + ways);
    }
    times_.push_back(never);
    slots_.push_back(0);
    return static_cast<std::uint32_t>(size);
  }

  IdTable<Entry> entries_;
  Entry* latest_ = nullptr;  // the machine that was found
  /// The heap, side by side: in one struct a time and a slot would be padded. The machine that must
  /// be called next is in front.
  std::vector<Instant> times_;
  std::vector<std::uint32_t> slots_;
};

}  // namespace redlock::engine
