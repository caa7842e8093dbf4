// SPDX-License-Identifier: MIT
#include "simulation/clients.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "engine/planted_bug.hpp"
#include "simulation/documented.hpp"
#include "wire/holder_text.hpp"
#include "wire/words.hpp"

namespace redlock::simulation {
namespace {

using engine::Bug;
using engine::planted;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr auto connect_within = milliseconds(1'000);
// A handshake that fails and the wait after it, by a clock that may be slow.
constexpr auto between_tries = (connect_within + documented::between_connections) * 3 / 2;

bool handshakes_end_in_time(const Plan& plan) {
  return plan.handshake() <= connect_within;
}
constexpr std::uint32_t most_effects_before_interruption = 6;

}  // namespace

/// In a place that no server has.
constexpr NodeIndex no_server = std::numeric_limits<NodeIndex>::max();

/// One client's machine: the process, and what its system keeps for it.
class Clients::Machine final : public wire::Streams, public wire::DriverHost {
 public:
  Machine(Clients& all, ClientIndex self, std::uint64_t seed)
      : random(seed),
        clock(all.scene_.clocks[self]),
        all_(all),
        scene_(all.scene_),
        network_(all.network_),
        self_(self),
        links(all.scene_.nodes.size()) {}

  // What the driver wants done is done at once, unless the process was stopped just then: then
  // its writes, and what it tells its users, wait.
  struct Write {
    NodeIndex node;
    std::string bytes;
  };
  using Effect = std::variant<Write, engine::ClientOutput>;

  void connect(NodeIndex place) override {
    const NodeIndex node = servers[place];
    if (node == no_server) return;  // nothing answers
    Link& link = links[node];
    link.stream = network_.connect(self_, node);
    link.tried = scene_.now;
    link.give_up_at = local() + connect_within;
    scene_.at(scene_.now + connect_within, Event::What::connect_timeout, *link.stream);
  }
  void move(NodeIndex place, const wire::NodeAddress& address) override {
    servers[place] = no_server;
    for (NodeIndex node = 0; node < links.size(); ++node) {
      if (address_of(node) == address.address) servers[place] = node;
    }
    if (servers[place] == no_server) return;
    links[servers[place]].disturbed = scene_.now;  // until now it was not connected to
    scene_.note(15, self_, servers[place], [&] {
      return fmt::format("client {} goes on with node {} in place {}", self_, servers[place],
                         place);
    });
  }
  void disconnect(NodeIndex place, wire::Closing how) override {
    if (servers[place] == no_server) return;
    Link& link = links[servers[place]];
    link.unwritten.clear();
    if (link.stream) network_.close(*std::exchange(link.stream, std::nullopt), how);
  }
  std::size_t write(NodeIndex place, std::string& bytes) override {
    const NodeIndex node = servers[place];
    Link& link = links[node];
    if (is_interrupted()) {
      undone_.emplace_back(Write{node, std::exchange(bytes, {})});
    } else if (link.unwritten.empty()) {
      network_.write(*link.stream, bytes);
    }
    return 0;
  }
  void on_output(engine::ClientOutput&& output) override {
    told(output);
    note_output(output);
    if (!is_interrupted()) return all_.listener_.on_output(self_, output);
    undone_.emplace_back(std::move(output));
  }
  void on_node_up(NodeIndex, std::string_view) override {}
  void on_node_down(NodeIndex, const engine::Unavailable&) override {}
  void on_link_up(NodeIndex place) override {
    const NodeIndex node = servers[place];
    scene_.note(2, self_, node,
                [&] { return fmt::format("client {} is connected with node {}", self_, node); });
    links[node].up = true;
    links[node].disturbed = scene_.now;
  }
  void on_link_down(NodeIndex place, const engine::Unavailable& why) override {
    const NodeIndex node = servers[place];
    if (node == no_server) return;
    scene_.note(3, self_, node, [&] {
      return fmt::format("client {} has no connection with node {}: {} {}", self_, node,
                         to_string(why.cause), why.detail);
    });
    // One that is down may be down for other reasons later.
    if (std::exchange(links[node].up, false)) links[node].disturbed = scene_.now;
  }

