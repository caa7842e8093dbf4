// SPDX-License-Identifier: MIT
// The observer that ignores everything, and the names of commands and reasons for observers.
#include <redlock/observer.hpp>

#include "engine/messages.hpp"

namespace redlock {

Observer::~Observer() = default;
void Observer::on_node_added(std::string_view) {}
void Observer::on_node_removed(std::string_view) {}
void Observer::on_node_up(std::string_view, std::string_view) {}
void Observer::on_node_down(std::string_view, Cause, std::string_view) {}
void Observer::on_clock_moved(std::string_view, std::chrono::nanoseconds, bool) {}
void Observer::on_waiting(std::string_view, std::size_t) {}
void Observer::on_call(std::string_view, const Errc*) {}
void Observer::on_acquired(std::string_view, std::uint64_t, std::chrono::nanoseconds) {}
void Observer::on_released(std::string_view, std::uint64_t, std::chrono::nanoseconds) {}
void Observer::on_attempt(std::string_view, const Errc*, const std::vector<NodeVote>&,
                          std::chrono::nanoseconds) {}
void Observer::on_renewal(std::string_view, bool, std::chrono::nanoseconds) {}
void Observer::on_lost(std::string_view, std::uint64_t, LossReason) {}
void Observer::on_release_failed(std::string_view, const Error&) {}
void Observer::on_answer(const NodeAnswer&) {}
void Observer::on_closed(const CloseReport&) {}

const char* to_string(NodeCommand command) noexcept {
  for (const engine::KindRow& row : engine::kind_rows) {
    if (row.seen_as == command) return row.words;
  }
  return "unknown";
}

}  // namespace redlock
