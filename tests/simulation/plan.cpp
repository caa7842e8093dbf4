// SPDX-License-Identifier: MIT
#include "simulation/plan.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "engine/stripe.hpp"
#include "simulation/documented.hpp"
#include "simulation/enumerators.hpp"
#include "simulation/random.hpp"

namespace redlock::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Two names whose tokens come from one counter.
const std::vector<std::string>& neighbours() {
  static const std::vector<std::string> names = [] {
    const std::string first = "seat";
    for (int i = 0;; ++i) {
      std::string other = "other-" + std::to_string(i);
      if (engine::stripe_of(other) == engine::stripe_of(first)) return std::vector{first, other};
    }
  }();
  return names;
}

void choose_faults(Plan& plan, Random& random) {
  static constexpr Duration gaps[] = {milliseconds(3),   milliseconds(20),  milliseconds(20),
                                      milliseconds(100), milliseconds(100), milliseconds(500)};
  plan.between_faults = random.chance(30) ? Duration::zero() : random.pick(gaps);
  // Some at a time: a world with everything at once finds less than many with a few each.
  const std::uint32_t per_mille = random.pick({150U, 300U, 600U, 1000U});
  for (std::size_t fault = 0; fault < fault_count; ++fault) {
    plan.faults[fault] = random.chance(per_mille);
  }
  const auto only_if = [&](bool possible, std::initializer_list<Fault> faults) {
    bool any = false;
    for (const Fault fault : faults) {
      auto bit = plan.faults[static_cast<std::size_t>(fault)];
      bit = possible && (bit || !any);
      any = any || bit;
    }
  };
  only_if(plan.forgets(), {Fault::node_flushed, Fault::node_wiped});
  only_if(plan.kind == WorldKind::wild_clocks,
          {Fault::node_clock_wild, Fault::client_clock_wild, Fault::client_clock_frozen});
  only_if(plan.forces(), {Fault::released_by_force});
  only_if(plan.kind == WorldKind::damaged, {Fault::fence_lost});
  plan.special_per_mille = random.pick({0U, 100U, 400U});
}

void choose_times(Plan& plan, Random& random) {
  static constexpr milliseconds timeouts[] = {milliseconds(20), milliseconds(50), milliseconds(100),
                                              milliseconds(250)};
  const milliseconds timeout = random.pick(timeouts);
  plan.engine.node_timeout = timeout;
  plan.engine.retry_min = timeout / 5;
  plan.engine.retry_max = timeout * 3 / 5;
  plan.engine.retry_cap = timeout * 2;
  const std::uint32_t lease_count = 1 + random.below(3);
  for (std::uint32_t i = 0; i < lease_count; ++i) {
    plan.leases.push_back(timeout * random.pick({1, 2, 3, 5, 8, 15, 40, 120}));
  }
  plan.delay_min = random.up_to(timeout / 3);
  plan.delay_jitter = random.up_to(timeout);
  plan.slow_per_mille = random.pick({0U, 0U, 5U, 30U, 150U});
  plan.think = random.pick({Duration(timeout) / 5, Duration(timeout), Duration(timeout) * 4});
  plan.keep_per_mille = random.pick({300U, 600U, 850U});
  plan.length = timeout * (60 + static_cast<int>(random.below(140)));
}

