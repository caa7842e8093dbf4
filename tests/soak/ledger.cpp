// SPDX-License-Identifier: MIT
#include "soak/ledger.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <stdexcept>
#include <sys/mman.h>
#include <vector>

namespace redlock::soak {

static_assert(std::atomic<BootClock::rep>::is_always_lock_free);

Ledger& Ledger::make_shared() {
  void* const place =
      ::mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) throw std::runtime_error("cannot share memory");
  return *new (place) Ledger{};
}

void Ledger::write(const Hold& hold) {
  open(hold);
}

Hold* Ledger::open(const Hold& hold) {
  const std::size_t place = hold_count++;
  if (place >= most_holds) return nullptr;
  // Whoever is killed before it has written the token has written nothing.
  Hold& written = holds[place];
  written.name = hold.name;
  written.from = hold.from;
  written.to = hold.to;
  std::atomic_ref(written.token).store(hold.token, std::memory_order_release);
  return &written;
}

Judgement judge(const Ledger& ledger) {
  if (ledger.hold_count > most_holds) throw std::runtime_error("more holds than can be recorded");
  const auto end = ledger.holds.begin() + static_cast<std::ptrdiff_t>(ledger.hold_count);
  std::vector<Hold> holds(ledger.holds.begin(), end);
  std::erase_if(holds, [](const Hold& hold) { return hold.token == 0; });
  std::ranges::sort(holds, [](const Hold& a, const Hold& b) {
    return a.name != b.name ? a.name < b.name : a.from < b.from;
  });
  Judgement found;
  const Hold* longest = nullptr;  // of those with this name so far, the one that lasted longest
  std::uint64_t largest = 0;
  for (const Hold& hold : holds) {
    if (longest == nullptr || longest->name != hold.name) {
      longest = nullptr;
      largest = 0;
    }
    if (longest != nullptr && hold.from <= longest->to) ++found.overlaps;
    if (hold.token <= largest) ++found.falling_tokens;
    if (hold.to - hold.from > std::chrono::seconds(1)) ++found.longer_than_a_second;
    if (longest == nullptr || longest->to < hold.to) longest = &hold;
    largest = std::max(largest, hold.token);
  }
  return found;
}

}  // namespace redlock::soak
