// SPDX-License-Identifier: MIT
// What it costs three threads to take two locks by std::scoped_lock, which gives up what it has and
// begins anew when it does not get the next one, in place of one after the other in an order that
// all keep to. Three nodes; each thread has a client of its own, as on three machines.
#include <array>
#include <atomic>
#include <chrono>
#include <fmt/format.h>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <redlock/redlock.hpp>

#include "cluster/fleet.hpp"
#include "fleet_client.hpp"

namespace {

using redlock::RedLock;
using Visit = std::function<void(RedLock&, RedLock&)>;

constexpr int threads = 3;
constexpr int visits_each = 50;

/// How long all visits take together.
std::chrono::duration<double> time_of(const redlock::cluster::Fleet& fleet, const Visit& visit) {
  std::vector<redlock::Client> clients;
  for (int i = 0; i < threads; ++i) clients.push_back(bench::connect(fleet));
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> running;
    for (int i = 0; i < threads; ++i) {
      running.emplace_back([&, i] {
        const std::array<std::string, 2> names{"account:3", "account:7"};
        RedLock first = clients[static_cast<std::size_t>(i)].lock(names[i % 2 == 0 ? 0 : 1]);
        RedLock second = clients[static_cast<std::size_t>(i)].lock(names[i % 2 == 0 ? 1 : 0]);
        for (int turn = 0; turn < visits_each; ++turn) visit(first, second);
      });
    }
  }
  return std::chrono::steady_clock::now() - begin;
}

}  // namespace

int main() {
  const redlock::cluster::Fleet fleet({.nodes = 3});
  const auto in_order = time_of(fleet, [](RedLock& one, RedLock& other) {
    RedLock& first = one.name() < other.name() ? one : other;
    const std::lock_guard outer(first);
    const std::lock_guard inner(&first == &one ? other : one);
  });
  const auto by_scoped_lock =
      time_of(fleet, [](RedLock& one, RedLock& other) { const std::scoped_lock both(one, other); });
  fmt::print("{} threads, {} visits each of two locks, three nodes on this machine\n", threads,
             visits_each);
  fmt::print("in the order of the names  {:>8.2f} s\n", in_order.count());
  fmt::print("std::scoped_lock           {:>8.2f} s  {:.0f} times as long\n",
             by_scoped_lock.count(), by_scoped_lock / in_order);
}
