// SPDX-License-Identifier: MIT
// The client's own loop and its thread. loop_seat.hpp decides which thread runs the turns,
// loop_driver.hpp performs them.
#include <cassert>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <pthread.h>
#include <string>
#include <thread>
#include <utility>
#include <uv.h>

#include "net/loop_core.hpp"
#include "net/seat_kernel.hpp"
#include "net/signals.hpp"

namespace redlock::net {

namespace {

/// A blocking call is no point at which a thread can be cancelled, whatever it does meanwhile.
class NoCancellation {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = 0;
};

/// The seat exists before its users, and is destroyed after them.
struct OwnLoop {
  uv_loop_t uv{};
  bool is_open = false;
};

class OwnCore final : OwnLoop, public LoopCore {
 public:
  OwnCore(CoreConfig config, wire::DriverHost& host) : LoopCore(std::move(config), host, uv) {}
  ~OwnCore() override;

  /// Empty, or the resource that the system did not give.
  [[nodiscard]] std::optional<std::string> start_loop();
  [[nodiscard]] bool take_seat() override {
    return callers_may_ever_drive() && mailbox_.empty() && seat_.take();
  }
  void drive(Task& call, const OneShotEvent& answer, bool& meanwhile) override;
  [[nodiscard]] bool on_loop_thread() const noexcept override { return current == this; }
  void end(std::function<void()> ended) override;

 private:
  struct StopTask final : Task {
    explicit StopTask(OwnCore& of) : core(of) {}
    void run() override { core.stop_loop(); }
    OwnCore& core;
  };

  void run();
  [[nodiscard]] bool callers_may_ever_drive() const {
    return nodes_.config().callers_may_drive != nullptr;
  }
  [[nodiscard]] bool may_step_aside() const;
  void step_aside();
  void stop();
  void stop_loop();
  void ring() override { kernel_.ring(); }
  void on_failure() override;
  void give_up();
  void before_poll() override;
  void on_bell() override;

  static thread_local const OwnCore* current;

  SeatKernel kernel_;
  LoopSeat<SeatKernel> seat_{kernel_};
  StopTask stop_{*this};
  bool stopped_ = false;
  bool given_up_ = false;
  // For the caller that drives: the answer that it waits for, and whether the bell has rung since.
  const OneShotEvent* awaited_ = nullptr;
  bool rung_ = false;
  std::thread thread_;
};

thread_local const OwnCore* OwnCore::current = nullptr;

std::optional<std::string> OwnCore::start_loop() {
  int status = init_loop(uv);
  is_open = status == 0;
  if (status == 0) status = kernel_.open(uv_backend_fd(&uv));
  if (status == 0) status = open_nodes(kernel_.bell());
  if (status != 0) return "cannot make an event loop: " + std::string(uv_strerror(status));
  // Signals are for the program's own threads; SIGPIPE of these sockets must reach none of them.
  const AllSignalsBlocked blocked;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::exception& error) {
    return "cannot start a thread: " + std::string(error.what());
  }
  return {};
}

void OwnCore::run() {
  current = this;
  pthread_setname_np(pthread_self(), "redlock");
  nodes_.start();
  while (!stopped_) {
    if (loop_.failed()) give_up();  // while a caller drove
    if (may_step_aside()) {
      step_aside();
    } else {
      uv_run(&uv, UV_RUN_ONCE);
    }
  }
}

/// No work is under way that only this thread may do.
bool OwnCore::may_step_aside() const {
  return !stopped_ && !loop_.failed() && callers_may_ever_drive() && mailbox_.empty() &&
         !nodes_.some_socket_is_full() && nodes_.config().callers_may_drive();
}

void OwnCore::step_aside() {
  // libuv registers descriptors when it polls, and its own timers go off there.
  do {
    uv_run(&uv, UV_RUN_NOWAIT);
  } while (may_step_aside() && uv_backend_timeout(&uv) == 0);
  if (!may_step_aside()) return;
  uv_update_time(&uv);
  kernel_.set_timeout(uv_backend_timeout(&uv));
  seat_.sleep_beside();
}

void OwnCore::drive(Task& call, const OneShotEvent& answer, bool& meanwhile) {
  const NoCancellation undisturbed;
  meanwhile = true;
  awaited_ = &answer;
  rung_ = false;
  // Of a loop that failed while another caller drove, the loop thread answers the call.
  if (loop_.failed()) post(call);
  loop_.run([&call] { call.run(); });
  nodes_.turn();
  while (!loop_.failed() && !answer.given() && !rung_ && !nodes_.some_socket_is_full()) {
    uv_run(&uv, UV_RUN_ONCE);
  }
  awaited_ = nullptr;
  meanwhile = false;
  const bool rings = rung_;
  if (!loop_.failed() && (rings || answer.given())) return seat_.leave(rings);
  kernel_.ring();
  seat_.leave(true);
}

void OwnCore::on_failure() {
  uv_stop(&uv);
  if (awaited_ == nullptr) give_up();  // otherwise the loop thread does, when the caller has left
}

void OwnCore::give_up() {
  if (std::exchange(given_up_, true)) return;
  tell_failure();
}

void OwnCore::before_poll() {
  nodes_.turn();
  // A caller that has its answer must not sleep.
  if (awaited_ != nullptr && awaited_->given()) uv_stop(&uv);
}

void OwnCore::on_bell() {
  if (awaited_ != nullptr) {
    rung_ = true;
    return;
  }
  kernel_.stop_ringing();
  mailbox_.run_all();
}

void OwnCore::stop_loop() {
  mailbox_.close();
  nodes_.stop();
  stopped_ = true;
  uv_stop(&uv);
}

void OwnCore::stop() {
  if (!thread_.joinable()) return;
  post(stop_);
  thread_.join();
}

void OwnCore::end(std::function<void()> ended) {
  stop();
  ended();
}

OwnCore::~OwnCore() {
  stop();
  if (!is_open) return;
  close_nodes();
  while (uv_run(&uv, UV_RUN_NOWAIT) != 0) {
  }
  const int status = uv_loop_close(&uv);
  assert(status == 0);
  static_cast<void>(status);
}

}  // namespace

tl::expected<std::unique_ptr<Core>, std::string> Core::start(CoreConfig config,
                                                             wire::DriverHost& host) {
  auto core = std::make_unique<OwnCore>(std::move(config), host);
  if (auto problem = core->start_loop()) return tl::unexpected(std::move(*problem));
  return core;
}

}  // namespace redlock::net
