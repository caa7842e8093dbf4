// SPDX-License-Identifier: MIT
// redlock bench: how quick locks are on the user's own nodes, in health and with faults.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fmt/core.h>
#include <memory>
#include <poll.h>
#include <random>
#include <sys/ioctl.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <redlock/admin.hpp>
#include <redlock/redlock.hpp>

#include "cli/bench/answer_watch.hpp"
#include "cli/bench/load.hpp"
#include "cli/bench/node_relays.hpp"
#include "cli/bench/outcome.hpp"
#include "cli/event_log.hpp"
#include "cli/exit_code.hpp"
#include "cli/invocation.hpp"
#include "cli/nodes.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/program.hpp"
#include "cli/screen.hpp"
#include "cli/signals.hpp"

namespace redlock::cli {
namespace {

using std::chrono::milliseconds;

constexpr auto* bench_footer = R"help(
Callers take a lock, lengthen it and give it back, at a fixed pace; each cycle is measured from the
moment at which it was due, whether or not a caller was free then. The output has, with p50 to max:
  acquire    from that moment until the lock is granted; late: the part of it before the call
  hold       lengthening the lease on a quorum (as a renewal does)
  release    until a quorum has confirmed it
  hand-off   from one holder's release to the next grant, where callers wait for each other
  quorum     the round trip of the node that completes a quorum: the third fastest of five
  each node  its own round trip of an acquire
and the votes of the nodes, the failures, and how many grants were settled in one round trip.

Scenarios. The fault begins half-way and is made inside this program, by relays in front of the last
nodes of the list: the servers are not touched, and their other clients are not affected.
  healthy        no fault (the default)
  minority-down  as many nodes as may fail reset every connection
  minority-hung  as many nodes as may fail answer nothing
  one-slow       one node answers 20 ms later
  contended      all callers want the same lock (or --names), as if in four programs

bench can run against nodes in use: it locks names of its own (redlock-bench:RANDOM:N) for short
leases, is slow by default, and gives all locks back, also after Ctrl-C; the locks of a killed bench
end with their leases. Only the counters from which tokens come (redlock:fence:N), which all names
share, remain on the nodes.

--assert [OPERATION.]STATISTIC<LIMIT, with <, <=, > or >=, may be given several times:
  p50, p90, p99, p99.9, max, mean   of acquire, or of the operation before the dot; us, ms or s
  errors                            number of failed calls, or with % their share of all calls
  throughput                        cycles a second
  one-round-trip                    grants that were settled at once, in %
  unstarted                         cycles that were due when no caller was free
An assertion about something that was not measured fails.

Exit status: 0; 3 if an assertion fails; 64 usage; 69 no quorum; 78 configuration;
128 + N after signal N.

Examples:
  redlock bench
  redlock bench --scenario minority-hung --duration 30s
  redlock bench --rate max --concurrency 32 -o json
  redlock bench --assert 'p99<5ms' --assert 'release.p99<5ms' --assert 'errors<=0')help";

constexpr std::size_t most_callers = 256;
constexpr std::size_t most_names = 100;
constexpr double usual_rate = 200;
constexpr double slow_rate = 50;  ///< contending callers get the lock one after the other
constexpr double highest_rate = 100'000;

constexpr std::array all_scenarios{Scenario::healthy, Scenario::minority_down,
                                   Scenario::minority_hung, Scenario::one_slow,
                                   Scenario::contended};

Scenario parse_scenario(const std::string& text) {
  std::string known;
  for (const auto scenario : all_scenarios) {
    if (text == to_string(scenario)) return scenario;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", to_string(scenario));
  }
  throw CLI::ValidationError("--scenario",
                             fmt::format("there is no scenario '{}'; there are {}", text, known));
}

std::optional<double> parse_rate(const std::string& text) {
  if (text == "max") return {};
  double rate = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !(rate > 0) || rate > highest_rate) {
    throw CLI::ValidationError(
        "--rate", fmt::format("'{}' is no number of cycles a second up to {}; or write max", text,
                              highest_rate));
  }
  return rate;
}

std::size_t parse_count(const std::string& option, const std::string& text, std::size_t most) {
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && count >= 1 && count <= most) return count;
  throw CLI::ValidationError(
      option, fmt::format("{} is not between 1 and {}", whole ? text : "'" + text + "'", most));
}

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void check_between(std::string_view option, milliseconds value, milliseconds low,
                   milliseconds high) {
  if (value >= low && value <= high) return;
  throw Exit(exit_usage,
             fmt::format("{} {} is not between {} and {}", option, format_duration(value),
                         format_duration(low), format_duration(high)));
}

