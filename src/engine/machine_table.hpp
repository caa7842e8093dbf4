// SPDX-License-Identifier: MIT
// Machines of one kind by their id, and which of them must be called next. Every machine stands at
// most once in the order of deadlines, and leaves it when it leaves the table.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

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
    // One input asks several times for the same machine.
    if (entries_.empty()) return nullptr;
    if (latest_ == nullptr || latest_->first != id) {
      const auto found = entries_.find(id);
      if (found == entries_.end()) return nullptr;
      latest_ = &*found;
    }
    return &latest_->second.machine;
  }

  /// To be called after every input to the machine: its deadline may be another now.
  void touched(Id id) {
    if (find(id) == nullptr) return;
    Entry& entry = latest_->second;
    const Instant deadline = entry.machine.deadline();
    if (deadline == entry.queued) return;
    if (entry.queued == never) {
      entry.place = heap_.size();
      heap_.push_back({deadline, latest_});
    } else if (deadline == never) {
      leave(entry);
      return;
    }
    entry.queued = deadline;
    settle(entry.place, {deadline, latest_});
  }

  /// Takes the machine out of the table.
  Machine take(Id id) {
    const auto found = entries_.find(id);
    if (found->second.queued != never) leave(found->second);
    if (latest_ == &*found) latest_ = nullptr;
    Machine machine = std::move(found->second.machine);
    entries_.erase(found);
    return machine;
  }
  void erase(Id id) { static_cast<void>(take(id)); }

  /// All of them, for what happens to each; seldom.
  [[nodiscard]] std::vector<Id> ids() const {
    std::vector<Id> ids;
    ids.reserve(entries_.size());
    for (const auto& entry : entries_) ids.push_back(entry.first);
    std::ranges::sort(ids);  // in an order that every library has
    return ids;
  }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] Instant deadline() const { return heap_.empty() ? never : heap_.front().when; }
  /// A machine whose deadline has come; after its input it must be touched or erased.
  [[nodiscard]] std::optional<Id> due(Instant now) const {
    if (deadline() > now || heap_.empty()) return std::nullopt;
    return heap_.front().entry->first;
  }

 private:
  struct Entry {
    Machine machine;
    Instant queued = never;
    std::size_t place = 0;  // in heap_, while queued
  };

  using Named = std::pair<const Id, Entry>;

  /// The time stands here as well, so that comparing does not reach for the machines. Which of
  /// those that are due at once comes first depends on the calls before, on nothing of the machine.
  struct Queued {
    Instant when;
    Named* entry;
    bool operator<(const Queued& other) const { return when < other.when; }
  };

  /// Four children stand in a cache line or two, and moving a machine touches the machine.
  static constexpr std::size_t ways = 4;

  void put(std::size_t place, Queued queued) {
    heap_[place] = queued;
    queued.entry->second.place = place;
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
    if (&last.entry->second != &entry) settle(entry.place, last);
    entry.queued = never;
  }

  std::unordered_map<Id, Entry> entries_;
  Named* latest_ = nullptr;   // that was looked for
  std::vector<Queued> heap_;  // what must be called next is in front
};

}  // namespace redlock::engine
