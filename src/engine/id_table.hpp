// SPDX-License-Identifier: MIT
// Values by ids that rise and are never used again. A program may hold a million leases: values lie
// side by side without an allocation each, in the order in which they came, and those whose ids are
// near each other are found near each other. Such leases were taken together, so they are renewed
// together.
//
// Why none that is there: a lease is in two tables. With std::unordered_map, and std::set in place
// of the heap of machine_table.hpp, it took 100 bytes of heap more (means of 3 runs of
// `soak holding --leases 100000 --for 30` beside each other), for no less of a processor; either of
// them alone makes a fifth more, too. The flat tables of libraries take as little, but move their
// values when they grow, all of them at once, and the loop thread has timers to keep meanwhile.
// Calls and releases that are owed come and go in these tables without an allocation each.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace redlock::engine {

/// A Value has id(), which does not change. It stays where it is until it is taken out.
template <typename Value>
class IdTable {
 public:
  using Id = std::uint64_t;

  IdTable() = default;
  IdTable(IdTable&& other) noexcept { swap(other); }
  IdTable& operator=(IdTable&& other) noexcept {
    IdTable(std::move(other)).swap(*this);
    return *this;
  }
  ~IdTable() = default;

  /// Its id must be new.
  Value& add(Value value) {
    // Also slots that are lost need numbers that the index can hold.
    if (8 * (used() - free_.size() + 1) > 7 * index_.size()) grow();
    if (free_.empty()) make_room();
    const std::uint32_t slot = free_.empty() ? used() : free_.back();
    if (free_.empty()) {
      chunks_.back().push_back(std::move(value));
    } else {
      free_.pop_back();
      std::destroy_at(&in_slot(slot));  // what was left when it was taken
      std::construct_at(&in_slot(slot), std::move(value));
    }
    Value& added = in_slot(slot);
    insert(slot, added.id());
    ++size_;
    return added;
  }

  [[nodiscard]] Value* find(Id id) {
    if (empty()) return nullptr;  // as the tables of owed releases mostly are
    const std::uint32_t tag = tag_of(id);
    for (std::uint32_t at = home(id); index_[at] != 0; at = after(at)) {
      if ((index_[at] & ~mask()) != tag) continue;
      Value& value = in_slot(slot_in(at));
      if (value.id() == id) return &value;
    }
    return nullptr;
  }
  [[nodiscard]] const Value* find(Id id) const { return const_cast<IdTable*>(this)->find(id); }

  /// Names a value by a number that is half as long as its address. The id must be in the table.
  [[nodiscard]] std::uint32_t slot_of(Id id) const {
    std::uint32_t at = home(id);
    while (in_slot(slot_in(at)).id() != id) at = after(at);
    return slot_in(at);
  }
  [[nodiscard]] Value& in_slot(std::uint32_t slot) {
    return chunks_[slot / values_in_chunk][slot % values_in_chunk];
  }
  [[nodiscard]] const Value& in_slot(std::uint32_t slot) const {
    return chunks_[slot / values_in_chunk][slot % values_in_chunk];
  }

  /// The value must be one that find() or add() returned.
  Value take(Value& value) {
    make_free(remove(value.id()));
    Value taken = std::move(value);
    if (--size_ == 0 && chunks_.size() > 1) *this = {};  // no more than a client with few needs
    return taken;
  }

