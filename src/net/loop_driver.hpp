// SPDX-License-Identifier: MIT
// A wire::Driver on a libuv loop, whichever thread runs that: the connections, the timer and the
// turns.
//
// In a turn of the loop, all events are put into the driver; then, once, the driver performs its
// outputs and writes the collected messages. libuv's check handle comes right after the sockets,
// the prepare handle right before the loop sleeps: with both, nothing waits.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <uv.h>
#include <vector>

#include "net/boot_timer.hpp"
#include "net/core.hpp"
#include "net/kernel_random.hpp"
#include "net/loop.hpp"
#include "net/transport.hpp"
#include "wire/driver.hpp"

namespace redlock::net {

class LoopListener {
 public:
  /// Right before the loop sleeps. A turn() is due.
  virtual void before_poll() = 0;
  /// The descriptor of the bell is readable.
  virtual void on_bell() = 0;

 protected:
  ~LoopListener() = default;
};

class LoopDriver final : wire::Streams {
 public:
  /// All that are references must outlive it. It may go when the loop has nothing of it left:
  /// before open(), or some time after close().
  LoopDriver(CoreConfig config, wire::DriverHost& host, Loop& loop, LoopListener& listener);
  LoopDriver(const LoopDriver&) = delete;
  LoopDriver& operator=(const LoopDriver&) = delete;

  /// 0 or libuv's error, and then close() is to follow, as always.
  [[nodiscard]] int open(int bell);
  void start();
  void turn();
  /// Closes every connection and answers every question.
  void stop();
  /// After the loop has failed: closes every connection and destroys every question, unanswered.
  /// Nothing but close() may follow.
  void drop() noexcept;
  void close();
  /// The same in the child of a fork, without sending anything.
  void abandon();

  [[nodiscard]] const CoreConfig& config() const { return config_; }
  [[nodiscard]] wire::Driver& driver() { return driver_; }
  [[nodiscard]] std::optional<tls::CertificatePeriod> trusted_by(engine::NodeIndex node) const {
    return transports_[node]->trusted_by();
  }
  /// libuv then writes by itself: see stream.cpp.
  [[nodiscard]] bool some_socket_is_full() const;

 private:
  template <typename Handle>
  static LoopDriver& of(Handle* handle) {
    return *static_cast<LoopDriver*>(handle->data);
  }

  [[nodiscard]] std::unique_ptr<Transport> transport_of(engine::NodeIndex node);
  void perform_turn();
  void report_failures();
  void on_time();

  // wire::Streams
  void connect(engine::NodeIndex node) override { transports_[node]->connect(); }
  void disconnect(engine::NodeIndex node, wire::Closing how) override {
    transports_[node]->disconnect(how);
  }
  void move(engine::NodeIndex node, const wire::NodeAddress& address) override;
  std::size_t write(engine::NodeIndex node, std::string& bytes) override {
    return transports_[node]->write(bytes);
  }

  CoreConfig config_;
  Loop& loop_;
  LoopListener& listener_;
  KernelRandom random_;
  wire::Driver driver_;
  uv_poll_t bell_{};
  uv_check_t after_poll_{};
  uv_prepare_t before_poll_{};
  std::unique_ptr<BootTimer> timer_;
  std::vector<std::unique_ptr<Transport>> transports_;
};

}  // namespace redlock::net