std::string draw_prefix() {
  std::random_device random;
  return fmt::format("redlock-bench:{:08x}", random());
}

/// The line that is refreshed every second while it runs; on a terminal only.
class LiveLine {
 public:
  LiveLine() = default;
  ~LiveLine() {
    if (drawn_) std::fputs("\r\x1b[K", stderr);
  }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  [[nodiscard]] static bool wanted() {
    return log_format() == LogFormat::text && can_redraw(STDERR_FILENO) &&
           ::tcgetpgrp(STDERR_FILENO) == ::getpgrp();
  }
  void show(const std::string& text) {
    winsize size{};
    const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20;
    const std::size_t width = known ? size.ws_col - 1U : 79;
    std::fputs(("\r\x1b[K" + clipped("redlock: " + printable(text), width)).c_str(), stderr);
    std::fflush(stderr);
    drawn_ = true;
  }

 private:
  bool drawn_ = false;
};

/// One run: its clients, its load, and the clean-up of its locks.
class BenchRun {
 public:
  BenchRun(const ClientOptions& options, const BenchSettings& settings, const Signals& signals)
      : settings_(settings),
        signals_(signals),
        relays_(settings.scenario, options.nodes, options.tls.name),
        recorder_(options.nodes.size()),
        prefix_(draw_prefix()) {
    for (std::size_t i = 0; i < settings.names; ++i) {
      names_.push_back(fmt::format("{}:{}", prefix_, i));
    }
    auto with_relays = options;
    with_relays.nodes = relays_.uris();
    const bool contended = settings.scenario == Scenario::contended;
    const auto clients = contended ? std::min<std::size_t>(settings.concurrency, 4) : 1;
    for (std::size_t i = 0; i < clients; ++i) {
      with_relays.observer = std::make_shared<AnswerWatch>(recorder_, options.nodes.size());
      clients_.push_back(make_client(with_relays));
    }
  }

  /// Throws Exit if the nodes are no quorum.
  BenchOutcome perform() {
    BenchOutcome outcome;
    try {
      warm_up();
      Load load(settings_, clients_, names_, recorder_);
      outcome.measured = run_main(load);
    } catch (...) {
      leave_nothing();
      throw;
    }
    leave_nothing();
    outcome.settings = settings_;
    outcome.fault = relays_.in_words();
    outcome.interrupted = interrupted_by().has_value();
    // An interrupt may come before anything was measured.
    outcome.measured.node_round_trips.resize(relays_.uris().size());
    outcome.measured.votes.resize(relays_.uris().size());
    for (std::size_t node = 0; node < relays_.uris().size(); ++node) {
      outcome.relayed.push_back(relays_.is_relayed(node));
    }
    return outcome;
  }

  [[nodiscard]] std::optional<int> interrupted_by() const { return interrupted_by_; }
  [[nodiscard]] const std::string& prefix() const { return prefix_; }

 private:
  /// Connections stand and scripts are known before anything is measured.
  void warm_up() {
    for (const auto& client : clients_) {
      RedLock lock = client.lock(names_.front());
      const auto patience = BootClock::now() + client.options().connect_timeout;
      for (;;) {
        auto lease = lock.acquire(
            {.lease = settings_.lease, .renewal = Renewal::never, .wait = std::chrono::seconds(1)});
        if (!lease) throw failure(lease.error());
        static_cast<void>(lease->extend(settings_.lease));
        lease->release();
        const auto report = Admin(client).inspect(names_.front());
        if (report && is_quiet(*report)) break;
        if (BootClock::now() >= patience) break;
        std::this_thread::sleep_for(milliseconds(10));
      }
    }
  }

  Measurements run_main(Load& load) {
    recorder_.begin(BootClock::now(), settings_.duration, 60);
    load.start();
    fault_due_ = load.began() + settings_.duration / 2;
    await(load, [&] { return progress(load); });
    fault_due_.reset();
    const auto now = BootClock::now();
    return recorder_.end(interrupted_by_ ? now : std::max(now, load.end()));
  }

  [[nodiscard]] std::string progress(const Load& load) const {
    const auto now = recorder_.glance();
    const auto done = std::chrono::round<std::chrono::seconds>(BootClock::now() - load.began());
    const auto all = std::chrono::round<std::chrono::seconds>(load.end() - load.began());
    return fmt::format("bench: {} of {} s, {} cycles, acquire p50 {} p99 {}, {} failed{}",
                       done.count(), all.count(), now.cycles, short_time(now.p50),
                       short_time(now.p99), now.failed,
                       fault_is_on_ ? "; " + relays_.in_words() : "");
  }

