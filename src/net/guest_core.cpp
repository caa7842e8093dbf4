// SPDX-License-Identifier: MIT
// On a loop that the program gave and runs. Nobody but libuv drives: other threads push tasks and
// ring the bell, and the loop runs the tasks when it polls.
#include <cerrno>
#include <exception>
#include <new>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>
#include <uv.h>

#include "net/core.hpp"
#include "net/loop.hpp"
#include "net/loop_driver.hpp"
#include "net/mailbox.hpp"
#include "net/timer.hpp"

namespace redlock::net {

using std::chrono::milliseconds;

namespace {

class GivenLoopCore final : public GuestCore, LoopListener {
 public:
  GivenLoopCore(CoreConfig config, wire::DriverHost& host, uv_loop_t& uv)
      : loop_(uv), nodes_(std::move(config), host, loop_, *this) {
    loop_.when_failed([this] { on_failure(); });
  }
  ~GivenLoopCore() override {
    if (bell_ >= 0) ::close(bell_);
  }

  /// 0 or libuv's error.
  [[nodiscard]] int open();
  /// Gives the loop back; then `left` is called.
  void close(std::function<void()> left);

  bool post(Task& task) override;
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
  void call_after(milliseconds pause, std::function<void()> due) override;
  void end(std::function<void()> ended) override;

 private:
  void on_failure();
  void before_poll() override;
  void on_bell() override;

  Loop loop_;
  LoopDriver nodes_;
  Mailbox mailbox_{[this](std::exception_ptr why) { loop_.fail(std::move(why)); }};
  int bell_ = -1;
  bool begun_ = false;
  std::unique_ptr<Timer> later_;
  std::function<void()> due_;
};

int GivenLoopCore::open() {
  bell_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (bell_ < 0) return uv_translate_sys_error(errno);
  if (const int status = nodes_.open(bell_); status != 0) return status;
  later_ = std::make_unique<Timer>(loop_, [this] { std::exchange(due_, nullptr)(); });
  return 0;
}

void GivenLoopCore::close(std::function<void()> left) {
  nodes_.close();
  later_.reset();
  loop_.when_left(std::move(left));
}

bool GivenLoopCore::post(Task& task) {
  const Mailbox::Posted posted = mailbox_.push(task);
  if (posted == Mailbox::Posted::first) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto done = ::write(bell_, &one, sizeof one);
  }
  return posted != Mailbox::Posted::refused;
}

void GivenLoopCore::call_after(milliseconds pause, std::function<void()> due) {
  due_ = std::move(due);
  later_->start(pause);
}

void GivenLoopCore::end(std::function<void()> ended) {
  mailbox_.close();
  nodes_.stop();
  close(std::move(ended));
}

void GivenLoopCore::on_failure() {
  nodes_.drop();
  if (const auto& failed = nodes_.config().failed) failed(loop_.failure());
}

void GivenLoopCore::before_poll() {
  // The child of a fork that runs its copy of the loop must not take part: it would read what is
  // the parent's, and renew the parent's leases.
  const auto& in_child = nodes_.config().in_child;
  if (in_child && in_child()) {
    nodes_.abandon();
    later_.reset();
    return;
  }
  // Not before the loop runs, as the time for connecting would begin.
  if (!std::exchange(begun_, true)) nodes_.start();
  // What the program started since the loop polled leaves now, and not a poll later.
  if (!mailbox_.empty()) on_bell();
  nodes_.turn();
}

void GivenLoopCore::on_bell() {
  std::uint64_t rung = 0;
  [[maybe_unused]] const auto done = ::read(bell_, &rung, sizeof rung);
  mailbox_.run_all();
}

}  // namespace

tl::expected<std::unique_ptr<GuestCore>, std::string> GuestCore::start(CoreConfig config,
                                                                       wire::DriverHost& host,
                                                                       uv_loop_s& loop) {
  auto core = std::make_unique<GivenLoopCore>(std::move(config), host, loop);
  int status = UV_ENOMEM;
  try {
    status = core->open();
  } catch (const std::bad_alloc&) {
    // What libuv has of it by now must not be destroyed here.
  }
  if (status == 0) return core;
  // What libuv has of it is closed when the loop is run.
  GivenLoopCore* const failed = core.release();
  failed->close([failed] { delete failed; });
  return tl::unexpected("cannot use the loop: " + std::string(uv_strerror(status)));
}

}  // namespace redlock::net
