// SPDX-License-Identifier: MIT
// A model of how C, a member of the set {A, B, C}, is replaced by D: in steps of time, with
// messages that come late, clients that start anew, a C that is stopped and comes back, and a
// member that loses its data. Its sister, tests/engine/replacement_model_test.cpp, has none of
// these, but five nodes, and replacements that follow each other. What does not answer needs no
// step of its own: a client need not use a node, and an operator need not go on. All clocks keep to
// A3: they are one.
#include "timed_replacement.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <doctest/doctest.h>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace redlock::simulation {
namespace {

struct Rules {
  bool own_epoch_only = true;                  // acquire.lua, hold.lua
  bool conflicting_nodes_do_not_count = true;  // SetMembership::contradicts
  bool replaced_node_is_limited = true;        // NodeGrants::limit
  bool a_quorum_is_followed = true;            // rules::shown_by_enough
  bool nodes_without_marker_wait = true;       // Quarantines::suspect
  bool new_member_waits_anew = true;           // Quarantines::follow_members
  bool pending_id_is_compared = true;          // adopt.lua
  bool counts_from_the_send = true;            // rules::counts_from
  // The operator's word by --over: C has been stopped for one lease, and is for good.
  bool old_node_is_stopped = true;
  bool old_node_stays_away = true;
  bool over_is_for_a_new_node = true;  // Adopting::may_be_made
  bool members_are_read_anew = true;   // SetMembership::is_read_anew
  bool learnt_members_are_read_anew = true;
  bool lost_markers_are_remembered = true;  // SetMembership::removes
};
struct Bounds {
  bool late_messages = false;  // one at a time
  bool restarts = false;       // of clients, with either list at any time
  Small forgetful = nodes;     // loses its data, once
  Small old_node = runs;       // at first
};

class Model {
 public:
  Model(Rules rules, Bounds bounds) : rules_(rules), bounds_(bounds) {}

  /// The way to a state in which both clients are valid; empty if there is none.
  std::string overlap() {
    World start;
    start.servers[d].marker = 0;
    start.old_node = bounds_.old_node;
    visit(start);
    for (std::size_t next = 0; next < states_.size(); ++next) {
      here_ = states_[next];
      const World world = *here_;
      if (world.valid(0) != 0 && world.valid(1) != 0) return way_here();
      pass_time(world);
      operate(world);
      if (bounds_.forgetful != nodes) lose_data(world, bounds_.forgetful);
      for (const Small client : each_client) {
        for (Small place = 0; place < places; ++place) go_on(world, client, place);
        if (bounds_.restarts) restart(world, client);
      }
    }
    MESSAGE("no overlap in " << states_.size() << " states");
    return "";
  }

 private:
  /// Clients may change names: of such states one is visited.
  void visit(const World& world) {
    const auto [at, is_new] = came_from_.try_emplace(
        std::ranges::min(world, world.with_clients_swapped(), {}, &World::bytes), here_);
    if (is_new) states_.push_back(&at->first);
  }
  template <typename Change>
  void visit(World world, const Change& change) {
    change(world);
    visit(world);
  }

  void pass_time(World world) {
    for (Small node = 0; node < nodes; ++node) {
      for (const Small client : each_client) {
        Small& trusted = world.servers[node].trusted[client];
        if (trusted == 0) continue;
        --trusted;
        world.free_unless_trusted(node, client);
      }
    }
    for (auto& its : world.clients) {
      for (Small& shown : its.shown) {
        if (shown >= waits && shown < has_waited) ++shown;
      }
    }
    if (world.old_node >= stopped && world.old_node < is_over) ++world.old_node;
    if (world.late.what != nothing && --world.late.left == 0) world.drop_late();
    visit(world);
  }

