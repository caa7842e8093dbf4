// SPDX-License-Identifier: MIT
// The floor: what nothing but hiredis needs for the same messages. Five writes, poll, return at the
// third reply; the replies that come later are read by the next call. One thread, no timeouts, no
// safety: not a lock, only the cost of the network and the nodes.
#pragma once

#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <fstream>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

class BareHiredis {
 public:
  /// Connects to these loopback ports and loads the library's own scripts.
  explicit BareHiredis(const std::vector<std::uint16_t>& ports) {
    for (const std::uint16_t port : ports) {
      nodes_.push_back({redisConnect("127.0.0.1", port), 0});
      if (nodes_.back().connection->err != 0) throw std::runtime_error("cannot connect");
    }
    acquire_digest_ = load("acquire");
    release_digest_ = load("release");
  }
  ~BareHiredis() {
    for (const Node& node : nodes_) redisFree(node.connection);
  }
  BareHiredis(const BareHiredis&) = delete;
  BareHiredis& operator=(const BareHiredis&) = delete;

  void acquire(const std::string& name) {
    owner_ = fmt::format("{:032x}", ++turn_);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto floor = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
    ask_all({"EVALSHA", acquire_digest_, "2", "redlock:lock:{" + name + "}", "redlock:fence:0",
             owner_, "30000", std::to_string(floor)});
  }
  void release(const std::string& name) {
    ask_all({"EVALSHA", release_digest_, "1", "redlock:lock:{" + name + "}", owner_, ""});
  }

 private:
  struct Node {
    redisContext* connection = nullptr;
    int unread = 0;  // replies to earlier calls, not read yet
  };

  void ask_all(const std::vector<std::string>& command) {
    std::vector<const char*> argv;
    std::vector<std::size_t> sizes;
    for (const std::string& argument : command) {
      argv.push_back(argument.data());
      sizes.push_back(argument.size());
    }
    for (Node& node : nodes_) {
      redisAppendCommandArgv(node.connection, static_cast<int>(argv.size()), argv.data(),
                             sizes.data());
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
    if (redisBufferRead(node.connection) != REDIS_OK) throw std::runtime_error("a node is gone");
    void* reply = nullptr;
    while (redisGetReplyFromReader(node.connection, &reply) == REDIS_OK && reply != nullptr) {
      const bool is_error = static_cast<redisReply*>(reply)->type == REDIS_REPLY_ERROR;
      freeReplyObject(reply);
      if (is_error) throw std::runtime_error("a node answered with an error");
      --node.unread;
    }
    return node.unread == 0;
  }

  [[nodiscard]] std::string load(const std::string& script) const {
    std::ostringstream text;
    text << std::ifstream(REDLOCK_SCRIPT_DIR "/queue.lua").rdbuf();
    text << std::ifstream(REDLOCK_SCRIPT_DIR "/" + script + ".lua").rdbuf();
    std::string digest;
    for (const Node& node : nodes_) {
      auto* reply = static_cast<redisReply*>(
          redisCommand(node.connection, "SCRIPT LOAD %s", text.str().c_str()));
      if (reply == nullptr || reply->type != REDIS_REPLY_STRING) {
        throw std::runtime_error("a node does not take the script");
      }
      digest.assign(reply->str, reply->len);
      freeReplyObject(reply);
    }
    return digest;
  }

  std::vector<Node> nodes_;
  std::string acquire_digest_;
  std::string release_digest_;
  std::string owner_;
  std::uint64_t turn_ = 0;
};

}  // namespace bench