  /// The order may differ between builds. Nothing may be added or taken meanwhile.
  template <typename Function>
  void for_each(Function function) {
    for (std::uint32_t at = 0; at < index_.size(); ++at) {
      if (index_[at] != 0) function(in_slot(slot_in(at)));
    }
  }
  template <typename Function>
  void for_each(Function function) const {
    const_cast<IdTable*>(this)->for_each([&](const Value& value) { function(value); });
  }
  /// All ids, the oldest first; seldom.
  [[nodiscard]] std::vector<Id> ids() const {
    std::vector<Id> ids;
    ids.reserve(size());
    for_each([&](const Value& value) { ids.push_back(value.id()); });
    std::ranges::sort(ids);
    return ids;
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  /// So many that a chunk takes a few kB: the chunks of leases, of which programs hold many, cost
  /// next to nothing beside them, and a client with few calls has no large ones.
  static constexpr std::uint32_t values_in_chunk = static_cast<std::uint32_t>(
      std::clamp<std::size_t>(std::bit_floor(std::size_t{10'000} / sizeof(Value)), 16, 64));
  static_assert(std::is_nothrow_move_constructible_v<Value>);

  void swap(IdTable& other) noexcept {
    std::swap(chunks_, other.chunks_);
    std::swap(index_, other.index_);
    std::swap(free_, other.free_);
    std::swap(size_, other.size_);
  }

  /// Slots of which something was made once.
  [[nodiscard]] std::uint32_t used() const {
    if (chunks_.empty()) return 0;
    return static_cast<std::uint32_t>(values_in_chunk * (chunks_.size() - 1) +
                                      chunks_.back().size());
  }

  void make_room() {
    if (used() < values_in_chunk * chunks_.size()) return;
    std::vector<Value> chunk;
    chunk.reserve(values_in_chunk);
    chunks_.push_back(std::move(chunk));
  }

  /// Taking a value must not fail. A slot for whose number there is no memory is not used again.
  void make_free(std::uint32_t slot) noexcept {
    try {
      free_.push_back(slot);
    } catch (const std::bad_alloc&) {
    }
  }

  // The index: open addressing. The low bits, as many as count its places, have the number of the
  // slot plus one, 0 where there is none; the others some bits of the id, so that the value need
  // not be read. Ids of one group stand in one cache line, and the groups anywhere. An id whose
  // place is taken goes on to the next group and one further, which leads through the whole index.

  static constexpr std::uint32_t group = 16;
  static constexpr std::uint32_t step = group + 1;
  static constexpr std::uint32_t inverse_of_step = 0xf0f0f0f1;
  static_assert(step * inverse_of_step == 1U);
  static constexpr std::size_t fewest = std::size_t{2} * group;

  [[nodiscard]] std::uint32_t mask() const { return static_cast<std::uint32_t>(index_.size() - 1); }
  [[nodiscard]] static std::uint64_t mixed(Id group_number) {
    const std::uint64_t product = group_number * 0x9e3779b97f4a7c15U;
    return product ^ (product >> 32);
  }
  [[nodiscard]] std::uint32_t home(Id id) const {
    const auto low = static_cast<std::uint32_t>(mixed(id / group));
    return (low * group + static_cast<std::uint32_t>(id % group)) & mask();
  }
  [[nodiscard]] std::uint32_t tag_of(Id id) const {
    const auto high = static_cast<std::uint32_t>((mixed(id / group) + id) >> 8);
    return high & ~mask();
  }
  [[nodiscard]] std::uint32_t slot_in(std::uint32_t at) const { return (index_[at] & mask()) - 1; }
  [[nodiscard]] std::uint32_t after(std::uint32_t at) const { return (at + step) & mask(); }
  /// How many steps it is from the one to the other.
  [[nodiscard]] std::uint32_t steps(std::uint32_t from, std::uint32_t to) const {
    return (to - from) * inverse_of_step & mask();
  }

  void insert(std::uint32_t slot, Id id) {
    std::uint32_t at = home(id);
    while (index_[at] != 0) at = after(at);
    index_[at] = (slot + 1) | tag_of(id);
  }

  /// Those behind it that were pushed on by it come back, so that nothing is searched in vain.
  std::uint32_t remove(Id id) {
    std::uint32_t hole = home(id);
    while (in_slot(slot_in(hole)).id() != id) hole = after(hole);
    const std::uint32_t slot = slot_in(hole);
    index_[hole] = 0;
    for (std::uint32_t at = after(hole); index_[at] != 0; at = after(at)) {
      const std::uint32_t wanted = home(in_slot(slot_in(at)).id());
      if (steps(wanted, at) < steps(hole, at)) continue;
      index_[hole] = std::exchange(index_[at], 0);
      hole = at;
    }
    return slot;
  }

  void grow() {
    const std::uint32_t slots = index_.empty() ? 0 : mask();
    const auto before =
        std::exchange(index_, std::vector<std::uint32_t>(std::max(fewest, 2 * index_.size())));
    for (const std::uint32_t entry : before) {
      if (entry == 0) continue;
      const std::uint32_t slot = (entry & slots) - 1;
      insert(slot, in_slot(slot).id());
    }
  }

  std::vector<std::vector<Value>> chunks_;  // none grows, so a value stays where it is
  std::vector<std::uint32_t> index_;
  std::vector<std::uint32_t> free_;  // slots whose value was taken
  std::size_t size_ = 0;
};

}  // namespace redlock::engine
