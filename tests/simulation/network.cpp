// SPDX-License-Identifier: MIT
#include "simulation/network.hpp"

#include <algorithm>
#include <utility>

#include "simulation/clients.hpp"
#include "simulation/servers.hpp"

namespace redlock::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration most_stalled = milliseconds(2'000);
constexpr std::size_t most_single_bytes = 300;

}  // namespace

void Network::attach(Clients& clients, Servers& servers) {
  clients_ = &clients;
  servers_ = &servers;
  ways_.resize(scene_.plan.clients * scene_.nodes.size());
}

Network::Way& Network::way(ClientIndex client, NodeIndex node) {
  return ways_[client * scene_.nodes.size() + node];
}

Duration Network::delay(StreamId id) {
  const Plan& plan = scene_.plan;
  Random& random = scene_.random;
  const Stream& stream = streams_[id];
  Duration delay =
      plan.delay_min + plan.distance_of(stream.client, stream.node) + servers_->slow(stream.node);
  // Little jitter is common, much of it rare.
  const Duration jitter = plan.delay_jitter / (1 + random.below(64));
  delay += jitter / (1 + random.below(8));
  if (random.chance(plan.slow_per_mille)) {
    delay += random.between(Duration::zero(), plan.slowest());
  }
  return delay;
}

std::size_t Network::room(const Pipe& pipe) const {
  const std::size_t taken = pipe.bytes_on_the_way + pipe.arrived.size();
  return taken < scene_.plan.window ? scene_.plan.window - taken : 0;
}

void Network::push(StreamId id, Pipe& pipe, Event::What event, Segment segment) {
  pipe.bytes_on_the_way += segment.bytes.size();
  pipe.on_the_way.push_back(std::move(segment));
  pipe.last_arrival = std::max(pipe.last_arrival, scene_.now + delay(id));
  scene_.at(pipe.last_arrival, event, id);
}

/// Most often in one piece; otherwise cut in two anywhere, or to single bytes.
void Network::push_bytes(StreamId id, Pipe& pipe, Event::What event, std::string_view bytes) {
  if (bytes.empty()) return;
  Random& random = scene_.random;
  if (bytes.size() > 1 && random.chance(scene_.plan.cut_per_mille)) {
    const bool single = random.chance(100);
    const std::size_t most = std::min(bytes.size(), most_single_bytes);
    const auto size = static_cast<std::uint32_t>(single ? most : bytes.size());
    for (std::uint32_t i = 1; single && i < size; ++i) {
      push(id, pipe, event, {.bytes = std::string(bytes.substr(0, 1))});
      bytes.remove_prefix(1);
    }
    if (!single) {
      const std::size_t first = 1 + random.below(size - 1);
      push(id, pipe, event, {.bytes = std::string(bytes.substr(0, first))});
      bytes.remove_prefix(first);
    }
  }
  push(id, pipe, event, {.bytes = std::string(bytes)});
}

// --- for clients

StreamId Network::connect(ClientIndex client, NodeIndex node) {
  const auto id = static_cast<StreamId>(streams_.size());
  Stream& stream = streams_.emplace_back();
  stream.client = client;
  stream.node = node;
  way(client, node).streams.push_back(id);
  push(id, stream.to_node, Event::What::at_node, {.kind = Segment::Kind::hello, .bytes = {}});
  return id;
}

void Network::write(StreamId id, std::string& bytes) {
  Stream& stream = streams_[id];
  const std::size_t taken = std::min(bytes.size(), room(stream.to_node));
  push_bytes(id, stream.to_node, Event::What::at_node, std::string_view(bytes).substr(0, taken));
  bytes.erase(0, taken);
  stream.waits_for_room = !bytes.empty();
}

/// What is on its way may still arrive, or only the first part of it; some of it long after, when
/// the client has connected anew. Whether the node learns of the end is not promised.
void Network::close(StreamId id, wire::Closing how) {
  Stream& stream = streams_[id];
  if (!std::exchange(stream.client_open, false)) return;
  stream.to_client = {};
  stream.unsent.clear();
  stream.waits_for_room = false;
  Random& random = scene_.random;
  Pipe& pipe = stream.to_node;
  if (how == wire::Closing::reset) {
    std::size_t kept = random.below(static_cast<std::uint32_t>(pipe.bytes_on_the_way) + 1);
    pipe.bytes_on_the_way = kept;
    for (Segment& segment : pipe.on_the_way) {
      segment.bytes.resize(std::min(kept, segment.bytes.size()));
      kept -= segment.bytes.size();
    }
  }
  if (pipe.bytes_on_the_way > 0 && random.chance(700)) {
    stream.stalled_until = scene_.now + random.up_to(most_stalled);
  }
  if (random.chance(500)) return;
  const auto kind = how == wire::Closing::reset ? Segment::Kind::reset : Segment::Kind::end;
  push(id, pipe, Event::What::at_node, {.kind = kind, .bytes = {}});
}

