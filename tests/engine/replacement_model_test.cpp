// SPDX-License-Identifier: MIT
// A model of how members of a set are replaced. Every state is visited that two clients, their late
// messages, ending leases and an operator can reach: the two are never valid at once. Without any
// one of the rules they are.
#include <algorithm>
#include <array>
#include <cstdint>
#include <doctest/doctest.h>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace redlock::engine::test {
namespace {

struct Rules {
  bool former_members_are_refused = true;  // by acquire.lua and hold.lua
  bool new_members_wait = true;
  bool replaced_nodes_are_limited = true;
  bool all_strangers_are_limited = true;  // not only those that a quorum's common marker removes
  bool conflicting_nodes_do_not_count = true;
  bool a_quorum_is_followed = true;  // not the word of one node
};

/// Numbered from 1 in the order in which the operator makes them. As a marker, 0 is none.
struct Configuration {
  std::vector<unsigned> members;  // by place
  unsigned epoch = 1;
  unsigned base = 0;  // the configuration that this one changes
};
using Plan = std::vector<Configuration>;

enum class Clients {
  started,  ///< they have read no marker yet
  running,  ///< they have read the markers of the first configuration
};

// A client trusts a confirmation until the lease, less the drift allowance, is over. That may be at
// any moment, and the key ends no earlier. A key that its client does not trust is left out: it may
// end as well, and then that client can do all that it could before.
struct Node {
  unsigned marker = 0;
  unsigned trusted_by = 0;  // a client, counted from 1
  unsigned age = 0;         // the configuration that was committed last before the confirmation
};
struct Client {
  unsigned known = 0;               // that a quorum showed last
  std::array<unsigned, 5> shown{};  // by place, the marker that was read last
};
struct World {
  std::array<Node, 6> nodes{};
  std::array<Client, 2> clients{};
};

class Model {
 public:
  Model(Plan plan, Rules rules) : plan_(std::move(plan)), rules_(rules) {
    places_ = static_cast<unsigned>(plan_[0].members.size());
    quorum_ = places_ / 2 + 1;
    staying_ = places_;
    for (const Configuration& its : plan_) {
      members_.push_back(0);
      for (unsigned place = 0; place < places_; ++place) {
        const unsigned node = its.members[place];
        nodes_ = std::max(nodes_, node + 1);
        members_.back() |= 1U << node;
        if (node != place) staying_ = std::min(staying_, place);
      }
    }
  }

  /// The way to a state in which both clients are valid; empty if there is none.
  std::string overlap(Clients clients) {
    World start;
    for (Client& client : start.clients) {
      client.known = clients == Clients::started ? 0 : 1;
      client.shown.fill(client.known);
    }
    for (unsigned place = 0; place < places_; ++place) start.nodes[place].marker = 1;
    visit(start);
    for (std::size_t next = 0; next < states_.size(); ++next) {
      here_ = states_[next];
      const World world = unpack(here_);
      if (valid(world, 0) != 0 && valid(world, 1) != 0) return way_here();
      for (unsigned node = 0; node < nodes_; ++node) go_on(world, node);
      for (unsigned place = 0; place < places_; ++place) {
        for (const unsigned client : {0U, 1U}) go_on(world, client, place);
      }
    }
    return "";
  }

 private:
  using State = std::uint64_t;

  [[nodiscard]] const Configuration& at(unsigned its) const { return plan_[std::max(its, 1U) - 1]; }
  [[nodiscard]] unsigned node_of(const Client& client, unsigned place) const {
    return at(client.known).members[place];
  }
  [[nodiscard]] bool has(unsigned its, unsigned node) const {
    return (members_[its - 1] >> node & 1U) != 0;
  }
  [[nodiscard]] bool comes_from(unsigned later, unsigned its) const {
    return later == its || (later > its && comes_from(at(later).base, its));
  }
  /// A client that follows lets the new member wait from then on.
  [[nodiscard]] unsigned enough() const { return rules_.a_quorum_is_followed ? quorum_ : 1; }
  [[nodiscard]] bool is_committed(const World& world, unsigned its) const {
    if (its == 1) return true;
    unsigned count = 0;
    for (unsigned node = 0; node < nodes_; ++node) {
      const bool stays = has(at(its).base, node) && has(its, node);
      count += stays && comes_from(world.nodes[node].marker, its) ? 1 : 0;
    }
    return count >= enough();
  }

