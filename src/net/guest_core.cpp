// SPDX-License-Identifier: MIT
// On a loop that the program gave and runs. Only libuv drives: other threads push tasks and ring
// the bell, and the loop runs the tasks when it polls.
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>
#include <uv.h>

#include "net/loop_core.hpp"

namespace redlock::net {

namespace {

class GuestCore final : public LoopCore {
 public:
  GuestCore(CoreConfig config, wire::DriverHost& host, uv_loop_t& uv)
      : LoopCore(std::move(config), host, uv) {}
  ~GuestCore() override {
    if (bell_ >= 0) ::close(bell_);
  }

  /// 0 or libuv's error.
  [[nodiscard]] int open();
  /// Gives the loop back; then `left` is called.
  void close(std::function<void()> left);

  [[nodiscard]] bool take_seat() override { return false; }
  void drive(Task& /*call*/, const OneShotEvent& /*answer*/, bool& /*meanwhile*/) override {
    assert(false);
  }
  [[nodiscard]] bool on_loop_thread() const noexcept override { return false; }
  void end(std::function<void()> ended) override;

 private:
  void ring() override;
  void on_failure() override { tell_failure(); }
  void before_poll() override;
  void on_bell() override;

  int bell_ = -1;
  bool begun_ = false;
};

int GuestCore::open() {
  bell_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return bell_ < 0 ? uv_translate_sys_error(errno) : open_nodes(bell_);
}

void GuestCore::close(std::function<void()> left) {
  close_nodes();
  loop_.when_left(std::move(left));
}

void GuestCore::ring() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto done = ::write(bell_, &one, sizeof one);
}

void GuestCore::end(std::function<void()> ended) {
  mailbox_.close();
  nodes_.stop();
  close(std::move(ended));
}

void GuestCore::before_poll() {
  // The child of a fork that runs its copy of the loop must not take part: it would read the
  // parent's bytes, and renew the parent's leases.
  const auto& in_child = nodes_.config().in_child;
  if (in_child && in_child()) {
    nodes_.abandon();
    later_.reset();
    return;
  }
  // Not before the loop runs, as the time for connecting would begin.
  if (!std::exchange(begun_, true)) nodes_.start();
  // Messages that the program started since the loop polled leave now, and not a poll later.
  if (!mailbox_.empty()) on_bell();
  nodes_.turn();
}

void GuestCore::on_bell() {
  std::uint64_t rung = 0;
  [[maybe_unused]] const auto done = ::read(bell_, &rung, sizeof rung);
  mailbox_.run_all();
}

}  // namespace

tl::expected<std::unique_ptr<Core>, std::string> Core::start(CoreConfig config,
                                                             wire::DriverHost& host,
                                                             uv_loop_s& loop) {
  auto core = std::make_unique<GuestCore>(std::move(config), host, loop);
  int status = UV_ENOMEM;
  try {
    status = core->open();
  } catch (const std::bad_alloc&) {
    // The handles that libuv has by now must not be destroyed here.
  }
  if (status == 0) return core;
  // The handles that libuv has are closed when the loop is run.
  GuestCore* const failed = core.release();
  failed->close([failed] { delete failed; });
  return tl::unexpected("cannot use the loop: " + std::string(uv_strerror(status)));
}

}  // namespace redlock::net
