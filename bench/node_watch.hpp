// SPDX-License-Identifier: MIT
// Waits until a client knows all of its nodes to be there.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include <redlock/observer.hpp>

namespace bench {

class NodeWatch : public redlock::Observer {
 public:
  void on_node_up(std::string_view node, std::string_view) override {
    const std::scoped_lock lock(mutex_);
    up_.emplace(node);
    changed_.notify_all();
  }
  void on_node_down(std::string_view node, redlock::Cause, std::string_view) override {
    const std::scoped_lock lock(mutex_);
    up_.erase(std::string(node));
  }
  void await_up(std::size_t nodes) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return up_.size() == nodes; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> up_;
};

}  // namespace bench