  /// The operator's messages may come at any time: a marker is changed if it is as it was seen.
  void operate(const World& world) {
    for (const Small node : {a, b}) {
      if (world.servers[node].marker != 1) continue;
      visit(world, [&](World& to) { mark(to, node, 2); });
    }
    if (world.old_node != vouched || !rules_.old_node_stays_away) {
      const Small other = world.old_node == runs ? stopped : runs;
      visit(world, [&](World& to) { to.old_node = other; });
    }
    const bool may_vouch =
        rules_.old_node_is_stopped ? world.old_node == is_over : world.old_node != runs;
    if (may_vouch) visit(world, [](World& to) { to.old_node = vouched; });
    const bool is_new = !rules_.over_is_for_a_new_node || world.had_marker == 0;
    const bool may_write = world.old_node == vouched && world.made != 0 && is_new;
    if (may_write && world.servers[d].marker == 0) visit(world, [](World& to) { mark(to, d, 2); });
  }
  static void mark(World& world, Small node, Small epoch) {
    world.servers[node].marker = epoch;
    if (node == d) world.had_marker = 1;
    if (world.servers[a].marker == 2 && world.servers[b].marker == 2) world.made = 1;
  }

  /// Its pending id is lost as well: a client that waits for the node begins anew. A client that
  /// trusts the node goes on to, and its lock is gone.
  void lose_data(World world, Small node) {
    if (world.lost != 0 || world.servers[node].marker == 0) return;
    world.lost = 1;
    world.servers[node].marker = world.servers[node].owner = 0;
    for (const Small client : each_client) {
      const Small place = std::min(node, Small{2});
      auto& its = world.clients[client];
      if (world.at(client, place) != node || its.shown[place] < no_marker) continue;
      if (rules_.pending_id_is_compared) wait_anew(its, place);
    }
    visit(world);
  }

  void restart(World world, Small client) {
    for (Small node = 0; node < nodes; ++node) world.servers[node].trusted[client] = 0;
    if (world.late.client == client) world.late = {};
    for (Small node = 0; node < nodes; ++node) world.free_unless_trusted(node, client);
    for (const Small moved : {Small{0}, Small{1}}) {
      world.clients[client] = {0, moved, {}, {}, {}};
      visit(world);
    }
  }

  /// What a client does at a place. Nothing overtakes a message on its connection.
  void go_on(const World& world, Small client, Small place) {
    if (world.is_late(client, place)) return deliver(world, client, place);
    const Small node = world.at(client, place);
    const Small shown = world.clients[client].shown[place];
    const Small its = configuration(world.clients[client]);
    const Small wait = rules_.nodes_without_marker_wait ? has_waited : waits;
    if (place == 2 && node == d && world.clients[client].known == 1 && shown == unseen) {
      visit(world, [&](World& to) { move(to, client, 0, to.valid(client)); });
    }
    if (!world.answers(node)) return;
    read_marker(world, client, place);
    const bool has_place = its != 0 && (place < 2 || (node == d) == (its == 2));
    if (shown >= wait && has_place && world.servers[node].marker == 0) {
      visit(world, [&](World& to) { mark(to, node, its); });
    }
    if (shown == unseen || shown >= no_marker) return;
    send(world, client, place, {request, client, place, shown, lease});
  }
  /// An acquire or a hold. Only one of the two messages, question and answer, may come late.
  void send(World world, Small client, Small place, const World::Message& message) {
    if (bounds_.late_messages && world.late.what == nothing) {
      visit(world, [&](World& to) { to.late = message; });
    }
    if (world.is_late(client, place)) world.late = {};
    auto& its = world.servers[world.at(client, place)];
    const bool names_its = its.marker == message.epoch || !rules_.own_epoch_only;
    const bool is_mine = its.owner == 0 || its.owner == owner_of(client);
    if (its.marker == 0 || !names_its || !is_mine) return;
    its.owner = owner_of(client);
    count(world, client, place, message.left);
    if (!bounds_.late_messages || world.late.what != nothing) return;
    world.late = {answer, client, place, 0, message.left};
    visit(world);
  }
  void deliver(const World& world, Small client, Small place) {
    visit(world, [](World& to) { to.drop_late(); });
    if (world.late.what == request) {
      if (world.answers(world.at(client, place))) send(world, client, place, world.late);
    } else {
      count(world, client, place, world.late.left);
    }
  }
  void count(World world, Small client, Small place, Small left) {
    if (rules_.conflicting_nodes_do_not_count && contradicts(world, client, place)) return;
    Small& trusted = world.servers[world.at(client, place)].trusted[client];
    trusted = std::max(trusted, rules_.counts_from_the_send ? left : lease);
    if (world.is_late(client, place)) world.drop_late();
    visit(world);
  }

