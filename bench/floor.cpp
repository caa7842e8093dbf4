// SPDX-License-Identifier: MIT
// How much the library adds to what the network and the nodes cost anyway: a blocking acquire and
// release beside the same messages sent by nothing but hiredis, in turns, on the same five nodes.
// Three ways: blocking; blocking with no caller ever running the client's loop (no seat: the client
// has an observer, which does nothing); and by callbacks, each of which starts the next. With
// pauses between the cycles, too. The figures are ratios of medians within one run. --rounds N
// takes more samples, --benchmark_filter=pause_20 some.
#include <algorithm>
#include <benchmark/benchmark.h>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <redlock/redlock.hpp>

#include "bare_hiredis.hpp"
#include "cluster/fleet.hpp"
#include "fleet_client.hpp"
#include "rounds.hpp"
#include "samples.hpp"

namespace {

using redlock::cluster::Fleet;
using redlock::cluster::Persistence;

struct Measured {
  bench::Samples acquire;
  bench::Samples release;
  bench::Samples both;
};

std::vector<std::string> summary;

template <typename Acquire, typename Release>
void measure(Measured& measured, Acquire&& acquire, Release&& release) {
  const auto start = redlock::BootClock::now();
  acquire();
  const auto middle = redlock::BootClock::now();
  release();
  const auto end = redlock::BootClock::now();
  measured.acquire.add(middle - start);
  measured.release.add(end - middle);
  measured.both.add(end - start);
}

void report(const char* nodes, const char* way, const Measured& bare, const Measured& ours) {
  const auto line = [&](const char* what, const bench::Samples& floor, const bench::Samples& time) {
    summary.push_back(fmt::format("{:<20} {:<9} {:<16} {:>9.1f} {:>9.1f} {:>7.2f}", nodes, way,
                                  what, floor.median(), time.median(),
                                  time.median() / floor.median()));
  };
  line("acquire", bare.acquire, ours.acquire);
  line("release", bare.release, ours.release);
  line("acquire+release", bare.both, ours.both);
}

class Blocking {
 public:
  explicit Blocking(const Fleet& fleet, std::shared_ptr<redlock::Observer> observer = {})
      : client_(bench::connect(fleet, std::move(observer))) {
    cycle(warm_up_);
  }

  void cycle(Measured& measured) {
    redlock::Lease lease;
    const auto acquire = [&] {
      auto granted = lock_.acquire({.wait = std::chrono::seconds(5)});
      if (!granted) throw std::runtime_error(granted.error().message);
      lease = std::move(*granted);
    };
    const auto release = [&] {
      if (lease.release() != redlock::Released::released) throw std::runtime_error("not released");
    };
    measure(measured, acquire, release);
  }

 protected:
  redlock::Client client_;
  redlock::RedLock lock_ = client_.lock("bench");
  Measured warm_up_;
};

class WithoutSeat : public Blocking {
 public:
  explicit WithoutSeat(const Fleet& fleet)
      : Blocking(fleet, std::make_shared<redlock::Observer>()) {}
};

/// All of a cycle on the client's own thread.
class ByCallbacks : Blocking {
 public:
  using Blocking::Blocking;

  void cycle(Measured& measured) {
    done_ = {};
    // The first only leads to the client's own thread.
    begin(warm_up_, [&] { begin(measured, [&] { done_.set_value(); }); });
    done_.get_future().get();
  }

 private:
  void begin(Measured& measured, std::function<void()> then) {
    start_ = redlock::BootClock::now();
    lock_.async_acquire({.wait = std::chrono::seconds(5)})
        .start([&, next = std::move(then)](redlock::Result<redlock::Lease> granted) mutable {
          middle_ = redlock::BootClock::now();
          if (!granted) throw std::runtime_error(granted.error().message);
          lease_ = std::move(*granted);
          lease_.async_release().start([&, last = std::move(next)](const auto& /*released*/) {
            const auto end = redlock::BootClock::now();
            measured.acquire.add(middle_ - start_);
            measured.release.add(end - middle_);
            measured.both.add(end - start_);
            last();
          });
        });
  }

  redlock::Lease lease_;
  redlock::BootClock::time_point start_{};
  redlock::BootClock::time_point middle_{};
  std::promise<void> done_;
};

void floor_of(benchmark::State& state, Persistence persistence, std::chrono::milliseconds pause,
              const char* nodes) {
  const Fleet fleet({.nodes = 5, .persistence = persistence});
  std::vector<std::uint16_t> ports;
  for (std::size_t node = 0; node < fleet.size(); ++node) ports.push_back(fleet.port(node));
  bench::BareHiredis bare(ports);
  // Connections and scripts are there from here on.
  Blocking blocking(fleet);
  WithoutSeat without_seat(fleet);
  ByCallbacks callbacks(fleet);

  Measured floor;
  Measured by_blocking;
  Measured by_no_seat;
  Measured by_callbacks;
  const auto think = [pause] {
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
  };
  for ([[maybe_unused]] auto _ : state) {
    think();
    measure(
        floor, [&] { bare.acquire("floor"); }, [&] { bare.release("floor"); });
    think();
    blocking.cycle(by_blocking);
    think();
    without_seat.cycle(by_no_seat);
    // It has no first cycle after a pause: another leads to the client's own thread.
    if (pause.count() == 0) callbacks.cycle(by_callbacks);
  }
  report(nodes, "blocking", floor, by_blocking);
  report(nodes, "no seat", floor, by_no_seat);
  if (pause.count() == 0) report(nodes, "callback", floor, by_callbacks);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = bench::take_rounds(argc, argv, 3000);
  benchmark::Initialize(&argc, argv);
  struct Row {
    const char* name;
    Persistence persistence;
    std::chrono::milliseconds pause;
    const char* shown;
    int part;
  };
  using std::chrono::milliseconds;
  for (const Row& row :
       {Row{"no_persistence", Persistence::none, milliseconds(0), "no persistence", 1},
        Row{"pause_1ms", Persistence::none, milliseconds(1), "1 ms between", 3},
        Row{"pause_20ms", Persistence::none, milliseconds(20), "20 ms between", 30},
        Row{"appendfsync_always", Persistence::always, milliseconds(0), "appendfsync always", 3}}) {
    benchmark::RegisterBenchmark(row.name, floor_of, row.persistence, row.pause, row.shown)
        ->Iterations(std::max(rounds / row.part, 1))
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::RunSpecifiedBenchmarks();

  fmt::print("\nMedians in us, in turns:{:<23} {:>9} {:>9} {:>7}\n", "", "hiredis", "redlock",
             "ratio");
  for (const std::string& line : summary) fmt::print("{}\n", line);
  return EXIT_SUCCESS;
}
