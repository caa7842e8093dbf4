// SPDX-License-Identifier: MIT
// A turn of the loop: whatever happened is put into the driver; then, once, the driver performs
// what follows and writes what it has collected. libuv's check handle comes right after the
// sockets, the prepare handle right before the loop sleeps: with both, nothing waits. Who runs
// the turns is in loop_seat.hpp.
#include "net/core.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <uv.h>

#include "net/boot_timer.hpp"
#include "net/kernel_random.hpp"
#include "net/loop.hpp"
#include "net/mailbox.hpp"
#include "net/seat_kernel.hpp"
#include "net/signals.hpp"
#include "net/transport.hpp"
#include "wire/driver.hpp"

namespace redlock::net {

using std::chrono::milliseconds;

namespace {

std::int64_t unix_us_now() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(wall).count();
}

wire::HolderText this_process(const std::string& label) {
  std::array<char, 256> host{};
  const bool known = gethostname(host.data(), host.size() - 1) == 0;
  return {known ? host.data() : "", static_cast<std::uint64_t>(getpid()),
          label.empty() ? program_invocation_short_name : label};
}

wire::DriverConfig driver_config(const CoreConfig& config) {
  wire::DriverConfig result = config;
  result.holder = this_process(config.label);
  return result;
}

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

class LoopCore final : public Core, wire::Streams {
 public:
  LoopCore(CoreConfig config, wire::DriverHost& host)
      : config_(std::move(config)), driver_(driver_config(config_), random_, *this, host) {}
  ~LoopCore() override;

  /// None, or what the system did not give.
  [[nodiscard]] std::optional<std::string> start_loop();
  void stop() override;
  bool post(Task& task) override;
  [[nodiscard]] bool take_seat() override {
    return config_.callers_may_drive != nullptr && mailbox_.empty() && seat_.take();
  }
  void drive(Task& call, const OneShotEvent& answer, bool& meanwhile) override;
  [[nodiscard]] bool on_loop_thread() const noexcept override { return current == this; }
  [[nodiscard]] engine::Engine& engine() override { return driver_.engine(); }
  [[nodiscard]] const wire::Secrets& secrets(engine::NodeIndex node) override {
    return driver_.link(node).secrets();
  }
  void ask(engine::NodeIndex node, std::vector<std::string> command, milliseconds timeout,
           wire::Question::OnAnswer callback) override {
    driver_.ask(BootClock::now(), node, std::move(command), timeout, std::move(callback));
  }

 private:
  struct StopTask final : Task {
    explicit StopTask(LoopCore& of) : core(of) {}
    void run() override { core.stop_loop(); }
    LoopCore& core;
  };

  template <typename Handle>
  static LoopCore& of(Handle* handle) {
    return *static_cast<LoopCore*>(handle->data);
  }

  [[nodiscard]] int open_handles();
  void close_handles();
  void run();
  [[nodiscard]] bool may_step_aside() const;
  void step_aside();
  [[nodiscard]] bool some_socket_is_full() const;
  void stop_loop();
  void before_poll();
  void on_bell();
  void turn();
  void report_failures();
  void on_time();

  // wire::Streams
  void connect(engine::NodeIndex node) override { transports_[node]->connect(); }
  void disconnect(engine::NodeIndex node, wire::Closing how) override {
    transports_[node]->disconnect(how);
  }
  std::size_t write(engine::NodeIndex node, std::string& bytes) override {
    return transports_[node]->write(bytes);
  }

  static thread_local const LoopCore* current;

  const CoreConfig config_;
  KernelRandom random_;
  wire::Driver driver_;
  std::unique_ptr<Loop> loop_ = std::make_unique<Loop>();
  Mailbox mailbox_;
  SeatKernel kernel_;
  LoopSeat<SeatKernel> seat_{kernel_};
  uv_poll_t bell_{};
  uv_check_t after_poll_{};
  uv_prepare_t before_poll_{};
  std::unique_ptr<BootTimer> timer_;
  std::vector<std::unique_ptr<Transport>> transports_;
  StopTask stop_{*this};
  bool stopped_ = false;
  // Of the caller that drives: what it waits for, and whether the bell has rung since.
  const OneShotEvent* awaited_ = nullptr;
  bool rung_ = false;
  std::thread thread_;
};

thread_local const LoopCore* LoopCore::current = nullptr;

int LoopCore::open_handles() {
  bell_.data = after_poll_.data = before_poll_.data = this;
  int status = kernel_.open(uv_backend_fd(&loop_->uv));
  if (status == 0) status = uv_poll_init(&loop_->uv, &bell_, kernel_.bell());
  if (status != 0) return status;
  uv_poll_start(&bell_, UV_READABLE, [](uv_poll_t* handle, int, int) { of(handle).on_bell(); });
  uv_check_init(&loop_->uv, &after_poll_);
  uv_check_start(&after_poll_, [](uv_check_t* handle) { of(handle).turn(); });
  uv_prepare_init(&loop_->uv, &before_poll_);
  uv_prepare_start(&before_poll_, [](uv_prepare_t* handle) { of(handle).before_poll(); });
  timer_ = BootTimer::create(*loop_, [this] { on_time(); });
  return timer_ ? 0 : UV_EMFILE;
}

std::optional<std::string> LoopCore::start_loop() {
  int status = init_loop(loop_->uv);
  if (status != 0) {
    loop_.reset();
    return "cannot make an event loop: " + std::string(uv_strerror(status));
  }
  loop_->uv.data = loop_.get();
  status = open_handles();
  if (status != 0) return "cannot make an event loop: " + std::string(uv_strerror(status));
  for (engine::NodeIndex node = 0; node < config_.nodes.size(); ++node) {
    transports_.push_back(std::make_unique<Transport>(
        *loop_, config_.nodes[node],
        Connector::Timeouts{.resolve = config_.resolve_timeout, .connect = config_.connect_timeout},
        config_.tls.get(), driver_.link(node), config_.password));
  }
  // Signals are for the program's own threads; SIGPIPE of these sockets must reach none of them.
  const AllSignalsBlocked blocked;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return "cannot start a thread: " + std::string(error.what());
  }
  return {};
}