void Network::client_resumes(ClientIndex client) {
  for (NodeIndex node = 0; node < scene_.nodes.size(); ++node) {
    for (const StreamId id : std::vector(way(client, node).streams)) read_at_client(id);
  }
  clients_->on_end_of_arrivals(client);
}

void Network::writable(StreamId id) {
  Stream& stream = streams_[id];
  if (!stream.client_open || !stream.waits_for_room || !clients_->runs(stream.client)) return;
  stream.waits_for_room = false;
  clients_->on_writable(id);
  clients_->on_end_of_arrivals(stream.client);
}

void Network::at_client(StreamId id) {
  Stream& stream = streams_[id];
  Pipe& pipe = stream.to_client;
  if (pipe.on_the_way.empty() || stream.dead || !stream.client_open) return;
  if (way(stream.client, stream.node).cut_from_node > 0) {
    ++pipe.at_cut;
    return;
  }
  const Segment segment = std::move(pipe.on_the_way.front());
  pipe.on_the_way.pop_front();
  pipe.bytes_on_the_way -= segment.bytes.size();
  switch (segment.kind) {
    case Segment::Kind::welcome:
      stream.established = true;
      stream.connected_untold = true;
      break;
    case Segment::Kind::bytes:
      pipe.arrived += segment.bytes;
      break;
    case Segment::Kind::hello:
    case Segment::Kind::end:
    case Segment::Kind::reset:
      pipe.ended = true;
      break;
  }
  if (!clients_->runs(stream.client)) return;
  const ClientIndex client = stream.client;
  read_at_client(id);
  clients_->on_end_of_arrivals(client);
}

void Network::read_at_client(StreamId id) {
  Stream& stream = streams_[id];
  if (!stream.client_open) return;
  if (std::exchange(stream.connected_untold, false)) clients_->on_connected(id);
  if (stream.client_open && !stream.to_client.arrived.empty()) {
    const std::string bytes = std::exchange(stream.to_client.arrived, {});
    send_replies(id);
    clients_->on_bytes(id, bytes);
  }
  if (stream.client_open && stream.to_client.ended) {
    const char* const why = stream.established ? "connection reset" : "connection refused";
    close(id, wire::Closing::reset);
    clients_->on_closed(id, why);
  }
  // It may have been told while the client did not run.
  if (stream.client_open && stream.waits_for_room && room(stream.to_node) > 0) {
    stream.waits_for_room = false;
    clients_->on_writable(id);
  }
}

// --- for nodes

void Network::at_node(StreamId id) {
  Stream& stream = streams_[id];
  Pipe& pipe = stream.to_node;
  if (pipe.on_the_way.empty() || stream.dead) return;
  if (scene_.now < stream.stalled_until) {
    return scene_.at(stream.stalled_until, Event::What::at_node, id);
  }
  if (way(stream.client, stream.node).cut_to_node > 0) {
    ++pipe.at_cut;
    return;
  }
  Segment segment = std::move(pipe.on_the_way.front());
  pipe.on_the_way.pop_front();
  pipe.bytes_on_the_way -= segment.bytes.size();
  arrive_at_node(id, std::move(segment));
}

void Network::arrive_at_node(StreamId id, Segment segment) {
  Stream& stream = streams_[id];
  const Servers::Process process = servers_->process(stream.node);
  if (process == Servers::Process::is_out_of_reach) return;
  if (segment.kind == Segment::Kind::hello) {
    if (process == Servers::Process::is_gone) return refuse(id);
    stream.node_open = true;
    servers_->on_accepted(id);
    push(id, stream.to_client, Event::What::at_client,
         {.kind = Segment::Kind::welcome, .bytes = {}});
    return;
  }
  if (!stream.node_open) return refuse(id);
  if (segment.kind == Segment::Kind::bytes) {
    stream.to_node.arrived += segment.bytes;
  } else {
    stream.to_node.ended = true;
  }
  if (process == Servers::Process::runs) read_at_node(id);
}

/// There is nobody at the other end.
void Network::refuse(StreamId id) {
  Stream& stream = streams_[id];
  if (!stream.client_open || stream.to_client.ended) return;
  push(id, stream.to_client, Event::What::at_client, {.kind = Segment::Kind::reset, .bytes = {}});
}

