// SPDX-License-Identifier: MIT
// A node ends the connections of a thousand clients at once, or is killed and started again below
// them, or below clients that it has never answered: they come back spread over the time that their
// pauses have, one connection each. Prints for each outage how many came within a tenth of a
// second at most, and when all were back.
#include <optional>
#include <sys/resource.h>

#include "cluster/node_client.hpp"
#include "soak/soak.hpp"

namespace redlock::soak {
namespace {

using cluster::NodeClient;

constexpr std::size_t descriptors_of_client = 16;
constexpr milliseconds window = 100ms;
/// After an outage of this length pauses are as long as they become, or nearly.
constexpr int long_outage = 1000;
/// Of those who come back after it, at most so many may come within a window: a third, as in
/// tests/wire/backoff_test.cpp, and what a machine that has more to do gathers in a moment.
constexpr double most_in_window = 0.4;
constexpr double most_in_window_unhurried = 0.5;
/// One connection each, and one more where the machine was too slow for a handshake.
constexpr double most_connections = 2;
/// The longest pause, and what two processors may need for a thousand handshakes on both sides.
constexpr milliseconds back_within = 5s;

constexpr milliseconds patient = 30s;

struct ReturningPlan {
  std::size_t clients = 1000;
  std::vector<int> outages{0, 100, 300, 1000, 3000};  // ms
  bool unhurried = false;                             // on a machine that may be slow
};

/// What one client says of the node.
class Presence final : public Observer {
 public:
  void on_node_up(std::string_view, std::string_view) override { ++times_up; }

  std::atomic<std::uint64_t> times_up{0};
};

struct Sample {
  BootClock::time_point at;
  std::uint64_t connections = 0;  // that the node has accepted by then
};

/// The largest part of the connections that came within a window. Where the samples are farther
/// apart, they are taken to have come evenly.
double largest_share(const std::vector<Sample>& samples) {
  const auto all = static_cast<double>(samples.back().connections - samples.front().connections);
  double largest = 0;
  for (auto from = samples.begin(); from != samples.end(); ++from) {
    auto to = std::find_if(from, samples.end(),
                           [&](const Sample& sample) { return sample.at >= from->at + window; });
    if (to == samples.end()) --to;
    const auto came = static_cast<double>(to->connections - from->connections);
    const auto windows = std::max(1.0, std::chrono::duration<double>(to->at - from->at) /
                                           std::chrono::duration<double>(window));
    largest = std::max(largest, came / windows / all);
  }
  return largest;
}

class Return {
 public:
  explicit Return(const ReturningPlan& plan) : plan_(plan) {}

  bool run() {
    const auto start = BootClock::now();
    start_clients(plan_.unhurried ? std::optional(patient) : std::nullopt);
    while (!all_were_up()) await_a_moment(start);
    say("{} clients were connected {:.2f} s after the first one began\n", plan_.clients,
        seconds_since(start));
    bool well = true;
    for (const int outage : plan_.outages) {
      well = judge([&] { return come_back(outage); }) && well;
    }
    return judge([&] { return begin_without_it(); }) && well;
  }

 private:
  void start_clients(std::optional<milliseconds> connect_timeout) {
    for (std::size_t i = 0; i < plan_.clients; ++i) {
      presences_.push_back(std::make_shared<Presence>());
      ClientOptions options;
      options.nodes = fleet_.uris();
      options.quarantine = Quarantine::off;
      options.observer = presences_.back();
      if (connect_timeout) options.connect_timeout = *connect_timeout;
      clients_.push_back(start_client(std::move(options)));
    }
  }

  /// A machine that stood still has gathered those who were to come meanwhile: one that may be slow
  /// has more tries.
  template <typename Try>
  bool judge(const Try& well) {
    for (int tries = plan_.unhurried ? 5 : 1; tries > 0; --tries) {
      if (well()) return true;
    }
    return false;
  }

  bool come_back(int outage) {
    // Connections that last so long count as a success: the next pauses begin anew.
    std::this_thread::sleep_for(1500ms);
    for (const auto& presence : presences_) presence->times_up = 0;
    const Sample first = cut_off(outage);
    return watch(first, outage, fmt::format("after {} ms without the node all were back", outage));
  }

