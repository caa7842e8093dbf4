// SPDX-License-Identifier: MIT
// A state of the model in timed_replacement_test.cpp: the servers A, B, C and D, two clients that
// want one lock, and a message that is late.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace redlock::simulation {

using Small = std::uint8_t;
enum Node : Small { a, b, c, d, nodes };
constexpr std::array<Small, 2> each_client{0, 1};
constexpr Small places = 3;
constexpr Small quorum = 2;
constexpr Small lease = 2;
// What a client was shown: an epoch, 1 or 2; or no marker, and for how many steps it has waited.
enum Shown : Small { unseen = 0, no_marker = 3, waits, has_waited = waits + lease };
enum Late : Small { nothing, request, answer };
enum OldNode : Small { runs, stopped, is_over = stopped + lease, vouched };

constexpr Small owner_of(Small client) {
  return client == 0 ? 1 : 2;
}

/// A lock ends when its client does not trust it any more: later, it would only be in the way.
struct World {
  struct Server {
    Small marker = 1;
    Small owner = 0;                 // a client, counted from 1
    std::array<Small, 2> trusted{};  // by each client, for so many steps: also when it is lost
  };
  struct Client {
    Small known = 1;  // the epoch
    Small moved = 0;  // its last place is D
    std::array<Small, places> shown{1, 1, 1};
    std::array<Small, places> anew{};    // since a node was seen without its marker
    std::array<Small, places> before{};  // the epoch of the marker that was lost
  };
  struct Message {
    Small what = nothing, client = 0, place = 0, epoch = 0, left = 0;
  };
  std::array<Server, nodes> servers{};
  std::array<Client, 2> clients{};
  Message late{};
  Small old_node = runs, made = 0, had_marker = 0, lost = 0;

  [[nodiscard]] std::string_view bytes() const {
    static_assert(std::has_unique_object_representations_v<World>);
    return {reinterpret_cast<const char*>(this), sizeof(World)};
  }
  friend bool operator==(const World& one, const World& two) { return one.bytes() == two.bytes(); }
  [[nodiscard]] World with_clients_swapped() const {
    World other = *this;
    std::swap(other.clients[0], other.clients[1]);
    for (Server& its : other.servers) {
      std::swap(its.trusted[0], its.trusted[1]);
      if (its.owner != 0) its.owner = its.owner == 1 ? 2 : 1;
    }
    if (late.what != nothing) other.late.client = late.client == 0 ? 1 : 0;
    return other;
  }
  [[nodiscard]] Small at(Small client, Small place) const {
    return place == 2 && clients[client].moved != 0 ? Small{d} : place;
  }
  [[nodiscard]] Small trusted(Small client, Small place) const {
    const Small of_new = place == 2 ? servers[d].trusted[client] : Small{0};
    return std::max(servers[place].trusted[client], of_new);
  }
  [[nodiscard]] Small valid(Small client) const {
    std::array<Small, places> times{};
    for (Small place = 0; place < places; ++place) times[place] = trusted(client, place);
    std::ranges::sort(times);
    return times[places - quorum];
  }
  [[nodiscard]] bool is_late(Small client, Small place) const {
    return late.what != nothing && late.client == client && late.place == place;
  }
  [[nodiscard]] bool answers(Small node) const { return node != c || old_node == runs; }
  void free_unless_trusted(Small node, Small client) {
    auto& its = servers[node];
    const bool unanswered =
        late.what == answer && late.client == client && at(client, late.place) == node;
    if (its.owner == owner_of(client) && its.trusted[client] == 0 && !unanswered) its.owner = 0;
  }
  void drop_late() {
    const Message was = std::exchange(late, {});
    if (was.what != nothing) free_unless_trusted(at(was.client, was.place), was.client);
  }
};

}  // namespace redlock::simulation
