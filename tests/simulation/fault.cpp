// SPDX-License-Identifier: MIT
#include "simulation/fault.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace redlock::simulation {

const char* in_words(Fault fault) {
  static constexpr std::array<const char*, fault_count> words = {"node killed",
                                                                 "node wiped",
                                                                 "node flushed",
                                                                 "node hung",
                                                                 "node full",
                                                                 "node misconf",
                                                                 "node busy",
                                                                 "node loading",
                                                                 "node read only",
                                                                 "scripts forgotten",
                                                                 "node clock stepped",
                                                                 "node clock drifted",
                                                                 "node clock wild",
                                                                 "node slow",
                                                                 "fence lost",
                                                                 "foreign key",
                                                                 "disconnected",
                                                                 "half open",
                                                                 "cut to node",
                                                                 "cut from node",
                                                                 "cut majority",
                                                                 "client paused",
                                                                 "client interrupted",
                                                                 "client crashed",
                                                                 "client clock drifted",
                                                                 "client clock wild",
                                                                 "client clock frozen",
                                                                 "request cancelled",
                                                                 "release races hold",
                                                                 "released by force"};
  return words[static_cast<std::size_t>(fault)];
}

const char* in_words(Phase phase) {
  static constexpr std::array<const char*, phase_count> words = {
      "idle", "waiting", "voting", "settling", "holding", "renewing", "healing", "releasing"};
  return words[static_cast<std::size_t>(phase)];
}

Ailment ailment_of(Fault fault) {
  switch (fault) {
    case Fault::node_full:
      return Ailment::full;
    case Fault::node_misconf:
      return Ailment::misconf;
    case Fault::node_busy:
      return Ailment::busy;
    case Fault::node_loading:
      return Ailment::loading;
    case Fault::node_read_only:
      return Ailment::read_only;
    default:
      return Ailment::none;
  }
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
  for (std::size_t phase = 0; phase < phase_count; ++phase) {
    text += fmt::format("{:>10}", in_words(static_cast<Phase>(phase)));
  }
  for (std::size_t fault = 0; fault < fault_count; ++fault) {
    text += fmt::format("\n{:<22}", in_words(static_cast<Fault>(fault)));
    for (const std::uint64_t hits : cells_[fault]) text += fmt::format("{:>10}", hits);
  }
  return text + "\n";
}

}  // namespace redlock::simulation