  /// Programs that are started while the node hangs: the first attempts of all of them end at the
  /// moment at which it is killed, however long it takes to start a thousand.
  bool begin_without_it() {
    clients_.clear();
    presences_.clear();
    fleet_.pause(0);
    start_clients(patient);
    std::this_thread::sleep_for(500ms);  // until the last one has sent its handshake
    fleet_.kill(0);
    std::this_thread::sleep_for(milliseconds(long_outage));
    return watch(restart(), long_outage, "of clients that had never been connected all were there");
  }

  /// Until all are up.
  bool watch(const Sample& first, int outage, const std::string& what) {
    std::vector<Sample> samples{first};
    NodeClient node(fleet_.port(0));
    for (bool all_back = false; !all_back;) {
      await_a_moment(first.at);
      all_back = all_were_up();
      const auto connections = connections_of(node);
      samples.push_back({BootClock::now(), connections});
    }
    const double back = seconds_since(first.at);
    const auto connections = samples.back().connections - first.connections;
    const double each = static_cast<double>(connections) / static_cast<double>(plan_.clients);
    const double share = largest_share(samples);
    say("{} within {:.2f} s, by {:.3f} connections each, {:.0f} % of them within {} ms\n", what,
        back, each, 100 * share, window.count());
    const double most = plan_.unhurried ? most_in_window_unhurried : most_in_window;
    if (outage >= long_outage && share > most) return false;
    return plan_.unhurried ||
           (each <= most_connections && back <= std::chrono::duration<double>(back_within).count());
  }

  /// The node as it is when it begins to accept them again.
  Sample cut_off(int outage) {
    if (outage == 0) {
      NodeClient node(fleet_.port(0));
      const Sample sample{BootClock::now(), connections_of(node)};
      for (const char* type : {"normal", "pubsub"}) node.command({"CLIENT", "KILL", "TYPE", type});
      return sample;
    }
    fleet_.kill(0);
    std::this_thread::sleep_for(milliseconds(outage));
    return restart();
  }

  Sample restart() {
    const auto start = BootClock::now();
    fleet_.restart(0);
    return {start, 0};
  }

  static std::uint64_t connections_of(NodeClient& node) {
    return connections_in(node.command({"INFO", "stats"}));
  }

  [[nodiscard]] bool all_were_up() const {
    return std::ranges::all_of(presences_,
                               [](const auto& presence) { return presence->times_up > 0; });
  }

  static void await_a_moment(BootClock::time_point since) {
    if (BootClock::now() > since + 2min) throw std::runtime_error("a client never connects");
    std::this_thread::sleep_for(2ms);
  }

  const ReturningPlan plan_;
  Fleet fleet_{{.nodes = 1,
                .settings = {fmt::format("maxclients {}", plan_.clients + 100),
                             fmt::format("tcp-backlog {}", plan_.clients + 100)}}};
  std::vector<std::shared_ptr<Presence>> presences_;
  std::vector<Client> clients_;
};

/// As many as this process may have.
void permit_descriptors(std::size_t clients) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= clients * descriptors_of_client) return;
  throw std::runtime_error(fmt::format(
      "this process may have {} descriptors, which is too few for {} clients; raise ulimit -Hn to "
      "{}, or choose fewer with --clients",
      limit.rlim_cur, clients, clients * descriptors_of_client));
}

}  // namespace

void add_returning(CLI::App& soak, Run& chosen) {
  const auto plan = std::make_shared<ReturningPlan>();
  auto& run = *soak.add_subcommand(
      "returning", "Cuts many clients off at once, and sees how they come back to their node.");
  run.add_option("--clients", plan->clients, "how many; default 1000")
      ->check(CLI::Range(1, 10'000));
  run.add_option("--outage", plan->outages,
                 "ms for which the node is gone, several with spaces; 0: it only ends all\n"
                 "connections; default 0 100 300 1000 3000")
      ->check(CLI::Range(0, 3'600'000));
  run.add_flag("--unhurried", plan->unhurried,
               "for a machine that may be slow: they come back, whenever that is");
  run.footer(
      "At last it starts as many clients anew while the node hangs, and kills and restarts it.\n"
      "Needs the machine for itself. It ends with 0 if all were back within five seconds, by no\n"
      "more than two connections each, and if after an outage of a second and more no tenth of a\n"
      "second brought more than two fifths, with --unhurried the half. Nothing spreads the first\n"
      "connections of clients that find the node there: they come as the programs are started.");
  run.callback([plan, &chosen] {
    chosen = [plan] {
      permit_descriptors(plan->clients);
      return Return(*plan).run();
    };
  });
}

}  // namespace redlock::soak
