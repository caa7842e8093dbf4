// SPDX-License-Identifier: MIT
//
// A detached fleet is started exactly as any other, under a reaper; only when all its nodes answer
// and are recorded does the reaper release them. So a start that fails or is killed half-way leaves
// nothing behind either.
#include "fleet.hpp"

#include <cstdlib>
#include <fmt/core.h>
#include <random>
#include <signal.h>
#include <sstream>
#include <unistd.h>

#include "fleet_record.hpp"

namespace redlock::cluster {
namespace {

namespace fs = std::filesystem;

bool is_program(const std::string& path) {
  return ::access(path.c_str(), X_OK) == 0 && !fs::is_directory(path);
}

std::string find_redis_server() {
  if (const char* chosen = std::getenv("REDLOCK_REDIS_SERVER"); chosen != nullptr) {
    if (is_program(chosen)) return chosen;
    throw FleetError(
        fmt::format("REDLOCK_REDIS_SERVER names {}, which is not a program; correct it", chosen));
  }
  const char* path = std::getenv("PATH");
  std::istringstream places(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string place; std::getline(places, place, ':');) {
    if (const auto program = place + "/redis-server"; is_program(program)) return program;
  }
  throw FleetError(
      "redis-server is not installed; install it (on Debian: apt install redis-server), or name it "
      "in REDLOCK_REDIS_SERVER");
}

fs::path unused_temporary_path() {
  std::random_device random;
  return fs::temp_directory_path() /
         fmt::format("redlock-fleet-{}-{:08x}{:08x}", ::getpid(), random(), random());
}

fs::path node_directory(const fs::path& directory, std::size_t node) {
  return directory / fmt::format("node-{}", node);
}

FreePort port_for(const FleetOptions& options, std::size_t node) {
  if (options.first_port == 0) return FreePort::pick();
  const auto port = options.first_port + node;
  if (port <= 65'535) return FreePort::take(static_cast<std::uint16_t>(port));
  throw FleetError(
      fmt::format("port {} of node {} does not exist; choose a lower first port", port, node + 1));
}

std::string settings_of(const FleetOptions& options, const Node& node) {
  std::string text;
  if (options.persistence == Persistence::none) text += "appendonly no\n";
  if (options.tls) {
    const auto& [authority, certificate, key, clients_need_certificates] = *options.tls;
    text += fmt::format(
        "port 0\ntls-port {}\ntls-ca-cert-file \"{}\"\ntls-cert-file \"{}\"\ntls-key-file \"{}\"\n"
        "tls-auth-clients {}\n",
        node.port(), authority.string(), certificate.string(), key.string(),
        clients_need_certificates ? "yes" : "no");
  }
  if (options.unix_sockets || options.tls) {
    // The kernel's limit for the path of a socket, its closing NUL included, is 108.
    const auto path = node.socket().string();
    if (path.size() > 107) {
      throw FleetError(
          fmt::format("{} is too long for a Unix socket; use a shorter directory", path));
    }
    text += fmt::format("unixsocket \"{}\"\nunixsocketperm 700\n", path);
  }
  for (const auto& line : options.settings) text += line + '\n';
  if (const auto own = options.node_settings.find(node.index());
      own != options.node_settings.end()) {
    for (const auto& line : own->second) text += line + '\n';
  }
  return text;
}

std::string percent_encoded(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    result += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

// Deletes what a fleet made in its directory, and the directory if nothing else is in it. Behind
// the recorded nodes may be one whose program was killed while it added the node.
void delete_files(const fs::path& directory, std::size_t nodes) {
  for (std::size_t i = 0; i <= nodes; ++i) fs::remove_all(node_directory(directory, i));
  FleetRecord::erase(directory);
  std::error_code not_empty;
  fs::remove(directory, not_empty);
}

// Leaves `directory` empty and present, or throws without having touched it.
void make_room(const fs::path& directory) {
  if (const auto earlier = FleetRecord::load(directory)) {
    const auto fleet = Fleet::open(directory);
    for (std::size_t i = 0; i < fleet.size(); ++i) {
      if (fleet.state(i) == NodeState::ended) continue;
      throw FleetError(
          fmt::format("a fleet already runs in {} (node {} is process {}); end it first with "
                      "`redlock fleet down --dir {}`, or choose another directory",
                      directory.string(), i + 1, fleet.pid(i), directory.string()));
    }
    delete_files(directory, earlier->nodes.size());
  }
  fs::create_directories(directory);
  if (!fs::is_empty(directory)) {
    throw FleetError(fmt::format("{} holds files that are not of a fleet; choose another directory",
                                 directory.string()));
  }
}

}  // namespace

Fleet::Fleet(const FleetOptions& options) : Fleet(unused_temporary_path(), options) {}

Fleet::Fleet(fs::path directory, const FleetOptions& options) : Fleet(std::move(directory)) {
  options_ = options;
  create();
}

void Fleet::create() {
  // The reaper before the directory, so that the directory is deleted whenever we are killed.
  reaper_ = std::make_unique<Reaper>(directory_);
  fs::create_directories(directory_);
  fs::permissions(directory_, fs::perms::owner_all);
  start_nodes(options_.nodes, reaper_->group());
  if (options_.adopted) adopt_nodes();
  options_.first_port = 0;  // of nodes that are added, any port
}

// Starts as many more nodes, empty ones.
void Fleet::start_nodes(std::size_t count, pid_t group) {
  const auto program = find_redis_server();
  const auto deadline = std::chrono::steady_clock::now() + options_.start_timeout;
  const auto choose_port = [&](std::size_t i) {
    return ports_.insert_or_assign(i, port_for(options_, i)).first->second.number();
  };
  std::vector<std::size_t> waiting;
  for (const auto end = size() + count; size() < end;) {
    const auto i = size();
    nodes_.emplace_back(i, node_directory(directory_, i), choose_port(i), options_.password);
    if (options_.tls) nodes_[i].reach_by_socket();
    waiting.push_back(i);
  }
  while (!waiting.empty()) {
    for (const auto i : waiting) {
      nodes_[i].write_configuration(settings_of(options_, nodes_[i]));
      nodes_[i].launch(program, group);
    }
    // All are started, then all are awaited: five nodes take as long as one.
    std::erase_if(waiting, [&](std::size_t i) { return nodes_[i].await_ready(deadline); });
    for (const auto i : waiting) nodes_[i].move_to_port(choose_port(i));
  }
}

void Fleet::adopt_nodes() const {
  const auto name = directory_.filename().string();
  std::string members;
  for (std::size_t i = 0; i < size(); ++i) {
    members += fmt::format("{}{}-{}={}://127.0.0.1:{}", i == 0 ? "" : " ", name, i,
                           options_.tls ? "rediss" : "redis", port(i));
  }
  for (std::size_t i = 0; i < size(); ++i) {
    run(i, {"HSET", "redlock:node", "id", fmt::format("{}-{}", name, i), "layout", "redlock-3",
            "nodes", std::to_string(size()), "max_lease_ms", "60000", "set", name, "epoch", "1",
            "members", members});
  }
}

Fleet Fleet::start_detached(const fs::path& directory, const FleetOptions& options) {
  if (options.tls) throw FleetError("a detached fleet has no TLS; leave FleetOptions::tls out");
  const auto place = fs::absolute(directory).lexically_normal();
  fs::create_directories(place);
  const DirectoryLock lock(place);
  make_room(place);
  Fleet fleet(place, options);
  fleet.make_record();
  fleet.reaper_->let_go();
  fleet.reaper_.reset();
  return fleet;
}

Fleet Fleet::open(const fs::path& directory) {
  const auto record = FleetRecord::load(directory);
  if (!record) {
    throw FleetError(
        fmt::format("no fleet is recorded in {}; start one with `redlock fleet up --dir {}`",
                    directory.string(), directory.string()));
  }
  Fleet fleet(fs::absolute(directory).lexically_normal());
  fleet.options_ = {.persistence = record->durable ? Persistence::always : Persistence::none,
                    .unix_sockets = record->unix_sockets,
                    .password = record->password,
                    .settings = record->settings};
  fleet.take_over(*record);
  return fleet;
}

bool Fleet::down(const fs::path& directory) {
  if (!FleetRecord::load(directory)) return false;
  const DirectoryLock lock(directory);
  if (!FleetRecord::load(directory)) return false;  // another program was faster
  auto fleet = open(directory);
  fleet.end_nodes();
  delete_files(fleet.directory_, fleet.size());
  return true;
}

Fleet::~Fleet() {
  if (!reaper_ || !reaper_->is_ours()) return;
  try {
    end_nodes();
    fs::remove_all(directory_);
  } catch (const std::exception& error) {
    fmt::print(stderr, "redlock fleet: {}\n", error.what());
  }
  // The reaper ends last: until here it would have completed this if we had been killed.
}

// Those from `first` on.
void Fleet::end_nodes(std::size_t first) {
  for (auto i = first; i < size(); ++i) nodes_[i].signal(SIGKILL);
  for (auto i = first; i < size(); ++i) nodes_[i].await_end();
}

void Fleet::make_record() const {
  auto record = FleetRecord::of_this_boot();
  record.password = options_.password;
  record.durable = persistence() == Persistence::always;
  record.unix_sockets = options_.unix_sockets;
  record.settings = options_.settings;
  for (const auto& node : nodes_) record.nodes.push_back({node.port(), node.id()});
  record.save(directory_);
}

// With what other programs and threads did, which this object may not have: to be changed where
// this one knows better, while the directory is locked. It has as many nodes at least.
FleetRecord Fleet::present_record(std::size_t nodes) const {
  auto record = FleetRecord::load(directory_);
  if (!record || record->nodes.size() < nodes) {
    throw FleetError(fmt::format("the fleet in {} was ended meanwhile", directory_.string()));
  }
  record->boot = FleetRecord::of_this_boot().boot;
  return *record;
}

void Fleet::record_node(std::size_t node) const {
  const DirectoryLock lock(directory_);
  auto record = present_record(node + 1);
  record.nodes[node] = {nodes_[node].port(), nodes_[node].id()};
  record.save(directory_);
}

// The nodes that this object does not have yet.
void Fleet::take_over(const FleetRecord& record) {
  for (auto i = size(); i < record.nodes.size(); ++i) {
    const auto& [port, process] = record.nodes[i];
    nodes_.emplace_back(i, node_directory(directory_, i), port, options_.password);
    nodes_[i].adopt_process(process);
  }
}

std::uint16_t Fleet::port(std::size_t node) const {
  return nodes_.at(node).port();
}

pid_t Fleet::pid(std::size_t node) const {
  return nodes_.at(node).id().pid;
}

NodeState Fleet::state(std::size_t node) const {
  return nodes_.at(node).state();
}

std::string Fleet::uri(std::size_t node) const {
  const auto& password = options_.password;
  const auto secret = password.empty() ? "" : fmt::format(":{}@", percent_encoded(password));
  return fmt::format("{}://{}127.0.0.1:{}", options_.tls ? "rediss" : "redis", secret, port(node));
}

std::vector<std::string> Fleet::uris() const {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < size(); ++i) result.push_back(uri(i));
  return result;
}

std::string Fleet::unix_uri(std::size_t node) const {
  return "unix://" + nodes_.at(node).socket().string();
}

fs::path Fleet::directory(std::size_t node) const {
  return nodes_.at(node).directory();
}

void Fleet::kill(std::size_t node) {
  nodes_.at(node).signal(SIGKILL);
  nodes_[node].await_end();
}

void Fleet::terminate(std::size_t node) {
  nodes_.at(node).signal(SIGTERM);
  nodes_[node].signal(SIGCONT);  // a paused process handles no signal but SIGKILL
  nodes_[node].await_end();
}

void Fleet::pause(std::size_t node) {
  nodes_.at(node).pause();
}

void Fleet::resume(std::size_t node) {
  nodes_.at(node).resume();
}

void Fleet::restart(std::size_t node, Data data) {
  kill(node);
  if (data == Data::empty) nodes_[node].forget_data();

  // A node of a detached fleet starts under a reaper of its own, which releases it once recorded.
  const auto guard = reaper_ ? nullptr : std::make_unique<Reaper>(fs::path{});
  nodes_[node].launch(find_redis_server(), guard ? guard->group() : reaper_->group());
  const auto deadline = std::chrono::steady_clock::now() + FleetOptions{}.start_timeout;
  if (!nodes_[node].await_ready(deadline)) {
    throw FleetError(
        fmt::format("another program has taken port {} of node {}; end that program and restart "
                    "the node again",
                    port(node), node + 1));
  }
  if (guard) {
    record_node(node);
    guard->let_go();
  }
}

std::size_t Fleet::add() {
  if (reaper_) return add_node(reaper_->group(), nullptr);
  // Locked until the node is recorded: the next program that adds one gets the next place.
  const DirectoryLock lock(directory_);
  auto record = present_record(size());
  take_over(record);
  Reaper guard(fs::path{});
  const auto node = add_node(guard.group(), &record);
  guard.let_go();
  return node;
}

// To the record as well, if there is one. If this throws, nothing is left of the node.
std::size_t Fleet::add_node(pid_t group, FleetRecord* record) {
  const auto node = size();
  const auto place = node_directory(directory_, node);
  fs::remove_all(place);  // a program may have been killed while it added a node
  try {
    start_nodes(1, group);
    if (record != nullptr) {
      record->nodes.push_back({port(node), nodes_[node].id()});
      record->save(directory_);
    }
  } catch (...) {
    end_nodes(node);
    if (size() > node) nodes_.pop_back();
    ports_.erase(node);
    fs::remove_all(place);
    throw;
  }
  return node;
}

std::string Fleet::run(std::size_t node, const std::vector<std::string>& argv,
                       std::chrono::milliseconds timeout) const {
  return nodes_.at(node).connect(timeout).command(argv);
}

}  // namespace redlock::cluster
