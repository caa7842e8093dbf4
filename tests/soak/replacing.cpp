// SPDX-License-Identifier: MIT
// Members of a set are replaced one after the other by servers that are new and empty, while
// processes take, hold and give back the same locks, and one of them is killed every second. Each
// has the list of members from when it started, and has to follow by itself. One process
// holds a lease from the beginning to the end. The old server runs until the new one votes; unless
// it is killed, and its leases are said to be over at once, while they live: then two must hold
// one, or this would prove nothing.
#include <cstdlib>
#include <signal.h>
#include <sys/wait.h>

#include <redlock/admin.hpp>

#include "soak/worker.hpp"

namespace redlock::soak {
namespace {

constexpr milliseconds replacing_lease = 3s;  // the longest; a change takes a little more
// A renewal goes to the new members, too: two changes have to fit between two of them.
constexpr milliseconds careless_lease = 30s;
constexpr milliseconds between_worker_kills = 2s;
constexpr std::size_t mortal_workers = 4;  // the others live on, with the first list
constexpr std::size_t keeper = rivals;

struct ReplacingPlan {
  int length = 600;  // seconds
  int every = 60;    // seconds from one change to the next
  std::size_t members = 3;
  std::string server;      // the program of new members; empty: that of the first ones
  double most_slower = 0;  // p99 of a grant in changes, for that between them; 0: not judged
  bool unhurried = false;  // on a machine that may be slow
  bool careless = false;   // leases of the old member are said to be over while they live
  bool resizes = false;    // with each change the set grows by two, and shrinks by two again

  /// How long after its deadline a call may end.
  [[nodiscard]] milliseconds bound() const { return unhurried ? 30s : 3s; }
  [[nodiscard]] milliseconds lease() const { return careless ? careless_lease : replacing_lease; }
};

class Replacing {
 public:
  explicit Replacing(const ReplacingPlan& plan) : plan_(plan) {
    const cluster::FleetOptions durable{.nodes = plan.members,
                                        .persistence = cluster::Persistence::always};
    fleets_.emplace_back(durable);
    if (!plan.server.empty()) ::setenv("REDLOCK_REDIS_SERVER", plan.server.c_str(), 1);
    fleets_.emplace_back(durable);
    fleets_.emplace_back(
        cluster::FleetOptions{.nodes = 2, .persistence = cluster::Persistence::always});
  }

  bool run() {
    say("{} processes, {} names, {} durable members of which one is replaced every {} "
        "s, max_lease {} s; old leases are {}\n",
        rivals, rival_names, plan_.members, plan_.every, plan_.lease() / 1s,
        plan_.careless ? "SAID TO BE OVER" : "waited for");
    adopt(fleets_[0], plan_.lease());
    start_worker(keeper);
    await([&] { return board_.ready == 1; }, 1min, "nobody is ever served");
    for (std::size_t worker = 0; worker < rivals; ++worker) start_worker(worker);
    const auto start = BootClock::now();
    for (std::size_t member = 0; member < plan_.members; ++member) await_votes(member, start);
    make_changes();
    return end_processes(workers_, board_, 2min) && report();
  }

 private:
  // --- processes

  [[nodiscard]] ClientOptions options() const {
    ClientOptions options;
    for (std::size_t member = 0; member < plan_.members; ++member) {
      options.nodes.push_back(fleets_[place_[member]].uri(member));
    }
    options.lease = options.max_lease = plan_.lease();
    options.node_timeout = plan_.unhurried ? 1s : 250ms;
    return options;
  }

  /// The members of the beginning may be no quorum by now.
  [[nodiscard]] ClientOptions whole_set() const { return find_set(options()).value(); }

  void start_worker(std::size_t number) {
    workers_[number] = start_process([&] {
      Worker worker(board_, number, plan_.bound());
      const ClientOptions its = plan_.resizes ? whole_set() : options();
      number == keeper ? worker.keep(its) : worker.run(its);
    });
  }

  void kill_if_due() {
    if (!kill_.is_due()) return;
    const std::size_t worker = kills_++ % mortal_workers;
    ::kill(workers_[worker], SIGKILL);
    ::waitpid(workers_[worker], nullptr, 0);
    start_worker(worker);
  }

