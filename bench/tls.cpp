// SPDX-License-Identifier: MIT
// What TLS adds to a blocking acquire and release: the same calls to five nodes with it and to five
// without, in turns, on loopback. The figures are ratios of medians within one run. --rounds N
// takes more samples.
#include <benchmark/benchmark.h>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <redlock/redlock.hpp>

#include "cluster/certificate_authority.hpp"
#include "cluster/fleet.hpp"
#include "cluster/temporary_directory.hpp"
#include "rounds.hpp"
#include "samples.hpp"

namespace {

using redlock::cluster::Fleet;

class Cycles {
 public:
  Cycles(const Fleet& fleet, redlock::TlsOptions tls) {
    redlock::ClientOptions options;
    options.nodes = fleet.uris();
    options.tls = std::move(tls);
    options.quarantine = redlock::Quarantine::off;   // the nodes are new
    options.node_timeout = std::chrono::seconds(2);  // the machine may be busy
    auto client = redlock::Client::create(std::move(options));
    if (!client) throw std::runtime_error(client.error().message);
    client_.emplace(std::move(*client));
    lock_.emplace(client_->lock("bench"));
    for (int i = 0; i < 100; ++i) cycle();  // connections and scripts are there from here on
    acquire = release = {};
  }

  void cycle() {
    redlock::Lease lease;
    acquire.time([&] {
      auto granted = lock_->acquire({.wait = std::chrono::seconds(5)});
      if (!granted) throw std::runtime_error(granted.error().message);
      lease = std::move(*granted);
    });
    release.time([&] {
      if (lease.release() != redlock::Released::released) throw std::runtime_error("not released");
    });
  }

  bench::Samples acquire;
  bench::Samples release;

 private:
  std::optional<redlock::Client> client_;
  std::optional<redlock::RedLock> lock_;
};

std::vector<std::string> summary;

void report(const char* what, const bench::Samples& plain, const bench::Samples& tls) {
  summary.push_back(fmt::format("{:<16} {:>9.1f} {:>9.1f} {:>7.2f}", what, plain.median(),
                                tls.median(), tls.median() / plain.median()));
}

void tls_beside_plain(benchmark::State& state) {
  const redlock::cluster::TemporaryDirectory directory("redlock-bench");
  const redlock::cluster::CertificateAuthority authority(directory.path());
  const auto node = authority.issue("node", {.names = {"IP:127.0.0.1"}});
  const auto own = authority.issue("client", {});
  const Fleet plain({.nodes = 5});
  const Fleet with_tls({.nodes = 5,
                        .tls = redlock::cluster::FleetTls{.authority = authority.certificate(),
                                                          .certificate = node.certificate,
                                                          .key = node.key,
                                                          .clients_need_certificates = true}});
  Cycles without(plain, {});
  Cycles with(with_tls, {.ca = authority.certificate().string(),
                         .certificate = own.certificate.string(),
                         .key = own.key.string()});
  for ([[maybe_unused]] auto _ : state) {
    without.cycle();
    with.cycle();
  }
  report("acquire", without.acquire, with.acquire);
  report("release", without.release, with.release);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = bench::take_rounds(argc, argv, 3000);
  benchmark::Initialize(&argc, argv);
  benchmark::RegisterBenchmark("tls_beside_plain", tls_beside_plain)
      ->Iterations(rounds)
      ->Unit(benchmark::kMicrosecond);
  benchmark::RunSpecifiedBenchmarks();
  fmt::print("\n{:<16} {:>9} {:>9} {:>7}\n", "Medians in us", "plain", "TLS", "ratio");
  for (const std::string& line : summary) fmt::print("{}\n", line);
  return EXIT_SUCCESS;
}
