// SPDX-License-Identifier: MIT
// Values by ids that rise and are never used again. A program may hold a million leases: values lie
// side by side without an allocation each, in the order in which they came, and those whose ids are
// near each other are found near each other. Such leases were taken together, so they are renewed
// together.
//
// Why no existing container: a lease is in two tables, and a node of std::unordered_map takes 35 to
// 45 bytes beside its value, where an entry here takes 7 to 12 (1,000 to a million values of 16 and
// of 120 bytes). Finding is no quicker. The flat tables of libraries take as little, but move their
// values when they grow, all of them at once, and the loop thread has timers to keep meanwhile.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
  ~IdTable() {
    for_each([](Value& value) { std::destroy_at(&value); });
  }

  /// Its id must be new.
  Value& add(Value value) {
    if (8 * (size_ + 1) > 7 * index_.size()) grow();
    const std::uint32_t slot = take_slot();
    Value* const added = new (place(slot)) Value(std::move(value));
    insert(slot, added->id());
    ++size_;
    return *added;
  }

  [[nodiscard]] Value* find(Id id) {
    if (size_ == 0) return nullptr;
    const std::uint32_t tag = tag_of(id);
    for (std::uint32_t at = home(id); index_[at] != 0; at = after(at)) {
      if ((index_[at] & ~mask()) != tag) continue;
      Value& value = *at_slot(slot_in(at));
      if (value.id() == id) return &value;
    }
    return nullptr;
  }
  [[nodiscard]] const Value* find(Id id) const { return const_cast<IdTable*>(this)->find(id); }

  /// Names a value by a number that is half as long as its address. The id must be in the table.
  [[nodiscard]] std::uint32_t slot_of(Id id) const {
    std::uint32_t at = home(id);
    while (at_slot(slot_in(at))->id() != id) at = after(at);
    return slot_in(at);
  }
  [[nodiscard]] Value& in_slot(std::uint32_t slot) { return *at_slot(slot); }
  [[nodiscard]] const Value& in_slot(std::uint32_t slot) const { return *at_slot(slot); }

  /// The value must be one that find() or add() returned.
  Value take(Value& value) {
    Value* const room = &value;
    const std::uint32_t slot = remove(value.id(), value);
    Value taken = std::move(value);
    std::destroy_at(room);
    std::memcpy(static_cast<void*>(room), &free_, sizeof(free_));
    free_ = slot + 1;
    if (--size_ == 0) forget_room();
    return taken;
  }

  /// The order may differ between builds. Nothing may be added or taken meanwhile.
  template <typename Function>
  void for_each(Function function) {
    for (std::uint32_t at = 0; at < index_.size(); ++at) {
      if (index_[at] != 0) function(*at_slot(slot_in(at)));
    }
  }
  template <typename Function>
  void for_each(Function function) const {
    const_cast<IdTable*>(this)->for_each([&](const Value& value) { function(value); });
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  static constexpr std::uint32_t values_in_chunk = 16;
  static_assert(sizeof(Value) >= sizeof(std::uint32_t));
  static_assert(std::is_nothrow_move_constructible_v<Value>);

  struct Chunk {
    alignas(Value) std::byte bytes[values_in_chunk * sizeof(Value)];
  };

  void swap(IdTable& other) noexcept {
    std::swap(chunks_, other.chunks_);
    std::swap(index_, other.index_);
    std::swap(size_, other.size_);
    std::swap(used_, other.used_);
    std::swap(free_, other.free_);
  }

  [[nodiscard]] std::byte* place(std::uint32_t slot) const {
    return chunks_[slot / values_in_chunk]->bytes + slot % values_in_chunk * sizeof(Value);
  }
  [[nodiscard]] Value* at_slot(std::uint32_t slot) const {
    return std::launder(reinterpret_cast<Value*>(place(slot)));
  }

  std::uint32_t take_slot() {
    if (free_ != 0) {
      const std::uint32_t slot = free_ - 1;
      std::memcpy(&free_, place(slot), sizeof(free_));
      return slot;
    }
    if (used_ == values_in_chunk * chunks_.size()) {
      chunks_.push_back(std::unique_ptr<Chunk>(new Chunk));
    }
    return used_++;
  }

  /// An empty table keeps no more memory than a client with few leases needs.
  void forget_room() {
    used_ = free_ = 0;
    if (chunks_.size() > 1) chunks_.resize(1);
    chunks_.shrink_to_fit();
    if (index_.size() > fewest) index_ = std::vector<std::uint32_t>(fewest);
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

  /// The entries that it had pushed on come back, so that nothing is searched in vain.
  std::uint32_t remove(Id id, const Value& value) {
    std::uint32_t hole = home(id);
    while (at_slot(slot_in(hole)) != &value) hole = after(hole);
    const std::uint32_t slot = slot_in(hole);
    index_[hole] = 0;
    for (std::uint32_t at = after(hole); index_[at] != 0; at = after(at)) {
      const std::uint32_t wanted = home(at_slot(slot_in(at))->id());
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
      insert(slot, at_slot(slot)->id());
    }
  }

  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<std::uint32_t> index_;
  std::size_t size_ = 0;
  std::uint32_t used_ = 0;  // slots that have been constructed once
  std::uint32_t free_ = 0;  // the number of a free slot, plus one; that slot has the next
};

}  // namespace redlock::engine
