// SPDX-License-Identifier: MIT
// The parts of a core on either kind of loop: tasks come by a mailbox and a bell, nodes by a
// LoopDriver. own_core.cpp and guest_core.cpp add the thread that runs the loop.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <uv.h>
#include <vector>

#include "net/core.hpp"
#include "net/loop.hpp"
#include "net/loop_driver.hpp"
#include "net/mailbox.hpp"
#include "net/timer.hpp"

namespace redlock::net {

class LoopCore : public Core, protected LoopListener {
 public:
  bool post(Task& task) final {
    const Mailbox::Posted posted = mailbox_.push(task);
    if (posted == Mailbox::Posted::first) ring();
    return posted != Mailbox::Posted::refused;
  }
  [[nodiscard]] engine::Engine& engine() final { return nodes_.driver().engine(); }
  [[nodiscard]] const wire::Secrets& secrets(engine::NodeIndex node) final {
    return nodes_.driver().link(node).secrets();
  }
  [[nodiscard]] std::optional<tls::CertificatePeriod> trusted_by(engine::NodeIndex node) final {
    return nodes_.trusted_by(node);
  }
  void ask(engine::NodeIndex node, std::vector<std::string> command,
           std::chrono::milliseconds timeout, wire::Question::OnAnswer callback) final {
    if (loop_.failed()) return;
    nodes_.driver().ask(BootClock::now(), node, std::move(command), timeout, std::move(callback));
  }
  void call_after(std::chrono::milliseconds pause, std::function<void()> due) final {
    due_ = std::move(due);
    later_->start(pause);
  }

 protected:
  LoopCore(CoreConfig config, wire::DriverHost& host, uv_loop_t& uv)
      : loop_(uv), nodes_(std::move(config), host, loop_, *this) {
    loop_.when_failed([this] { on_failure(); });
  }

  /// 0 or libuv's error; close_nodes() is to follow in any case.
  [[nodiscard]] int open_nodes(int bell) {
    if (const int status = nodes_.open(bell); status != 0) return status;
    later_ = std::make_unique<Timer>(loop_, [this] { std::exchange(due_, nullptr)(); });
    return 0;
  }
  void close_nodes() {
    nodes_.close();
    later_.reset();
  }
  void tell_failure() {
    nodes_.drop();
    if (const auto& failed = nodes_.config().failed) failed(loop_.failure());
  }

  /// Wakes the loop: a task is in the mailbox. Any thread.
  virtual void ring() = 0;
  virtual void on_failure() = 0;

  Loop loop_;
  LoopDriver nodes_;
  Mailbox mailbox_{[this](std::exception_ptr why) { loop_.fail(std::move(why)); }};
  std::unique_ptr<Timer> later_;
  std::function<void()> due_;
};

}  // namespace redlock::net
