// SPDX-License-Identifier: MIT
// What one uncontended cycle of acquire and release costs in allocations and in system calls. The
// cycles run in a process of their own, once by itself and twice under strace, which counts; what
// the longer of these two runs has more is what its further cycles cost.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <future>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <redlock/redlock.hpp>

#include "cluster/fleet.hpp"
#include "support/counted_new.hpp"
#include "support/temporary_directory.hpp"

namespace {

using namespace redlock;

void blocking_cycle(RedLock& lock) {
  auto lease = lock.acquire();
  if (!lease || !lease->release()) throw std::runtime_error("a call failed");
}

/// From callback to callback.
class Callbacks {
 public:
  Callbacks(RedLock& lock, int cycles) : lock_(lock), left_(cycles) { take(); }
  void wait() { done_.get_future().get(); }

 private:
  void take() {
    lock_.async_acquire().start([this](Result<Lease> lease) {
      lease_ = std::move(lease.value());
      lease_.async_release().start([this](const Result<Released>&) {
        if (--left_ > 0) return take();
        done_.set_value();
      });
    });
  }

  RedLock& lock_;
  Lease lease_;
  int left_;
  std::promise<void> done_;
};

/// In the process of its own. Prints how many allocations a cycle makes.
void run_cycles(std::vector<std::string> nodes, int cycles, bool callbacks) {
  ClientOptions options;
  options.nodes = std::move(nodes);
  options.quarantine = Quarantine::off;  // the nodes are new
  auto client = Client::create(std::move(options));
  if (!client) throw std::runtime_error(client.error().message);
  RedLock lock = client->lock("cycle");
  for (int i = 0; i < 100; ++i) blocking_cycle(lock);

  const std::size_t before = testing::all_allocations;
  if (callbacks) {
    Callbacks(lock, cycles).wait();
  } else {
    for (int i = 0; i < cycles; ++i) blocking_cycle(lock);
  }
  const std::size_t sum = testing::all_allocations - before;
  fmt::print("{:.2f}\n", static_cast<double>(sum) / cycles);
}

const std::map<std::string, std::string> reasons = {
    {"sendto", "one write to each node for acquire, one for release"},
    {"read", "one from each node and call, less those whose replies came together; wake-ups"},
    {"write", "wakes the loop's thread"},
    {"epoll_wait", "waits for replies, as often as they come apart"},
    {"epoll_ctl", "gives the loop's descriptor to its thread"},
    {"futex", "wakes the caller"},
    {"getrandom", "the owner's 128 bits, new for every attempt"},
    {"timerfd_settime", "the next time to wake, where that is earlier than it was"},
};

/// What strace -c counted, by name.
std::map<std::string, double> read_counts(const std::string& path) {
  std::map<std::string, double> counts;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    double calls = 0;
    if (words >> name >> calls && name != "total") counts[name] = calls;
  }
  return counts;
}

class Tables {
 public:
  explicit Tables(std::string program) : program_(std::move(program)) {
    for (const std::string& uri : fleet_.uris()) nodes_ += " --node " + uri;
  }

  void print(const char* title, const std::string& form) const {
    fmt::print("| {} | a cycle | what for |\n|---|--:|---|\n", title);
    std::fflush(stdout);
    run("", cycles_, form + " >" + (directory_.path() / "sum").string());
    std::string allocations;
    std::getline(std::ifstream(directory_.path() / "sum"), allocations);
    fmt::print(
        "| allocations | {} | the attempt, its name, the lease, and lists of what is to be sent "
        "and answered |\n",
        allocations);
    const auto few = counted(cycles_, form);
    const auto many = counted(2 * cycles_, form);
    for (const auto& [name, calls] : many) {
      const auto before = few.find(name);
      const double more = calls - (before == few.end() ? 0 : before->second);
      if (more < 0.01 * cycles_) continue;
      const auto reason = reasons.find(name);
      fmt::print("| `{}` | {:.2f} | {} |\n", name, more / cycles_,
                 reason == reasons.end() ? "" : reason->second);
    }
  }

 private:
  [[nodiscard]] std::map<std::string, double> counted(int cycles, const std::string& form) const {
    const std::string table = (directory_.path() / "calls").string();
    run("strace -f -c -U name,calls -o '" + table + "' ", cycles, form + " >/dev/null");
    return read_counts(table);
  }
  void run(const std::string& tracer, int cycles, const std::string& form) const {
    const std::string command =
        fmt::format("{}'{}' --cycles {}{} {}", tracer, program_, cycles, nodes_, form);
    if (std::system(command.c_str()) != 0) throw std::runtime_error("it failed: " + command);
  }

  static constexpr int cycles_ = 2'000;

  std::string program_;
  cluster::Fleet fleet_{{.nodes = 5}};
  std::string nodes_;
  testing::TemporaryDirectory directory_;
};

}  // namespace

int main(int argc, char** argv) {
  int cycles = 0;
  bool callbacks = false;
  std::vector<std::string> nodes;
  CLI::App app{
      "What a cycle of acquire and release costs without contention, on five nodes: allocations,\n"
      "and system calls as strace counts them. Prints the tables of docs/performance.md, for a\n"
      "blocking caller and for callbacks; takes half a minute. The other options are those of the\n"
      "process that is counted: so many cycles on these nodes, and nothing else."};
  app.add_option("--cycles", cycles, "how many")->check(CLI::PositiveNumber);
  app.add_option("--node", nodes, "a node's URI; to be repeated");
  app.add_flag("--callbacks", callbacks, "by callbacks, in place of blocking");
  CLI11_PARSE(app, argc, argv);
  try {
    if (cycles > 0) {
      run_cycles(nodes, cycles, callbacks);
    } else if (std::system("strace -V >/dev/null 2>&1") != 0) {
      throw std::runtime_error("strace is missing; apt-get install strace");
    } else {
      const Tables tables(argv[0]);
      tables.print("one blocking caller", "");
      fmt::print("\n");
      tables.print("from callback to callback", "--callbacks");
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_cycle: {}\n", error.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