  void on_send(const engine::Send& send) override {
    scene_.note(4, self_, send.node,
                [&] { return fmt::format("client {}: {}", self_, wire::in_words(send)); });
    ++outstanding[static_cast<std::size_t>(send.tag.kind)];
    if (servers[send.node] == no_server) return;  // the link replies at once
    if (servers[send.node] == send.node) {
      scene_.invariants.sent(scene_.now, life, send);
    } else {
      engine::Send at_server = send;
      at_server.node = servers[send.node];
      scene_.invariants.sent(scene_.now, life, at_server);
    }
    all_.listener_.on_sent(self_, send);
  }
  void on_reply(NodeIndex place, const engine::Tag& tag, const engine::Reply& reply) override {
    const NodeIndex node = servers[place];
    scene_.note(5, self_, node * 16 + reply.index(), [&] {
      return fmt::format("client {}: {}", self_, wire::in_words(local(), node, tag, reply));
    });
    --outstanding[static_cast<std::size_t>(tag.kind)];
    if (node == no_server) return;
    scene_.invariants.answered(scene_.now, life, node, tag, reply);
  }
  void on_marker_seen(NodeIndex place) override {
    const NodeIndex node = servers[place];
    scene_.invariants.marker_shown(scene_.now, life, node);
    if (!links[node].stream) return;
    const auto noted = all_.servers_.take_note_told(*links[node].stream);
    if (noted) scene_.invariants.clock_note_shown(local(), life, node, *noted);
  }
  void on_clock_read(NodeIndex place, Duration uncertainty) override {
    const NodeIndex node = servers[place];
    const Servers::TimeTold told = all_.servers_.take_time_told(*links[node].stream);
    scene_.invariants.clock_read(life, node,
                                 {.at = local(),
                                  .ahead = told.node_clock - told.client_clock,
                                  .uncertainty = uncertainty,
                                  .world = told.world,
                                  .astray = told.node_clock - told.world});
  }

  void perform(const Effect& effect) {
    const auto* const writing = std::get_if<Write>(&effect);
    if (writing == nullptr) {
      return all_.listener_.on_output(self_, std::get<engine::ClientOutput>(effect));
    }
    if (!links[writing->node].stream) return;
    links[writing->node].unwritten += writing->bytes;
    write_rest(writing->node);
  }
  /// Bytes that the driver was rid of when the process was stopped.
  void write_rest(NodeIndex node) {
    Link& link = links[node];
    if (!link.unwritten.empty()) network_.write(*link.stream, link.unwritten);
  }

  [[nodiscard]] Instant local() const { return clock.read(scene_.now); }

  void turn() {
    if (!alive || paused) return;
    while (driver->pending()) {
      effects_ = 0;
      driver->turn(local());
      if (interrupt_ && effects_ > 0) return stop_in_between();
    }
    scene_.invariants.turn_ends(scene_.now, life);
    set_timer();
  }
  void interrupt_next() {
    interrupt_ = true;
    effects_before_ = scene_.random.below(most_effects_before_interruption);
  }
  void interrupt_no_more() { interrupt_ = false; }
  void stop_in_between() {
    interrupt_ = false;
    all_.pause(self_, scene_.random.up_to(scene_.plan.max_lease() * 2));
  }

  void set_timer() {
    const Instant deadline = driver->deadline();
    if (deadline == engine::never) return;
    Instant when = std::max(clock.when(deadline), scene_.now);
    if (planted(Bug::timers_sleep_in_suspend)) when += slept;
    if (when >= timer) return;
    timer = when;
    scene_.at(when, Event::What::timer, self_);
  }

  [[nodiscard]] std::vector<Effect> take_undone() {
    interrupt_ = false;
    return std::exchange(undone_, {});
  }

