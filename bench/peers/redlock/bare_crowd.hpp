// SPDX-License-Identifier: MIT
// The floor for many callers: nothing but hiredis, one thread, one connection a node, and each
// caller's acquire and release in flight beside those of the others. A call ends at its third
// reply. What has become due is written once for each node. No timeouts, no safety: not a lock.
#pragma once

#include <deque>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/bare_hiredis.hpp"
#include "bench/peers/orders.hpp"

namespace peers {

class BareCrowd {
 public:
  explicit BareCrowd(const std::vector<std::uint16_t>& ports) {
    for (const std::uint16_t port : ports) {
      nodes_.push_back({redisConnect("127.0.0.1", port), {}});
      if (nodes_.back().connection->err != 0) throw std::runtime_error("cannot connect");
      messages_.load(nodes_.back().connection);
    }
  }
  ~BareCrowd() {
    for (const Node& node : nodes_) redisFree(node.connection);
  }
  BareCrowd(const BareCrowd&) = delete;
  BareCrowd& operator=(const BareCrowd&) = delete;

  std::vector<Calls> run(const Run& run) {
    end_ = run.end;
    callers_.assign(run.callers, {});
    under_way_ = 0;
    for (std::size_t i = 0; i < callers_.size(); ++i) {
      callers_[i].name = run.name_of(i);
      acquire(i);
    }
    while (under_way_ > 0 || unread() > 0) {
      write_all();
      read_some();
    }
    std::vector<Calls> all;
    for (Caller& caller : callers_) all.push_back(std::move(caller.calls));
    return all;
  }

 private:
  struct Sent {
    std::size_t caller;
    std::uint64_t call;
  };
  struct Node {
    redisContext* connection;
    std::deque<Sent> unread;  // to which calls replies will come
  };
  struct Caller {
    std::string name;
    std::uint64_t owner = 0;
    bool acquiring = false;
    std::uint64_t call = 0;
    std::size_t replies = 0;
    Clock::time_point start;
    Calls calls;
  };

  void acquire(std::size_t i) {
    Caller& caller = callers_[i];
    caller.acquiring = true;
    caller.owner = ++owners_;
    ask_all(caller, i, messages_.acquire(caller.name, caller.owner));
  }
  void release(std::size_t i) {
    Caller& caller = callers_[i];
    caller.acquiring = false;
    ask_all(caller, i, messages_.release(caller.name, caller.owner));
  }

  void ask_all(Caller& caller, std::size_t i, const std::string& command) {
    ++caller.call;
    caller.replies = 0;
    caller.start = Clock::now();
    ++under_way_;
    for (Node& node : nodes_) {
      redisAppendFormattedCommand(node.connection, command.data(), command.size());
      node.unread.push_back({i, caller.call});
    }
  }

  [[nodiscard]] std::size_t unread() const {
    std::size_t sum = 0;
    for (const Node& node : nodes_) sum += node.unread.size();
    return sum;
  }
  void write_all() {
    for (Node& node : nodes_) {
      for (int done = 0; done == 0;) {
        if (redisBufferWrite(node.connection, &done) != REDIS_OK) {
          throw std::runtime_error("a node is gone");
        }
      }
    }
  }
  void read_some() {
    std::vector<pollfd> polled;
    for (const Node& node : nodes_) {
      const auto events = static_cast<short>(node.unread.empty() ? 0 : POLLIN);
      polled.push_back({node.connection->fd, events, 0});
    }
    ::poll(polled.data(), polled.size(), -1);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (polled[i].revents != 0) read_from(nodes_[i]);
    }
  }
  void read_from(Node& node) {
    for (std::size_t replies = bench::read_replies(node.connection); replies > 0; --replies) {
      const Sent sent = node.unread.front();
      node.unread.pop_front();
      if (callers_[sent.caller].call == sent.call) on_reply(sent.caller);
    }
  }
  void on_reply(std::size_t i) {
    Caller& caller = callers_[i];
    if (++caller.replies != nodes_.size() / 2 + 1) return;
    --under_way_;
    if (caller.acquiring) {
      caller.calls.granted(caller.start, end_);
      release(i);
    } else {
      caller.calls.released.push_back(micros_since(caller.start));
      if (Clock::now() < end_) acquire(i);
    }
  }

  std::vector<Node> nodes_;
  bench::CycleMessages messages_;
  std::vector<Caller> callers_;
  std::size_t under_way_ = 0;
  std::uint64_t owners_ = 0;
  Clock::time_point end_;
};

}  // namespace peers
