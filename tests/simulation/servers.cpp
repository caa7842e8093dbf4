// SPDX-License-Identifier: MIT
#include "simulation/servers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <string>

#include "wire/command_writer.hpp"
#include "wire/node_marker.hpp"

namespace redlock::simulation {
namespace {

constexpr NodeIndex no_such_server = 60;  // and more of them

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char each : text) hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3U;
  return hash;
}

std::string in_words(const ScriptRun& run) {
  std::string reply(run.reply);
  for (std::size_t at = 0; (at = reply.find("\r\n", at)) != std::string::npos; ++at) {
    reply.replace(at, 2, " ");
  }
  return fmt::format("{} {} | {} -> {}", run.script, fmt::join(run.keys, " "),
                     fmt::join(run.arguments, " "), reply);
}

}  // namespace

Servers::Servers(Scene& scene, Network& network)
    : scene_(scene), network_(network), wakes_(scene.plan.seed ^ 0x3a4e5U) {
  const Plan& plan = scene.plan;
  states_.resize(scene.nodes.size());
  leases_.longest = plan.engine.max_lease;
  for (NodeIndex node = 0; node < scene.nodes.size(); ++node) {
    if (plan.engine.quarantine && node < plan.engine.nodes)
      set_marker(node, own_set, 1, first_members());
    if (node == 0 && plan.lie == Lie::members) {
      std::vector<NodeIndex> members(plan.engine.nodes, 0);
      std::iota(members.begin() + 1, members.end(), no_such_server);
      set_marker(node, own_set, 2, members);
    }
    NodeServerHost& self = *this;
    servers_.emplace_back(scene.nodes[node].data,
                          NodeServer::Settings{.password = plan.password,
                                               .durable = plan.durable,
                                               .denied = plan.denied,
                                               .lie = node == 0 ? plan.lie : Lie::none},
                          self);
    // An hour ago, by its clock.
    servers_.back().start(new_run_id(node), scene.nodes[node].now_us(scene.now) - 3'600'000'000);
    take_snapshot(node);
  }
}

std::string Servers::new_run_id(NodeIndex node) {
  const bool is_last = node + 1 == scene_.nodes.size();
  if (scene_.plan.false_run_id && is_last) return servers_.front().run_id();
  return fmt::format("{:08x}{:032x}", node + 1, ++last_run_);
}

std::vector<NodeIndex> Servers::first_members() const {
  std::vector<NodeIndex> members(scene_.plan.engine.nodes);
  std::iota(members.begin(), members.end(), NodeIndex{0});
  return members;
}

void Servers::set_marker(NodeIndex node, const std::string& set, std::uint64_t epoch,
                         const std::vector<NodeIndex>& members) {
  std::vector<engine::Member> listed;
  for (const NodeIndex member : members) {
    listed.push_back({std::to_string(member), address_of(member)});
  }
  scene_.nodes[node].data.set_marker(
      {{"id", std::to_string(node)},
       {"layout", "redlock-3"},
       {"nodes", std::to_string(members.size())},
       {"epoch", std::to_string(epoch)},
       {"members", wire::NodeMarker::members_text(listed)},
       {"max_lease_ms", wire::NodeMarker::max_lease_text(leases_.longest, leases_.announced)},
       {"set", set}});
}

std::string Servers::ask(NodeIndex node, const std::vector<std::string>& words) {
  NodeServer& server = servers_[node];
  const std::string& password = scene_.plan.password;
  std::string login;
  if (!password.empty()) wire::CommandWriter::write(login, {"AUTH", password});
  std::string command;
  wire::CommandWriter writer(command, words.size());
  for (const std::string& word : words) writer.bulk(word);
  asked_ = node;
  server.accept(operators);
  std::string reply;
  bool open = true;
  for (const std::string& bytes : {login, command}) {
    reply.clear();
    open = open && server.take(operators, bytes, scene_.nodes[node].now_us(scene_.now), reply);
  }
  if (open) server.close(operators);
  return reply;
}

Servers::Process Servers::process(NodeIndex node) const {
  const State& state = states_[node];
  if (state.down) return state.unreachable ? Process::is_out_of_reach : Process::is_gone;
  return state.hung > 0 ? Process::hangs : Process::runs;
}

bool Servers::is_well(NodeIndex node) const {
  const State& state = states_[node];
  const bool lies = node == 0 && scene_.plan.lie != Lie::none;
  return !lies && !state.down && state.hung == 0 && state.slow == Duration::zero() &&
         scene_.nodes[node].data.ailment == Ailment::none;
}

/// The process is gone; nothing that it had not run will be run.
void Servers::stop(NodeIndex node, bool unreachable) {
  states_[node].down = true;
  states_[node].unreachable = unreachable;
  states_[node].stopped = scene_.now;
  network_.node_stops(node);
}

void Servers::start(NodeIndex node) {
  states_[node].down = states_[node].unreachable = false;
  servers_[node].start(new_run_id(node), scene_.nodes[node].now_us(scene_.now));
}

void Servers::go_on(NodeIndex node) {
  if (--states_[node].hung == 0) network_.node_resumes(node);
}

/// When it may vote again is for the clients to find out.
void Servers::forget(NodeIndex node) {
  scene_.nodes[node].data.keys.clear();
  scene_.nodes[node].forgot.push_back(scene_.now);
  scene_.nodes[node].unmarked = scene_.now;
}

void Servers::forget_newest(NodeIndex node) {
  scene_.nodes[node].data.forget_locks();
  scene_.nodes[node].forgot.push_back(scene_.now);
}

void Servers::demote(NodeIndex node) {
  forget_newest(node);
  scene_.nodes[node].data.ailment = Ailment::read_only;
  servers_[node].demote();
}

/// A client that sees that counts the node as little as one that forgot.
void Servers::promote(NodeIndex node) {
  servers_[node].promote();
  scene_.nodes[node].forgot.push_back(scene_.now);
}

void Servers::restore_snapshot(NodeIndex node) {
  scene_.nodes[node].data.keys = states_[node].snapshot;
  forget_scripts(node);
  scene_.nodes[node].forgot.push_back(scene_.now);
  scene_.nodes[node].unmarked = scene_.now;
}

void Servers::become_of_another_set(NodeIndex node) {
  set_marker(node, "other-" + std::to_string(node), 1, first_members());
}

Servers::TimeTold Servers::take_time_told(StreamId stream) {
  auto& told = times_told_.at(stream);
  const TimeTold oldest = told.front();
  told.pop_front();
  return oldest;
}

void Servers::on_accepted(StreamId stream) {
  servers_[network_.node_of(stream)].accept(stream);
}

bool Servers::on_requests(StreamId stream, std::string_view bytes, std::string& replies) {
  const NodeIndex node = network_.node_of(stream);
  return servers_[node].take(stream, bytes, scene_.nodes[node].now_us(scene_.now), replies);
}

void Servers::on_ended(StreamId stream) {
  servers_[network_.node_of(stream)].close(stream);
}

void Servers::on_executed(StreamId stream, const ScriptRun& run) {
  const NodeIndex node = node_of(stream);
  scene_.note(1, stream, hash_of(run.reply), [&] {
    const bool by_client = stream != operators;
    const std::string who = by_client ? fmt::format("client {}", network_.client_of(stream))
                                      : std::string("an operator");
    return fmt::format("node {} runs of {}: {}", node, who, in_words(run));
  });
  scene_.invariants.executed(scene_.now, node, run);
  // After a lock that was forced out, a key of another type may stand there.
  const bool deletes = run.script == "force" && run.reply == "*1\r\n:1\r\n";
  if (deletes && scene_.plan.kind == WorldKind::forced && scene_.random.chance(500)) {
    scene_.nodes[node].data.put_foreign(NodeData::name_of(run.keys.front()));
  }
}

/// Nodes that forget once more now do so behind the back of clients that still wait.
void Servers::on_marked(StreamId stream) {
  const NodeIndex node = network_.node_of(stream);
  scene_.note(13, stream, node, [&] {
    return fmt::format("client {} marks node {}", network_.client_of(stream), node);
  });
  scene_.nodes[node].marked = scene_.now;
  if (!scene_.plan.forgets() || scene_.ending || !scene_.random.chance(100)) return;
  scene_.at(scene_.now + scene_.random.up_to(scene_.plan.engine.node_timeout * 4),
            Event::What::many_forget, 1);
}

void Servers::begin_faults() {
  const WakeFaults& faults = scene_.plan.wakes;
  if (faults.forged > Duration::zero()) {
    scene_.at(scene_.now + wakes_.between(faults.forged / 2, faults.forged),
              Event::What::forged_wake);
  }
  const Withheld& withheld = scene_.plan.withheld;
  for (NodeIndex node = 0; node < withheld.nodes; ++node) {
    servers_[node].set_denied(withheld.what, true);
    if (!withheld.on_and_off) continue;
    scene_.at(scene_.now + wakes_.up_to(scene_.plan.length), Event::What::withheld, node, 1);
  }
}

// --- wake-ups

std::uint32_t Servers::on_publish(StreamId stream, std::string_view channel,
                                  std::string_view text) {
  const WakeFaults& faults = scene_.plan.wakes;
  const NodeIndex node = network_.node_of(stream);
  const bool lost = faults.lost > 0 && wakes_.chance(faults.lost);
  const bool late = faults.late > 0 && wakes_.chance(faults.late);
  const bool doubled = faults.doubled > 0 && wakes_.chance(faults.doubled);
  const std::uint32_t copies = lost || late ? 0 : doubled ? 2 : 1;
  scene_.note(15, stream, copies, [&] {
    return fmt::format("node {} tells client {}: {}{}", node, network_.client_of(stream), text,
                       late          ? " (late)"
                       : copies == 0 ? " (lost)"
                       : copies == 2 ? " (twice)"
                                     : "");
  });
  if (late) {
    late_.push_back({std::string(channel), std::string(text)});
    scene_.at(scene_.now + wakes_.up_to(std::chrono::seconds(4)), Event::What::late_wake, node,
              static_cast<std::uint32_t>(late_.size() - 1));
  }
  return copies;
}

/// On the connection that the client has by then.
void Servers::late_wake(const Event& event) {
  if (process(event.a) != Process::runs) return;
  const Wake& wake = late_[event.b];
  scene_.note(15, event.a, 3,
              [&] { return fmt::format("node {} tells late: {}", event.a, wake.text); });
  servers_[event.a].publish_text(wake.channel, wake.text);
}

void Servers::forged_wake() {
  if (scene_.ending) return;
  const Duration most = scene_.plan.wakes.forged;
  scene_.at(scene_.now + wakes_.between(most / 2, most), Event::What::forged_wake);
  const NodeIndex node = wakes_.below(static_cast<std::uint32_t>(servers_.size()));
  const std::vector<std::string> channels = servers_[node].channels();
  if (channels.empty() || process(node) != Process::runs) return;
  const std::string& channel = channels[wakes_.below(static_cast<std::uint32_t>(channels.size()))];
  const std::string text = forged_text();
  scene_.note(15, node, 4, [&] { return fmt::format("node {} tells, forged: {}", node, text); });
  servers_[node].publish_text(channel, text);
}

/// Mostly of a call that may wait just now.
std::string Servers::forged_text() {
  const std::uint32_t kind = wakes_.below(10);
  if (kind == 0) return wakes_.chance(500) ? "" : "0 0";
  if (kind == 1) return "18446744073709551615 18446744073709551615";
  const std::uint64_t back = wakes_.below(kind < 8 ? 12 : 1'000);
  const std::uint64_t waiter = scene_.last_request > back ? scene_.last_request - back : 1;
  const std::uint32_t after =
      wakes_.chance(600) ? 0 : wakes_.below(wakes_.chance(700) ? 60 : 10'000);
  return std::to_string(waiter) + ' ' + std::to_string(after);
}

void Servers::permit_all() {
  const Withheld& withheld = scene_.plan.withheld;
  for (NodeIndex node = 0; node < withheld.nodes; ++node) {
    servers_[node].set_denied(withheld.what, false);
  }
}

void Servers::withhold(const Event& event) {
  if (scene_.ending) return;
  const bool permitted = event.b != 0;
  servers_[event.a].set_denied(scene_.plan.withheld.what, !permitted);
  scene_.note(15, event.a, 5 + event.b, [&] {
    return fmt::format("node {} {} {}", event.a, permitted ? "permits" : "denies",
                       scene_.plan.withheld.what == Denied::pexpire ? "PEXPIRE" : "Pub/Sub");
  });
  scene_.at(scene_.now + wakes_.up_to(scene_.plan.length), Event::What::withheld, event.a,
            permitted ? 0 : 1);
}

void Servers::on_time_told(StreamId stream) {
  if (times_told_.size() <= stream) times_told_.resize(stream + 1);
  const NodeIndex node = network_.node_of(stream);
  times_told_[stream].push_back({scene_.nodes[node].wall.read(scene_.now),
                                 scene_.clocks[network_.client_of(stream)].read(scene_.now),
                                 scene_.now});
}

void Servers::on_misread(StreamId stream, std::string_view why) {
  throw Violation{"a node can read every request",
                  fmt::format("client {}, node {}: {}", network_.client_of(stream),
                              network_.node_of(stream), why)};
}

}  // namespace redlock::simulation