  void await_votes(std::size_t member, BootClock::time_point since) {
    await(
        [&] {
          kill_if_due();
          return board_.is_counted(member, workers_.size(), since);
        },
        1min, "a member is never counted");
  }

  // --- changes

  void make_changes() {
    const auto start = BootClock::now();
    Every change(seconds(plan_.every), start + seconds(plan_.every) / 2);
    const auto is_shown = [&] { return plan_.careless && board_.judge().overlaps > 0; };
    while (BootClock::now() < start + seconds(plan_.length) && !is_shown()) {
      if (plan_.careless) {
        replace_carelessly(changes_++ % plan_.members);
      } else if (change.is_due()) {
        plan_.resizes ? grow_replace_and_shrink() : replace(changes_++ % plan_.members);
      }
      kill_if_due();
      std::this_thread::sleep_for(2ms);
    }
  }

  void replace(std::size_t member) {
    Fleet& from = fleets_[place_[member]];
    Fleet& to = fleets_[1 - place_[member]];
    to.restart(member, cluster::Data::empty);
    const auto start = BootClock::now();
    board_.changing = true;
    Every ask(200ms, start);
    await(
        [&] {
          kill_if_due();
          return ask.is_due() && takes_place(from.uri(member), to.uri(member), OldLeases::may_live);
        },
        1min, "a new member never votes");
    const double took = seconds_since(start);
    place_[member] = 1 - place_[member];
    from.kill(member);
    await_votes(member, BootClock::now());
    board_.changing = false;
    say("change {}: {} has the place of {} after {:.1f} s, and is counted by all after {:.1f} s; "
        "{} holds, {} renewals, {} not in time, {} lost\n",
        changes_, to.uri(member), from.uri(member), took, seconds_since(start),
        board_.hold_count.load(), board_.renewals.load(), board_.failed_renewals.load(),
        board_.lost.load());
  }

  /// From three members to five, two of which are replaced, and back to three.
  void grow_replace_and_shrink() {
    for (const std::size_t node : {0U, 1U}) {
      fleets_[2].restart(node, cluster::Data::empty);
      resize(true, fleets_[2].uri(node));
    }
    for (int times = 2; times > 0; --times) replace(changes_++ % plan_.members);
    for (const std::size_t node : {0U, 1U}) resize(false, fleets_[2].uri(node));
    say("{} members again\n", whole_set().nodes.size());
  }

  void resize(bool joins, const std::string& node) {
    board_.changing = true;
    Every ask(200ms, BootClock::now());
    const auto changed = [&] {
      const Client client = start_client(options());
      return joins ? Admin(client).add(node) : Admin(client).remove(node);
    };
    await(
        [&] {
          kill_if_due();
          return ask.is_due() && is_done(changed());
        },
        1min, "the number of members is never changed");
    board_.changing = false;
    say("{} {} a member\n", node, joins ? "is" : "is no longer");
  }

  void replace_carelessly(std::size_t member) {
    const std::size_t place = std::exchange(place_[member], 1 - place_[member]);
    fleets_[place].kill(member);
    fleets_[1 - place].restart(member, cluster::Data::empty);
    takes_place(fleets_[place].uri(member), fleets_[1 - place].uri(member), OldLeases::are_over);
    std::this_thread::sleep_for(500ms);  // clients follow, and a quorum changes within one lease
  }

  /// Whether it grants locks by now. A client that runs gives it its marker, not this one.
  bool takes_place(const std::string& from, const std::string& to, OldLeases leases) const {
    const auto whole = plan_.resizes ? whole_set() : options();
    return is_done(Admin(start_client(whole)).replace(from, to, leases));
  }

  [[nodiscard]] bool is_done(const Result<std::vector<NodeAdoption>>& told) const {
    if (!told) throw std::runtime_error(told.error().message);
    for (const NodeAdoption& node : *told) {
      if (node.adoption == Adoption::waits) return false;
      const bool is_new = plan_.resizes && node.adoption == Adoption::written;
      if (node.adoption == Adoption::already_there || is_new || plan_.careless) continue;
      say("{}: {} {}\n", node.node, to_string(node.adoption), node.detail);
      return false;
    }
    return true;
  }

