// SPDX-License-Identifier: MIT
#include "net/loop_driver.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <unistd.h>
#include <utility>

namespace redlock::net {

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

}  // namespace

LoopDriver::LoopDriver(CoreConfig config, wire::DriverHost& host, Loop& loop,
                       LoopListener& listener)
    : config_(std::move(config)),
      loop_(loop),
      listener_(listener),
      driver_(driver_config(config_), random_, *this, host) {
  config_.nodes.resize(driver_.engine().slots());
}

int LoopDriver::open(int bell) {
  bell_.data = after_poll_.data = before_poll_.data = this;
  const int status = uv_poll_init(&loop_.uv, &bell_, bell);
  if (status != 0) return status;
  uv_poll_start(&bell_, UV_READABLE,
                [](uv_poll_t* handle, int, int) { of(handle).listener_.on_bell(); });
  uv_check_init(&loop_.uv, &after_poll_);
  uv_check_start(&after_poll_, [](uv_check_t* handle) { of(handle).turn(); });
  uv_prepare_init(&loop_.uv, &before_poll_);
  uv_prepare_start(&before_poll_, [](uv_prepare_t* handle) { of(handle).listener_.before_poll(); });
  for (int handles = 3; handles > 0; --handles) loop_.enter();
  timer_ = BootTimer::create(loop_, [this] { on_time(); });
  if (!timer_) return UV_EMFILE;
  for (engine::NodeIndex node = 0; node < config_.nodes.size(); ++node) {
    transports_.push_back(transport_of(node));
  }
  return 0;
}

std::unique_ptr<Transport> LoopDriver::transport_of(engine::NodeIndex node) {
  return std::make_unique<Transport>(
      loop_, config_.nodes[node],
      Connector::Timeouts{.resolve = config_.resolve_timeout, .connect = config_.connect_timeout},
      config_.tls.get(), driver_.link(node), config_.password);
}

/// In a turn, so not within a report of the transport that goes.
void LoopDriver::move(engine::NodeIndex node, const wire::NodeAddress& address) {
  transports_[node].reset();
  config_.nodes[node] = address;
  transports_[node] = transport_of(node);
}

void LoopDriver::start() {
  loop_.run([this] { driver_.start(BootClock::now(), unix_us_now()); });
}

void LoopDriver::stop() {
  loop_.run([this] { driver_.stop(BootClock::now()); });
}

void LoopDriver::drop() noexcept {
  transports_.clear();
  driver_.drop_questions();
}

void LoopDriver::close() {
  transports_.clear();
  timer_.reset();
  for (auto* handle :
       {reinterpret_cast<uv_handle_t*>(&bell_), reinterpret_cast<uv_handle_t*>(&after_poll_),
        reinterpret_cast<uv_handle_t*>(&before_poll_)}) {
    if (handle->loop == nullptr) continue;
    uv_close(handle, [](uv_handle_t* closed) {
      Loop& loop = of(closed).loop_;
      loop.leave();
    });
  }
}

void LoopDriver::abandon() {
  for (const auto& transport : transports_) transport->abandon();
  close();
}

bool LoopDriver::some_socket_is_full() const {
  return std::ranges::any_of(transports_,
                             [](const auto& each) { return each->waits_for_socket(); });
}

void LoopDriver::turn() {
  loop_.run([this] { perform_turn(); });
}

void LoopDriver::perform_turn() {
  report_failures();
  while (driver_.pending()) {
    driver_.turn(BootClock::now());
    report_failures();
  }
  timer_->expire_by(driver_.deadline());
}

void LoopDriver::report_failures() {
  for (engine::NodeIndex node = 0; node < transports_.size(); ++node) {
    if (auto why = transports_[node]->take_failure()) {
      driver_.link(node).on_stream_closed(BootClock::now(), std::move(*why));
    }
  }
}

void LoopDriver::on_time() {
  const engine::Instant now = BootClock::now();
  driver_.on_own_clock(now, unix_us_now());
  driver_.on_deadline(now);
}

}  // namespace redlock::net