  // What the operator and time do with a node.
  void go_on(const World& world, unsigned node) {
    const Node& here = world.nodes[node];
    const auto becomes = [&](Node other) {
      World to = world;
      to.nodes[node] = other;
      visit(to);
    };
    if (here.trusted_by != 0) becomes({here.marker});
    for (unsigned its = 2; its <= plan_.size(); ++its) {
      if (!has(its, node) || here.marker >= its) continue;
      const auto trusted_before = [&](const Node& any) { return any.trusted_by && any.age < its; };
      const bool waits =
          rules_.new_members_wait && std::ranges::any_of(world.nodes, trusted_before);
      const bool vouched = is_committed(world, its) && !waits;
      if (here.marker == 0 ? vouched : goes_on(world, its)) {
        becomes({its, here.trusted_by, here.age});
      }
    }
  }
  /// Whether the operator gives this marker to members that stay: a quorum shows the one before, or
  /// did when the first was changed. What was given up for another change is not taken up again.
  [[nodiscard]] bool goes_on(const World& world, unsigned its) const {
    bool begun = false;
    unsigned before = 0;
    for (unsigned node = 0; node < nodes_; ++node) {
      const unsigned marker = world.nodes[node].marker;
      begun = begun || marker == its;
      before += has(at(its).base, node) && marker == at(its).base ? 1 : 0;
      if (marker > its && !comes_from(marker, its)) return false;
    }
    return begun || before >= quorum_;
  }

  // What a client does at a place: it reads the marker, or the node executes an acquire or hold.
  void go_on(const World& world, unsigned number, unsigned place) {
    const Client& client = world.clients[number];
    const unsigned node = node_of(client, place);
    const Node& here = world.nodes[node];
    const unsigned shown = client.shown[place];
    if (here.marker != shown) read_marker(world, number, place);
    if (here.marker == 0 || shown == 0) return;
    if (rules_.former_members_are_refused && at(here.marker).epoch != at(shown).epoch) return;
    if (here.trusted_by == 2 - number || is_stranger(client, place)) return;
    if (rules_.conflicting_nodes_do_not_count && contradicts(world, number, place)) return;
    World to = world;
    to.nodes[node] = {here.marker, number + 1, static_cast<unsigned>(plan_.size())};
    while (!is_committed(world, to.nodes[node].age)) --to.nodes[node].age;
    visit(to);
  }
  void read_marker(World world, unsigned number, unsigned place) {
    Client& client = world.clients[number];
    const unsigned until = valid(world, number);
    client.shown[place] = world.nodes[node_of(client, place)].marker;
    unsigned followed = client.known;
    for (unsigned its = followed + 1; its <= plan_.size(); ++its) {
      if (std::ranges::count(client.shown, its) >= enough()) followed = its;
    }
    const bool follows = client.known != 0 && followed != client.known;
    const bool limits = rules_.all_strangers_are_limited || follows;
    for (unsigned other = 0; other < places_; ++other) {
      if (limits && is_stranger(client, other)) limit(world, number, other, until);
    }
    for (unsigned other = 0; other < places_; ++other) {
      if (node_of(client, other) != at(followed).members[other]) client.shown[other] = 0;
    }
    client.known = followed;
    visit(world);
  }

  // What counts for a client. See SetMembership, HeldLease::contradicts, NodeGrants::limit.
  [[nodiscard]] bool removes(const Client& client, unsigned other, unsigned place) const {
    const unsigned later = client.shown[other];
    const unsigned its = client.shown[place];
    return later != 0 && its != 0 && at(later).epoch > at(its).epoch &&
           !has(later, node_of(client, place));
  }
  [[nodiscard]] bool is_stranger(const Client& client, unsigned place) const {
    unsigned removed = 0;
    for (unsigned other = 0; other < places_; ++other) removed += removes(client, other, place);
    return removed >= enough();
  }
  [[nodiscard]] bool contradicts(const World& world, unsigned number, unsigned place) const {
    const Client& client = world.clients[number];
    for (unsigned other = 0; other < places_; ++other) {
      if (trusted(world, number, other) == 0) continue;
      if (removes(client, place, other) && !is_stranger(client, other)) return true;
      if (removes(client, other, place) && trusted(world, number, place) == 0) return true;
    }
    return false;
  }
  /// A place's confirmations are those of all nodes that had it: the age of the latest, or 0.
  [[nodiscard]] unsigned trusted(const World& world, unsigned number, unsigned place) const {
    unsigned latest = 0;
    for (unsigned its = 1; its <= std::max(world.clients[number].known, 1U); ++its) {
      const Node& node = world.nodes[at(its).members[place]];
      if (node.trusted_by == number + 1) latest = std::max(latest, node.age);
    }
    return latest;
  }
  void limit(World& world, unsigned number, unsigned place, unsigned until) const {
    Node& node = world.nodes[node_of(world.clients[number], place)];
    if (!rules_.replaced_nodes_are_limited || node.trusted_by != number + 1) return;
    node.age = std::min(node.age, until);
    if (node.age == 0) node.trusted_by = 0;
  }
  /// The age of the quorum-th latest confirmation; 0: not valid.
  [[nodiscard]] unsigned valid(const World& world, unsigned number) const {
    std::array<unsigned, 5> ages{};
    for (unsigned place = 0; place < places_; ++place) ages[place] = trusted(world, number, place);
    std::ranges::sort(ages, std::greater());
    return ages[quorum_ - 1];
  }

