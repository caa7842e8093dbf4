// SPDX-License-Identifier: MIT
// This library as one of the peers, and the floor: peer_redlock WAY LEASE_MS HOST:PORT..., where
// WAY is blocking (a thread for each caller), callback (all callers on the client's loop thread) or
// floor (nothing but hiredis, and no lock).
#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <functional>
#include <iostream>
#include <latch>
#include <memory>
#include <string>
#include <vector>

#include <redlock/redlock.hpp>

#include "bench/bare_hiredis.hpp"
#include "bench/peers/orders.hpp"
#include "bench/peers/redlock/bare_crowd.hpp"

namespace {

using peers::Calls;
using peers::Clock;
using peers::Run;

redlock::Client connect(std::vector<std::string> nodes) {
  redlock::ClientOptions options;
  options.nodes = std::move(nodes);
  options.quarantine = redlock::Quarantine::off;  // the nodes are new
  auto client = redlock::Client::create(std::move(options));
  if (!client) throw std::runtime_error(client.error().message);
  return std::move(*client);
}

std::string why(const redlock::Result<redlock::Released>& released) {
  if (!released) return released.error().message;
  return released == redlock::Released::released ? "" : redlock::to_string(*released);
}

/// As README.md shows: blocking calls that wait for ten seconds, and hold a Lease.
struct BlockingCaller {
  std::string acquire(const std::string& name) {
    auto granted = client.lock(name).acquire(options);
    if (!granted) return granted.error().message;
    lease = std::move(*granted);
    return "";
  }
  std::string release() { return why(lease.release()); }

  const redlock::Client& client;
  redlock::AcquireOptions options;
  redlock::Lease lease = {};
};

/// Each call is begun by the callback of the one before it.
struct CallbackCaller {
  void begin() {
    start = Clock::now();
    ask();
  }
  void ask() {
    if (Clock::now() >= run.end) return done.count_down();
    client.lock(name).async_acquire(options).start([this](redlock::Result<redlock::Lease> granted) {
      if (!granted) {
        calls.fail(granted.error().message);
        return ask();
      }
      calls.granted(start, run.end);
      lease = std::move(*granted);
      end();
    });
  }
  void end() {
    start = Clock::now();
    lease.async_release().start([this](const redlock::Result<redlock::Released>& released) {
      const std::string error = why(released);
      if (error.empty()) calls.released.push_back(peers::micros_since(start));
      if (!error.empty()) calls.fail(error);
      begin();
    });
  }

  const redlock::Client& client;
  const redlock::AcquireOptions& options;
  const Run& run;
  std::latch& done;
  std::string name;
  Calls calls = {};
  redlock::Lease lease = {};
  Clock::time_point start = {};
};

class Redlock {
 public:
  Redlock(bool callback, std::chrono::milliseconds lease, std::vector<std::string> nodes)
      : callback_(callback),
        client_(connect(std::move(nodes))),
        options_{.lease = lease, .wait = std::chrono::seconds(10)} {}

  std::vector<Calls> run(const Run& run) {
    if (!callback_) return run_on_threads(run, [&] { return BlockingCaller{client_, options_}; });
    std::latch done(static_cast<std::ptrdiff_t>(run.callers));
    std::vector<std::unique_ptr<CallbackCaller>> callers;
    for (std::size_t i = 0; i < run.callers; ++i) {
      callers.push_back(std::unique_ptr<CallbackCaller>(
          new CallbackCaller{client_, options_, run, done, run.name_of(i)}));
    }
    for (const auto& caller : callers) caller->begin();
    done.wait();
    std::vector<Calls> all;
    for (const auto& caller : callers) all.push_back(std::move(caller->calls));
    return all;
  }
  std::string hold(const std::string& name) { return holder_.acquire(name); }
  std::string release() { return holder_.release(); }

 private:
  bool callback_;
  redlock::Client client_;
  redlock::AcquireOptions options_;
  BlockingCaller holder_{client_, options_};
};

/// It waits for nobody and is no lock, so that there is nothing to hold.
class Floor {
 public:
  explicit Floor(const std::vector<std::uint16_t>& ports) : alone_(ports), crowd_(ports) {}

  std::vector<Calls> run(const Run& run) {
    if (run.callers > 1) return crowd_.run(run);
    Calls calls;
    const std::string name = run.name_of(0);
    while (Clock::now() < run.end) {
      auto start = Clock::now();
      alone_.acquire(name);
      calls.granted(start, run.end);
      start = Clock::now();
      alone_.release(name);
      calls.released.push_back(peers::micros_since(start));
    }
    return {calls};
  }
  static std::string hold(const std::string&) { return "not a lock"; }
  static std::string release() { return "not a lock"; }

 private:
  bench::BareHiredis alone_;
  peers::BareCrowd crowd_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: peer_redlock blocking|callback|floor LEASE_MS HOST:PORT...\n";
    return 64;
  }
  const std::string way = argv[1];
  const std::vector<std::string> nodes(argv + 3, argv + argc);
  try {
    if (way == "floor") {
      std::vector<std::uint16_t> ports;
      for (const std::string& node : nodes) {
        ports.push_back(static_cast<std::uint16_t>(std::stoi(node.substr(node.rfind(':') + 1))));
      }
      Floor floor(ports);
      peers::serve(floor,
                   fmt::format("hiredis {}.{}.{}", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH));
    } else {
      Redlock redlock(way == "callback", std::chrono::milliseconds(std::stoi(argv[2])), nodes);
      peers::serve(redlock, fmt::format("{}.{}.{}", REDLOCK_VERSION_MAJOR, REDLOCK_VERSION_MINOR,
                                        REDLOCK_VERSION_PATCH));
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
