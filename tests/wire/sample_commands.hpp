// SPDX-License-Identifier: MIT
// The commands that tests of links send, and what they expect of the replies.
#pragma once

#include <chrono>
#include <cstdint>
#include <doctest/doctest.h>
#include <memory>
#include <string>
#include <variant>

#include "engine/messages.hpp"

namespace redlock::wire {

/// For those who drive a link, which have them as their own.
struct SampleCommands {
  static engine::AcquireCommand acquire(const std::string& name = "n", std::uint64_t owner = 1) {
    return {.name = std::make_shared<const std::string>(name),
            .owner = {{owner, 0}},
            .lease = std::chrono::milliseconds(30'000),
            .floor = 1};
  }
  static engine::HoldCommand hold(const std::string& name = "n", std::uint64_t owner = 1) {
    return {.name = std::make_shared<const std::string>(name),
            .owner = {{owner, 0}},
            .lease = std::chrono::milliseconds(30'000),
            .count = 1,
            .token = 1};
  }
  static engine::ReleaseCommand release(const std::string& name = "n", std::uint64_t owner = 1) {
    return {.name = std::make_shared<const std::string>(name), .owner = {{owner, 0}}};
  }
};

inline const engine::Unavailable& unavailable(const engine::Reply& reply) {
  REQUIRE(std::holds_alternative<engine::Unavailable>(reply));
  return std::get<engine::Unavailable>(reply);
}

}  // namespace redlock::wire
