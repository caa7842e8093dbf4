// SPDX-License-Identifier: MIT
// What a pipelining client gets out of the nodes: nothing but hiredis, one thread, and on each node
// batch after batch of so many acquires, or of their releases, in one write. Each node goes at its
// own pace. No quorum, and nobody looks at an answer: not a lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <vector>

#include <redlock/clock.hpp>

#include "bench/bare_hiredis.hpp"

namespace bench {

class Pipeline {
 public:
  Pipeline(const std::vector<std::uint16_t>& ports, std::size_t batch) : batch_(batch) {
    for (const std::uint16_t port : ports) {
      nodes_.push_back({redisConnect("127.0.0.1", port)});
      if (nodes_.back().connection->err != 0) throw std::runtime_error("cannot connect");
      messages_.load(nodes_.back().connection);
    }
    for (std::uint64_t i = 0; i < batch_; ++i) {
      releases_ += messages_.release(name_of(i), i);
    }
  }
  ~Pipeline() {
    for (const Node& node : nodes_) redisFree(node.connection);
  }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Cycles a second: the mean of the nodes.
  double run(std::chrono::milliseconds length) {
    const auto begin = redlock::BootClock::now();
    std::size_t cycles = 0;
    for (std::size_t busy = nodes_.size(); busy > 0;) {
      const bool over = redlock::BootClock::now() >= begin + length;
      busy = 0;
      for (Node& node : nodes_) {
        if (node.unread == 0 && (node.held || !over)) {
          if (node.held) cycles += batch_;
          send_batch(node);
        }
        if (node.unread > 0) ++busy;
      }
      if (busy > 0) read_some();
    }
    const std::chrono::duration<double> took = redlock::BootClock::now() - begin;
    return static_cast<double>(cycles) / static_cast<double>(nodes_.size()) / took.count();
  }

 private:
  struct Node {
    redisContext* connection = nullptr;
    std::size_t unread = 0;
    bool held = false;
    std::string acquires = {};
  };

  static std::string name_of(std::uint64_t i) { return fmt::format("pipeline-{}", i); }

  /// Tokens are taken from the floor, so that is to rise: it, and no more, is written anew.
  void send_batch(Node& node) {
    if (!node.held) {
      node.acquires.clear();
      for (std::uint64_t i = 0; i < batch_; ++i) {
        node.acquires += messages_.acquire(name_of(i), i);
      }
    }
    const std::string& batch = node.held ? releases_ : node.acquires;
    redisAppendFormattedCommand(node.connection, batch.data(), batch.size());
    for (int done = 0; done == 0;) {
      if (redisBufferWrite(node.connection, &done) != REDIS_OK) {
        throw std::runtime_error("a node is gone");
      }
    }
    node.held = !node.held;
    node.unread = batch_;
  }
  void read_some() {
    std::vector<pollfd> polled;
    for (const Node& node : nodes_) {
      const auto events = static_cast<short>(node.unread > 0 ? POLLIN : 0);
      polled.push_back({node.connection->fd, events, 0});
    }
    ::poll(polled.data(), polled.size(), -1);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (polled[i].revents != 0) nodes_[i].unread -= read_replies(nodes_[i].connection);
    }
  }

  std::vector<Node> nodes_;
  CycleMessages messages_;
  std::size_t batch_;
  std::string releases_;
};

}  // namespace bench
