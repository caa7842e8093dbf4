// SPDX-License-Identifier: MIT
// The floor: what nothing but hiredis needs for the same messages. Five writes, poll, return at the
// third reply; the replies that come later are read by the next call. One thread, no timeouts, no
// safety: not a lock, only the cost of the network and the nodes.
#pragma once

#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

/// Loads one of the library's own scripts; its digest.
inline std::string load_script(redisContext* connection, const std::string& script) {
  std::ostringstream text;
  text << std::ifstream(REDLOCK_SCRIPT_DIR "/line.lua").rdbuf();
  text << std::ifstream(REDLOCK_SCRIPT_DIR "/" + script + ".lua").rdbuf();
  auto* reply =
      static_cast<redisReply*>(redisCommand(connection, "SCRIPT LOAD %s", text.str().c_str()));
  if (reply == nullptr || reply->type != REDIS_REPLY_STRING) {
    throw std::runtime_error("a node does not take the script");
  }
  std::string digest(reply->str, reply->len);
  freeReplyObject(reply);
  return digest;
}

/// Reads what is there; how many replies that were.
inline std::size_t read_replies(redisContext* connection) {
  if (redisBufferRead(connection) != REDIS_OK) throw std::runtime_error("a node is gone");
  std::size_t count = 0;
  void* reply = nullptr;
  while (redisGetReplyFromReader(connection, &reply) == REDIS_OK && reply != nullptr) {
    const bool is_error = static_cast<redisReply*>(reply)->type == REDIS_REPLY_ERROR;
    freeReplyObject(reply);
    if (is_error) throw std::runtime_error("a node answered with an error");
    ++count;
  }
  return count;
}

/// The two messages of a cycle, with the keys and arguments that the library sends for a call that
/// waits (its client has quarantine off), and in the scripts that it sends.
class CycleMessages {
 public:
  /// Loads both scripts on this node, which must be done on each.
  void load(redisContext* connection) {
    acquire_digest_ = load_script(connection, "acquire");
    release_digest_ = load_script(connection, "release");
  }
  [[nodiscard]] static std::string owner(std::uint64_t number) {
    return fmt::format("{:032x}", number);
  }
  /// In microseconds since 1970: 16 digits until the year 2286.
  [[nodiscard]] static std::string clock() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto floor = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
    return std::to_string(floor);
  }
  [[nodiscard]] std::string acquire(const std::string& name, std::uint64_t number) const {
    const std::string now = clock();
    const std::string waiter = fmt::format("0123456789abcdef:{}", number);
    const std::string holder = fmt::format("{} 4711 some-host bench", now.substr(0, 13));
    return format({"EVALSHA",
                   acquire_digest_,
                   "7",
                   key("lock", name),
                   fence(name),
                   key("forced", name) + ":" + owner(number),
                   key("line", name),
                   key("waiters", name),
                   "redlock:node",
                   "redlock:node:notes",
                   owner(number),
                   "30000",
                   now,
                   holder,
                   "-",
                   "w",
                   waiter,
                   "0",
                   "20",
                   ""});
  }
  [[nodiscard]] std::string release(const std::string& name, std::uint64_t number) const {
    return format({"EVALSHA", release_digest_, "3", key("lock", name), key("line", name),
                   key("waiters", name), owner(number), "1"});
  }

 private:
  [[nodiscard]] static std::string key(const char* what, const std::string& name) {
    return fmt::format("redlock:{}:{{{}}}", what, name);
  }
  /// Names share few fences, so that few tokens are counted on from one that is above the floor.
  [[nodiscard]] static std::string fence(const std::string& name) {
    return fmt::format("redlock:fence:{}", std::hash<std::string>()(name) % 65'536);
  }
  [[nodiscard]] static std::string format(const std::vector<std::string>& command) {
    std::vector<const char*> argv;
    std::vector<std::size_t> sizes;
    for (const std::string& argument : command) {
      argv.push_back(argument.data());
      sizes.push_back(argument.size());
    }
    char* text = nullptr;
    const auto length =
        redisFormatCommandArgv(&text, static_cast<int>(argv.size()), argv.data(), sizes.data());
    std::string formatted(text, static_cast<std::size_t>(length));
    redisFreeCommand(text);
    return formatted;
  }

  std::string acquire_digest_;
  std::string release_digest_;
};

class BareHiredis {
 public:
  /// Connects to these loopback ports and loads the library's own scripts.
  explicit BareHiredis(const std::vector<std::uint16_t>& ports) {
    for (const std::uint16_t port : ports) {
      nodes_.push_back({redisConnect("127.0.0.1", port), 0});
      if (nodes_.back().connection->err != 0) throw std::runtime_error("cannot connect");
      messages_.load(nodes_.back().connection);
    }
  }
  ~BareHiredis() {
    for (const Node& node : nodes_) redisFree(node.connection);
  }
  BareHiredis(const BareHiredis&) = delete;
  BareHiredis& operator=(const BareHiredis&) = delete;

  void acquire(const std::string& name) { ask_all(messages_.acquire(name, ++turn_)); }
  void release(const std::string& name) { ask_all(messages_.release(name, turn_)); }

 private:
  struct Node {
    redisContext* connection = nullptr;
    std::size_t unread = 0;  // replies to earlier calls, not read yet
  };

  void ask_all(const std::string& command) {
    for (Node& node : nodes_) {
      redisAppendFormattedCommand(node.connection, command.data(), command.size());
      int done = 0;
      while (done == 0) redisBufferWrite(node.connection, &done);
      ++node.unread;
    }
    std::size_t answered = 0;
    while (answered < nodes_.size() / 2 + 1) answered += read_some();
  }

  /// Waits for replies; how many of them are to the command just sent.
  std::size_t read_some() {
    std::vector<pollfd> polled;
    for (const Node& node : nodes_) {
      const auto events = static_cast<short>(node.unread > 0 ? POLLIN : 0);
      polled.push_back({node.connection->fd, events, 0});
    }
    ::poll(polled.data(), polled.size(), -1);
    std::size_t answered = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (polled[i].revents != 0) answered += read_from(nodes_[i]) ? 1U : 0U;
    }
    return answered;
  }

  static bool read_from(Node& node) {
    node.unread -= read_replies(node.connection);
    return node.unread == 0;
  }

  std::vector<Node> nodes_;
  CycleMessages messages_;
  std::uint64_t turn_ = 0;
};

}  // namespace bench
