// SPDX-License-Identifier: MIT
#include "simulation/run.hpp"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <utility>

#include "simulation/clients.hpp"
#include "simulation/documented.hpp"
#include "simulation/faults.hpp"
#include "simulation/network.hpp"
#include "simulation/owner_users.hpp"
#include "simulation/replacements.hpp"
#include "simulation/scene.hpp"
#include "simulation/servers.hpp"
#include "simulation/workload.hpp"

namespace redlock::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration between_looks = milliseconds(500);
constexpr Duration between_looks_at_lines = std::chrono::microseconds(500);

/// Clients, nodes, a network between them and what goes wrong, in one thread and in virtual time,
/// all from one seed. The clients are the product down to the bytes.
class World final : ClientListener {
 public:
  World(Plan plan, Trace& trace, Coverage& coverage);

  /// Lives until the end. Throws a Violation.
  void run();

  [[nodiscard]] const Invariants::Counts& counts() const { return scene_.invariants.counts(); }

 private:
  void dispatch(const Event& event);
  void live_until(Instant end);
  /// Looks at what is left on the nodes, and takes away what is nobody's.
  void tidy();
  /// Those of members that lost their data are given back.
  void markers_must_come_back();

  void on_started(ClientIndex client) override {
    workload_.on_started(client);
    owner_users_.on_started(client);
  }
  void on_crashed(ClientIndex client) override {
    workload_.on_crashed(client);
    owner_users_.on_crashed(client);
  }
  void on_output(ClientIndex client, const engine::ClientOutput& output) override;
  void on_sent(ClientIndex client, const engine::Send& send) override {
    faults_.on_sent(client, send);
  }

  Scene scene_;
  Network network_;
  Servers servers_;
  Replacements replacements_;
  Clients clients_;
  Faults faults_;
  Workload workload_;
  OwnerUsers owner_users_;
};

World::World(Plan plan, Trace& trace, Coverage& coverage)
    : scene_(std::move(plan), trace, coverage),
      network_(scene_),
      servers_(scene_, network_),
      replacements_(scene_, servers_),
      clients_(scene_, network_, servers_, replacements_, *this),
      faults_(scene_, network_, servers_, clients_, workload_),
      workload_(scene_, clients_, faults_),
      owner_users_(scene_, clients_) {
  network_.attach(clients_, servers_);
  scene_.invariants.judge_waiting(
      scene_.plan.judged_waiting(),
      [this](ClientId life, NodeIndex node) { return clients_.well_since(life, node); });
}

void World::run() {
  for (ClientIndex client = 0; client < clients_.count(); ++client) clients_.start(client);
  faults_.schedule_next();
  servers_.begin_faults();
  replacements_.schedule_first();
  if (scene_.plan.parted) faults_.part();
  scene_.at(scene_.now + between_looks, Event::What::tidy);
  live_until(scene_.now + scene_.plan.length);

  // Everything is repaired, given back, and there is time for it to become true.
  scene_.ending = true;
  faults_.repair_all();
  servers_.permit_all();
  replacements_.finish();
  clients_.end_pauses();
  workload_.end();
  owner_users_.end();
  live_until(scene_.now + seconds(3) + scene_.plan.engine.node_timeout * 4);
  tidy();
  clients_.must_be_connected();
  clients_.must_know_the_members();
  markers_must_come_back();
  scene_.invariants.must_be_done();
  for (const std::string& name : scene_.plan.names) {
    scene_.invariants.must_be_no_lines(scene_.now, name);
  }
}

void World::markers_must_come_back() {
  const Plan& plan = scene_.plan;
  const auto is_marked = [this](const SimNode& node) {
    return node.data.is_marked(node.now_ms(scene_.now));
  };
  const bool answers_in_time = plan.slow_per_mille == 0 && 2 * plan.handshake() <= seconds(1) &&
                               plan.adoption() <= plan.engine.node_timeout;
  if (!answers_in_time || !plan.forgets() || plan.other_sets ||
      std::ranges::all_of(scene_.nodes, is_marked))
    return;
  const testing::KeyTerms terms = plan.key_terms();  // of all clients
  const Duration longest = documented::quarantine(terms.max_lease, terms.drift_factor);
  // A client waits once more where another one has marked the node, or it forgot meanwhile.
  live_until(scene_.now + 2 * longest + seconds(4));
  const bool all_gone = std::ranges::none_of(scene_.nodes, is_marked);
  bool anybody = false;
  for (ClientIndex client = 0; client < clients_.count(); ++client) {
    anybody = anybody || (clients_.is_alive(client) && !plan.is_careless(client));
  }
  if (all_gone || !anybody || std::ranges::all_of(scene_.nodes, is_marked)) return;
  throw Violation{"a member that lost its data gets its marker back", ""};
}

