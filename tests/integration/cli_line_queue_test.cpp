// SPDX-License-Identifier: MIT
// Lines for a reader that has stopped: bounded, and what was dropped is counted.
#include <array>
#include <chrono>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include "cli/line_queue.hpp"

namespace redlock::testing {
namespace {

TEST_CASE("a reader that stopped gets the first lines, and the number of those that were dropped") {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe2(pipe.data(), O_CLOEXEC) == 0);
  // It is never destroyed: its thread lasts as long as the process.
  auto& queue = *new cli::LineQueue(
      pipe[1], [](std::size_t count) { return std::to_string(count) + " dropped\n"; });
  // The pipe does not take it whole. Once it has begun the others stay in the queue.
  queue.push(std::string(1 << 20, '.') + "\n");
  std::array<char, 4096> buffer{};
  REQUIRE(::read(pipe[0], buffer.data(), 1) == 1);
  constexpr auto too_many = 2 * cli::LineQueue::most_lines;
  for (std::size_t i = 0; i < too_many; ++i) queue.push(std::to_string(i) + "\n");
  queue.drain(std::chrono::milliseconds(1));  // returns, though nobody reads
  std::string text;
  while (text.find("dropped\n") == std::string::npos) {
    const auto count = ::read(pipe[0], buffer.data(), buffer.size());
    REQUIRE(count > 0);
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  CHECK(text.find(".\n0\n1\n2\n") == (1 << 20) - 2);
  CHECK(text.ends_with("\n999\n1000 dropped\n"));
  queue.push("once more\n");
  queue.drain(std::chrono::seconds(30));
  const auto count = ::read(pipe[0], buffer.data(), buffer.size());
  CHECK(std::string(buffer.data(), static_cast<std::size_t>(count)) == "once more\n");
}

}  // namespace
}  // namespace redlock::testing