  /// Until the load has ended, or a signal ended it. Begins the fault when it is due.
  template <typename Line>
  void await(Load& load, Line line) {
    LiveLine live;
    const bool shows = LiveLine::wanted();
    auto shown = BootClock::now();
    while (!load.ended()) {
      const auto now = BootClock::now();
      if (fault_due_ && now >= *fault_due_) begin_fault();
      if (shows && now >= shown) {
        live.show(line());
        shown = now + std::chrono::seconds(1);
      }
      auto next = shows ? shown : now + std::chrono::seconds(60);
      if (fault_due_) next = std::min(next, *fault_due_);
      sleep(load, next);
      if (interrupted_by_) return load.stop();
    }
    load.stop();
  }

  void begin_fault() {
    fault_due_.reset();
    if (relays_.in_words().empty()) return;
    recorder_.fault_began(BootClock::now());
    fault_is_on_ = true;
    relays_.begin_fault();
  }

  void sleep(const Load& load, BootClock::time_point until) {
    const auto left = std::chrono::ceil<milliseconds>(until - BootClock::now());
    std::array<pollfd, 2> polled{{{signals_.fd(), POLLIN, 0}, {load.ended_fd(), POLLIN, 0}}};
    ::poll(polled.data(), polled.size(), static_cast<int>(std::max<long>(left.count(), 0)));
    take_signals();
  }

  void take_signals() {
    while (const auto signal = signals_.take()) {
      if (!asks_to_end(*signal)) continue;
      if (interrupted_by_) ++further_interrupts_;
      if (!interrupted_by_) interrupted_by_ = signal;
    }
  }

  [[nodiscard]] static bool is_quiet(const LockReport& report) {
    return std::all_of(report.nodes.begin(), report.nodes.end(),
                       [](const NodeLock& node) { return node.free(); });
  }

  /// All locks were given back, but the releases may not have reached every node: the library
  /// repeats them for as long as a lease can last there, and this function waits for that.
  void leave_nothing() {
    relays_.end_fault();
    const auto until = BootClock::now() + settings_.lease + milliseconds(200);
    for (const auto& client : clients_) {
      for (const auto& name : names_) {
        for (;;) {
          const auto report = Admin(client).inspect(name);
          if (report && is_quiet(*report)) break;
          take_signals();
          if (BootClock::now() >= until || further_interrupts_ > 0) {
            return say_what_may_be_left();
          }
          std::this_thread::sleep_for(milliseconds(10));
        }
      }
    }
  }

  void say_what_may_be_left() const {
    say(
        fmt::format("bench: not all nodes answer; a lock {}:* that one of them still has ends by "
                    "itself, {} after it was granted",
                    prefix_, format_duration(settings_.lease)));
  }

  const BenchSettings settings_;
  const Signals& signals_;
  NodeRelays relays_;
  Recorder recorder_;
  std::string prefix_;
  std::vector<std::string> names_;
  std::vector<Client> clients_;
  std::optional<BootClock::time_point> fault_due_;
  bool fault_is_on_ = false;
  std::optional<int> interrupted_by_;
  int further_interrupts_ = 0;
};

class Bench {
 public:
  Bench(CLI::App& app, const Invocation& invocation) : nodes_(app, invocation) {
    add_duration_option(app, "--duration", duration_, Zero::refused, Forever::refused,
                        "How long to measure; default 10s, at most 1h");
    app.add_option_function<std::string>(
           "--rate", [this](const std::string& text) { rate_ = parse_rate(text); },
           "Cycles a second, all callers together; default 200 (contended: 50). max: each caller "
           "goes on at once, "
           "as fast as nodes answer")
        ->option_text("N|max");
    app.add_option_function<std::string>(
           "--concurrency",
           [this](const std::string& text) {
             settings_.concurrency = parse_count("--concurrency", text, most_callers);
           },
           "Callers, each a thread; default 8, at most 256")
        ->option_text("N");
    app.add_option_function<std::string>(
           "--names",
           [this](const std::string& text) { names_ = parse_count("--names", text, most_names); },
           "Locks; default one for each caller (contended: one), at most 100. With fewer than "
           "callers these wait for each other")
        ->option_text("N");
    add_duration_option(app, "--lease", lease_, Zero::refused, Forever::refused,
                        "Length of the leases; default 2s, 100ms to 10s");
    app.add_option_function<std::string>(
           "--scenario",
           [this](const std::string& text) { settings_.scenario = parse_scenario(text); },
           "healthy (default), minority-down, minority-hung, one-slow or contended; see below")
        ->option_text("SCENARIO");
    app.add_option_function<std::vector<std::string>>(
           "--assert",
           [this](const std::vector<std::string>& texts) {
             for (const auto& text : texts) assertions_.push_back(Assertion::parse(text));
           },
           "A condition that must hold, such as 'p99<5ms'; may be given several times. See below")
        ->option_text("ASSERTION")
        ->allow_extra_args(false);
    add_format_option(app, format_, WithCsv::yes);
  }

