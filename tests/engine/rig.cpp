// SPDX-License-Identifier: MIT
#include "engine/rig.hpp"

namespace redlock::engine::test {
namespace {

Config with_nodes(Config config, std::uint32_t nodes) {
  config.nodes = nodes;
  return config;
}

}  // namespace

Rig::Rig(std::uint32_t nodes, Config config)
    : engine(with_nodes(config, nodes), random), sent_(std::max(nodes, config.slots)) {}

void Rig::advance(Duration by) {
  const Instant end = now + by;
  while (engine.deadline() <= end) {
    now = std::max(now, engine.deadline());
    engine.on_deadline(now);
    collect();
  }
  now = end;
}

AcquireRequest Rig::request(std::chrono::milliseconds lease) {
  AcquireRequest what;
  what.name = std::make_shared<const std::string>("seat A05");
  what.lease = lease;
  return what;
}

AcquireRequest Rig::renewed(std::chrono::milliseconds lease) {
  AcquireRequest what = request(lease);
  what.renew = true;
  return what;
}

AcquireRequest Rig::waiting(Duration wait, bool in_order) {
  AcquireRequest what = request();
  what.wait = wait;
  what.in_order = in_order;
  return what;
}

RequestId Rig::acquire(AcquireRequest what) {
  if (!what.name) what.name = request().name;
  if (what.lease == 0ms) what.lease = 30s;
  return request_by([&](RequestId id) { engine.acquire(now, id, std::move(what)); });
}

RequestId Rig::attach(OwnerId owner, Token token, std::chrono::milliseconds lease) {
  AttachRequest what;
  what.owner = owner;
  what.token = token;
  what.lease = lease;
  return attach(std::move(what));
}

RequestId Rig::attach(AttachRequest what) {
  if (!what.name) what.name = request().name;
  return request_by([&](RequestId id) { engine.attach(now, id, std::move(what)); });
}

Send Rig::take(NodeIndex node) {
  REQUIRE(asked(node));
  Send send = std::move(sent_[node].front());
  sent_[node].pop_front();
  return send;
}

void Rig::answer_all(const Reply& reply) {
  for (NodeIndex node = 0; node < sent_.size(); ++node) {
    while (asked(node)) answer(node, reply);
  }
}

std::size_t Rig::serve(const Answers& answers) {
  std::size_t acquires = 0;
  for (NodeIndex node = 0; node < sent_.size(); ++node) {
    while (asked(node)) {
      if (oldest_is<AcquireCommand>(node)) {
        answer(node, answers.acquire);
        ++acquires;
      } else if (oldest_is<LeaveCommand>(node)) {
        answer(node, LineLeft{});
      } else {
        answer(node, oldest_is<HoldCommand>(node) ? answers.hold : answers.release);
      }
    }
  }
  return acquires;
}

std::size_t Rig::releases(NodeIndex node) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      sent_[node], [](const Send& send) { return send.tag.kind == Tag::Kind::release; }));
}

bool Rig::all_have_releases(std::size_t count) const {
  for (NodeIndex node = 0; node < sent_.size(); ++node) {
    if (releases(node) != count) return false;
  }
  return true;
}

bool Rig::all_answered() const {
  return std::ranges::all_of(sent_, [](const auto& sent) { return sent.empty(); });
}

std::optional<Errc> Rig::failure(RequestId request) const {
  if (!ended_with<Failed>(request)) return std::nullopt;
  return result<Failed>(request).code;
}

RequestId Rig::attempt(std::initializer_list<Reply> answers, AcquireRequest what) {
  const RequestId id = acquire(std::move(what));
  NodeIndex node = 0;
  for (const Reply& reply : answers) answer(node++, reply);
  return id;
}

AcquireSucceeded Rig::lease_on(std::initializer_list<NodeIndex> nodes, AcquireRequest what) {
  const RequestId id = acquire(std::move(what));
  answer(nodes, Granted{7});
  return result<AcquireSucceeded>(id);
}