  /// The driver's link with this server.
  [[nodiscard]] wire::Link& link(NodeIndex server) const {
    const auto place = std::ranges::find(servers, server) - servers.begin();
    return driver->link(static_cast<NodeIndex>(place));
  }

  struct Link {
    std::optional<StreamId> stream;
    bool up = false;
    Instant give_up_at{};
    Instant disturbed{};
    Instant tried{};  // to connect, last
    std::string unwritten;
  };

  /// The servers that have a place.
  [[nodiscard]] std::vector<NodeIndex> counted() const {
    std::vector<NodeIndex> all = servers;
    std::erase(all, no_server);
    return all;
  }

  Random random;
  DriftingClock& clock;

 private:
  /// With the servers' numbers, by which the invariants know them.
  void told(const engine::ClientOutput& output) {
    const auto* const moved = std::get_if<engine::NodeClockMoved>(&output);
    if (moved == nullptr) return scene_.invariants.told(scene_.now, life, output);
    engine::NodeClockMoved at_server = *moved;
    at_server.node = servers[moved->node];
    scene_.invariants.told(scene_.now, life, engine::ClientOutput(at_server));
  }
  /// The process is stopped before this effect.
  [[nodiscard]] bool is_interrupted() {
    ++effects_;
    return interrupt_ && (effects_ > effects_before_ || !undone_.empty());
  }
  void note_output(const engine::ClientOutput& output) const {
    scene_.note(4, self_, 1'000 + output.index(), [&] {
      return fmt::format("client {}: {}", self_, wire::in_words(local(), output));
    });
  }

  Clients& all_;
  Scene& scene_;
  Network& network_;
  const ClientIndex self_;
  bool interrupt_ = false;
  std::uint32_t effects_before_ = 0;
  std::uint32_t effects_ = 0;  // in this turn
  std::vector<Effect> undone_;