  // --- the end

  [[nodiscard]] std::string server_of(std::size_t member) const {
    const auto info = fleets_[place_[member]].run(member, {"INFO", "server"});
    for (const std::string field : {"valkey_version", "redis_version"}) {
      const auto at = info.find(field + ':');
      if (at != std::string::npos) return info.substr(at, info.find_first_of("\r\n", at) - at);
    }
    return "unknown";
  }

  [[nodiscard]] bool report() const {
    const Judgement found = board_.judge();
    fmt::print(
        "{} changes, {} processes killed; {} grants, {} of them held for more than a second; {} "
        "renewals, {} not in time; {} lost\n",
        changes_, kills_, board_.hold_count.load(), found.longer_than_a_second,
        board_.renewals.load(), board_.failed_renewals.load(), board_.lost.load());
    fmt::print(
        "longest wait for a grant {} ms, {} waited in vain for 10 s, {} failed; at most {} ms "
        "after a deadline; {}\n",
        board_.longest_wait_ms.load(), board_.given_up.load(), board_.failed.load(),
        board_.latest_ms.load(), found.in_words());
    for (std::size_t member = 0; member < plan_.members; ++member) {
      fmt::print("member {} at the end: {}\n", member + 1, server_of(member));
    }
    const auto print_times = [](const char* when, const Times& times) {
      fmt::print("a lock that nobody else wants, {}: {} times, p50 {:.2f} ms, p99 {:.2f} ms\n",
                 when, times.noted(), times.percentile(50), times.percentile(99));
    };
    print_times("between changes", board_.usual);
    print_times("in changes", board_.in_changes);
    const double slower = board_.in_changes.percentile(99) / board_.usual.percentile(99);
    if (plan_.careless) return found.overlaps > 0;
    const std::size_t fewest_changes = plan_.server.empty() ? 1 : plan_.members;
    return found.is_sound() && changes_ >= fewest_changes && board_.lost == 0 &&
           board_.failed == 0 && board_.late == 0 &&
           (plan_.most_slower == 0 || slower <= plan_.most_slower);
  }

  const ReplacingPlan plan_;
  Board& board_ = Board::make_shared();
  std::vector<Fleet> fleets_;
  std::array<std::size_t, nodes> place_{};  // of each member: in which fleet
  std::vector<pid_t> workers_ = std::vector<pid_t>(rivals + 1);
  Every kill_{between_worker_kills, BootClock::now()};
  std::size_t kills_ = 0;
  std::size_t changes_ = 0;
};

}  // namespace

void add_replacing(CLI::App& soak, Run& chosen) {
  const auto plan = std::make_shared<ReplacingPlan>();
  auto& run = *soak.add_subcommand(
      "replacing", "Replaces members one after the other, while processes hold locks on them.");
  add_length(run, plan->length, "so long (20s, 10m, 1h); default 10m");
  run.add_option("--every", plan->every, "seconds from one change to the next; default 60")
      ->check(CLI::Range(1, 86400));
  run.add_option("--members", plan->members, "how many; default 3")->check(CLI::Range(3, 5));
  run.add_option("--server", plan->server,
                 "the program of new members, such as a valkey-server; default: as the first ones")
      ->check(CLI::ExistingFile);
  run.add_option("--most-slower", plan->most_slower,
                 "so many times as long as usual p99 of a grant may be in changes");
  run.add_flag("--unhurried", plan->unhurried,
               "for a machine that may be slow: calls end, whenever that is");
  run.add_flag("--careless", plan->careless,
               "leases of a member are said to be over while they live: two must hold a lock");
  run.add_flag("--resize", plan->resizes,
               "with each change the set grows to five, two members are replaced, and it shrinks");
  run.footer(
      "Each process has the list of members from when it started. It ends with 0 if nobody held\n"
      "a lock that another held, tokens rose, no lease was lost, and each call ended within three\n"
      "seconds of its deadline (with --unhurried: 30), with a grant or because others had the\n"
      "lock.");
  run.callback([plan, &chosen] { chosen = [plan] { return Replacing(*plan).run(); }; });
}

}  // namespace redlock::soak
