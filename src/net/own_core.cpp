// SPDX-License-Identifier: MIT
// A loop of our own and its thread. Who runs the turns is in loop_seat.hpp, what they do in
// loop_driver.hpp.
#include <cassert>
#include <exception>
#include <optional>
#include <pthread.h>
#include <thread>
#include <utility>
#include <uv.h>

#include "net/core.hpp"
#include "net/loop.hpp"
#include "net/loop_driver.hpp"
#include "net/mailbox.hpp"
#include "net/seat_kernel.hpp"
#include "net/signals.hpp"

namespace redlock::net {

using std::chrono::milliseconds;

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

class LoopCore final : public OwnCore, LoopListener {
 public:
  LoopCore(CoreConfig config, wire::DriverHost& host)
      : nodes_(std::move(config), host, loop_, *this) {
    loop_.when_failed([this] { on_failure(); });
  }
  ~LoopCore() override;

  /// None, or what the system did not give.
  [[nodiscard]] std::optional<std::string> start_loop();
  void stop() override;
  bool post(Task& task) override;
  [[nodiscard]] bool take_seat() override {
    return callers_may_ever_drive() && mailbox_.empty() && seat_.take();
  }
  void drive(Task& call, const OneShotEvent& answer, bool& meanwhile) override;
  [[nodiscard]] bool on_loop_thread() const noexcept override { return current == this; }
  [[nodiscard]] engine::Engine& engine() override { return nodes_.driver().engine(); }
  [[nodiscard]] const wire::Secrets& secrets(engine::NodeIndex node) override {
    return nodes_.driver().link(node).secrets();
  }
  [[nodiscard]] std::optional<tls::CertificatePeriod> trusted_by(engine::NodeIndex node) override {
    return nodes_.trusted_by(node);
  }
  void ask(engine::NodeIndex node, std::vector<std::string> command, milliseconds timeout,
           wire::Question::OnAnswer callback) override {
    if (loop_.failed()) return;
    nodes_.driver().ask(BootClock::now(), node, std::move(command), timeout, std::move(callback));
  }

 private:
  struct StopTask final : Task {
    explicit StopTask(LoopCore& of) : core(of) {}
    void run() override { core.stop_loop(); }
    LoopCore& core;
  };

  void run();
  [[nodiscard]] bool callers_may_ever_drive() const {
    return nodes_.config().callers_may_drive != nullptr;
  }
  [[nodiscard]] bool may_step_aside() const;
  void step_aside();
  void stop_loop();
  void on_failure();
  void give_up();
  void before_poll() override;
  void on_bell() override;

  static thread_local const LoopCore* current;

  uv_loop_t uv_{};
  bool has_loop_ = false;
  Loop loop_{uv_};
  LoopDriver nodes_;
  Mailbox mailbox_{[this](std::exception_ptr why) { loop_.fail(std::move(why)); }};
  SeatKernel kernel_;
  LoopSeat<SeatKernel> seat_{kernel_};
  StopTask stop_{*this};
  bool stopped_ = false;
  bool given_up_ = false;
  // Of the caller that drives: what it waits for, and whether the bell has rung since.
  const OneShotEvent* awaited_ = nullptr;
  bool rung_ = false;
  std::thread thread_;
};

thread_local const LoopCore* LoopCore::current = nullptr;

std::optional<std::string> LoopCore::start_loop() {
  int status = init_loop(uv_);
  has_loop_ = status == 0;
  if (status == 0) status = kernel_.open(uv_backend_fd(&uv_));
  if (status == 0) status = nodes_.open(kernel_.bell());
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

void LoopCore::run() {
  current = this;
  pthread_setname_np(pthread_self(), "redlock");
  nodes_.start();
  while (!stopped_) {
    if (loop_.failed()) give_up();  // while a caller drove
    if (may_step_aside()) {
      step_aside();
    } else {
      uv_run(&uv_, UV_RUN_ONCE);
    }
  }
}

/// Nothing is under way that only this thread may do.
bool LoopCore::may_step_aside() const {
  return !stopped_ && !loop_.failed() && callers_may_ever_drive() && mailbox_.empty() &&
         !nodes_.some_socket_is_full() && nodes_.config().callers_may_drive();
}

void LoopCore::step_aside() {
  // libuv registers descriptors when it polls, and its own timers go off there.
  do {
    uv_run(&uv_, UV_RUN_NOWAIT);
  } while (may_step_aside() && uv_backend_timeout(&uv_) == 0);
  if (!may_step_aside()) return;
  uv_update_time(&uv_);
  kernel_.set_timeout(uv_backend_timeout(&uv_));
  seat_.sleep_beside();
}

void LoopCore::drive(Task& call, const OneShotEvent& answer, bool& meanwhile) {
  const NoCancellation undisturbed;
  meanwhile = true;
  awaited_ = &answer;
  rung_ = false;
  // Of a loop that failed while another caller drove, the loop thread answers the call.
  if (loop_.failed()) post(call);
  loop_.run([&call] { call.run(); });
  nodes_.turn();
  while (!loop_.failed() && !answer.given() && !rung_ && !nodes_.some_socket_is_full()) {
    uv_run(&uv_, UV_RUN_ONCE);
  }
  awaited_ = nullptr;
  meanwhile = false;
  const bool rings = rung_;
  if (!loop_.failed() && (rings || answer.given())) return seat_.leave(rings);
  kernel_.ring();
  seat_.leave(true);
}

void LoopCore::on_failure() {
  uv_stop(&uv_);
  if (awaited_ == nullptr) give_up();  // otherwise the loop thread does, when the caller has left
}

void LoopCore::give_up() {
  if (std::exchange(given_up_, true)) return;
  nodes_.drop();
  if (const auto& failed = nodes_.config().failed) failed(loop_.failure());
}

void LoopCore::before_poll() {
  nodes_.turn();
  // Who has the answer must not sleep.
  if (awaited_ != nullptr && awaited_->given()) uv_stop(&uv_);
}

void LoopCore::on_bell() {
  if (awaited_ != nullptr) {
    rung_ = true;
    return;
  }
  kernel_.stop_ringing();
  mailbox_.run_all();
}

void LoopCore::stop_loop() {
  mailbox_.close();
  nodes_.stop();
  stopped_ = true;
  uv_stop(&uv_);
}

void LoopCore::stop() {
  if (!thread_.joinable()) return;
  post(stop_);
  thread_.join();
}

LoopCore::~LoopCore() {
  LoopCore::stop();
  if (!has_loop_) return;
  nodes_.close();
  while (uv_run(&uv_, UV_RUN_NOWAIT) != 0) {
  }
  const int status = uv_loop_close(&uv_);
  assert(status == 0);
  static_cast<void>(status);
}

bool LoopCore::post(Task& task) {
  const Mailbox::Posted posted = mailbox_.push(task);
  if (posted == Mailbox::Posted::first) kernel_.ring();
  return posted != Mailbox::Posted::refused;
}

}  // namespace

tl::expected<std::unique_ptr<OwnCore>, std::string> OwnCore::start(CoreConfig config,
                                                                   wire::DriverHost& host) {
  auto core = std::make_unique<LoopCore>(std::move(config), host);
  if (auto problem = core->start_loop()) return tl::unexpected(std::move(*problem));
  return core;
}

}  // namespace redlock::net