  // Clients, and places that keep their member, may change names: of such states one is visited.
  void visit(const World& world) {
    const State state = std::min(pack(world, 0), pack(world, 1));
    if (came_from_.try_emplace(state, here_).second) states_.push_back(state);
  }
  [[nodiscard]] State pack(const World& world, unsigned first) const {
    std::array<State, 6> parts{};
    const Client& one = world.clients[first];
    const Client& two = world.clients[1 - first];
    for (unsigned node = 0; node < nodes_; ++node) {
      const Node& here = world.nodes[node];
      const unsigned by =
          here.trusted_by != 0 && first == 1 ? 3 - here.trusted_by : here.trusted_by;
      parts[node] = here.marker << 4 | by << 2 | here.age;
      if (node < places_) parts[node] = parts[node] << 4 | one.shown[node] << 2 | two.shown[node];
    }
    std::sort(parts.begin(), parts.begin() + staying_);
    State state = one.known << 2 | two.known;
    for (const State part : parts) state = state << 10 | part;
    return state;
  }
  [[nodiscard]] World unpack(State state) const {
    World world;
    const auto take = [&state] {
      const auto value = static_cast<unsigned>(state & 3);
      state >>= 2;
      return value;
    };
    for (unsigned node = 6; node-- > 0;) {
      if (node < places_) {
        for (const unsigned client : {1U, 0U}) world.clients[client].shown[node] = take();
      }
      Node& here = world.nodes[node];
      here.age = take(), here.trusted_by = take(), here.marker = take();
      if (node >= places_) state >>= 4;
    }
    for (const unsigned client : {1U, 0U}) world.clients[client].known = take();
    return world;
  }
  /// Each state on a line: of the nodes the marker, the client that trusts and the age; of the
  /// clients the configuration that is known, and the markers that were read. Clients, and places
  /// that keep their member, may have changed names from one line to the next.
  [[nodiscard]] std::string way_here() const {
    std::string way;
    for (State state = here_; state != 0; state = came_from_.at(state)) {
      const World world = unpack(state);
      std::string line = "\n";
      const auto add = [&line](unsigned digit) { line += std::to_string(digit); };
      for (unsigned node = 0; node < nodes_; ++node) {
        const Node& here = world.nodes[node];
        add(here.marker), add(here.trusted_by), add(here.age), line += ' ';
      }
      for (const Client& client : world.clients) {
        line += "  ", add(client.known), line += ':';
        std::for_each_n(client.shown.begin(), places_, add);
      }
      way.insert(0, line);
    }
    return way;
  }

  Plan plan_;
  Rules rules_;
  std::vector<unsigned> members_;  // by configuration: the nodes, as bits
  unsigned places_ = 0;
  unsigned nodes_ = 0;
  unsigned quorum_ = 0;
  unsigned staying_ = 0;  // the first places, whose members are never replaced
  State here_ = 0;
  std::vector<State> states_;
  std::unordered_map<State, State> came_from_;
};

std::string overlap(Plan plan, Rules rules = {}, Clients clients = Clients::started) {
  return Model(std::move(plan), rules).overlap(clients);
}

const Plan one_of_three{{{0, 1, 2}, 1, 0}, {{0, 1, 3}, 2, 1}};
const Plan one_of_five{{{0, 1, 2, 3, 4}, 1, 0}, {{0, 1, 2, 3, 5}, 2, 1}};
const Plan one_twice{{{0, 1, 2}, 1, 0}, {{0, 1, 3}, 2, 1}, {{0, 1, 4}, 3, 2}};
const Plan one_and_another{{{0, 1, 2}, 1, 0}, {{0, 1, 3}, 2, 1}, {{0, 4, 3}, 3, 2}};

TEST_CASE("while a member is replaced two clients are never valid at once") {
  CHECK(overlap(one_of_three) == "");
  CHECK(overlap(one_of_five, {}, Clients::running) == "");
}

TEST_CASE("a replacement needs each of its rules") {
  CHECK(overlap(one_of_three, {.former_members_are_refused = false}) != "");
  CHECK(overlap(one_of_three, {.new_members_wait = false}) != "");
  CHECK(overlap(one_of_three, {.replaced_nodes_are_limited = false}) != "");
  CHECK(overlap(one_of_three, {.conflicting_nodes_do_not_count = false}) != "");
  CHECK(overlap(one_of_three, {.a_quorum_is_followed = false}) != "");
}

TEST_CASE("a client that starts during a replacement limits what a former member confirmed") {
  CHECK(overlap(one_of_three, {.all_strangers_are_limited = false}) != "");
  CHECK(overlap(one_of_three, {.all_strangers_are_limited = false}, Clients::running) == "");
}

TEST_CASE("a replacement may begin before the new member of the last one votes") {
  for (const Plan& plan : {one_twice, one_and_another}) {
    CHECK(overlap(plan) == "");
    CHECK(overlap(plan, {.all_strangers_are_limited = false}, Clients::running) != "");
  }
}

TEST_CASE("a replacement that is given up for another one does not leave it its epoch") {
  Plan instead{{{0, 1, 2}, 1, 0}, {{0, 1, 3}, 2, 1}, {{0, 4, 2}, 3, 1}};
  CHECK(overlap(instead) == "");
  instead[2].epoch = 2;
  CHECK(overlap(instead) != "");
}

}  // namespace
}  // namespace redlock::engine::test
