// SPDX-License-Identifier: MIT
// The core runs a wire::Driver over the network: it owns the libuv loop and its thread, one
// transport per node, the timer, and the mailbox through which other threads reach the loop.
// Everything above uses this header, which names no type of libuv or hiredis.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "engine/engine.hpp"
#include "net/task.hpp"
#include "wire/driver_config.hpp"
#include "wire/driver_host.hpp"
#include "wire/question.hpp"

namespace redlock::net {

struct CoreConfig : wire::DriverConfig {
  std::chrono::milliseconds resolve_timeout{2'000};
  /// What a node keeps beside the owner of a lock as the holder's name; empty: the program's.
  std::string label{};
};

class Core {
 public:
  /// Starts the loop thread, which begins to connect to every node. The host is called there, and
  /// must outlive the core. Fails, with a sentence, only if the system gives no thread or
  /// descriptor.
  static tl::expected<std::unique_ptr<Core>, std::string> start(CoreConfig config,
                                                                wire::DriverHost& host);

  /// Stops the loop and joins its thread: connections are closed, every outstanding question is
  /// answered. From the loop thread itself it may not be called.
  virtual ~Core() = default;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Once, from another thread than the loop's: what the destructor begins with, for a host that
  /// reaches the core by a pointer that must outlive the loop.
  virtual void stop() = 0;

  /// Any thread, but not beside the destructor. False, and the task is not run, once the destructor
  /// has begun to stop the loop.
  virtual bool post(Task& task) = 0;

  /// Whether this is the loop thread.
  [[nodiscard]] virtual bool on_loop_thread() const noexcept = 0;

  // The rest on the loop thread only.

  /// The engine, to be given inputs with BootClock::now(). Its outputs are performed at the end of
  /// this turn of the loop, all messages for one node in one write.
  [[nodiscard]] virtual engine::Engine& engine() = 0;

  /// Sends one command to one node, for inspection and administration. Answered exactly once, at
  /// the timeout at the latest; before this returns if the node is known to be down.
  virtual void ask(engine::NodeIndex node, std::vector<std::string> command,
                   std::chrono::milliseconds timeout, wire::Question::OnAnswer callback) = 0;

 protected:
  Core() = default;
};

}  // namespace redlock::net