/// What is wrong from the beginning.
void choose_oddities(Plan& plan) {
  Random random(plan.seed ^ 0x0dd);
  const bool others = plan.engine.nodes >= 3;  // enough of them for a quorum
  const bool orderly = plan.kind == WorldKind::orderly;
  if (random.chance(150) && others && plan.judges_tokens()) {
    plan.fence = random.pick(
        {FenceDamage::ahead, FenceDamage::far, FenceDamage::text, FenceDamage::other_type});
  }
  plan.absurd_clock = random.chance(150) && others;
  if (random.chance(120) && others && !plan.forgets() && !plan.absurd_clock) {
    plan.fence = FenceDamage::none;
    plan.lie = random.pick({Lie::taken, Lie::shared_owner, Lie::forced, Lie::foreign, Lie::any});
  }
  plan.cloned = random.chance(300) && plan.kind == WorldKind::wild_clocks;
  plan.older_states = random.chance(500) && plan.kind == WorldKind::forgetful && !plan.durable;
  // A client that allows more drift overlooks more: where clocks run wild, all allow the same.
  if (random.chance(200) && plan.kind != WorldKind::wild_clocks) {
    for (std::uint32_t client = 0; client < plan.clients; ++client) {
      plan.drift_factors.push_back(random.pick({0.01, 0.02, 0.05}));
    }
  }
  plan.other_settings = random.chance(50) && orderly;
  if (random.chance(200)) plan.password = "correct horse";
  if (random.chance(120)) plan.denied.set(random.below(static_cast<std::uint32_t>(Denied::hello)));
  // A client whose user may not run INFO believes what the server says that it has.
  if (plan.forgets()) plan.denied.reset(static_cast<std::size_t>(Denied::info));
}

/// How many calls wait, and in which order.
void choose_order(Plan& plan) {
  Random random(plan.seed ^ 0xf1f0);
  plan.in_order = random.pick({0U, 1U, 3U, 3U});
}