 public:
  ClientId life = 0;
  bool alive = true;
  bool paused = false;
  Instant paused_at{};
  Duration slept{};
  Instant timer = engine::never;
  std::vector<Event> deferred;
  std::vector<Link> links;                                      // by server
  std::vector<NodeIndex> servers;                               // by the driver's numbers of nodes
  std::array<std::uint32_t, engine::Tag::kinds> outstanding{};  // by kind of message
  std::unique_ptr<wire::Driver> driver;                         // last: it uses the others
};

Clients::Clients(Scene& scene, Network& network, Servers& servers, const Replacements& replacements,
                 ClientListener& listener)
    : scene_(scene),
      network_(network),
      servers_(servers),
      replacements_(replacements),
      listener_(listener) {
  for (ClientIndex client = 0; client < scene.plan.clients; ++client) {
    all_.push_back(std::make_unique<Machine>(*this, client, scene.random.next()));
  }
}

Clients::~Clients() = default;

/// Lists of programs are changed some time after the set, or before it.
std::vector<NodeIndex> Clients::list_of(ClientIndex client) const {
  if (client % 3 == 0) return replacements_.members();
  return client % 3 == 1 ? replacements_.planned() : replacements_.former();
}

void Clients::start(ClientIndex index) {
  Machine& client = at(index);
  const Plan& plan = scene_.plan;
  wire::DriverConfig config;
  config.engine = plan.engine_of(index);
  if (plan.spares > 0) config.engine.slots = plan.engine.nodes + 2;
  client.servers = list_of(index);
  for (const NodeIndex node : client.servers) {
    wire::NodeAddress& address = config.nodes.emplace_back();
    address.label = "node " + std::to_string(node);
    address.address = address_of(node);
    address.password = plan.password;
  }
  client.servers.resize(std::max(config.engine.nodes, config.engine.slots), no_server);
  // Half of the clients have a text about themselves, for people to read.
  if (index % 2 == 0) config.holder = wire::HolderText("host", index, "simulated");
  config.connect_timeout = connect_within;
  config.probe_interval = std::chrono::ceil<milliseconds>(plan.between_probes);
  client.driver = std::make_unique<wire::Driver>(std::move(config), client.random, client, client);
  // Within a minute of the nodes', mostly; tokens must not rest on it.
  const Duration most = scene_.random.chance(900) ? Duration(std::chrono::minutes(1))
                                                  : Duration(std::chrono::hours(1'000));
  const Duration error = scene_.random.between(-most, most);
  client.alive = true;
  client.life = scene_.invariants.client_starts(client.clock);
  // One that reaches only nodes that have just forgotten cannot know (safety.md, A4).
  for (NodeIndex node = 0; plan.is_careless(index) && node < scene_.nodes.size(); ++node) {
    client.driver->engine().on_node_facts(client.local(), node, {.marker = engine::Membership()});
  }
  client.driver->start(client.local(),
                       scene_.nodes.front().now_us(scene_.now) + error / microseconds(1));
  turn(index);
  listener_.on_started(index);
}

engine::Engine& Clients::engine(ClientIndex client) {
  return at(client).driver->engine();
}

void Clients::turn(ClientIndex client) {
  at(client).turn();
}

bool Clients::defer(ClientIndex index, const Event& event) {
  Machine& client = at(index);
  if (client.paused) client.deferred.push_back(event);
  return client.paused;
}

void Clients::timer(const Event& event) {
  Machine& client = at(event.a);
  if (!client.alive || event.when != client.timer) return;
  if (defer(event.a, event)) return;
  client.timer = engine::never;
  if (client.driver->deadline() > client.local()) return client.set_timer();
  scene_.note(6, event.a, 0, [&] { return fmt::format("client {}: its time has come", event.a); });
  client.driver->on_deadline(client.local());
  client.turn();
}

void Clients::connect_timeout(const Event& event) {
  const StreamId stream = event.a;
  const ClientIndex index = network_.client_of(stream);
  const NodeIndex node = network_.node_of(stream);
  Machine& client = at(index);
  if (!client.alive || client.links[node].stream != stream || network_.established(stream)) return;
  if (defer(index, event)) return;
  network_.close(stream, wire::Closing::reset);
  on_closed(stream, "no connection within a second");
  client.turn();
}

// --- what arrives

bool Clients::runs(ClientIndex client) const {
  return at(client).alive && !at(client).paused;
}

void Clients::on_connected(StreamId stream) {
  Machine& client = at(network_.client_of(stream));
  const NodeIndex node = network_.node_of(stream);
  client.link(node).on_connected(client.local(), client.links[node].give_up_at);
}

void Clients::on_bytes(StreamId stream, std::string_view bytes) {
  Machine& client = at(network_.client_of(stream));
  client.link(network_.node_of(stream)).on_bytes(client.local(), bytes);
}

void Clients::on_closed(StreamId stream, const char* why) {
  Machine& client = at(network_.client_of(stream));
  const NodeIndex node = network_.node_of(stream);
  client.links[node].stream.reset();
  client.links[node].unwritten.clear();
  client.link(node).on_stream_closed(client.local(), {why});
}

void Clients::on_writable(StreamId stream) {
  Machine& client = at(network_.client_of(stream));
  const NodeIndex node = network_.node_of(stream);
  client.links[node].disturbed = scene_.now;  // what was sent before had to wait
  client.write_rest(node);
  if (client.links[node].unwritten.empty()) client.link(node).on_writable();
}

// --- processes that stop

void Clients::pause(ClientIndex index, Duration length) {
  Machine& client = at(index);
  if (client.paused || !client.alive) return;
  scene_.note(7, index, 0, [&] { return fmt::format("client {} is paused", index); });
  client.paused = true;
  client.paused_at = scene_.now;
  scene_.at(scene_.now + length, Event::What::resume, index);
}

void Clients::freeze(ClientIndex index, Duration length) {
  if (at(index).paused || !at(index).alive) return;
  pause(index, length);
  at(index).clock.freeze(scene_.now);
}

void Clients::resume(ClientIndex index) {
  Machine& client = at(index);
  if (!client.paused) return;
  scene_.note(8, index, 0, [&] { return fmt::format("client {} goes on", index); });
  client.paused = false;
  client.clock.thaw(scene_.now);
  client.slept += scene_.now - client.paused_at;
  client.timer = engine::never;
  scene_.invariants.client_resumes(client.life, scene_.now, scene_.plan.engine.node_timeout);
  for (NodeIndex node = 0; node < scene_.nodes.size(); ++node) disturb(index, node);
  for (const Machine::Effect& effect : client.take_undone()) client.perform(effect);
  // Whether it looks at its clock or at its connections first is not promised.
  const bool clock_first = scene_.random.chance(500);
  const bool unnoticed = planted(Bug::timers_sleep_in_suspend);
  if (clock_first && !unnoticed) {
    client.driver->on_deadline(client.local());
    client.turn();
  }
  if (!client.paused && client.alive) network_.client_resumes(index);
  // What else happened meanwhile: its users' steps, and connections that took too long.
  for (Event& event : std::exchange(client.deferred, {})) {
    if (event.what == Event::What::timer) continue;
    event.when = scene_.now;
    scene_.agenda.add(event);
  }
  if (client.paused || !client.alive) return;
  if (!clock_first && !unnoticed) client.driver->on_deadline(client.local());
  client.turn();
}

void Clients::crash(ClientIndex index) {
  Machine& client = at(index);
  scene_.note(9, index, 0, [&] { return fmt::format("client {} crashes", index); });
  scene_.invariants.client_crashes(client.life);
  client.alive = false;
  client.paused = false;
  client.clock.thaw(scene_.now);
  client.timer = engine::never;
  client.deferred.clear();
  static_cast<void>(client.take_undone());
  client.outstanding = {};
  client.driver.reset();
  for (Machine::Link& link : client.links) {
    const auto how = scene_.random.chance(500) ? wire::Closing::deliver : wire::Closing::reset;
    if (link.stream) network_.close(*link.stream, how);
    link = {};
  }
  listener_.on_crashed(index);
  scene_.at(scene_.now + scene_.random.up_to(milliseconds(2'000)), Event::What::revive, index);
}

void Clients::interrupt_next(ClientIndex client) {
  at(client).interrupt_next();
}

void Clients::change_speed(ClientIndex index, std::int32_t parts_per_million) {
  Machine& client = at(index);
  client.clock.set_speed(scene_.now, parts_per_million);
  client.timer = engine::never;
  client.set_timer();
}

void Clients::copy_random(ClientIndex from, ClientIndex to) {
  at(to).random = at(from).random;
}

void Clients::end_pauses() {
  for (ClientIndex client = 0; client < count(); ++client) {
    at(client).interrupt_no_more();
    if (at(client).paused) resume(client);
  }
}

// --- looking on

bool Clients::is_alive(ClientIndex client) const {
  return at(client).alive;
}
bool Clients::is_paused(ClientIndex client) const {
  return at(client).paused;
}
ClientId Clients::life(ClientIndex client) const {
  return at(client).life;
}
Instant Clients::local(ClientIndex client) const {
  return at(client).local();
}
Instant Clients::when(ClientIndex client, Instant local) const {
  return at(client).clock.when(local);
}
std::uint32_t Clients::outstanding(ClientIndex client, engine::Tag::Kind kind) const {
  return at(client).outstanding[static_cast<std::size_t>(kind)];
}

std::optional<StreamId> Clients::stream(ClientIndex client, NodeIndex node) const {
  return at(client).links[node].stream;
}

std::optional<StreamId> Clients::up_stream(ClientIndex client, NodeIndex node) const {
  const Machine::Link& link = at(client).links[node];
  return link.up ? link.stream : std::nullopt;
}

void Clients::disturb(ClientIndex client, NodeIndex node) {
  at(client).links[node].disturbed = scene_.now;
}

void Clients::disturb_node(NodeIndex node) {
  for (ClientIndex client = 0; client < count(); ++client) disturb(client, node);
}

bool Clients::is_well(ClientIndex client, NodeIndex node) const {
  const auto stream = up_stream(client, node);
  return !is_paused(client) && stream && network_.passes(*stream) && !network_.is_full(*stream) &&
         servers_.is_well(node);
}

std::optional<Instant> Clients::well_since(ClientId life, NodeIndex node) const {
  for (ClientIndex client = 0; client < count(); ++client) {
    if (at(client).life != life || !is_alive(client)) continue;
    if (!is_well(client, node)) return std::nullopt;
    return at(client).links[node].disturbed;
  }
  return std::nullopt;
}

void Clients::must_notice_dead_streams() const {
  const Plan& plan = scene_.plan;
  if (!plan.judges_rules) return;
  const Duration silence = std::max<Duration>(milliseconds(1'000), 4 * plan.engine.node_timeout);
  // Until the next probe nothing may be asked; and its clock may be slow.
  const Duration within = (plan.between_probes + silence * 2) * 2;
  for (ClientIndex client = 0; client < count(); ++client) {
    if (!runs(client)) continue;
    for (const NodeIndex node : at(client).counted()) {
      const auto stream = up_stream(client, node);
      if (!stream || !network_.is_dead(*stream)) continue;
      // A server that is no member any more is switched off without a fault of this client's.
      const Instant since = std::max(at(client).links[node].disturbed, servers_.stopped(node));
      if (since >= scene_.now - within) continue;
      throw Violation{"a connection that passes nothing is replaced",
                      fmt::format("client {}, node {}", client, node)};
    }
  }
}

void Clients::must_be_connected() const {
  const Plan& plan = scene_.plan;
  // A node that faults keep from taking part in the check of run ids gives way for a while.
  const bool gives_way = plan.false_run_id && !plan.is_calm();
  const bool some_are_refused = plan.other_settings || plan.other_sets || gives_way;
  const bool changes = plan.spares > 0;
  if (some_are_refused || (changes && !replacements_.are_shown())) return;
  for (ClientIndex client = 0; client < count(); ++client) {
    if (!is_alive(client)) continue;
    for (const NodeIndex node : at(client).counted()) {
      const Machine::Link& link = at(client).links[node];
      if (std::ranges::count(replacements_.members(), node) == 0) continue;
      // It may be connecting anew, because somebody else wrote the marker, say.
      if (link.up || scene_.now - link.disturbed <= milliseconds(2'500)) continue;
      if (!handshakes_end_in_time(plan) && scene_.now - link.tried <= between_tries) continue;
      throw Violation{"a node that is well again is connected to",
                      fmt::format("client {}, node {}", client, node)};
    }
  }
}

void Clients::must_know_the_members() const {
  // One that asks for nothing reads the markers with each probe.
  const bool in_time = scene_.plan.between_probes <= milliseconds(1'000);
  // Where some have lost their markers one may have nobody who shows it what the others know.
  const bool changes = scene_.plan.spares > 0 && !scene_.plan.members_forget;
  if (!changes || !in_time || !handshakes_end_in_time(scene_.plan)) return;
  for (ClientIndex client = 0; client < count(); ++client) {
    if (!is_alive(client)) continue;
    const std::vector<NodeIndex> counted = at(client).counted();
    const std::vector<NodeIndex>& members = replacements_.members();
    if (std::ranges::is_permutation(counted, members)) continue;
    // Away from some since it started, it may have an old list: of too few that are members, or of
    // one more, whose marker it never saw.
    const auto listed = static_cast<std::size_t>(std::ranges::count_if(
        counted, [&](NodeIndex node) { return std::ranges::count(members, node) > 0; }));
    const bool is_old = listed <= members.size() / 2 || listed == members.size();
    if (scene_.plan.parted && is_old) continue;
    const auto reached =
        std::ranges::count_if(counted, [&](NodeIndex node) { return at(client).links[node].up; });
    if (static_cast<std::size_t>(reached) <= counted.size() / 2) continue;
    throw Violation{"a client that reaches the members of its set knows them",
                    fmt::format("client {}", client)};
  }
}

}  // namespace redlock::simulation
