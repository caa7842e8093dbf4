// SPDX-License-Identifier: MIT
// The work between the engine and the nodes: outputs become commands, reports of the links become
// inputs.
#include "wire/driver.hpp"

#include <algorithm>
#include <utility>

#include "wire/objection_text.hpp"

namespace redlock::wire {

using engine::Instant;
using engine::NodeIndex;
using std::chrono::milliseconds;

namespace {

bool is_no_key(const Value& fields) {
  const auto* const list = std::get_if<std::vector<Value>>(&fields.data);
  return list != nullptr && list->empty();
}

DriverConfig completed(DriverConfig config) {
  engine::Config& engine = config.engine;
  engine.nodes = static_cast<std::uint32_t>(config.nodes.size());
  engine.slots = std::max(engine.nodes, engine.slots);
  for (const NodeAddress& node : config.nodes) engine.addresses.push_back(node.address);
  config.nodes.resize(engine.slots);
  return config;
}

/// Another one for each driver, and for each run of the program: what an earlier one left in the
/// nodes' lines is not taken for this one's.
std::string draw_client(engine::RandomSource& random) {
  return engine::to_hex({{random.next(), 0}}).substr(0, 16);
}

std::vector<std::uint32_t> databases_of(const std::vector<NodeAddress>& nodes) {
  std::vector<std::uint32_t> databases;
  for (const NodeAddress& node : nodes) databases.push_back(node.db);
  return databases;
}

Link::Config link_config(const DriverConfig& config, engine::RandomSource& random) {
  // A node that is merely slow ends attempts, and not its connection.
  const auto patience = std::chrono::ceil<milliseconds>(4 * config.engine.node_timeout);
  const auto silence = std::max(milliseconds(1'000), patience);
  // That its leases are not longer than those of the set is for the engine to judge.
  return {.handshake = {.set = {.max_lease = {}, .drift_factor = config.engine.drift_factor},
                        .client_name = config.client_name,
                        .client = draw_client(random),
                        .unfit = config.unfit},
          .connect_timeout = config.connect_timeout,
          .silence = silence,
          .probe_interval = config.probe_interval,
          .unsent_limit = config.unsent_limit,
          .unanswered_limit = config.unanswered_limit,
          .unanswered_for = std::max(config.unanswered_for, 2 * silence)};
}

}  // namespace

Driver::Driver(DriverConfig config, engine::RandomSource& random, Streams& streams,
               DriverHost& host)
    : config_(completed(std::move(config))),
      link_config_(link_config(config_, random)),
      host_(host),
      random_(random),
      engine_(config_.engine, random),
      texts_{.command = {}, .holder = config_.holder},
      identities_(databases_of(config_.nodes), engine_.longest_lease()),
      markers_(random, link_config_.handshake.set, config_.nodes.size(), config_.engine.quarantine),
      standings_(config_.nodes.size(), host),
      refused_by_members_(config_.nodes.size()),
      members_read_(config_.nodes.size()) {
  LinkListener& self = *this;
  for (NodeIndex node = 0; node < config_.nodes.size(); ++node) {
    links_.push_back(std::make_unique<Link>(node, config_.nodes[node], link_config_, texts_, random,
                                            streams, self));
  }
}

void Driver::start(Instant now, std::int64_t unix_us) {
  engine().on_own_clock(now, unix_us);
  engine().on_connecting();
  texts_.holder.set_clock(now, unix_us);
  for (NodeIndex node = 0; node < config_.engine.nodes; ++node) links_[node]->start();
}

void Driver::on_own_clock(Instant now, std::int64_t unix_us) {
  texts_.holder.set_clock(now, unix_us);
}

void Driver::stop(Instant now) {
  while (pending()) turn(now);
  for (const auto& link : links_) link->stop(now);
}

void Driver::drop_questions() noexcept {
  for (const auto& link : links_) link->drop_questions();
}

void Driver::ask(Instant now, NodeIndex node, std::vector<std::string> command,
                 milliseconds timeout, Question::OnAnswer callback) {
  links_[node]->ask(
      now, std::make_shared<Question>(now, std::move(command), timeout, std::move(callback)));
}

void Driver::turn(Instant now) {
  for (Link* link : flushed_) link->on_flushed(now);
  flushed_.clear();
  for (auto& [node, why] : std::exchange(to_reconnect_, {})) {
    links_[node]->reconnect(now, std::move(why));
  }
  while (std::exchange(engine_touched_, false)) {
    engine_.take_outputs(outputs_);
    for (engine::NodeOutput& output : outputs_.nodes) perform(now, std::move(output));
    for (engine::ClientOutput& output : outputs_.client) host_.on_output(std::move(output));
    outputs_.clear();
  }
  // A link that is given up answers its commands, for which the engine has outputs.
  flushed_.swap(to_flush_);
  for (Link* link : flushed_) link->flush(now);
}

void Driver::perform(Instant now, engine::NodeOutput&& output) {
  if (auto* send = std::get_if<engine::Send>(&output)) {
    host_.on_send(*send);
    links_[send->node]->submit(now, send->tag, std::move(send->command), send->form);
  } else if (const auto* what = std::get_if<engine::TendMarker>(&output)) {
    tend(now, *what);
  } else if (const auto* read = std::get_if<engine::ReadMembers>(&output)) {
    read_members(now, read->node);
  } else if (const auto* note = std::get_if<engine::NoteClock>(&output)) {
    note_clock(now, *note);
  } else if (auto* moved = std::get_if<engine::MoveNode>(&output)) {
    move(now, std::move(*moved));
  } else {
    for (const auto& link : links_) link->probe(now);  // ReadClocks
  }
}

Instant Driver::deadline() const {
  Instant first = engine_.deadline();
  for (const auto& link : links_) first = std::min(first, link->deadline());
  return first;
}

void Driver::on_deadline(Instant now) {
  if (engine_.deadline() <= now) engine().on_deadline(now);
  for (const auto& link : links_) {
    if (link->deadline() <= now) link->on_deadline(now);
  }
}

void Driver::tend(Instant now, const engine::TendMarker& what) {
  const auto timeout = std::chrono::ceil<milliseconds>(config_.engine.node_timeout);
  ask(now, what.node, markers_.command(what), timeout,
      [what, asked = now, this](Instant then, const Answer& answer) {
        const MarkerTending::Finding found = markers_.read(what, answer);
        if (found.written) links_[what.node]->on_membership(what.marker.configuration.name());
        if (found.reconnect) to_reconnect_.emplace_back(what.node, "its marker was written");
        if (!found.there && !found.pending) return;
        host_.on_marker_seen(what.node);
        if (found.pending) {
          engine().on_pending_marker(then, what.node, *found.pending, asked);
        } else {
          engine().on_marker(then, what.node, found.written ? what.marker : engine::Membership());
        }
        judge_nodes(then);
      });
}

void Driver::move(Instant now, engine::MoveNode&& what) {
  NodeAddress& address = config_.nodes[what.node];
  const NodeAddress before = address;
  if (what.address.empty()) {
    address = {};
  } else {
    address = moved_to(before.label.empty() ? some_node() : before, what.address);
  }
  identities_.forget(what.node, address.db);
  links_[what.node]->move(
      now, before.label + (address.label.empty()
                               ? " is no member of the set any more"
                               : " has lost its place in the set to " + address.label));
  engine().on_moved(now, what.node);
  host_.on_node_moved(what.node, address);
}

/// As every new member is logged in to.
const NodeAddress& Driver::some_node() const {
  return *std::ranges::find_if(config_.nodes,
                               [](const NodeAddress& node) { return !node.label.empty(); });
}

void Driver::note_clock(Instant now, const engine::NoteClock& note) {
  const auto timeout = std::chrono::ceil<milliseconds>(config_.engine.node_timeout);
  const auto lasts = std::chrono::ceil<milliseconds>(note.lasts);
  const std::string key(link_config_.handshake.set.layout.clock);
  // A node that does not answer is not asked again: its clock is read again with the next
  // connection, by each client.
  ask(now, note.node, {"SET", key, "moved", "PX", std::to_string(lasts.count())}, timeout,
      [](Instant, const Answer&) {});
}

/// Judges all nodes: the marker of one may decide to which set another belongs.
void Driver::judge_nodes(Instant now) {
  for (NodeIndex node = 0; node < links_.size(); ++node) {
    if (!engine_.nodes().contains(node)) continue;
    standings_.judge(now, node, engine_.objection(now, node));
  }
}

/// SET with XX of a key that is not there: refused as every write is, and otherwise nothing.
void Driver::ask_to_write_nothing(Instant now, NodeIndex node) {
  const std::string key(link_config_.handshake.set.layout.nothing);
  const auto timeout = std::chrono::ceil<milliseconds>(config_.engine.node_timeout);
  ask(now, node, {"SET", key, "", "XX"}, timeout, [node, this](Instant then, const Answer& answer) {
    if (!answer || std::holds_alternative<Value::ErrorText>(answer->data)) return;
    standings_.on_refusal_over(node);
    judge_nodes(then);
  });
}

void Driver::on_reply(Instant now, NodeIndex node, const engine::Tag& tag,
                      const engine::Reply& reply) {
  const auto* const why = std::get_if<engine::Unavailable>(&reply);
  if (why == nullptr || !why->detail.starts_with("OTHERSET")) return take(now, node, tag, reply);
  // It was on its way when another one was refused, and the marker read.
  if (links_[node]->answers_former_name() && !engine_.objection(now, node)) {
    return take(now, node, tag, engine::NoScript());
  }
  auto& waiting = refused_by_members_[node];
  waiting.emplace_back(tag, reply);
  if (waiting.size() == 1) read_members(now, node);
}

/// The members of the set may have changed. If they have, commands that named the former ones, and
/// were refused, are sent once more, at the cost of this round trip.
void Driver::read_members(Instant now, NodeIndex node) {
  members_read_[node] = now;
  const SetTerms& set = link_config_.handshake.set;
  const auto timeout = std::chrono::ceil<milliseconds>(config_.engine.node_timeout);
  ask(now, node, {"HGETALL", std::string(set.layout.marker)}, timeout,
      [node, &set, asked = now, this](Instant then, const Answer& answer) {
        const auto marker = answer ? NodeMarker::read(*answer) : std::nullopt;
        if (answer) host_.on_marker_seen(node);
        auto its = marker && !marker->disagreement(set) ? marker->membership() : std::nullopt;
        bool changed = false;
        if (its) {
          const auto& members = its->configuration;
          const std::string before = links_[node]->on_membership(members.name());
          const bool of_this_set = before.empty() || before.starts_with(members.set + ":");
          changed = before != members.name() && of_this_set;
          engine().on_members(then, node, std::move(*its), asked);
          read_clocks_often_enough();
        } else if (answer && is_no_key(*answer)) {
          engine().on_no_marker(then, node, asked);
        } else if (answer && !refused_by_members_[node].empty()) {
          to_reconnect_.emplace_back(node, "its marker does not agree by now");
        }
        const bool again = changed && !engine_.objection(then, node);
        for (const auto& [tag, reply] : std::exchange(refused_by_members_[node], {})) {
          take(then, node, tag, again ? engine::Reply(engine::NoScript()) : reply);
        }
        judge_nodes(then);
      });
}

void Driver::take(Instant now, NodeIndex node, const engine::Tag& tag, const engine::Reply& reply) {
  host_.on_reply(node, tag, reply);
  const bool refused = standings_.refuses(node);
  standings_.on_reply(node, tag, reply);
  engine().on_reply(now, node, tag, reply);
  if (refused || std::holds_alternative<engine::Unavailable>(reply)) judge_nodes(now);
}

std::optional<std::string> Driver::find_objection(Instant now, NodeIndex node,
                                                  const ServerFacts& facts) {
  identities_.set_longest_lease(engine_.longest_lease());
  const auto suspicion = identities_.judge(now, node, facts);
  if (!suspicion) return {};
  check_identity(now, node);
  return refusal_of(*suspicion, facts);
}

std::string Driver::refusal_of(const ServerIdentities::Suspicion& suspicion,
                               const ServerFacts& facts) const {
  using Evidence = ServerIdentities::Evidence;
  const std::string& twin = config_.nodes[suspicion.twin].label;
  const std::string claim = "it reports the run id of " + twin;
  switch (suspicion.evidence) {
    case Evidence::proved:
      return "it is the same server as " + twin + "; list each server once, by one address";
    case Evidence::unreadable:
      return claim + ", and refuses the check whether both are one server (" +
             facts.identity_refusal + ")";
    case Evidence::gave_way:
      return claim + ", and did not write the key that shows whether both are one server; " + twin +
             " takes its place";
    case Evidence::claimed:
      break;
  }
  return claim + "; it does not count until a check shows that they are two servers, or the " +
         "votes of that node are over";
}

/// Begins the check of a node that is refused, if there is something to begin with.
void Driver::check_identity(Instant now, NodeIndex node) {
  if (config_.unfit != UnfitNodes::refuse) return;
  const auto write = identities_.next_write(now, node, random_);
  if (!write) return;
  const auto lasts = std::to_string(ServerIdentities::key_lasts.count());
  const auto through = static_cast<NodeIndex>(write->through);
  // A node that does not answer loses its connection before.
  ask(now, through, {"SET", write->key, write->value, "PX", lasts}, 2 * link_config_.silence,
      [node, through, write = *write, this](Instant, const Answer& answer) {
        const bool written = answer && !std::holds_alternative<Value::ErrorText>(answer->data);
        if (!identities_.on_written(node, write, written)) return;
        to_reconnect_.emplace_back(through, "it did not write the key that shows whether it and " +
                                                config_.nodes[node].label + " are one server");
      });
}

void Driver::on_node_facts(Instant now, NodeIndex node, const ServerFacts& facts) {
  const MarkerTending::Promotion promotion = markers_.on_facts(node, facts);
  members_read_[node] = now;
  host_.on_marker_seen(node);
  engine().on_node_facts(now, node,
                         {.marker = facts.marker,
                          .durable = facts.durable.value_or(false),
                          .promoted = promotion.pending,
                          .newly_promoted = promotion.is_new,
                          .uptime = facts.uptime,
                          .clock_noted = facts.clock_noted,
                          .run = facts.run_id});
  read_clocks_often_enough();
}

/// Each reading is compared with earlier ones, within twice the longest lease.
void Driver::read_clocks_often_enough() {
  if (config_.engine.max_lease != config_.engine.max_lease.zero()) return;
  const auto sixth = std::chrono::ceil<milliseconds>(engine_.longest_lease() / 6);
  link_config_.probe_interval =
      std::min(config_.probe_interval, std::max(sixth, milliseconds(100)));
}

std::optional<engine::Unavailable> Driver::objection_to_ask(Instant now, NodeIndex node,
                                                            const engine::Tag& tag) {
  const bool grants = tag.kind == engine::Tag::Kind::acquire || tag.kind == engine::Tag::Kind::heal;
  return grants ? engine_.objection(now, node, tag.lease) : engine_.too_long(node, tag.lease);
}

void Driver::on_link_up(Instant now, NodeIndex node, const ServerFacts& facts) {
  identities_.set_up(now, node, true);
  for (NodeIndex other = 0; other < links_.size(); ++other) check_identity(now, other);
  host_.on_wakes(node, facts.subscribed);
  engine().on_wakes(node, facts.subscribed);
  host_.on_link_up(node);
  engine().on_node_up(now, node);
  ServerFacts shown = facts;
  // With quarantine the node is down until it has one.
  if (!facts.marker && !config_.engine.quarantine) {
    shown.warn(sentence_of_missing_marker());
  }
  standings_.on_link_up(node, std::move(shown.warnings));
  judge_nodes(now);
}

void Driver::on_link_down(Instant now, NodeIndex node, const engine::Unavailable& why) {
  identities_.set_up(now, node, false);
  engine().on_node_down(now, node);
  host_.on_link_down(node, why);
  standings_.on_link_down(node, why);
}

void Driver::on_clock(Instant now, NodeIndex node, std::int64_t unix_us,
                      engine::Duration uncertainty, engine::Duration round_trip) {
  host_.on_clock_read(node, uncertainty);
  engine().on_node_clock(now, node, unix_us, uncertainty, round_trip);
  // A client that asks for no lock would never be refused one. A handshake has just read it.
  const bool is_old = now - members_read_[node] >= link_config_.probe_interval / 2;
  if (config_.engine.quarantine && is_old) read_members(now, node);
  // The next probe notices an objection that ends by time alone, as a quarantine does.
  judge_nodes(now);
  if (standings_.refuses(node)) ask_to_write_nothing(now, node);
}

void Driver::on_wake(Instant now, NodeIndex node, const Wake& wake) {
  host_.on_wake(node, wake);
  engine().on_wake(now, node, wake.line, wake.after);
}

}  // namespace redlock::wire
