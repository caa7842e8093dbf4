// SPDX-License-Identifier: MIT
// Metrics for Prometheus over HTTP: a job that takes a lock again and again, and beside it a server
// (cpp-httplib) that answers /metrics with what redlock::Metrics has counted. It listens on
// 127.0.0.1, on the port that is given or on a free one, and ends by SIGINT or SIGTERM. Run it with
// nodes:
//
//     eval "$(redlock fleet up)" && metrics_http 9464
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <httplib.h>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include <redlock/redlock.hpp>

namespace {

using namespace std::chrono_literals;

/// The program's own work, four times a second.
void work(redlock::Client& client, const std::stop_token& stop) {
  redlock::RedLock lock = client.lock("report");
  std::mutex mutex;
  std::condition_variable_any stopped;
  while (!stop.stop_requested()) {
    redlock::Result<redlock::Lease> lease = lock.acquire({.wait = redlock::forever}, stop);
    if (!lease && lease.error().code != redlock::Errc::cancelled) {
      std::puts(lease.error().message.c_str());
    }
    if (lease) lease->release();  // after the work, which gives lease->token() to its resource
    std::unique_lock guard(mutex);
    stopped.wait_for(guard, stop, 250ms, [] { return false; });
  }
}

/// The requested port; 0 for a free one, -1 if the text is not a port.
int port_of(int argc, char** argv) {
  if (argc < 2) return 0;
  const std::string_view text = argv[1];
  int port = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool is_port = error == std::errc() && end == text.data() + text.size() && port <= 65535;
  return is_port ? port : -1;
}

}  // namespace

int main(int argc, char** argv) {
  // Blocked in every thread, for sigwait().
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  const auto metrics = std::make_shared<redlock::Metrics>();
  auto options = redlock::ClientOptions::from_env();
  if (!options) return std::puts(options.error().message.c_str()), EXIT_FAILURE;
  options->observer = metrics;
  auto client = redlock::Client::create(std::move(*options));
  if (!client) return std::puts(client.error().message.c_str()), EXIT_FAILURE;

  httplib::Server server;
  server.Get("/metrics", [&](const httplib::Request&, httplib::Response& response) {
    response.set_content(metrics->text(), "text/plain; version=0.0.4");
  });
  int port = port_of(argc, argv);
  if (port == 0) {
    port = server.bind_to_any_port("127.0.0.1");
  } else if (port > 0 && !server.bind_to_port("127.0.0.1", port)) {
    port = -1;
  }
  if (port <= 0) return std::puts("cannot listen on that port of 127.0.0.1"), EXIT_FAILURE;
  std::printf("http://127.0.0.1:%d/metrics\n", port);
  std::fflush(stdout);

  std::jthread job([&](const std::stop_token& stop) { work(*client, stop); });
  std::jthread listener([&] { server.listen_after_bind(); });
  int signal = 0;
  sigwait(&ends, &signal);
  while (!server.is_running()) std::this_thread::sleep_for(1ms);  // it cannot be stopped before
  server.stop();
}
