// SPDX-License-Identifier: MIT
// Events of locks and nodes in the log of a service, by spdlog: one line for each event, with time,
// level and fields, key=value (logfmt). The program holds a lock until SIGINT or SIGTERM, and takes
// it again when it is lost. Run it with nodes, and kill some meanwhile:
//
//     eval "$(redlock fleet up)" && spdlog_observer report
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <spdlog/async.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <redlock/redlock.hpp>

namespace {

using namespace std::chrono_literals;

/// A value that may be anything, as one word of a line: a lock's name may have a line break in it,
/// and a node's reply may look like another field.
std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

long long in_milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

/// Writes the events that people want to read afterwards. Events of every attempt, on_attempt and
/// on_answer among others, are for metrics. The observer is called on the client's loop thread, so
/// the logger must not block.
class LoggingObserver final : public redlock::Observer {
 public:
  explicit LoggingObserver(std::shared_ptr<spdlog::logger> log) : log_(std::move(log)) {}

  void on_node_up(std::string_view node, std::string_view warning) override {
    if (warning.empty()) return log_->info("event=node_up node={}", in_quotes(node));
    log_->warn("event=node_up node={} warning={}", in_quotes(node), in_quotes(warning));
  }

  void on_node_down(std::string_view node, redlock::Cause cause, std::string_view detail) override {
    log_->warn("event=node_down node={} cause={} detail={}", in_quotes(node), to_string(cause),
               in_quotes(detail));
  }

  void on_clock_moved(std::string_view node, std::chrono::nanoseconds by, bool ours) override {
    log_->warn("event=clock_moved node={} by_ms={} ours={}", in_quotes(node), in_milliseconds(by),
               ours);
  }

  void on_renewal(std::string_view name, bool ok, std::chrono::nanoseconds remaining) override {
    if (ok) return;  // three times in the length of each lease
    log_->warn("event=renewal_failed name={} remaining_ms={}", in_quotes(name),
               in_milliseconds(remaining));
  }

  void on_lost(std::string_view name, std::uint64_t token, redlock::LossReason reason) override {
    log_->error("event=lost name={} token={} reason={}", in_quotes(name), token, to_string(reason));
  }

  void on_release_failed(std::string_view name, const redlock::Error& error) override {
    log_->warn("event=release_failed name={} code={} message={}", in_quotes(name),
               to_string(error.code), in_quotes(error.message));
  }

 private:
  std::shared_ptr<spdlog::logger> log_;
};

/// A logger that holds up no thread that logs: a thread of its own writes to stderr and takes as
/// long as it needs, and if 8,192 lines wait the oldest is dropped (_nb: not blocking). The other
/// policy waits for room, so that a terminal that Ctrl-S has stopped would stop the client's loop,
/// and with it the renewal of every lease. For the same reason nothing is flushed from there: this
/// sink flushes after each line; a sink that writes to a file is given to spdlog::flush_every().
std::shared_ptr<spdlog::logger> start_log() {
  auto log = spdlog::create_async_nb<spdlog::sinks::stderr_sink_mt>("redlock");
  log->set_pattern("time=%Y-%m-%dT%H:%M:%S.%eZ level=%l %v", spdlog::pattern_time_type::utc);
  return log;
}

/// Writes the lines that are left.
void end_log(spdlog::logger& log) {
  const std::size_t dropped = spdlog::thread_pool()->overrun_counter();
  if (dropped > 0) log.warn("event=dropped lines={}", dropped);
  spdlog::shutdown();
}

/// Takes the lock, and works for as long as it is held.
void work(redlock::RedLock lock, spdlog::logger& log, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    redlock::Result<redlock::Lease> lease = lock.acquire(
        {.lease = 5s, .renewal = redlock::Renewal::always, .wait = redlock::forever}, stop);
    if (lease) {
      log.info("event=working name={} token={}", in_quotes(lock.name()), lease->token());
      while (!stop.stop_requested() && !lease->lost().stop_requested()) {
        std::this_thread::sleep_for(100ms);  // a step of the work, with lease->token()
      }
    } else if (lease.error().code != redlock::Errc::cancelled) {
      log.error("event=not_granted name={} code={} message={}", in_quotes(lock.name()),
                to_string(lease.error().code), in_quotes(lease.error().message));
      std::this_thread::sleep_for(1s);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  // Blocked in every thread, for sigwait().
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  auto options = redlock::ClientOptions::from_env();
  if (!options) return std::puts(options.error().message.c_str()), EXIT_FAILURE;
  const std::shared_ptr<spdlog::logger> log = start_log();
  options->observer = std::make_shared<LoggingObserver>(log);
  auto client = redlock::Client::create(std::move(*options));
  if (!client) return std::puts(client.error().message.c_str()), EXIT_FAILURE;
  {
    const std::jthread worker([&](const std::stop_token& stop) {
      work(client->lock(argc > 1 ? argv[1] : "report"), *log, stop);
    });
    int signal = 0;
    sigwait(&ends, &signal);
  }
  client->close(2s);  // after which nothing is observed any more
  end_log(*log);
}