  /// Whether one node shows the later members, and the other is C.
  static bool removes(const World::Client& its, Small other, Small place) {
    const bool showed_former = its.shown[2] == 1 || its.before[2] == 1;
    const bool is_former = place == 2 && its.moved == 0 && (showed_former || its.known == 1);
    return is_former && (its.shown[other] == 2 || its.before[other] == 2);
  }
  static bool contradicts(const World& world, Small client, Small place) {
    const auto& its = world.clients[client];
    for (Small other = 0; other < places; ++other) {
      if (world.trusted(client, other) == 0) continue;
      if (removes(its, place, other)) return true;
      if (removes(its, other, place) && world.trusted(client, place) == 0) return true;
    }
    return false;
  }

  void read_marker(World world, Small client, Small place) {
    auto& its = world.clients[client];
    const Small until = world.valid(client);
    const Small marker = world.servers[world.at(client, place)].marker;
    Small& shown = its.shown[place];
    if (marker == 0 && shown < no_marker) {
      its.before[place] = rules_.lost_markers_are_remembered ? shown : Small{unseen};
      wait_anew(its, place);
    } else {
      if (marker != 0) shown = marker, its.before[place] = 0;
      its.anew[place] = rules_.members_are_read_anew ? 1 : 0;
    }
    const int enough = rules_.a_quorum_is_followed ? quorum : 1;
    for (const Small epoch : {Small{1}, Small{2}}) {
      if (epoch <= its.known || std::ranges::count(its.shown, epoch) < enough) continue;
      its.known = epoch;
      if (rules_.learnt_members_are_read_anew) its.anew = {};
      for (Small& any : its.shown) {
        if (any >= no_marker && rules_.new_member_waits_anew) any = no_marker;
      }
      if (epoch == 2 && its.moved == 0) move(world, client, 1, until);
    }
    for (Small& any : its.shown) {
      if (any == no_marker && (is_read_anew(its) || !rules_.members_are_read_anew)) any = waits;
    }
    if (std::ranges::count(its.shown, Small{no_marker}) == 0) its.anew = {};
    visit(world);
  }
  static void wait_anew(World::Client& its, Small place) {
    its.shown[place] = no_marker;
    its.anew = {};
  }
  void move(World& world, Small client, Small moved, Small until) const {
    const Small node = world.at(client, 2);
    Small& trusted = world.servers[node].trusted[client];
    if (rules_.replaced_node_is_limited) trusted = std::min(trusted, until);
    auto& its = world.clients[client];
    if (world.is_late(client, 2)) world.drop_late();
    its.moved = moved, its.shown[2] = unseen, its.anew[2] = its.before[2] = 0;
    world.free_unless_trusted(node, client);
  }

