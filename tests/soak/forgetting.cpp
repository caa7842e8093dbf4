// SPDX-License-Identifier: MIT
// A lock is granted by two of three nodes, one of the two is killed and comes back at once, and
// another client asks for the same lock for as long as the first lease lasts. Nobody may get it;
// unless the quarantine is off and the node came back empty: then somebody must, or this would
// prove nothing.
#include <future>
#include <mutex>
#include <optional>
#include <stop_token>

#include "soak/soak.hpp"

namespace redlock::soak {
namespace {

/// As short as a node may take to come back on a busy machine: the quarantine lasts longer still.
constexpr milliseconds forgetting_lease = 1s;
constexpr std::size_t forgetful = 0;  // the node that is killed

struct ForgettingPlan {
  std::size_t tries = 2000;
  std::size_t sets = 24;
  bool durable = false;   // appendonly yes, appendfsync always
  bool kept = false;      // the node comes back with its data, otherwise empty
  bool careless = false;  // without the quarantine
};

/// What has come of the tries of all sets.
struct Tally {
  std::atomic<std::size_t> well = 0;      // turned away while the first lease lived
  std::atomic<std::size_t> overlaps = 0;  // two held it at once
  std::atomic<std::size_t> too_slow = 0;  // the first lease was over before the node had answered

  [[nodiscard]] std::size_t counted() const { return well + overlaps; }
};

/// Records why the node that came back does not grant the lock.
class Listener final : public Observer {
 public:
  explicit Listener(const ForgettingPlan& plan) : plan_(plan) {}

  /// From now on. What is returned is requested once there is nothing more to wait for.
  std::stop_token listen() {
    const std::scoped_lock lock(mutex_);
    noticed_ = false;
    enough_ = {};
    return enough_.get_token();
  }
  [[nodiscard]] bool noticed() {
    const std::scoped_lock lock(mutex_);
    return noticed_;
  }

  void on_attempt(std::string_view /*name*/, const Errc* /*code*/,
                  const std::vector<NodeVote>& votes,
                  std::chrono::nanoseconds /*elapsed*/) override {
    if (votes.empty()) return;
    const NodeVote& vote = votes[forgetful];
    const bool refuses = vote.vote == Vote::refused;
    const bool waits = vote.cause == Cause::quarantined || vote.cause == Cause::marker_missing;
    // Without the third node's vote there would be no quorum for anybody.
    const bool matters = votes[2].vote != Vote::unavailable;
    if (!matters || (plan_.kept ? !refuses : !waits)) return;
    const std::scoped_lock lock(mutex_);
    noticed_ = true;
    // A node that knows the lock will go on to. One in quarantine must stay there.
    if (plan_.kept) enough_.request_stop();
  }

 private:
  const ForgettingPlan& plan_;
  std::mutex mutex_;
  bool noticed_ = false;
  std::stop_source enough_;
};

/// Three nodes and two clients, the first of which the third node does not let in. At an address
/// where nobody answers it would follow the set to its third member.
class Set {
 public:
  explicit Set(const ForgettingPlan& plan)
      : plan_(plan),
        fleet_({.nodes = 3,
                .persistence =
                    plan.durable ? cluster::Persistence::always : cluster::Persistence::none}),
        holder_(start({fleet_.uri(0), fleet_.uri(1), denied(fleet_.uri(2))})) {}

  void make_tries(Tally& tally) {
    if (!plan_.careless) adopt(fleet_, forgetting_lease);
    other_.emplace(start(fleet_.uris()));
    while (tally.counted() < plan_.tries) {
      // A machine that is never fast enough would go on for ever.
      if (tally.too_slow > 10 * plan_.tries + 100)
        throw std::runtime_error("most tries are too slow");
      make_try(tally);
    }
  }

 private:
  Client start(std::vector<std::string> nodes) {
    ClientOptions options;
    options.nodes = std::move(nodes);
    options.lease = options.max_lease = forgetting_lease;
    options.retry_min = 5ms;
    options.retry_max = 20ms;
    options.retry_cap = 20ms;
    options.quarantine = plan_.careless ? Quarantine::off : Quarantine::on;
    options.observer = listener_;
    return start_client(std::move(options));
  }