AcquireSucceeded Rig::lease_on_all(AcquireRequest what, Token token) {
  const RequestId id = acquire(std::move(what));
  for (NodeIndex node = 0; node < sent_.size(); ++node) answer(node, Granted{token});
  return result<AcquireSucceeded>(id);
}

std::vector<GrantId> Rig::renewed_leases(int count, std::chrono::milliseconds lease) {
  std::vector<GrantId> grants;
  for (int i = 0; i < count; ++i) grants.push_back(lease_on_all(renewed(lease)).grant);
  return grants;
}

GrantId Rig::lease_beside_rival(AcquireRequest what) {
  const RequestId id = acquire(std::move(what));
  const auto last = static_cast<NodeIndex>(sent_.size() - 1);
  for (NodeIndex node = 0; node < last; ++node) answer(node, Granted{7});
  answer(last, Refused{30s});
  return result<AcquireSucceeded>(id).grant;
}

GrantId Rig::take_up(std::chrono::milliseconds lease) {
  const RequestId id = attach({{5, 6}}, 7, lease);
  answer({0, 1}, Held{7});
  return grant_of(id);
}

void Rig::forgets(NodeIndex node, Token token) {
  advance(10s);
  answer(node, Free{});
  for (NodeIndex other = 0; other < sent_.size(); ++other) {
    if (other != node) answer(other, Held{token});
  }
}

Send Rig::heal_of(NodeIndex node, Token token) {
  forgets(node, token);
  REQUIRE(oldest_is<AcquireCommand>(node));
  return take(node);
}

void Rig::read_clock(NodeIndex node, Duration ahead, Duration uncertainty) {
  constexpr std::chrono::microseconds year_2026(1'767'225'600'000'000);
  const auto shown =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch() + ahead);
  engine.on_node_clock(now, node, (year_2026 + shown).count(), uncertainty, 2 * uncertainty);
  collect();
}

void Rig::collect() {
  Outputs outputs;
  std::vector<NodeIndex> to_read;
  engine.take_outputs(outputs);
  for (NodeOutput& output : outputs.nodes) {
    if (auto* send = std::get_if<Send>(&output)) {
      sent_.at(send->node).push_back(std::move(*send));
    } else if (const auto* tend = std::get_if<TendMarker>(&output)) {
      tended.push_back(*tend);
    } else if (const auto* read = std::get_if<ReadMembers>(&output)) {
      to_read.push_back(read->node);
    } else if (const auto* note = std::get_if<NoteClock>(&output)) {
      clock_notes.push_back(*note);
    } else if (const auto* move = std::get_if<MoveNode>(&output)) {
      moves[move->node] = move->address;
      engine.on_moved(now, move->node);
    } else {
      ++readings_asked_for;
    }
  }
  for (ClientOutput& output : outputs.client) {
    if (auto* finish = std::get_if<Finish>(&output)) {
      REQUIRE_MESSAGE(!results_.contains(finish->request), "a request ended twice");
      results_.emplace(finish->request, std::move(finish->result));
    } else if (const auto* loss = std::get_if<LeaseLost>(&output)) {
      REQUIRE_MESSAGE(!lost.contains(loss->grant), "a lease was lost twice");
      lost.emplace(loss->grant, loss->reason);
    } else if (const auto* validity = std::get_if<ValidityChanged>(&output)) {
      valid_until[validity->grant] = validity->valid_until;
    } else if (const auto* renewal = std::get_if<RenewalDecided>(&output)) {
      renewals.push_back(*renewal);
    } else if (auto* attempt = std::get_if<AttemptDecided>(&output)) {
      attempts.push_back(std::move(*attempt));
    } else if (const auto* moved = std::get_if<NodeClockMoved>(&output)) {
      clocks_moved.push_back(*moved);
    }
  }
  for (const NodeIndex node : to_read) {
    const auto its = shows.find(node);
    if (its == shows.end()) continue;
    engine.on_members(now, node, its->second, now);
    collect();
  }
}

}  // namespace redlock::engine::test
