// SPDX-License-Identifier: MIT
// Keeps what an observer is told: a line for each event, with its name and what it is about.
#pragma once

#include <concepts>
#include <iterator>

#include "integration/api_fixture.hpp"

namespace redlock::testing {

class EventLog : public Observer {
 public:
  void on_node_up(std::string_view node, std::string_view warning) override {
    note("up", node, warning);
  }
  void on_node_down(std::string_view node, Cause cause, std::string_view detail) override {
    note("down", node, to_string(cause), detail);
  }
  void on_attempt(std::string_view name, const Errc* code, const std::vector<NodeVote>& votes,
                  std::chrono::nanoseconds elapsed) override {
    CHECK_FALSE(votes.empty());
    CHECK(elapsed >= 0ns);
    note("attempt", name, code == nullptr ? "granted" : to_string(*code));
  }
  void on_waiting(std::string_view name, std::size_t place) override {
    note("waiting", name, std::to_string(place));
  }
  void on_acquired(std::string_view name, std::uint64_t token,
                   std::chrono::nanoseconds waited) override {
    CHECK(waited >= 0ns);
    note("acquired", name, std::to_string(token));
  }
  void on_released(std::string_view name, std::uint64_t token,
                   std::chrono::nanoseconds held) override {
    CHECK(held >= 0ns);
    note("released", name, std::to_string(token));
  }
  void on_renewal(std::string_view name, bool ok, std::chrono::nanoseconds) override {
    note(ok ? "renewed" : "not renewed", name);
  }
  void on_lost(std::string_view name, std::uint64_t token, LossReason reason) override {
    note("lost", name, std::to_string(token), to_string(reason));
  }
  void on_clock_moved(std::string_view node, std::chrono::nanoseconds by, bool ours) override {
    const auto minutes = std::chrono::round<std::chrono::minutes>(by).count();
    note(ours ? "our clock moved" : "clock moved", node, std::to_string(minutes));
  }
  void on_release_failed(std::string_view name, const Error& error) override {
    note("release failed", name, to_string(error.code));
  }

  /// Lines that begin like this.
  [[nodiscard]] std::vector<std::string> lines(std::string_view beginning = {}) const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> found;
    std::ranges::copy_if(lines_, std::back_inserter(found),
                         [&](const std::string& line) { return line.starts_with(beginning); });
    return found;
  }
  [[nodiscard]] std::size_t count(std::string_view beginning) const {
    return lines(beginning).size();
  }
  [[nodiscard]] bool soon_has(std::string_view beginning, std::size_t times = 1) const {
    return eventually([&] { return count(beginning) >= times; });
  }

 private:
  void note(std::string line, const std::convertible_to<std::string_view> auto&... words) {
    ((line += ' ').append(words), ...);
    const std::scoped_lock lock(mutex_);
    lines_.push_back(std::move(line));
  }
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace redlock::testing