  static std::string denied(std::string uri) {
    return uri.insert(uri.find("://") + 3, "nobody:unknown@");
  }

  void make_try(Tally& tally) {
    // It waits until the node that forgot has a vote again: without it there are too few.
    const auto first =
        holder_.lock(name).acquire({.renewal = Renewal::never, .wait = std::chrono::minutes(2)});
    // It reaches two nodes, and has the lock only from both.
    if (!first && first.error().code != Errc::no_quorum) {
      throw std::runtime_error(first.error().message);
    }
    if (!first || fleet_.run(forgetful, {"EXISTS", "redlock:lock:{seat}"}) != "1") {
      ++tally.too_slow;
      return;
    }
    fleet_.restart(forgetful, plan_.kept ? cluster::Data::kept : cluster::Data::empty);
    // A client that is new, and for the next three tries the same, which knew the node before.
    if (tries_++ % 4 == 0) other_.emplace(start(fleet_.uris()));
    auto stop = listener_->listen();
    const auto second = other_->lock(name).acquire(
        {.renewal = Renewal::never, .wait = forever, .deadline = first->valid_until()},
        std::move(stop));
    // In this order: if the first is valid now, it was when the second was granted.
    if (second && second->valid() && first->valid()) {
      ++tally.overlaps;
    } else if (listener_->noticed() && !second) {
      ++tally.well;
    } else {
      ++tally.too_slow;
    }
  }

  static constexpr const char* name = "seat";

  const ForgettingPlan& plan_;
  Fleet fleet_;
  std::shared_ptr<Listener> listener_ = std::make_shared<Listener>(plan_);
  Client holder_;
  std::optional<Client> other_;
  std::size_t tries_ = 0;
};

bool forget(const ForgettingPlan& plan) {
  say("{} sets of three nodes, {}, one killed and restarted {} after a grant; quarantine {}\n",
      plan.sets, plan.durable ? "appendfsync always" : "no persistence",
      plan.kept ? "with its data" : "empty", plan.careless ? "OFF" : "on");
  Tally tally;
  std::vector<std::future<void>> sets;
  for (std::size_t i = 0; i < plan.sets; ++i) {
    sets.push_back(std::async(std::launch::async, [&] { Set(plan).make_tries(tally); }));
  }
  seconds after(0);
  for (auto& set : sets) {
    while (set.wait_for(10s) == std::future_status::timeout) {
      say("after {:3} s: {} tries, {} overlaps; {} more were too slow to count\n",
          (after += 10s).count(), tally.counted(), tally.overlaps.load(), tally.too_slow.load());
    }
  }
  for (auto& set : sets) set.get();
  fmt::print("{} tries: {} turned away, {} overlaps; {} more were too slow to count\n",
             tally.counted(), tally.well.load(), tally.overlaps.load(), tally.too_slow.load());
  return plan.careless ? tally.overlaps > 0 : tally.overlaps == 0;
}

}  // namespace

void add_forgetting(CLI::App& soak, Run& chosen) {
  const auto plan = std::make_shared<ForgettingPlan>();
  auto& run = *soak.add_subcommand(
      "forgetting", "Asks for a lock that is held, right after one of its nodes was restarted.");
  run.add_option("--tries", plan->tries, "how many; default 2000");
  run.add_option("--sets", plan->sets, "sets of nodes side by side; default 24")
      ->check(CLI::Range(1, 100));
  auto* const durable = run.add_flag("--durable", plan->durable, "nodes with appendfsync always");
  run.add_flag("--kept", plan->kept, "the node comes back with its data")->needs(durable);
  run.add_flag("--careless", plan->careless, "without the quarantine: there must be an overlap");
  run.callback([plan, &chosen] { chosen = [plan] { return forget(*plan); }; });
}

}  // namespace redlock::soak
