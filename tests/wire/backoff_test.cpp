// SPDX-License-Identifier: MIT
// When a thousand clients that a node cut off at once come back to it: their attempts to connect
// come one by one while it is away, and the first one that begins after it has returned is the one
// that it sees.
#include "wire/backoff.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <random>
#include <vector>

using namespace redlock::wire;
using namespace std::chrono_literals;
using std::chrono::milliseconds;
namespace engine = redlock::engine;

namespace {

class SeededRandom final : public engine::RandomSource {
 public:
  std::uint64_t next() override { return generator_(); }

 private:
  std::mt19937_64 generator_{1};
};

constexpr std::size_t clients = 1'000;

/// How long after its end each client's first connection comes, in order, if the node is away for
/// so long.
std::vector<milliseconds> returns_after(milliseconds outage) {
  SeededRandom random;
  std::vector<milliseconds> returns;
  for (std::size_t i = 0; i < clients; ++i) {
    Backoff backoff;
    milliseconds at = backoff.next(random);
    while (at < outage) at += backoff.next(random);
    returns.push_back(at - outage);
  }
  std::ranges::sort(returns);
  return returns;
}

/// The largest part of them that falls into a window of this length.
double largest_share(const std::vector<milliseconds>& returns, milliseconds window) {
  std::ptrdiff_t most = 0;
  for (auto from = returns.begin(); from != returns.end(); ++from) {
    most = std::max(most, std::lower_bound(from, returns.end(), *from + window) - from);
  }
  return static_cast<double>(most) / clients;
}

}  // namespace

TEST_CASE("a thousand clients that are cut off at once come back one after the other, and soon") {
  for (const milliseconds outage : {0ms, 50ms, 100ms, 300ms, 1'000ms, 3'000ms, 60'000ms}) {
    CAPTURE(outage.count());
    const auto returns = returns_after(outage);
    CHECK(largest_share(returns, 10ms) <= 0.2);
    if (outage >= 1s) CHECK(largest_share(returns, 100ms) <= 0.34);
    CHECK(returns.back() <= Backoff::longest);
  }
}

TEST_CASE("a node that stays away costs each client two attempts a second, until it is back") {
  SeededRandom random;
  Backoff backoff;
  for (int i = 0; i < 10; ++i) static_cast<void>(backoff.next(random));
  for (int i = 0; i < 1'000; ++i) CHECK(backoff.next(random) >= Backoff::longest / 2);
  backoff.reset();
  CHECK(backoff.next(random) <= 100ms);
}
