// SPDX-License-Identifier: MIT
// The core runs a wire::Driver over the network: it owns the libuv loop and its thread, one
// transport per node, the timer, and the mailbox through which other threads reach the loop.
// Everything above uses this header, which names no type of libuv or hiredis.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/engine.hpp"
#include "net/task.hpp"
#include "wire/driver_config.hpp"
#include "wire/value.hpp"

namespace redlock::net {

struct CoreConfig : wire::DriverConfig {
  std::chrono::milliseconds resolve_timeout{2'000};
  /// What a node keeps beside the owner of a lock as the holder's name; empty: the program's.
  std::string label{};
};

/// Gets, on the loop thread, the engine's outputs for the client, and what became of the nodes.
class CoreSink {
 public:
  virtual void on_output(engine::ClientOutput&& output) = 0;
  virtual void on_node_up(engine::NodeIndex node, std::string_view warning) = 0;
  virtual void on_node_down(engine::NodeIndex node, const engine::Unavailable& why) = 0;

 protected:
  ~CoreSink() = default;
};

class Core {
 public:
  /// Starts the loop thread, which begins to connect to every node. The sink must outlive the core.
  /// Fails, with a sentence, only if the system gives no thread or descriptor.
  static tl::expected<std::unique_ptr<Core>, std::string> start(CoreConfig config, CoreSink& sink);

  /// Stops the loop and joins its thread: connections are closed, every outstanding question is
  /// answered. From the loop thread itself it may not be called.
  ~Core();

  /// Once, from another thread than the loop's: what the destructor begins with, for a sink that
  /// reaches the core by a pointer that must outlive the loop.
  void stop();

  /// Any thread, but not beside the destructor. False, and the task is not run, once the destructor
  /// has begun to stop the loop.
  bool post(Task& task);

  /// Whether this is the loop thread.
  [[nodiscard]] bool on_loop_thread() const noexcept;

  // The rest on the loop thread only.

  /// The engine, to be given inputs with BootClock::now(). Its outputs are performed at the end of
  /// this turn of the loop, all messages for one node in one write.
  [[nodiscard]] engine::Engine& engine();

  /// Sends one command to one node, for inspection and administration. Answered exactly once, at
  /// the timeout at the latest; before this returns if the node is known to be down.
  void ask(engine::NodeIndex node, const std::vector<std::string>& command,
           std::chrono::milliseconds timeout, std::function<void(wire::Answer)> callback);

 private:
  class Impl;
  explicit Core(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace redlock::net
