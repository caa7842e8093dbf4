// SPDX-License-Identifier: MIT
#include "simulation/stage.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>
#include <utility>

#include "wire/command_writer.hpp"
#include "wire/script_call.hpp"
#include "wire/words.hpp"

namespace redlock::simulation {
namespace {

using std::chrono::seconds;

constexpr Instant start{seconds(1'000)};
constexpr std::int64_t judged_drift_ppm = 10'000;

}  // namespace

Stage::Stage(const Settings& settings)
    : settings_(settings),
      now_(start),
      invariants_(settings.judged, nodes_, settings.engine.nodes, judged_drift_ppm,
                  settings.engine.max_lease) {
  for (Node node = 0; node < settings.engine.nodes; ++node) {
    nodes_.push_back({{}, {now_, Instant(seconds(1'767'225'600)), 0}});
    if (settings.engine.quarantine) nodes_.back().data.set_marker({{"id", "marked"}});
  }
  NodeServerHost& self = *this;
  for (Node node = 0; node < nodes_.size(); ++node) {
    servers_.emplace_back(nodes_[node].data, NodeServer::Settings{}, self);
    servers_.back().start(std::to_string(node), nodes_[node].now_us(now_));
    servers_.back().accept(node);
    scripts_.emplace_back(wire::ScriptSet::Flags::understood);
    for (const wire::ScriptRow& row : wire::script_rows()) {
      std::string load;
      wire::CommandWriter::write(load, {"SCRIPT", "LOAD", scripts_[node].source(row.script)});
      scripts_[node].set_digest(row.script, ask(node, load).text());
    }
  }
}

wire::ReplyView Stage::ask(Node node, std::string_view bytes) {
  std::string reply;
  const bool goes_on = servers_[node].take(node, bytes, nodes_[node].now_us(now_), reply);
  reader_.feed(reply);
  const bool whole = reader_.next(100'000) == wire::ReplyReader::Outcome::complete;
  if (!goes_on || !whole) throw std::runtime_error("a node does not reply");
  return reader_.reply();
}

engine::Reply Stage::execute(Node node, const engine::Send& send) {
  std::string call;
  wire::write_call(call, scripts_[node], send.form, send.command);
  const auto reply = wire::read_answer(wire::script_of(send.command), ask(node, call), {});
  if (!reply) throw std::runtime_error("a node replies what nobody can read");
  return *reply;
}

void Stage::on_executed(StreamId stream, const ScriptRun& run) {
  invariants_.executed(now_, stream, run);
}

void Stage::on_misread(StreamId /*stream*/, std::string_view why) {
  throw Violation{"a node can read every request", std::string(why)};
}

Stage::Client& Stage::client(const std::string& name) {
  const auto found = std::ranges::find(clients_, name, &Client::name);
  if (found != clients_.end()) return *found;
  Client& fresh = clients_.emplace_back(now_, clients_.size() + 1);
  fresh.name = name;
  fresh.engine = std::make_unique<engine::Engine>(settings_.engine, fresh.random);
  fresh.life = invariants_.client_starts(fresh.clock);
  fresh.links.resize(nodes_.size());
  for (Node node = 0; node < nodes_.size(); ++node) {
    fresh.engine->on_node_clock(now_, node, nodes_[node].now_us(now_));
    fresh.engine->on_node_up(now_, node);
  }
  turn(fresh);
  return fresh;
}

void Stage::request(Client& client, Invariants::Request request) {
  request.id = ++last_request_;
  invariants_.requested(client.life, request);
}

// --- what users do

void Stage::acquire(Client& by, engine::AcquireRequest what) {
  by.lock = *what.name;
  by.lease = what.lease;
  const bool bounded = what.wait != Duration::max();
  request(by, {.name = what.name,
               .expected = bounded ? local(by) + what.wait + settings_.engine.node_timeout * 2
                                   : engine::never,
               .min_validity = what.min_validity,
               .acquires = true,
               .lease = what.lease});
  by.request = last_request_;
  by.engine->acquire(local(by), last_request_, std::move(what));
  turn(by);
}

void Stage::extend(Client& by, std::chrono::milliseconds lease) {
  request(by,
          {.name = {}, .expected = local(by) + settings_.engine.node_timeout, .extends = by.grant});
  by.engine->extend(local(by), last_request_, by.grant, lease);
  turn(by);
}

void Stage::enter(Client& by, engine::EnterRequest what) {
  request(by,
          {.name = {}, .expected = local(by) + settings_.engine.node_timeout, .enters = by.grant});
  what.grant = by.grant;
  by.engine->enter(local(by), last_request_, what);
  turn(by);
}

void Stage::leave(Client& by) {
  invariants_.left(by.life, by.grant);
  by.engine->leave(local(by), by.grant);
  turn(by);
}

void Stage::release(Client& by) {
  request(by, {.name = {}, .expected = local(by) + settings_.engine.node_timeout});
  invariants_.released(now_, by.life, by.grant);
  by.valid_until = Instant::min();
  by.engine->release(local(by), last_request_, by.grant);
  turn(by);
}

void Stage::cancel(Client& by) {
  by.engine->cancel(local(by), by.request, Errc::cancelled);
  turn(by);
}

void Stage::take_over(Client& giver, Client& taker) {
  invariants_.detached(giver.life, giver.grant);
  giver.engine->detach(local(giver), giver.grant);
  giver.valid_until = Instant::min();
  taker.lock = giver.lock;
  taker.lease = giver.lease;
  const engine::AttachRequest what{.name = std::make_shared<const std::string>(giver.lock),
                                   .owner = giver.owner,
                                   .token = giver.token,
                                   .lease = giver.lease,
                                   .max_hold = std::nullopt};
  request(taker, {.name = what.name,
                  .expected = local(taker) + settings_.engine.node_timeout,
                  .lease = what.lease});
  taker.engine->attach(local(taker), last_request_, what);
  turn(taker);
}

void Stage::force(Client& by, const Client& holder) {
  request(by, {.name = {},
               .expected = local(by) + settings_.engine.node_timeout,
               .forces = Invariants::Forced{holder.lock, holder.owner}});
  by.engine->force_release(local(by), last_request_,
                           std::make_shared<const std::string>(holder.lock), holder.owner);
  turn(by);
}

// --- what passes between clients and nodes

void Stage::deliver(Client& from, Node node) {
  Link& link = from.links.at(node);
  if (link.to_node.empty())
    throw std::runtime_error(fmt::format("nothing from {} to {}", from.name, node));
  const engine::Send send = std::move(link.to_node.front());
  link.to_node.pop_front();
  const engine::Reply reply = execute(node, send);
  link.to_client.push_back({send.tag, reply});
  say(fmt::format("{} to {}: {}: {}", from.name, node, engine::in_words(send.tag.kind),
                  wire::in_words(reply)));
}

void Stage::deliver_late(Client& from, Node node) {
  Link& link = from.links.at(node);
  if (link.late.empty()) throw std::runtime_error("nothing late from " + from.name);
  const engine::Send send = std::move(link.late.front());
  link.late.pop_front();
  const engine::Reply reply = execute(node, send);
  say(fmt::format("{} to {}, late: {}: {}", from.name, node, engine::in_words(send.tag.kind),
                  wire::in_words(reply)));
}

void Stage::answer(Node node, Client& to) {
  Link& link = to.links.at(node);
  if (link.to_client.empty())
    throw std::runtime_error(fmt::format("nothing from {} to {}", node, to.name));
  const Answer answer = std::move(link.to_client.front());
  link.to_client.pop_front();
  link.outstanding.pop_front();
  receive(to, node, answer);
  turn(to);
}

void Stage::drain(Client& client, Node node) {
  const Link& link = client.links.at(node);
  while (!link.to_node.empty() || !link.to_client.empty()) {
    if (!link.to_node.empty()) deliver(client, node);
    if (!link.to_client.empty()) answer(node, client);
  }
}

void Stage::receive(Client& client, Node node, const Answer& answer) {
  invariants_.answered(now_, client.life, node, answer.tag, answer.reply);
  client.engine->on_reply(local(client), node, answer.tag, answer.reply);
}

void Stage::disconnect(Client& of, Node node) {
  Link& link = of.links.at(node);
  link.up = false;
  link.late = std::exchange(link.to_node, {});
  link.to_client.clear();
  for (const engine::Tag& tag : std::exchange(link.outstanding, {})) {
    receive(of, node,
            {tag, engine::Unavailable{Cause::connection_lost, engine::Delivery::unknown, ""}});
  }
  turn(of);
}

void Stage::connect(Client& of, Node node) {
  of.links.at(node).up = true;
  of.links.at(node).late.clear();  // killed by the new connection
  of.engine->on_node_up(local(of), node);
  turn(of);
}

void Stage::turn(Client& of) {
  engine::Outputs outputs;
  for (;;) {
    outputs.clear();
    of.engine->take_outputs(outputs);
    if (outputs.empty()) break;
    invariants_.told(now_, of.life, outputs);
    for (const engine::NodeOutput& output : outputs.nodes) {
      if (const auto* send = std::get_if<engine::Send>(&output)) perform(of, *send);
    }
    for (const engine::ClientOutput& output : outputs.client) perform(of, output);
  }
  invariants_.turn_ends(now_, of.life);
}

void Stage::perform(Client& of, const engine::Send& send) {
  Link& link = of.links[send.node];
  if (!link.up) {
    return receive(
        of, send.node,
        {send.tag, engine::Unavailable{Cause::connection_failed, engine::Delivery::not_sent, ""}});
  }
  link.to_node.push_back(send);
  link.outstanding.push_back(send.tag);
}

void Stage::perform(Client& of, const engine::ClientOutput& output) {
  if (const auto* finish = std::get_if<engine::Finish>(&output)) {
    tell(of, *finish);
  } else if (const auto* changed = std::get_if<engine::ValidityChanged>(&output)) {
    of.valid_until = changed->valid_until;
    say(fmt::format("{}: valid for {}", of.name, validity(of)));
  } else if (const auto* lost = std::get_if<engine::LeaseLost>(&output)) {
    const bool gone = lost->reason == LossReason::taken || lost->reason == LossReason::forced;
    if (gone) of.valid_until = Instant::min();
    say(fmt::format("{}: LOST: {}", of.name, to_string(lost->reason)));
  }
}

void Stage::tell(Client& of, const engine::Finish& finish) {
  if (const auto* success = std::get_if<engine::AcquireSucceeded>(&finish.result)) {
    of.grant = success->grant;
    of.owner = success->owner;
    of.token = success->token;
    of.valid_until = success->valid_until;
    say(fmt::format("{}: ACQUIRED token {}, valid for {}", of.name, of.token, validity(of)));
  } else if (const auto* entered = std::get_if<engine::EnterSucceeded>(&finish.result)) {
    say(fmt::format("{}: ENTERED count {}, valid for {}", of.name, entered->count, validity(of)));
  } else if (const auto* failed = std::get_if<engine::Failed>(&finish.result)) {
    say(fmt::format("{}: FAILED {}", of.name, to_string(failed->code)));
  } else if (const auto* done = std::get_if<engine::ReleaseDone>(&finish.result)) {
    say(fmt::format("{}: release: {}", of.name, to_string(done->outcome)));
  } else if (const auto* forced = std::get_if<engine::BroadcastDone>(&finish.result)) {
    const std::uint32_t removed = forced->replied<engine::ReleasedHere>().size();
    const std::uint32_t confirmed = removed + forced->replied<engine::NotHeld>().size();
    const bool by_quorum = confirmed > nodes_.size() / 2;
    say(fmt::format("{}: {}: {} removed, {} confirmed", of.name,
                    by_quorum ? "FORCED" : "force unknown", removed, confirmed));
  } else {
    say(fmt::format("{}: EXTENDED, valid for {}", of.name, validity(of)));
  }
}

std::string Stage::validity(const Client& of) const {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(of.valid_until - local(of));
  return fmt::format("{} ms", left.count());
}

// --- time

void Stage::read_clocks(Client& of) {
  for (Node node = 0; node < node_count(); ++node) {
    const std::int64_t shown = nodes_[node].now_us(now_);
    const Duration wall = std::chrono::microseconds(shown);
    invariants_.clock_read(of.life, node,
                           {.at = local(of),
                            .ahead = wall - local(of).time_since_epoch(),
                            .world = now_,
                            .astray = wall - now_.time_since_epoch()});
    of.engine->on_node_clock(local(of), node, shown);
    turn(of);
  }
}

void Stage::pass(Duration time) {
  const Instant end = now_ + time;
  for (;;) {
    Client* next = nullptr;
    Instant when = end;
    for (Client& each : clients_) {
      const Instant deadline = each.engine->deadline();
      if (each.paused || deadline == engine::never) continue;
      const Instant due = std::max(each.clock.when(deadline), now_);
      if (due < when || (due == when && next == nullptr)) {
        next = &each;
        when = due;
      }
    }
    if (next == nullptr) break;
    now_ = when;
    next->engine->on_deadline(local(*next));
    turn(*next);
  }
  now_ = end;
}

void Stage::resume(Client& of) {
  of.paused = false;
  invariants_.client_resumes(of.life, now_, settings_.engine.node_timeout);
}

// --- what can be seen

void Stage::read(Client& of) {
  of.value = invariants_.read_register(of.lock, of.token);
  say(of.value ? fmt::format("{}: reads {} with token {}", of.name, *of.value, of.token)
               : fmt::format("{}: its token {} is TURNED AWAY", of.name, of.token));
}

void Stage::write(Client& of) {
  const std::uint64_t stale = invariants_.counts().stale_writes;
  invariants_.write_register(of.lock, of.token, of.value.value_or(0) + 1);
  const bool refused = invariants_.counts().stale_writes > stale;
  say(refused ? fmt::format("{}: its token {} is TURNED AWAY", of.name, of.token)
              : fmt::format("{}: writes {}", of.name, of.value.value_or(0) + 1));
}

void Stage::who_is_valid() {
  std::string text;
  for (const Client& each : clients_) {
    if (local(each) < each.valid_until) text += " " + each.name;
  }
  say("valid:" + (text.empty() ? " nobody" : text));
}

std::string Stage::who_has(const std::string& name) const {
  std::string text;
  for (Node node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].data.is_free(name, nodes_[node].now_ms(now_))) continue;
    text += (text.empty() ? "" : " ") + std::to_string(node);
  }
  return text.empty() ? "none" : text;
}

std::string Stage::counts(const std::string& name) const {
  std::string text;
  for (const SimNode& node : nodes_) {
    const auto lock = node.data.lock(name, node.now_ms(now_));
    if (!text.empty()) text += ' ';
    text += !lock ? "-" : std::to_string(lock->count);
  }
  return text;
}

}  // namespace redlock::simulation
