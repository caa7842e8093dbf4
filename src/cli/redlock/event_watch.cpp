// SPDX-License-Identifier: MIT
#include "cli/redlock/event_watch.hpp"

#include <chrono>
#include <fmt/core.h>
#include <string>
#include <string_view>
#include <utility>

#include "cli/event_log.hpp"

namespace redlock::cli {
namespace {

auto in_whole_ms(std::chrono::nanoseconds time) {
  return std::chrono::round<std::chrono::milliseconds>(time).count();
}

void report(LogLevel level, const std::string& name, const std::string& message, Json fields) {
  note({level, name, message, std::move(fields)});
}

class EventWatch final : public AttemptWatch {
 public:
  void on_node_up(std::string_view node, std::string_view warning) override {
    AttemptWatch::on_node_up(node, warning);
    report(warning.empty() ? LogLevel::info : LogLevel::warning, "node_up",
           fmt::format("{} may vote{}{}", node, warning.empty() ? "" : ": ", warning),
           {{"node", node}, {"warning", warning.empty() ? Json(nullptr) : Json(warning)}});
  }
  void on_node_down(std::string_view node, Cause cause, std::string_view detail) override {
    AttemptWatch::on_node_down(node, cause, detail);
    report(LogLevel::warning, "node_down", fmt::format("{} cannot vote: {}", node, detail),
           {{"node", node}, {"cause", to_string(cause)}, {"detail", detail}});
  }
  void on_clock_moved(std::string_view node, std::chrono::nanoseconds by, bool ours) override {
    AttemptWatch::on_clock_moved(node, by, ours);
    report(LogLevel::warning, "clock_moved",
           fmt::format("the clock of {} moved by {} ms{}", node, in_whole_ms(by),
                       ours ? ", or rather ours" : ""),
           {{"node", node}, {"by_ms", in_whole_ms(by)}, {"ours", ours}});
  }
  void on_acquired(std::string_view name, std::uint64_t token,
                   std::chrono::nanoseconds waited) override {
    AttemptWatch::on_acquired(name, token, waited);
    report(LogLevel::info, "acquired", fmt::format("{} is ours, with token {}", name, token),
           {{"name", name}, {"token", token}, {"waited_ms", in_whole_ms(waited)}});
  }
  void on_released(std::string_view name, std::uint64_t token,
                   std::chrono::nanoseconds held) override {
    AttemptWatch::on_released(name, token, held);
    report(LogLevel::info, "released", fmt::format("{} is given back", name),
           {{"name", name}, {"token", token}, {"held_ms", in_whole_ms(held)}});
  }
  void on_renewal(std::string_view name, bool ok, std::chrono::nanoseconds remaining) override {
    AttemptWatch::on_renewal(name, ok, remaining);
    report(ok ? LogLevel::debug : LogLevel::warning, ok ? "renewed" : "renewal_failed",
           fmt::format("{}; the lease on {} has {} ms left",
                       ok ? "renewed" : "not renewed in time, so asked again",
                       in_whole_ms(remaining), name),
           {{"name", name}, {"remaining_ms", in_whole_ms(remaining)}});
  }
  void on_lost(std::string_view name, std::uint64_t token, LossReason reason) override {
    AttemptWatch::on_lost(name, token, reason);
    report(LogLevel::error, "lost", fmt::format("{} is lost: {}", name, to_string(reason)),
           {{"name", name}, {"token", token}, {"reason", to_string(reason)}});
  }
};

}  // namespace

std::shared_ptr<AttemptWatch> make_watch() {
  if (log_format() == LogFormat::text) return std::make_shared<AttemptWatch>();
  return std::make_shared<EventWatch>();
}

}  // namespace redlock::cli
