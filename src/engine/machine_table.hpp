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
      make_room();
      entry.place = static_cast<std::uint32_t>(heap_.size());
      heap_.push_back({deadline, entries_.slot_of(id)});
    } else if (deadline == heap_[entry.place].when) {
      return;
    } else if (deadline == never) {
      return leave(entry);
    }
    settle(entry.place, {deadline, heap_[entry.place].slot});
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
  [[nodiscard]] std::vector<MachineId> ids() const {
    std::vector<MachineId> ids;
    ids.reserve(entries_.size());
    entries_.for_each([&](const Entry& entry) { ids.push_back(entry.id()); });
    std::ranges::sort(ids);  // in an order that every library has
    return ids;
  }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] Instant deadline() const { return heap_.empty() ? never : heap_.front().when; }
  /// A machine whose deadline has come; after its input it must be touched or erased.
  [[nodiscard]] std::optional<MachineId> due(Instant now) const {
    if (deadline() > now || heap_.empty()) return std::nullopt;
    return entries_.in_slot(heap_.front().slot).id();
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
    std::uint32_t place = not_queued;  // in heap_
  };

  /// The time stands here as well, so that comparing does not reach for the machines. Which of
  /// those that are due at once comes first depends on the calls before, on nothing of the machine.
  struct Queued {
    Instant when;
    std::uint32_t slot = 0;
    bool operator<(const Queued& other) const { return when < other.when; }
  };

  /// Four children stand in a cache line or two, and moving a machine touches the machine.
  static constexpr std::size_t ways = 4;

  void put(std::size_t place, Queued queued) {
    heap_[place] = queued;
    entries_.in_slot(queued.slot).place = static_cast<std::uint32_t>(place);
  }

  /// Puts it where it belongs, above or below this place, whose content it replaces.
  void settle(std::size_t place, Queued queued) {
    while (place > 0 && queued < heap_[(place - 1) / ways]) {
      put(place, heap_[(place - 1) / ways]);
      place = (place - 1) / ways;
    }
    for (std::size_t child = ways * place + 1; child < heap_.size(); child = ways * place + 1) {
      const auto begin = heap_.begin() + static_cast<std::ptrdiff_t>(child);
      const auto end = begin + static_cast<std::ptrdiff_t>(std::min(ways, heap_.size() - child));
      const auto first = std::min_element(begin, end);
      if (!(*first < queued)) break;
      put(place, *first);
      place = static_cast<std::size_t>(first - heap_.begin());
    }
    put(place, queued);
  }

  void leave(Entry& entry) {
    const Queued last = heap_.back();
    heap_.pop_back();
    if (entry.place != heap_.size()) settle(entry.place, last);
    entry.place = not_queued;
  }

  /// Doubling the memory would be much where there are many machines.
  void make_room() {
    if (heap_.size() == heap_.capacity()) heap_.reserve(heap_.size() + heap_.size() / 8 + ways);
  }

  IdTable<Entry> entries_;
  Entry* latest_ = nullptr;   // the machine that was found
  std::vector<Queued> heap_;  // the machine that must be called next is in front
};

}  // namespace redlock::engine
