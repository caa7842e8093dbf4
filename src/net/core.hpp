// SPDX-License-Identifier: MIT
// The core performs what the engine decides: it owns the libuv loop and its thread, one link per
// node, the timer, and the mailbox through which other threads reach the loop. Everything above it
// speaks to it through this header, which names no type of libuv or hiredis.
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
#include "wire/node_address.hpp"
#include "net/task.hpp"
#include "wire/unfit_nodes.hpp"
#include "wire/value.hpp"

namespace redlock::net {

struct CoreConfig {
  std::vector<wire::NodeAddress> nodes;
  engine::Config engine;
  std::chrono::milliseconds max_lease{60'000};  ///< compared with the nodes' markers
  std::chrono::milliseconds resolve_timeout{2'000};
  std::chrono::milliseconds connect_timeout{1'000};
  std::string client_name = "redlock";
  std::string label{};  ///< see wire::HolderText::of_this_process
  wire::UnfitNodes unfit = wire::UnfitNodes::refuse;
  /// How often a connection is used at the least, so that one which is dead is noticed and replaced
  /// before it is needed. Also how often the nodes' clocks are read.
  std::chrono::milliseconds probe_interval{10'000};
};

/// Hears, on the loop thread, what the engine put out (all but Send, which the core performs) and
/// what became of the nodes.
class CoreSink {
 public:
  virtual void on_output(engine::Output&& output) = 0;
  virtual void on_node_up(engine::NodeIndex node, std::string_view warning) = 0;
  virtual void on_node_down(engine::NodeIndex node, const engine::Unavailable& why) = 0;
  /// At the moment of Core::wake_by, and whenever the engine had something to wait for.
  virtual void on_time(engine::Instant /*now*/) {}

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

  /// Has the sink called by then. Of several moments only the earliest is kept.
  void wake_by(engine::Instant when);

  /// Puts one command to one node, for inspection and administration. Answered exactly once, at the
  /// timeout at the latest; before this returns if the node is known to be down.
  void ask(engine::NodeIndex node, const std::vector<std::string>& command,
           std::chrono::milliseconds timeout, std::function<void(wire::Answer)> callback);

 private:
  class Impl;
  explicit Core(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace redlock::net