void LoopCore::run() {
  current = this;
  pthread_setname_np(pthread_self(), "redlock");
  driver_.start(BootClock::now(), unix_us_now());
  while (!stopped_) {
    if (may_step_aside()) {
      step_aside();
    } else {
      uv_run(&loop_->uv, UV_RUN_ONCE);
    }
  }
}

/// Nothing is under way that only this thread may do.
bool LoopCore::may_step_aside() const {
  return !stopped_ && config_.callers_may_drive != nullptr && mailbox_.empty() &&
         !some_socket_is_full() && config_.callers_may_drive();
}

void LoopCore::step_aside() {
  // libuv registers descriptors when it polls, and its own timers go off there.
  do {
    uv_run(&loop_->uv, UV_RUN_NOWAIT);
  } while (may_step_aside() && uv_backend_timeout(&loop_->uv) == 0);
  if (!may_step_aside()) return;
  uv_update_time(&loop_->uv);
  kernel_.set_timeout(uv_backend_timeout(&loop_->uv));
  seat_.sleep_beside();
}

/// libuv then writes by itself, which is for the loop thread alone: see stream.cpp.
bool LoopCore::some_socket_is_full() const {
  return std::ranges::any_of(transports_,
                             [](const auto& each) { return each->waits_for_socket(); });
}

void LoopCore::drive(Task& call, const OneShotEvent& answer, bool& meanwhile) {
  const NoCancellation undisturbed;
  meanwhile = true;
  awaited_ = &answer;
  rung_ = false;
  call.run();
  turn();
  while (!answer.given() && !rung_ && !some_socket_is_full()) uv_run(&loop_->uv, UV_RUN_ONCE);
  awaited_ = nullptr;
  meanwhile = false;
  const bool rings = rung_;
  if (rings || answer.given()) return seat_.leave(rings);
  kernel_.ring();
  seat_.leave(true);
}

void LoopCore::before_poll() {
  turn();
  // Who has the answer must not sleep.
  if (awaited_ != nullptr && awaited_->given()) uv_stop(&loop_->uv);
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
  driver_.stop(BootClock::now());
  stopped_ = true;
  uv_stop(&loop_->uv);
}

void LoopCore::stop() {
  if (!thread_.joinable()) return;
  post(stop_);
  thread_.join();
}

LoopCore::~LoopCore() {
  LoopCore::stop();
  if (!loop_) return;
  transports_.clear();
  timer_.reset();
  close_handles();
  const int status = uv_loop_close(&loop_->uv);
  assert(status == 0);
  static_cast<void>(status);
}

void LoopCore::close_handles() {
  for (auto* handle :
       {reinterpret_cast<uv_handle_t*>(&bell_), reinterpret_cast<uv_handle_t*>(&after_poll_),
        reinterpret_cast<uv_handle_t*>(&before_poll_)}) {
    if (handle->loop != nullptr) uv_close(handle, nullptr);
  }
  while (uv_run(&loop_->uv, UV_RUN_NOWAIT) != 0) {
  }
}

bool LoopCore::post(Task& task) {
  const Mailbox::Posted posted = mailbox_.push(task);
  if (posted == Mailbox::Posted::first) kernel_.ring();
  return posted != Mailbox::Posted::refused;
}

void LoopCore::turn() {
  report_failures();
  while (driver_.pending()) {
    driver_.turn(BootClock::now());
    report_failures();
  }
  timer_->expire_by(driver_.deadline());
}

void LoopCore::report_failures() {
  for (engine::NodeIndex node = 0; node < transports_.size(); ++node) {
    if (auto why = transports_[node]->take_failure()) {
      driver_.link(node).on_stream_closed(BootClock::now(), std::move(*why));
    }
  }
}

void LoopCore::on_time() {
  const engine::Instant now = BootClock::now();
  driver_.on_own_clock(now, unix_us_now());
  driver_.on_deadline(now);
}

}  // namespace

tl::expected<std::unique_ptr<Core>, std::string> Core::start(CoreConfig config,
                                                             wire::DriverHost& host) {
  auto core = std::make_unique<LoopCore>(std::move(config), host);
  if (auto problem = core->start_loop()) return tl::unexpected(std::move(*problem));
  return core;
}

}  // namespace redlock::net
