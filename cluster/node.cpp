// SPDX-License-Identifier: MIT
//
// All settings travel in the node's own configuration file, readable by its owner only: a password
// on a command line could be read by everybody.
#include "node.hpp"

#include <fmt/core.h>
#include <fstream>
#include <iterator>
#include <signal.h>

#include "fleet_error.hpp"
#include "redis_conf.hpp"

namespace redlock::cluster {
namespace {

using std::chrono::milliseconds;

// How long a signal may take on a machine that is very busy.
constexpr std::chrono::seconds kSignalPatience{30};

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

NodeState Node::state() const {
  if (!process_ || process_->ended()) return NodeState::ended;
  return process_->stopped() ? NodeState::paused : NodeState::running;
}

void Node::adopt_process(ProcessId id) {
  id_ = id;
  process_ = Process::find(id);
}

void Node::write_configuration(const std::string& settings) const {
  namespace fs = std::filesystem;
  fs::create_directories(directory_ / "data");
  fs::permissions(directory_, fs::perms::owner_all);
  std::ofstream file(directory_ / "redis.conf", std::ios::trunc);
  file << kRedisConf << "\n# --- This node ---\nport " << port_ << "\ndir "
       << quoted((directory_ / "data").string()) << '\n';
  if (!password_.empty()) file << "requirepass " << quoted(password_) << '\n';
  file << settings;
  file.close();
  if (!file) throw FleetError(fmt::format("cannot write {}", directory_.string()));
}

void Node::forget_data() const {
  std::filesystem::remove_all(directory_ / "data");
  std::filesystem::create_directory(directory_ / "data");
}

void Node::launch(const std::string& program, pid_t group) {
  std::error_code absent;
  const auto size = std::filesystem::file_size(log(), absent);
  log_size_at_launch_ = absent ? 0 : size;
  process_ = Process::spawn(
      {.argv = {program, (directory_ / "redis.conf").string()}, .group = group, .output = log()});
  id_ = process_->id();
}

bool Node::await_ready(std::chrono::steady_clock::time_point deadline) {
  while (!answers()) {
    // Waiting for its end is the pause between two questions.
    if (process_->await_end(milliseconds(2))) {
      const auto log = log_since_launch();
      if (log.find("Address already in use") != std::string::npos) return false;
      throw FleetError(fmt::format("node {} ended while starting; its last words: {}", number(),
                                   last_line(log)));
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      throw FleetError(fmt::format("node {} does not answer; its last words: {}", number(),
                                   last_line(log_since_launch())));
    }
  }
  return true;
}

// Another server may sit on the port while ours is still on its way to finding that out.
bool Node::answers() const {
  try {
    auto client = connect(milliseconds(200));
    if (client.command({"PING"}) != "PONG") return false;
    const auto info = client.command({"INFO", "server"});
    return info.find(fmt::format("process_id:{}\r", id_.pid)) != std::string::npos;
  } catch (const FleetError&) {
    return false;
  }
}

void Node::signal(int number) const {
  if (process_) process_->signal(number);
}

void Node::await_end() const {
  if (process_ && !process_->await_end(kSignalPatience)) {
    throw FleetError(fmt::format("node {} (process {}) does not end; it may hang in the kernel",
                                 number(), id_.pid));
  }
}

void Node::pause() const {
  running_process().signal(SIGSTOP);
  if (!running_process().await_stop(kSignalPatience)) {
    throw FleetError(fmt::format("node {} (process {}) does not stop", number(), id_.pid));
  }
}

void Node::resume() const {
  running_process().signal(SIGCONT);
}

const Process& Node::running_process() const {
  if (state() == NodeState::ended) {
    throw FleetError(fmt::format("node {} does not run; restart it first", number()));
  }
  return *process_;
}

NodeClient Node::connect(milliseconds timeout) const {
  auto client = by_socket_ ? NodeClient(socket(), timeout) : NodeClient(port_, timeout);
  if (!password_.empty()) {
    const auto reply = client.command({"AUTH", password_});
    if (reply != "OK") {
      throw FleetError(fmt::format("node {} does not accept its password: {}", number(), reply));
    }
  }
  return client;
}

std::string Node::log_since_launch() const {
  std::ifstream file(log());
  file.seekg(static_cast<std::streamoff>(log_size_at_launch_));
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace redlock::cluster
