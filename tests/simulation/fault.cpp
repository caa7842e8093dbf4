// SPDX-License-Identifier: MIT
#include "simulation/fault.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "simulation/enumerators.hpp"

namespace redlock::simulation {

std::string in_words(Fault fault) {
  return in_words(names_of<Fault, fault_count>[static_cast<std::size_t>(fault)]);
}

Ailment ailment_of(Fault fault) {
  static constexpr std::pair<Fault, Ailment> ailments[] = {
      {Fault::node_full, Ailment::full},           {Fault::node_misconf, Ailment::misconf},
      {Fault::node_busy, Ailment::busy},           {Fault::node_loading, Ailment::loading},
      {Fault::node_read_only, Ailment::read_only},
  };
  const auto* const found = std::ranges::find(ailments, fault, &std::pair<Fault, Ailment>::first);
  return found == std::end(ailments) ? Ailment::none : found->second;
}

void Coverage::add(const Coverage& other) {
  for (std::size_t fault = 0; fault < fault_count; ++fault) {
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
      cells_[fault][phase] += other.cells_[fault][phase];
    }
  }
}

std::size_t Coverage::empty_cells() const {
  std::size_t empty = 0;
  for (const auto& row : cells_) {
    empty += static_cast<std::size_t>(std::ranges::count(row, std::uint64_t{0}));
  }
  return empty;
}

std::size_t Coverage::absent_faults() const {
  return static_cast<std::size_t>(std::ranges::count(cells_, decltype(cells_)::value_type{}));
}

std::string Coverage::table() const {
  std::string text = fmt::format("{:<22}", "fault while");
  for (const auto phase : names_of<Phase, phase_count>) text += fmt::format("{:>10}", phase);
  for (std::size_t fault = 0; fault < fault_count; ++fault) {
    text += fmt::format("\n{:<22}", in_words(static_cast<Fault>(fault)));
    for (const std::uint64_t hits : cells_[fault]) text += fmt::format("{:>10}", hits);
  }
  return text + "\n";
}

}  // namespace redlock::simulation
