// SPDX-License-Identifier: MIT
// One TCP connection between a client and a node, with what is on its way in both directions. Order
// is kept; everything else (delay, silence, a far end that is long gone) can happen.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.hpp"

namespace redlock::simulation {

/// What the markers of the world's nodes name.
inline constexpr const char* own_set = "own";

struct Wire {
  struct Request {
    std::vector<std::uint32_t> kill;  ///< handshake: the connections that this one replaces
    engine::Send send;
    bool handshake = false;
    bool time = false;        ///< asks for the node's clock
    engine::Instant asked{};  ///< then, by the client's clock
  };
  struct Answer {
    enum class Kind : std::uint8_t { reply, welcome, turned_away, reset, time };
    Kind kind = Kind::reply;
    engine::Tag tag;
    engine::Reply reply;
    std::int64_t clock_us = 0;
    engine::NodeFacts facts = {};
    engine::Instant asked = {};    ///< what brought the clock was sent then
    engine::Duration ahead = {};   ///< by which the node's clock was ahead of the client's then
    engine::Instant world = {};    ///< and the world's time
    engine::Duration astray = {};  ///< by which the node's clock was ahead of that
  };

  std::uint32_t client = 0;
  std::uint32_t node = 0;
  std::optional<std::string> set = {};  ///< what the marker named in the handshake
  engine::Instant stalled_until = {};   ///< what was under way when it broke arrives then
  bool client_open = true;
  bool node_open = true;
  bool dead = false;  ///< half open: nothing passes any more
  bool silence_watched = false;
  engine::Instant busy_since{};  ///< the last sign of life while something was outstanding
  std::deque<engine::Tag> outstanding;
  std::deque<Request> to_node;
  std::deque<Answer> to_client;
  engine::Instant last_at_node{};
  engine::Instant last_at_client{};
  std::uint32_t waiting_to_node = 0;  ///< packets that arrived at a cut
  std::uint32_t waiting_to_client = 0;
  std::uint64_t next_probe = 0;  ///< its number: one that was put off is not made
};

}  // namespace redlock::simulation
