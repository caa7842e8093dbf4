// SPDX-License-Identifier: MIT
#include "client/tracer.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <unistd.h>

namespace redlock::client {

namespace {

/// "1": a number of its own for each client of this process that is traced.
std::string next_client() {
  constinit static std::atomic<unsigned> last{0};
  return std::to_string(last.fetch_add(1) + 1);
}

/// "2026-03-01T08:31:51.250917Z".
std::string wall_clock() {
  using std::chrono::floor;
  const auto now = floor<std::chrono::microseconds>(std::chrono::system_clock::now());
  const auto day = floor<std::chrono::days>(now);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(now - day);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02ld:%02ld:%02ld.%06ldZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<long>(time.hours().count()),
                static_cast<long>(time.minutes().count()),
                static_cast<long>(time.seconds().count()),
                static_cast<long>(time.subseconds().count()));
  return text.data();
}

}  // namespace

Tracer::Tracer(const Taker& taker) : taker_(taker) {
  if (taker_) client_ = std::to_string(getpid()) + " client " + next_client() + ": ";
}

void Tracer::give(const std::string& words) const {
  taker_(wall_clock() + " " + client_ + words);
}

}  // namespace redlock::client