/// What happens to wake-ups, in worlds with calls that wait.
void choose_wakes(Plan& plan) {
  Random random(plan.seed ^ 0x3a4e);
  if (plan.in_order == 0 || random.chance(400)) return;
  WakeFaults& wakes = plan.wakes;
  wakes.lost = random.pick({0U, 0U, 100U, 500U, 1'000U});
  wakes.doubled = random.pick({0U, 0U, 100U, 500U});
  wakes.late = random.pick({0U, 0U, 0U, 100U, 300U});
  wakes.forged = random.pick(
      {Duration::zero(), Duration::zero(), Duration(milliseconds(4)), Duration(milliseconds(40))});
  // Where little passes, or now and then a message takes long, what follows them would be late.
  if (plan.window < 65'536 || plan.slow_per_mille > 0) wakes.forged *= 10;
  if (random.chance(300)) {
    plan.withheld.nodes = 1 + random.below(plan.engine.nodes);
    plan.withheld.what = random.pick({Denied::subscribe, Denied::hello, Denied::publish});
    plan.withheld.on_and_off = random.chance(400);
  }
}

/// Round trips from a tenth of a millisecond to a fifth of a second; often one client is farther
/// away, or the nodes are at different distances.
void choose_distances(Plan& plan, Random& random) {
  plan.delay_min = microseconds(20) + random.up_to(microseconds(200));
  plan.delay_jitter = random.pick({microseconds(100), microseconds(500), microseconds(1'500)});
  if (random.chance(500)) return;
  plan.delay_min = random.pick({milliseconds(1), milliseconds(5), milliseconds(20)});
  plan.delay_jitter = plan.delay_min / random.pick({2, 10});
  plan.distances.assign(plan.clients, Duration::zero());
  const Duration farther = plan.delay_min * random.pick({1, 4});
  if (random.chance(500)) {
    plan.distances[0] = farther;
  } else if (random.chance(600) && plan.engine.nodes > 1) {
    plan.apart = farther / (plan.engine.nodes - 1);
  }
  const auto trip = std::chrono::ceil<milliseconds>(2 * plan.longest_way());
  plan.engine.node_timeout = std::max<Duration>(plan.engine.node_timeout, trip * 3);
  plan.engine.retry_min = plan.engine.node_timeout / 5;
  plan.engine.retry_max = plan.engine.node_timeout * 3 / 5;
  plan.engine.retry_cap = plan.engine.node_timeout * 2;
  plan.leases = {std::chrono::ceil<milliseconds>(plan.engine.node_timeout) *
                 random.pick({5, 15, 40})};
  plan.engine.max_lease = plan.max_lease();
}

/// Clients that all wait in order and hold locks for a short time. What goes wrong is drawn apart:
/// how long a lock may be free, and who must be next, depends on it.
void choose_waiting(Plan& plan) {
  Random random(plan.seed ^ 0x3a17);
  const bool possible = plan.kind == WorldKind::orderly && !plan.crowd;
  if (!random.chance(220) || !possible) return;
  plan.waits = true;
  plan.in_order = 3;
  plan.fence = FenceDamage::none;
  plan.lie = Lie::none;
  plan.other_settings = false;
  plan.denied.reset();
  plan.window = 65'536;
  plan.slow_per_mille = 0;
  plan.names.resize(1);
  plan.users_per_client = 1 + random.below(4);
  plan.contention_per_mille = 900;
  plan.keep_per_mille = random.pick({200U, 500U});
  choose_distances(plan, random);
  plan.think = random.pick({milliseconds(1), milliseconds(4), milliseconds(15)});
  plan.length = milliseconds(600) + random.up_to(milliseconds(1'500));
  if (!plan.distances.empty()) plan.length += 100 * plan.longest_way();
  plan.between_probes = std::max<Duration>(milliseconds(100), 8 * plan.longest_way());
  plan.engine.attempts_at_once = engine::Config().attempts_at_once;
  const bool calm = random.chance(500);
  plan.between_faults =
      calm ? Duration::zero() : Duration(random.pick({30, 120}) * milliseconds(1));
  static constexpr Fault possible_faults[] = {
      Fault::client_crashed, Fault::client_paused, Fault::request_cancelled, Fault::disconnected,
      Fault::node_killed,    Fault::node_hung,     Fault::half_open,         Fault::cut_majority};
  plan.faults.reset();
  // Or nobody but clients fails: then what a dead waiter costs the others is bounded.
  const bool clients_alone = random.chance(400);
  if (clients_alone) plan.faults.set(static_cast<std::size_t>(Fault::client_crashed));
  for (const Fault fault : possible_faults) {
    if (clients_alone && !happens_to_client(fault)) continue;
    if (random.chance(300)) plan.faults.set(static_cast<std::size_t>(fault));
  }
  const Fault one = random.pick(possible_faults);
  if (!clients_alone) plan.faults.set(static_cast<std::size_t>(one));
  // Of one client, or of all, no call can succeed; or locks are held for so long that waiters ask
  // several times meanwhile.
  if (!plan.distances.empty() && random.chance(300)) {
    plan.too_late_clients = random.pick({1U, plan.clients});
    plan.users_per_client = 8;
  } else if (random.chance(100)) {
    plan.think = std::chrono::seconds(8);
    plan.leases.push_back(std::chrono::seconds(10));
    plan.engine.max_lease = std::max(plan.engine.max_lease, plan.leases.back());
    plan.length = std::max<Duration>(plan.length, std::chrono::seconds(20));
  }
}

/// Those who waited are gone, all at once, and none of them left its line.
void choose_dead_waiters(Plan& plan) {
  Random random(plan.seed ^ 0xdead);
  if (!plan.waits || !random.chance(60)) return;
  plan.dead_waiters = random.pick({10U, 80U, 200U});
}

/// Fences that a quorum of nodes has raised beyond what clocks explain.
void choose_far_fences(Plan& plan) {
  Random random(plan.seed ^ 0xfe2ce);
  const bool possible = plan.fence == FenceDamage::none && plan.judges_tokens() && !plan.waits;
  if (!possible || !random.chance(60)) return;
  plan.fence = random.chance(500) ? FenceDamage::of_quorum_last : FenceDamage::of_quorum;
}

/// A node that reports the run id of another.
void choose_false_run_id(Plan& plan) {
  Random random(plan.seed ^ 0x1d);
  const bool possible = plan.engine.nodes >= 3 && plan.lie == Lie::none && !plan.forgets();
  plan.false_run_id = possible && !plan.absurd_clock && !plan.waits && random.chance(50);
  // In half of them nothing else goes wrong: then both nodes must be found to count.
  if (plan.false_run_id && random.chance(500)) plan.between_faults = Duration::zero();
}

/// Nodes where clients may not set the end of a key: they grant nothing, and keep nothing for ever.
void choose_no_ends(Plan& plan) {
  Random random(plan.seed ^ 0x9e4d);
  const bool possible = (plan.kind == WorldKind::orderly || plan.kind == WorldKind::forgetful) &&
                        plan.spares == 0 && !plan.cloned;
  if (!possible || !random.chance(150)) return;
  plan.withheld.nodes = 1 + random.below(plan.engine.nodes);
  plan.withheld.what = Denied::pexpire;
  plan.withheld.on_and_off = random.chance(700);
}

/// A node that an operator told of members whom nobody else was told of.
void choose_false_members(Plan& plan) {
  Random random(plan.seed ^ 0x3e3b);
  const bool possible = plan.kind == WorldKind::orderly && plan.engine.nodes >= 3 &&
                        plan.engine.quarantine && plan.lie == Lie::none &&
                        plan.fence == FenceDamage::none && !plan.absurd_clock &&
                        !plan.false_run_id && !plan.other_settings && plan.spares == 0;
  if (possible && random.chance(100)) plan.lie = Lie::members;
}

/// Members are replaced while locks are held. Who reaches whom changes often, and leases are long
/// beside what the operator does.
void choose_replacements(Plan& plan) {
  Random random(plan.seed ^ 0x4e91ace);
  const bool possible = plan.kind == WorldKind::orderly && plan.engine.nodes >= 3 && !plan.waits &&
                        !plan.crowd && !plan.cloned && !plan.absurd_clock && !plan.false_run_id &&
                        plan.lie == Lie::none && plan.fence == FenceDamage::none &&
                        !plan.other_settings && plan.distances.empty() && plan.denied.none();
  if (!possible || !random.chance(150)) return;
  plan.spares = 1 + random.below(2);
  plan.engine.quarantine = true;
  plan.leases = {std::chrono::ceil<milliseconds>(plan.engine.node_timeout) * random.pick({8, 20})};
  plan.engine.max_lease = plan.max_lease();
  plan.renew_per_mille = random.pick({0U, 500U, 900U});
  plan.keep_per_mille = random.pick({500U, 900U});
  plan.contention_per_mille = random.pick({500U, 900U});
  for (const Fault fault : {Fault::cut_to_node, Fault::cut_majority, Fault::client_crashed}) {
    plan.faults.set(static_cast<std::size_t>(fault));
  }
  plan.between_faults = plan.engine.node_timeout * random.pick({1, 4});
  // In half of them few clients hold most of the time, with some nodes out of their reach.
  if (random.chance(500)) {
    plan.engine.nodes = 3;
    plan.withheld.nodes = std::min(plan.withheld.nodes, plan.engine.nodes);
    plan.clients = 2;
    plan.users_per_client = 1;
    plan.owners_per_client = 0;
    plan.names.resize(1);
    plan.faults.reset();
    for (const Fault fault : {Fault::cut_to_node, Fault::cut_from_node, Fault::disconnected}) {
      plan.faults.set(static_cast<std::size_t>(fault));
    }
    plan.between_faults = plan.max_lease() / 4;
    plan.slow_per_mille = 0;
  }
  plan.between_probes = plan.max_lease() / random.pick({1, 4});
  plan.length = plan.max_lease() * 10 + std::chrono::seconds(6);
  // Of less at once a marker takes many ways, and more than a node timeout.
  plan.window = std::max(plan.window, std::size_t{4'000});
  plan.members_forget = random.chance(500);
  if (!random.chance(400)) return;
  // Longer than a quarantine after leases of the former length.
  plan.raised = plan.max_lease() + std::chrono::seconds(2);
  plan.length += plan.raised * 4;
  if (plan.members_forget) plan.durable = random.chance(300);
}

/// Few nodes are common to the quorums of before and after a change: clients reach all members but
/// one. Either operators stop half-way, and one client holds a lock nearly always, which the other
/// waits for; or both take locks and give them back, and often start anew, so that they know
/// nothing of former tokens.
void choose_parted(Plan& plan) {
  Random random(plan.seed ^ 0x4a1fU);
  plan.parted = plan.spares > 0 && random.chance(250);
  if (!plan.parted) return;
  plan.stopped_half_way = random.chance(500);
  plan.engine.nodes = 3;
  plan.engine.clock_floor = false;
  plan.withheld.nodes = std::min(plan.withheld.nodes, plan.engine.nodes);
  plan.spares = 3;
  plan.members_forget = false;
  plan.durable = true;
  plan.raised = {};
  plan.clients = 2;
  plan.drift_factors.clear();
  plan.users_per_client = 1;
  plan.owners_per_client = 0;
  plan.names.resize(1);
  const int length = plan.stopped_half_way ? 20 : 8;
  plan.leases = {std::chrono::ceil<milliseconds>(plan.engine.node_timeout) * length};
  plan.engine.max_lease = plan.max_lease();
  plan.slow_per_mille = 0;
  plan.length = plan.max_lease() * 10 + std::chrono::seconds(6);
  plan.between_faults = plan.max_lease();
  plan.faults.reset();
  if (plan.stopped_half_way) {
    plan.between_probes = plan.max_lease() / 16;
    plan.contention_per_mille = 900;
    plan.renew_per_mille = 950;
    plan.keep_per_mille = 980;
    plan.faults.set(static_cast<std::size_t>(Fault::disconnected));
  } else {
    plan.between_probes = plan.max_lease() / 4;
    plan.think = plan.max_lease() / 2;
    plan.contention_per_mille = 50;
    plan.renew_per_mille = 0;
    plan.keep_per_mille = 300;
    plan.faults.set(static_cast<std::size_t>(Fault::client_crashed));
  }
}

/// How bytes travel.
void choose_streams(Plan& plan) {
  Random random(plan.seed ^ 0x57ea);
  plan.cut_per_mille = random.pick({0U, 10U, 100U, 500U});
  plan.window = random.pick({std::size_t{65'536}, std::size_t{65'536}, std::size_t{65'536},
                             std::size_t{4'000}, std::size_t{500}});
}

/// A client with so many leases that calls of several carry most of them.
void choose_crowd(Plan& plan) {
  Random random(plan.seed ^ 0xc4d);
  plan.crowd = random.chance(15) && !plan.forgets();
  if (!plan.crowd) return;
  for (int i = 0; i < 250; ++i) plan.names.push_back("crowd-" + std::to_string(i));
  plan.engine.attempts_at_once = 128;
  // Long enough that a pause makes many renewals due without ending the leases.
  plan.leases = {std::chrono::ceil<milliseconds>(plan.engine.node_timeout) * 20};
  plan.engine.max_lease = plan.max_lease();
  plan.faults.set(static_cast<std::size_t>(Fault::client_paused));
  plan.think = plan.max_lease() * 4;
  plan.renew_per_mille = 950;
  plan.keep_per_mille = 980;
  plan.length = plan.engine.node_timeout * 120;
}

/// Programs whose threads share locks.
void choose_owners(Plan& plan) {
  Random random(plan.seed ^ 0x0e4);
  if (random.chance(200) && !plan.crowd) plan.owners_per_client = 1 + random.below(2);
}

/// Machines that are copied while they run, also where exclusion is judged.
void choose_clones(Plan& plan) {
  Random random(plan.seed ^ 0xc10e);
  const bool possible = plan.kind == WorldKind::orderly && !plan.waits && !plan.crowd;
  if (possible && random.chance(150)) plan.cloned = true;
}

/// What else than its own end makes a node forget.
void choose_losses(Plan& plan) {
  Random random(plan.seed ^ 0x10e5);
  plan.promotions = random.chance(400) && plan.kind == WorldKind::forgetful;
  plan.flushed_twice = !plan.promotions && random.chance(400) && plan.kind == WorldKind::forgetful;
  if (plan.flushed_twice) {
    // Longer than clients without it take to look at the markers.
    plan.leases = {milliseconds(4'000)};
    plan.engine.max_lease = plan.max_lease();
    plan.renew_per_mille = 0;
    plan.keep_per_mille = 980;
    plan.length = plan.max_lease() * 4 + std::chrono::seconds(8);
    // Clients learn at different times that a node forgot, if they seldom ask; then they ask until
    // the first of them has marked it.
    plan.think = milliseconds(1'500);
    plan.contention_per_mille = 900;
    plan.engine.node_timeout = milliseconds(250);
    plan.engine.retry_min = milliseconds(40);
    plan.engine.retry_max = milliseconds(120);
    plan.engine.retry_cap = milliseconds(400);
    // In half of them nothing else goes wrong: then more is granted by nodes that forget again.
    if (random.chance(500)) {
      plan.between_faults = Duration::zero();
      plan.slow_per_mille = 0;
    }
  }
  if (!plan.promotions) return;
  // A call must wait for the lock of a holder that does not notice, and probes be rare or frequent.
  plan.leases = {std::chrono::ceil<milliseconds>(plan.engine.node_timeout) * random.pick({15, 40})};
  plan.engine.max_lease = plan.max_lease();
  plan.between_probes = plan.max_lease() / random.pick({1, 4, 16});
  plan.contention_per_mille = 900;
  plan.renew_per_mille = random.pick({0U, 100U, 500U});
  // Or be idle, on a connection that lasts, when a probe finds the replica.
  if (random.chance(500)) {
    plan.between_faults = Duration::zero();
    plan.slow_per_mille = 0;
    plan.users_per_client = 1;
    plan.owners_per_client = 0;
    plan.contention_per_mille = 100;
    plan.renew_per_mille = 0;
    plan.think = plan.engine.node_timeout * 10;
    plan.between_probes = plan.engine.node_timeout * 4;
  }
  plan.keep_per_mille = 850;
  plan.length = plan.engine.node_timeout * 100 + plan.max_lease() * 4 + std::chrono::seconds(4);
}

}  // namespace

milliseconds Plan::max_lease() const {
  return std::max(raised, *std::ranges::max_element(leases));
}

engine::Config Plan::engine_of(std::uint32_t client) const {
  engine::Config config = engine;
  config.quarantine = config.quarantine && !is_careless(client);
  if (!drift_factors.empty()) config.drift_factor = drift_factors[client];
  if (other_settings && client + 1 == clients) config.max_lease *= 2;
  if (has_raised(client)) config.max_lease = raised;
  // A third of them are told it by the nodes.
  const bool is_given = other_settings || client % 3 < 2;
  if (config.quarantine && !is_given) config.max_lease = {};
  return config;
}

testing::KeyTerms Plan::key_terms() const {
  testing::KeyTerms terms{.max_lease = std::max(engine.max_lease, raised)};
  for (std::uint32_t client = 0; client < clients; ++client) {
    const engine::Config config = engine_of(client);
    terms.max_lease = std::max(terms.max_lease, config.max_lease);
    terms.drift_factor = std::max(terms.drift_factor, config.drift_factor);
  }
  return terms;
}

Plan plan_of(std::uint64_t seed) {
  Random random(seed);
  Plan plan;
  plan.seed = seed;
  static constexpr WorldKind kinds[] = {WorldKind::orderly,     WorldKind::orderly,
                                        WorldKind::orderly,     WorldKind::orderly,
                                        WorldKind::orderly,     WorldKind::forgetful,
                                        WorldKind::wild_clocks, WorldKind::wild_clocks,
                                        WorldKind::forced,      WorldKind::forced_and_forgetful,
                                        WorldKind::damaged};
  plan.kind = random.pick(kinds);
  plan.engine.nodes = random.pick({3U, 3U, 3U, 3U, 5U, 5U, 5U, 4U, 2U, 1U, 7U});
  plan.engine.clock_floor = random.chance(300);
  plan.clients = 2 + random.below(3);
  plan.users_per_client = 1 + random.below(2);
  plan.names = neighbours();
  if (random.chance(700)) plan.names.resize(1);
  plan.contention_per_mille = random.pick({100U, 500U, 900U});
  plan.renew_per_mille = random.pick({0U, 300U, 800U});
  choose_times(plan, random);
  choose_faults(plan, random);
  const bool forgetful = plan.forgets();
  plan.engine.quarantine = forgetful || random.chance(300);
  plan.engine.max_lease = plan.max_lease();
  // Bursts are rare here: in every other world two users of a client are one.
  if (seed % 2 == 0) plan.engine.attempts_at_once = 1;
  plan.durable = !forgetful || random.chance(500);
  plan.between_probes = std::max<Duration>(plan.max_lease() / 4, plan.length / 40);
  plan.careless = forgetful && random.chance(300);
  plan.other_sets = forgetful && plan.engine.nodes > 1 && random.chance(500);
  if (forgetful) plan.length += plan.max_lease() * 2 + std::chrono::seconds(4);
  choose_oddities(plan);
  choose_streams(plan);
  choose_order(plan);
  choose_crowd(plan);
  choose_owners(plan);
  choose_losses(plan);
  choose_waiting(plan);
  choose_wakes(plan);
  choose_clones(plan);
  choose_dead_waiters(plan);
  choose_far_fences(plan);
  choose_false_run_id(plan);
  choose_replacements(plan);
  choose_parted(plan);
  choose_false_members(plan);
  choose_no_ends(plan);
  return plan;
}

JudgedWaiting Plan::judged_waiting() const {
  JudgedWaiting judged;
  judged.lines_end = kind != WorldKind::wild_clocks;
  if (!waits) return judged;
  const Duration trip = 2 * longest_way();
  const Duration drift = between_probes * 2 * drift_bound_ppm / 1'000'000;
  judged.order = all_wakes_arrive();
  // Before it knows how far the nodes are a client asks for the shortest turn, and may miss it.
  if (!distances.empty()) judged.overtaken_at_most = 4;
  judged.delays_differ = trip + drift + milliseconds(1);
  judged.rates_differ_ppm = 2 * drift_within;
  judged.leaves_within = 2 * trip + milliseconds(2);
  // By a clock that may be slow, and to within what a timer takes.
  const Duration pause = std::max(engine.retry_max, engine.retry_cap);
  judged.pauses_at_most = pause * 102 / 100 + milliseconds(2);
  judged.grant_takes = 2 * trip + milliseconds(1);
  judged.drift_factor = engine.drift_factor;
  for (const double factor : drift_factors) {
    judged.drift_factor = std::max(judged.drift_factor, factor);
  }
  const Duration places = documented::length_of_turn(trip) * (static_cast<int>(clients) + 1);
  if (is_calm() && all_wakes_arrive()) {
    // A waiter that is behind asks when each one before it could have taken a lock that ended.
    // Where the votes are split at first, gathering them takes four trips in vain, or eight; they
    // are split more often where two waiters may have half of them each.
    judged.free_at_most = places + (engine.nodes % 2 == 0 ? 32 : 16) * trip;
    // Far from the nodes many a call is over before it can use its turn.
    // A turn that two nodes gave to two waiters ends by itself; a vote may be under way then.
    if (distances.empty()) judged.passed_on_within = documented::length_of_turn(trip) + 2 * trip;
    const bool near = distances.empty();
    if (near && wakes.forged == Duration::zero()) judged.asks_per_grant = 3;
  } else {
    // By its own timers: once a second, and in turn.
    judged.free_at_most = documented::between_questions * 11 / 10 + places + 20 * trip;
    if (!is_calm()) judged.free_at_most += engine.node_timeout * 4;
    bool clients_alone = all_wakes_arrive() && distances.empty();
    for (std::size_t fault = 0; fault < fault_count; ++fault) {
      if (faults[fault] && !happens_to_client(static_cast<Fault>(fault))) clients_alone = false;
    }
    if (clients_alone) judged.passed_on_within = places + 8 * trip;
  }
  // When a lease ends is known as well as the rates of two nodes' clocks and a client's agree.
  judged.free_at_most += 2 * max_lease() * drift_bound_ppm / 1'000'000;
  // A lock that passes to a shorter lease ends before those who wait thought that it would.
  if (think > std::chrono::seconds(1)) {
    judged.free_at_most += documented::between_questions * 11 / 10;
  }
  // A call that comes too late takes the votes once before it is behind the others. Where wake-ups
  // are lost, the one behind it comes by its own timer each time.
  if (too_late_clients > 0) {
    const Duration each = all_wakes_arrive() ? trip : documented::between_questions;
    judged.free_at_most += static_cast<int>(too_late_clients * users_per_client) * each;
  }
  // A question passes over 64 of them; nothing but a waiter's own timer brings the next one.
  if (dead_waiters > documented::passed_over) {
    judged.passed_on_within = Duration::zero();
    judged.asks_per_grant = 0;
    const std::size_t questions = dead_waiters / documented::passed_over + 1;
    judged.free_at_most += static_cast<int>(questions) * documented::between_questions * 11 / 10;
  }
  return judged;
}

std::string Plan::in_words() const {
  std::string text = fmt::format(
      "seed {}: {}{}; {} nodes, {} clients with {} users, {} names, node timeout {} ms, leases",
      seed, simulation::in_words(names_of<WorldKind, 6>[static_cast<std::size_t>(kind)]),
      durable ? "" : " (not durable)", engine.nodes, clients, users_per_client, names.size(),
      engine.node_timeout.count() / 1'000'000);
  for (const milliseconds lease : leases) text += fmt::format(" {}", lease.count());
  text +=
      fmt::format(" ms, floor {}, delay {} us, jitter {} us, slow {} in 1000, a fault every {} ms:",
                  engine.clock_floor ? "by clocks" : "none", delay_min.count() / 1000,
                  delay_jitter.count() / 1000, slow_per_mille, between_faults.count() / 1'000'000);
  const bool far = is_fence_of_quorum();
  if (fence != FenceDamage::none) text += far ? " a quorum of far fences," : " a damaged fence,";
  if (lie != Lie::none) text += " a node that lies,";
  if (false_run_id) text += " a false run id,";
  if (!distances.empty())
    text += fmt::format(" one client {} us farther, nodes {} us apart,",
                        distances[0].count() / 1000, apart.count() / 1000);
  if (absurd_clock) text += " an absurd clock,";
  if (cloned) text += " clones,";
  if (older_states) text += " older states,";
  if (flushed_twice) text += " flushed twice,";
  if (promotions) text += " promotions,";
  if (members_forget) text += " members forget,";
  if (parted) text += " clients apart,";
  if (stopped_half_way) text += " operators stop half-way,";
  if (raised > raised.zero()) text += fmt::format(" leases raised to {} ms,", raised.count());
  if (crowd) text += " a crowd,";
  if (in_order > 0) text += fmt::format(" {} calls of 3 in order,", in_order);
  if (waits) text += " all wait,";
  if (dead_waiters > 0) text += fmt::format(" {} dead waiters,", dead_waiters);
  if (too_late_clients > 0) text += fmt::format(" {} clients too late,", too_late_clients);
  if (wakes.lost > 0) text += fmt::format(" {} wake-ups of 1000 lost,", wakes.lost);
  if (wakes.doubled > 0) text += fmt::format(" {} doubled,", wakes.doubled);
  if (wakes.late > 0) text += fmt::format(" {} late,", wakes.late);
  if (wakes.forged > Duration::zero()) text += " forged ones,";
  if (withheld.nodes > 0)
    text += fmt::format(" {} nodes without {},", withheld.nodes,
                        withheld.what == Denied::pexpire ? "PEXPIRE" : "Pub/Sub");
  if (owners_per_client > 0) text += fmt::format(" {} owners of a client,", owners_per_client);
  if (other_settings) text += " other settings,";
  if (!drift_factors.empty()) text += " other drift factors,";
  if (denied.any()) text += fmt::format(" commands denied: {},", denied.to_string());
  text += fmt::format(" {} writes of 1000 in pieces, {} bytes at once,", cut_per_mille, window);
  for (std::size_t fault = 0; fault < fault_count; ++fault) {
    if (faults[fault]) text += fmt::format(" {},", simulation::in_words(static_cast<Fault>(fault)));
  }
  return text;
}

}  // namespace redlock::simulation