void Network::read_at_node(StreamId id) {
  Stream& stream = streams_[id];
  if (!stream.node_open) return;
  bool open = true;
  if (!stream.to_node.arrived.empty()) {
    const std::string bytes = std::exchange(stream.to_node.arrived, {});
    open = servers_->on_requests(id, bytes, stream.unsent);
    if (!stream.client_open) stream.unsent.clear();
    send_replies(id);
    if (stream.waits_for_room) {
      scene_.at(scene_.now + delay(id), Event::What::writable, id);
    }
  }
  if (!open || stream.to_node.ended) close_at_node(id);
}

void Network::send_from_node(StreamId id, std::string_view bytes) {
  Stream& stream = streams_[id];
  if (!stream.node_open || !stream.client_open) return;
  stream.unsent += bytes;
  send_replies(id);
}

void Network::send_replies(StreamId id) {
  Stream& stream = streams_[id];
  if (stream.unsent.empty() || !stream.node_open) return;
  const std::size_t taken = std::min(stream.unsent.size(), room(stream.to_client));
  push_bytes(id, stream.to_client, Event::What::at_client,
             std::string_view(stream.unsent).substr(0, taken));
  stream.unsent.erase(0, taken);
}

void Network::close_at_node(StreamId id) {
  Stream& stream = streams_[id];
  if (!std::exchange(stream.node_open, false)) return;
  servers_->on_ended(id);
  stream.to_node.arrived.clear();
  stream.unsent.clear();
  if (servers_->process(stream.node) == Servers::Process::is_out_of_reach) {
    stream.dead = true;
  } else if (stream.client_open) {
    push(id, stream.to_client, Event::What::at_client, {.kind = Segment::Kind::end, .bytes = {}});
  }
}

void Network::node_stops(NodeIndex node) {
  for (StreamId id = 0; id < streams_.size(); ++id) {
    if (streams_[id].node == node) close_at_node(id);
  }
}

void Network::node_resumes(NodeIndex node) {
  std::vector<StreamId> waiting;
  for (StreamId id = 0; id < streams_.size(); ++id) {
    const Stream& stream = streams_[id];
    const bool has_something = !stream.to_node.arrived.empty() || stream.to_node.ended;
    if (stream.node == node && stream.node_open && has_something) waiting.push_back(id);
  }
  for (std::size_t i = waiting.size(); i > 1; --i) {
    std::swap(waiting[i - 1], waiting[scene_.random.below(static_cast<std::uint32_t>(i))]);
  }
  for (const StreamId id : waiting) read_at_node(id);
}

// --- for faults

void Network::reset(StreamId id) {
  Stream& stream = streams_[id];
  if (!stream.client_open) return;
  if (scene_.random.chance(500)) return close_at_node(id);
  // The client finds out at once, the node later or never.
  stream.to_client.on_the_way.clear();
  stream.to_client.bytes_on_the_way = 0;
  stream.to_client.ended = true;
  if (!clients_->runs(stream.client)) return;
  const ClientIndex client = stream.client;
  read_at_client(id);
  clients_->on_end_of_arrivals(client);
}

bool Network::passes(StreamId id) {
  const Stream& stream = streams_[id];
  const Way& between = way(stream.client, stream.node);
  return stream.client_open && stream.established && !stream.dead && between.cut_to_node == 0 &&
         between.cut_from_node == 0;
}

void Network::take_up(StreamId id, Pipe& pipe, Event::What event) {
  for (; pipe.at_cut > 0; --pipe.at_cut) {
    pipe.last_arrival = std::max(pipe.last_arrival, scene_.now + microseconds(50));
    scene_.at(pipe.last_arrival, event, id);
  }
}

void Network::cut_to_node(ClientIndex client, NodeIndex node, int change) {
  Way& between = way(client, node);
  between.cut_to_node += static_cast<std::uint32_t>(change);
  if (between.cut_to_node > 0) return;
  for (const StreamId id : between.streams) {
    Stream& stream = streams_[id];
    // A network may deliver last what was sent first, on a connection that was given up.
    if (stream.to_node.at_cut > 0 && !stream.client_open && scene_.random.chance(700)) {
      stream.stalled_until = scene_.now + scene_.random.up_to(most_stalled);
    }
    take_up(id, stream.to_node, Event::What::at_node);
  }
}

void Network::cut_from_node(ClientIndex client, NodeIndex node, int change) {
  Way& between = way(client, node);
  between.cut_from_node += static_cast<std::uint32_t>(change);
  if (between.cut_from_node > 0) return;
  for (const StreamId id : between.streams) {
    take_up(id, streams_[id].to_client, Event::What::at_client);
  }
}

}  // namespace redlock::simulation