void World::live_until(Instant end) {
  Instant look{};
  while (!scene_.agenda.empty() && scene_.agenda.next() < end) {
    dispatch(scene_.agenda.pop());
    if (!scene_.plan.waits || scene_.now < look) continue;
    scene_.invariants.look_at_lines(scene_.now);
    look = scene_.now + between_looks_at_lines;
  }
  scene_.now = end;
}

void World::dispatch(const Event& event) {
  scene_.now = event.when;
  switch (event.what) {
    case Event::What::at_node:
      return network_.at_node(event.a);
    case Event::What::at_client:
      return network_.at_client(event.a);
    case Event::What::writable:
      return network_.writable(event.a);
    case Event::What::connect_timeout:
      return clients_.connect_timeout(event);
    case Event::What::timer:
      return clients_.timer(event);
    case Event::What::resume:
      return clients_.resume(event.a);
    case Event::What::revive:
      return clients_.start(event.a);
    case Event::What::user:
      return workload_.user_event(event);
    case Event::What::owner:
      return owner_users_.event(event);
    case Event::What::next_fault:
      return faults_.next_fault();
    case Event::What::fault:
      return faults_.fault(event);
    case Event::What::repair:
      return faults_.repair(event.a);
    case Event::What::promotion:
      return faults_.promotion(event);
    case Event::What::flush_again:
      return faults_.flush_again();
    case Event::What::many_forget:
      return faults_.many_forget(event);
    case Event::What::validity_ends:
      return scene_.invariants.validity_ends(scene_.now, event.a, event.c, event.until);
    case Event::What::late_wake:
      return servers_.late_wake(event);
    case Event::What::forged_wake:
      return servers_.forged_wake();
    case Event::What::withheld:
      return servers_.withhold(event);
    case Event::What::replacement:
      return replacements_.go_on();
    case Event::What::parted:
      return faults_.part();
    case Event::What::tidy:
      tidy();
      return scene_.at(scene_.now + between_looks, Event::What::tidy);
  }
}

void World::on_output(ClientIndex client, const engine::ClientOutput& output) {
  workload_.on_output(client, output);
  owner_users_.on_output(client, output);
  const auto* finish = std::get_if<engine::Finish>(&output);
  const bool granted =
      finish != nullptr && std::holds_alternative<engine::AcquireSucceeded>(finish->result);
  if (granted) faults_.on_granted(scene_.plan.max_lease());
  const auto* waits = std::get_if<engine::AttemptWaits>(&output);
  if (waits != nullptr && waits->place == 0) faults_.on_first_in_line(client);
}

void World::tidy() {
  const Plan& plan = scene_.plan;
  for (NodeIndex node = 0; node < scene_.nodes.size(); ++node) {
    for (const std::string& name : plan.names) scene_.nodes[node].data.remove_foreign(name);
    // Between two looks at the latest, the disk has what the node has now.
    if (plan.older_states && scene_.random.chance(300)) servers_.take_snapshot(node);
  }
  clients_.must_notice_dead_streams();
  scene_.invariants.keys_must_be_documented(scene_.now);
  // What a lost connection carried may be executed at any time, where none is killed.
  if (!plan.judges_leftovers()) return;
  // A release that a node refused is repeated after half a second of a clock that may be slow.
  const Duration slow = plan.slow_per_mille > 0 ? plan.engine.node_timeout * 3 : Duration::zero();
  const Duration grace = milliseconds(700) + slow + plan.longest_way() * 4;
  for (NodeIndex node = 0; node < scene_.nodes.size(); ++node) {
    scene_.invariants.must_be_tidy(scene_.now, node, grace);
  }
}

}  // namespace

RunResult run(Plan plan, Coverage& coverage, Trace::Reader reader) {
  Trace trace(std::move(reader));
  World world(std::move(plan), trace, coverage);
  RunResult result;
  try {
    world.run();
  } catch (const Violation& violation) {
    result.violation = violation;
  }
  result.hash = trace.hash();
  result.steps = trace.steps();
  result.counts = world.counts();
  return result;
}

std::string report(const Plan& plan, const Violation& violation) {
  constexpr std::size_t shown = 150;
  std::deque<std::string> last;
  Coverage ignored;
  run(plan, ignored, [&](const std::string& line) {
    last.push_back(line);
    if (last.size() > shown) last.pop_front();
  });
  std::string text =
      fmt::format("BROKEN: {}\n  {}\n{}\nthe last steps (all: ./dev simulate --seed {}):\n",
                  violation.rule, violation.what, plan.in_words(), plan.seed);
  for (const std::string& line : last) text += line + "\n";
  return text;
}

}  // namespace redlock::simulation
