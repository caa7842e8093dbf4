// SPDX-License-Identifier: MIT
// How the cost of a lock grows: over the number of nodes, of calls in flight, of names that they
// share, of leases that are held, of callers that wait for one name. One line for each point:
// curve, x, figure, value. `./dev scale` draws them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <redlock/redlock.hpp>

#include "bare_hiredis.hpp"
#include "cluster/fleet.hpp"
#include "fleet_client.hpp"
#include "samples.hpp"
#include "support/own_use.hpp"

namespace {

using namespace redlock;
using cluster::Fleet;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::heap_in_use;
using testing::processor_time;

struct Plan {
  milliseconds turn{2'000};
  std::vector<std::size_t> nodes = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<std::size_t> in_flight = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1'024};
  std::vector<std::size_t> names = {1, 4, 16, 64, 256, 1'024, 4'096, 16'384, 65'536};
  std::vector<std::size_t> leases = {1'000, 3'000, 10'000, 30'000, 100'000};
  std::vector<std::size_t> waiters = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1'024};
  milliseconds holding{30'000};  // one lease, in which each is renewed thrice
};

Plan quick_plan() {
  return {.turn = milliseconds(300),
          .nodes = {1, 3, 5, 9},
          .in_flight = {1, 16, 256, 1'024},
          .names = {1, 64, 4'096},
          .leases = {1'000, 10'000},
          .waiters = {1, 32, 1'024},
          .holding = milliseconds(10'000)};
}

void tell(std::string_view curve, std::size_t x, std::string_view figure, double value) {
  fmt::print("{}\t{}\t{}\t{:.4g}\n", curve, x, figure, value);
  std::fflush(stdout);
}

/// All that is in flight in one turn: each takes a lock and gives it back until the turn is over.
class Crowd {
 public:
  Crowd(Client& client, std::size_t in_flight, std::size_t names, milliseconds length)
      : begin_(BootClock::now()), end_(begin_ + length), flying_(in_flight) {
    for (std::size_t number = 0; number < in_flight; ++number) {
      flights_.push_back(std::make_unique<Flight>(*this, client, number, names));
    }
    for (const auto& flight : flights_) flight->take();
    std::unique_lock lock(mutex_);
    landed_.wait(lock, [this] { return flying_ == 0; });
    took_ = BootClock::now() - begin_;
    if (failed_ > 0) throw std::runtime_error("a call failed");
  }

  [[nodiscard]] double cycles_per_second() const {
    return static_cast<double>(waits_.size()) / std::chrono::duration<double>(took_).count();
  }
  /// Of acquire, in microseconds.
  [[nodiscard]] double median_wait() const { return waits_.median(); }

 private:
  class Flight {
   public:
    Flight(Crowd& crowd, Client& client, std::size_t number, std::size_t names)
        : crowd_(crowd), client_(client), number_(number), names_(names) {}

    void take() {
      // Names are taken in turn, so that calls meet where there are fewer names than calls.
      const std::size_t name = (number_ + 7'919 * round_++) % names_;
      asked_ = BootClock::now();
      client_.lock("scale:" + std::to_string(name))
          .async_acquire({.wait = seconds(60)})
          .start([this](Result<Lease> lease) {
            if (!lease) return crowd_.land(false);
            crowd_.waits_.add(BootClock::now() - asked_);
            lease_ = std::move(*lease);
            lease_.async_release().start([this](const Result<Released>& released) {
              if (released && BootClock::now() < crowd_.end_) return take();
              crowd_.land(released.has_value());
            });
          });
    }

   private:
    Crowd& crowd_;
    Client& client_;
    std::size_t number_;
    std::size_t names_;
    std::size_t round_ = 0;
    BootClock::time_point asked_;
    Lease lease_;
  };

  void land(bool well) {
    const std::scoped_lock lock(mutex_);
    if (!well) ++failed_;
    if (--flying_ == 0) landed_.notify_one();
  }

  BootClock::time_point begin_;
  BootClock::time_point end_;
  BootClock::duration took_{};
  bench::Samples waits_;  // the callbacks run on one thread
  std::mutex mutex_;
  std::condition_variable landed_;
  std::size_t flying_;
  std::size_t failed_ = 0;
  std::vector<std::unique_ptr<Flight>> flights_;
};

/// One blocking caller in turns with what bare hiredis needs for the same messages.
void over_nodes(const Plan& plan) {
  for (const std::size_t count : plan.nodes) {
    const Fleet fleet({.nodes = count});
    std::vector<std::uint16_t> ports;
    for (std::size_t node = 0; node < count; ++node) ports.push_back(fleet.port(node));
    bench::BareHiredis bare(ports);
    Client client = bench::connect(fleet);
    RedLock lock = client.lock("scale");
    bench::Samples floor;
    bench::Samples ours;
    const auto end = BootClock::now() + plan.turn;
    while (BootClock::now() < end) {
      floor.time([&] { bare.acquire("floor"); });
      bare.release("floor");
      Result<Lease> lease;
      ours.time([&] { lease = lock.acquire(); });
      if (!lease || !lease->release()) throw std::runtime_error("a call failed");
    }
    tell("nodes", count, "floor_us", floor.median());
    tell("nodes", count, "acquire_us", ours.median());
    tell("nodes", count, "cycles", Crowd(client, 64, 64, plan.turn).cycles_per_second());
  }
}

void over_crowds(const Plan& plan, Client& client) {
  for (const std::size_t in_flight : plan.in_flight) {
    const Crowd crowd(client, in_flight, in_flight, plan.turn);
    tell("in_flight", in_flight, "cycles", crowd.cycles_per_second());
    tell("in_flight", in_flight, "acquire_us", crowd.median_wait());
  }
}

void over_names(const Plan& plan, Client& client) {
  for (const std::size_t names : plan.names) {
    const Crowd crowd(client, 64, names, plan.turn);
    tell("names", names, "cycles", crowd.cycles_per_second());
    tell("names", names, "acquire_us", crowd.median_wait());
  }
}

void over_waiters(const Plan& plan, Client& client) {
  for (const std::size_t waiters : plan.waiters) {
    const Crowd crowd(client, waiters, 1, plan.turn);
    tell("waiters", waiters, "hand_offs", crowd.cycles_per_second());
  }
}

/// So many leases of 30 s, which are renewed.
std::vector<Lease> take_leases(Client& client, std::size_t count) {
  std::vector<Lease> leases(count);
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t under_way = 0;
  for (Lease& lease : leases) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return under_way < 200; });
    ++under_way;
    lock.unlock();
    client.lock(fmt::format("held:{:06}", &lease - leases.data()))
        .async_acquire({.lease = seconds(30), .renewal = Renewal::always, .wait = seconds(30)})
        .start([&](Result<Lease> granted) {
          if (granted) lease = std::move(*granted);
          const std::scoped_lock done(mutex);
          --under_way;
          changed.notify_one();
        });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return under_way == 0; });
  return leases;
}

void over_leases(const Plan& plan, const Fleet& fleet) {
  for (const std::size_t count : plan.leases) {
    Client client = bench::connect(fleet);
    { auto first = client.lock("held").acquire(); }
    const std::size_t before = heap_in_use();
    std::vector<Lease> leases = take_leases(client, count);
    const auto grown = heap_in_use() - before - count * sizeof(Lease);
    tell("leases", count, "bytes", static_cast<double>(grown) / static_cast<double>(count));
    const auto cpu_before = processor_time();
    const auto begin = BootClock::now();
    std::this_thread::sleep_for(plan.holding);
    const std::chrono::duration<double> took = BootClock::now() - begin;
    tell("leases", count, "cpu_percent",
         100 * std::chrono::duration<double>(processor_time() - cpu_before) / took);
    const auto lost =
        std::ranges::count_if(leases, [](const Lease& lease) { return !lease.valid(); });
    tell("leases", count, "lost", static_cast<double>(lost));
  }
}

void run(const Plan& plan, const std::string& only) {
  const auto wanted = [&](std::string_view curve) { return only.empty() || only == curve; };
  if (wanted("nodes")) over_nodes(plan);
  const Fleet fleet({.nodes = 5});
  Client client = bench::connect(fleet);
  if (wanted("in_flight")) over_crowds(plan, client);
  if (wanted("names")) over_names(plan, client);
  if (wanted("waiters")) over_waiters(plan, client);
  if (wanted("leases")) over_leases(plan, fleet);
}

}  // namespace

int main(int argc, char** argv) {
  bool quick = false;
  std::string only;
  CLI::App app{
      "What a lock costs over nodes (1 to 9), calls in flight, names, leases held and waiters.\n"
      "Prints a line for each point: curve, x, figure, value (us, cycles or hand-offs a second,\n"
      "per cent of a core, bytes), parted by tabs. Takes five minutes on a machine that does\n"
      "nothing else. `./dev scale` draws the result."};
  app.add_flag("--quick", quick, "fewer points and shorter turns: half a minute");
  app.add_option("--curve", only, "one of them alone")
      ->check(CLI::IsMember({"nodes", "in_flight", "names", "waiters", "leases"}));
  CLI11_PARSE(app, argc, argv);
  try {
    run(quick ? quick_plan() : Plan{}, only);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_scale: {}\n", error.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
