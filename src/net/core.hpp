// SPDX-License-Identifier: MIT
// The core runs a wire::Driver over the network: one transport per node, the timer, and the mailbox
// through which other threads reach the loop. Behind it are two loops: one of its own, with a
// thread, and one that the program gave and runs. Everything above uses this header, which names no
// type of libuv (but the loop that is given) or hiredis.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/engine.hpp"
#include "net/one_shot_event.hpp"
#include "net/task.hpp"
#include "tls/tls_context.hpp"
#include "wire/driver_config.hpp"
#include "wire/driver_host.hpp"
#include "wire/question.hpp"
#include "wire/secrets.hpp"

struct uv_loop_s;

namespace redlock::net {

struct CoreConfig : wire::DriverConfig {
  std::chrono::milliseconds resolve_timeout{2'000};
  /// What a node keeps beside the owner of a lock as the holder's name; empty: the program's.
  std::string label{};
  /// If one of the nodes has TLS.
  std::shared_ptr<tls::TlsContext> tls{};
  /// Asked for the newest password of a node, by its label, with each connection. May be empty.
  std::function<std::string(std::string_view node)> password{};
  /// In the seat: whether a blocking caller may drive from now on. It may if no thread waits for
  /// any other call, and users' code only runs where the host runs it. Empty: never.
  std::function<bool()> callers_may_drive{};
  /// An exception has left the driver, its host, or a task: their work may be half done. The
  /// connections are closed, and no output is performed any more, but tasks are still run, which
  /// the host has to answer. On the loop thread, once. It must not throw. May be empty.
  std::function<void(const std::exception_ptr& why)> failed{};
  /// On a given loop: whether this is the child of a fork, which has a copy of that loop. Empty:
  /// never.
  std::function<bool()> in_child{};
};

class Core {
 public:
  /// On a loop of its own: starts the loop thread, which begins to connect to every node. The host
  /// is called there, and must outlive the core. Fails, with a sentence, only if the system gives
  /// no thread or descriptor.
  static tl::expected<std::unique_ptr<Core>, std::string> start(CoreConfig config,
                                                                wire::DriverHost& host);
  /// On a given loop: starts no thread but for look-ups of names; the thread that runs the loop is
  /// the loop thread. Call it there, or while no thread runs the loop. The host is called by the
  /// loop, never by this call. Fails, with a sentence, only if the system gives no descriptor.
  static tl::expected<std::unique_ptr<Core>, std::string> start(CoreConfig config,
                                                                wire::DriverHost& host,
                                                                uv_loop_s& loop);

  /// With a loop of its own, from another thread than the loop's: does what end() does, if that was
  /// not called. On a given loop a core is destroyed only by end().
  virtual ~Core() = default;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Any thread, but not beside the destructor. False, and the task is not run, once the core has
  /// begun to stop.
  virtual bool post(Task& task) = 0;

  /// Any thread but the loop's, as post(): takes the loop from the loop thread, if that does not
  /// need it, and if no task is waiting. drive() must follow. A given loop is never available.
  [[nodiscard]] virtual bool take_seat() = 0;
  /// Runs this task and then the loop until the answer is given or another thread posts a task, and
  /// gives the loop back; the loop thread then goes on. `meanwhile` is true for as long.
  virtual void drive(Task& call, const OneShotEvent& answer, bool& meanwhile) = 0;

  /// Whether this is the loop thread. Never with a given loop: it is unknown which thread runs it
  /// next.
  [[nodiscard]] virtual bool on_loop_thread() const noexcept = 0;

  /// Once: runs the tasks that were posted, closes the connections, answers every outstanding
  /// question. When nothing of the core is left on the loop, `ended` is called, which may destroy
  /// the core. With a loop of its own this is called from another thread than the loop's, joins
  /// that, and calls `ended` before it returns. On a given loop it is called on the loop thread,
  /// but not in an output of the driver; `ended` is called in a later turn, and is to destroy the
  /// core.
  virtual void end(std::function<void()> ended) = 0;

  // The rest only on the thread that drives: the loop thread, or a caller that has its seat.

  /// The engine, to be given inputs with BootClock::now(). Its outputs are performed at the end of
  /// this turn of the loop, all messages for one node in one write.
  [[nodiscard]] virtual engine::Engine& engine() = 0;

  /// The passwords that the node is, or was, given.
  [[nodiscard]] virtual const wire::Secrets& secrets(engine::NodeIndex node) = 0;

  /// As Transport has it.
  [[nodiscard]] virtual std::optional<tls::CertificatePeriod> trusted_by(
      engine::NodeIndex node) = 0;

  /// Sends one command to one node, for inspection and administration. Answered exactly once, at
  /// the timeout at the latest; before this returns if the node is known to be down. Once the core
  /// has failed the callback is destroyed in place of being called.
  virtual void ask(engine::NodeIndex node, std::vector<std::string> command,
                   std::chrono::milliseconds timeout, wire::Question::OnAnswer callback) = 0;

  /// Calls the function in a later turn of the loop. One at a time.
  virtual void call_after(std::chrono::milliseconds pause, std::function<void()> due) = 0;

 protected:
  Core() = default;
};

}  // namespace redlock::net