  int run() {
    const Signals signals;
    complete_settings();
    const auto options = nodes_.client_options();
    auto labels = labels_of(options);
    BenchRun run(options, settings_, signals);
    announce(run, labels.size());
    auto outcome = run.perform();
    outcome.nodes = std::move(labels);
    return conclude(outcome, run.interrupted_by());
  }

 private:
  void complete_settings() {
    settings_.duration = duration_.value_or(settings_.duration);
    settings_.lease = lease_.value_or(settings_.lease);
    check_between("--duration", settings_.duration, milliseconds(100), std::chrono::hours(1));
    check_between("--lease", settings_.lease, milliseconds(100), std::chrono::seconds(10));
    const bool contended = settings_.scenario == Scenario::contended;
    settings_.rate = rate_.value_or(contended ? slow_rate : usual_rate);
    const auto usual = contended ? 1 : std::min(settings_.concurrency, most_names);
    settings_.names = names_.value_or(usual);
  }

  void announce(const BenchRun& run, std::size_t nodes) const {
    const auto pace = settings_.rate ? fmt::format("{:.6g} cycles a second", *settings_.rate)
                                     : std::string("as many cycles as they can");
    say(fmt::format(
        "bench: {}, {} for {} on {}, with {} of its own ({}:*) and leases of {}; no other lock is "
        "touched, and none is left",
        counted(settings_.concurrency, "caller"), pace, format_duration(settings_.duration),
        counted(nodes, "node"), settings_.names == 1 ? "a lock" : counted(settings_.names, "lock"),
        run.prefix(), format_duration(settings_.lease)));
  }

  /// As the library names nodes: without passwords.
  static std::vector<std::string> labels_of(const ClientOptions& options) {
    const auto client = make_client(options);
    const auto report = Admin(client).inspect("redlock-bench");
    if (!report) throw failure(report.error());
    std::vector<std::string> labels;
    for (const auto& node : report->nodes) labels.push_back(node.node);
    return labels;
  }

  int conclude(BenchOutcome& outcome, std::optional<int> signal) const {
    bool holds = true;
    if (!signal) {
      for (const auto& assertion : assertions_) {
        outcome.assertions.push_back({assertion.text(), assertion.judge(outcome.measured)});
        holds = holds && outcome.assertions.back().outcome.holds;
      }
    }
    print(in_format(outcome));
    for (const auto& [text, result] : outcome.assertions) {
      if (!result.holds) {
        say(fmt::format("bench: {} does not hold: {}", text, result.measured));
      }
    }
    if (signal) return exit_by_signal + *signal;
    return holds ? exit_ok : exit_assertion;
  }

  [[nodiscard]] std::string in_format(const BenchOutcome& outcome) const {
    switch (format_) {
      case Format::json:
        return to_text(bench_json(outcome));
      case Format::csv:
        return bench_csv(outcome);
      case Format::table:
        break;
    }
    return bench_table(outcome);
  }

  NodeOptions nodes_;
  BenchSettings settings_;
  std::optional<milliseconds> duration_;
  std::optional<milliseconds> lease_;
  std::optional<std::optional<double>> rate_;
  std::optional<std::size_t> names_;
  std::vector<Assertion> assertions_;
  Format format_ = Format::table;
};

void add_bench(CLI::App& app, Invocation& invocation) {
  add_command<Bench>(
      app, invocation,
      {bench_command.name, bench_command.description, "redlock bench [OPTIONS]", bench_footer});
}

}  // namespace
}  // namespace redlock::cli

int main(int argc, char** argv) {
  using namespace redlock::cli;
  return external_main(bench_command, &add_bench, argc, argv);
}