  /// Whether, since a node was seen without its marker, a quorum was seen to show the members; or
  /// all nodes were asked once more, and each shows them or did before, or those that have theirs
  /// show the first ones.
  static bool is_read_anew(const World::Client& its) {
    const bool all = std::ranges::count(its.anew, Small{0}) == 0;
    if (its.known <= 1 && all && shows_first(its)) return true;
    if (its.known == 0) return false;
    int showing = 0;
    int knowing = 0;
    for (Small place = 0; place < places; ++place) {
      if (its.anew[place] == 0) continue;
      showing += its.shown[place] == its.known ? 1 : 0;
      knowing += its.shown[place] == its.known || its.before[place] == its.known ? 1 : 0;
    }
    return showing >= quorum || knowing == places;
  }
  static bool shows_first(const World::Client& its) {
    return std::ranges::count(its.shown, 1) > 0 && std::ranges::count(its.shown, 2) == 0;
  }
  /// Of which epoch a client gives a node its marker back, see SetMembership::configuration.
  [[nodiscard]] Small configuration(const World::Client& its) const {
    const auto former = std::ranges::count(its.shown, 1);
    const auto later = std::ranges::count(its.shown, 2);
    if (its.known == 1) return later == 0 ? 1 : 0;
    if (its.known == 2) return later >= quorum || former == 0 ? 2 : 0;
    return std::ranges::count(its.shown, Small{unseen}) == 0 && shows_first(its) ? 1 : 0;
  }

  /// Each state on a line, see World. Clients may have changed names from one to the next.
  [[nodiscard]] std::string way_here() const {
    std::string way;
    for (const World* at = here_; at != nullptr; at = came_from_.at(*at)) {
      std::string line = "\n";
      for (const char byte : at->bytes()) {
        line += static_cast<char>('0' + byte);
        if (line.size() < 20 && line.size() % 5 == 0) line += ' ';
      }
      way.insert(0, line);
    }
    return way;
  }
  struct Hash {
    std::size_t operator()(const World& its) const {
      return std::hash<std::string_view>()(its.bytes());
    }
  };

  Rules rules_;
  Bounds bounds_;
  const World* here_ = nullptr;
  std::vector<const World*> states_;
  std::unordered_map<World, const World*, Hash> came_from_;
};

std::string overlap(Rules rules, Bounds bounds = {}) {
  return Model(rules, bounds).overlap();
}

constexpr Bounds late{.late_messages = true};
constexpr Bounds restarts{.restarts = true};

TEST_CASE("while a member is replaced step by step two clients are never valid at once") {
  CHECK(overlap({}, late) == "");
  CHECK(overlap({}, restarts) == "");
}

TEST_CASE("a replacement in steps of time needs each of its rules") {
  CHECK(overlap({.own_epoch_only = false}) != "");
  CHECK(overlap({.conflicting_nodes_do_not_count = false}) != "");
  CHECK(overlap({.replaced_node_is_limited = false}) != "");
  CHECK(overlap({.a_quorum_is_followed = false, .members_are_read_anew = false}) != "");
  CHECK(overlap({.nodes_without_marker_wait = false}) != "");
  CHECK(overlap({.new_member_waits_anew = false}, restarts) != "");
  CHECK(overlap({.counts_from_the_send = false}, late) != "");
  CHECK(overlap({.old_node_is_stopped = false}) != "");
  CHECK(overlap({.old_node_stays_away = false}) != "");
}

TEST_CASE("any one node may lose its data") {
  CHECK(overlap({}, {.forgetful = b}) == "");
  CHECK(overlap({}, {.forgetful = c}) == "");
  CHECK(overlap({}, {.forgetful = d}) == "");
  CHECK(overlap({.members_are_read_anew = false}, {.forgetful = b}) != "");
  CHECK(overlap({.lost_markers_are_remembered = false}, {.forgetful = b}) != "");
  CHECK(overlap({.pending_id_is_compared = false}, {.forgetful = d}) != "");
  CHECK(overlap({.over_is_for_a_new_node = false}, {.forgetful = d}) != "");
}

// Minutes, and gigabytes: to be run with --no-skip when a rule changes.
TEST_CASE("any one node may lose its data while clients start" * doctest::skip()) {
  for (const Node node : {b, c, d}) {
    CAPTURE(node);
    CHECK(overlap({}, {.restarts = true, .forgetful = node}) == "");
  }
  const Rules once{.learnt_members_are_read_anew = false};
  CHECK(overlap(once, {.restarts = true, .forgetful = b}) != "");
}

}  // namespace
}  // namespace redlock::simulation
