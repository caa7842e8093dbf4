// SPDX-License-Identifier: MIT
// Byte streams between clients and nodes, as TCP gives them: bytes arrive in order, in pieces cut
// anywhere, after any time, or not at all. A sender has only so many bytes on their way; what was
// on its way when a stream was closed may arrive long after. Systems accept and keep bytes for
// processes that do not run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/node_server.hpp"
#include "simulation/scene.hpp"
#include "wire/streams.hpp"

namespace redlock::simulation {

class Clients;
class Servers;

class Network {
 public:
  explicit Network(Scene& scene) : scene_(scene) {}
  void attach(Clients& clients, Servers& servers);

  // For clients.
  /// Answered by on_connected() or on_closed(), or never.
  StreamId connect(ClientIndex client, NodeIndex node);
  /// Takes what there is room for on the way; on_writable() says when there is more.
  void write(StreamId stream, std::string& bytes);
  void close(StreamId stream, wire::Closing how);
  [[nodiscard]] bool established(StreamId stream) const { return streams_[stream].established; }
  /// A client goes on: it finds what has arrived meanwhile.
  void client_resumes(ClientIndex client);

  // For nodes.
  /// Beside the replies to what the client has sent.
  void send_from_node(StreamId stream, std::string_view bytes);
  void close_at_node(StreamId stream);
  /// Of all that the node has.
  void node_stops(NodeIndex node);
  /// A hung process goes on. Which of its streams it reads first is not promised.
  void node_resumes(NodeIndex node);

  // For faults.
  void reset(StreamId stream);
  void cut_to_node(ClientIndex client, NodeIndex node, int change);
  void cut_from_node(ClientIndex client, NodeIndex node, int change);
  /// Half open: nothing passes any more, and nobody is told.
  void go_dead(StreamId stream) { streams_[stream].dead = true; }
  [[nodiscard]] bool is_dead(StreamId stream) const { return streams_[stream].dead; }
  /// Nothing is wrong with the way between the two.
  [[nodiscard]] bool passes(StreamId stream);
  /// The client has bytes for which there is no room on the way.
  [[nodiscard]] bool is_full(StreamId stream) const { return streams_[stream].waits_for_room; }

  [[nodiscard]] ClientIndex client_of(StreamId stream) const { return streams_[stream].client; }
  [[nodiscard]] NodeIndex node_of(StreamId stream) const { return streams_[stream].node; }

  // Events.
  void at_node(StreamId stream);
  void at_client(StreamId stream);
  void writable(StreamId stream);

 private:
  struct Segment {
    enum class Kind : std::uint8_t { bytes, hello, welcome, end, reset };
    Kind kind = Kind::bytes;
    std::string bytes;
  };
  /// One way of a stream.
  struct Pipe {
    std::deque<Segment> on_the_way;
    std::size_t bytes_on_the_way = 0;
    std::string arrived;       // kept by the system until the process reads
    bool ended = false;        // nothing follows what has arrived
    Instant last_arrival{};    // order is kept
    std::uint32_t at_cut = 0;  // segments that wait until a cut is over
  };
  struct Stream {
    ClientIndex client = 0;
    NodeIndex node = 0;
    bool client_open = true;
    bool node_open = false;
    bool established = false;  // as far as the client's system knows
    bool connected_untold = false;
    bool dead = false;
    bool waits_for_room = false;  // the client does
    Instant stalled_until{};
    Pipe to_node;
    Pipe to_client;
    std::string unsent;  // replies that there is no room for on the way
  };
  struct Way {
    std::uint32_t cut_to_node = 0;
    std::uint32_t cut_from_node = 0;
    std::vector<StreamId> streams;
  };

  [[nodiscard]] Duration delay(StreamId id);
  [[nodiscard]] Way& way(ClientIndex client, NodeIndex node);
  [[nodiscard]] std::size_t room(const Pipe& pipe) const;
  void push(StreamId id, Pipe& pipe, Event::What event, Segment segment);
  void push_bytes(StreamId id, Pipe& pipe, Event::What event, std::string_view bytes);
  void send_replies(StreamId id);
  void arrive_at_node(StreamId id, Segment segment);
  void read_at_node(StreamId id);
  void read_at_client(StreamId id);
  void refuse(StreamId id);
  void take_up(StreamId id, Pipe& pipe, Event::What event);

  Scene& scene_;
  Clients* clients_ = nullptr;
  Servers* servers_ = nullptr;
  std::deque<Stream> streams_;
  std::vector<Way> ways_;  // by client, then by node
};

}  // namespace redlock::simulation
