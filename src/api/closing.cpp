// SPDX-License-Identifier: MIT
// How a client ends: acquisitions are cancelled, leases released, releases awaited for one node
// timeout; then nobody is let in any more, what is left fails, and the loop stops. Two facts make
// it safe: a task that was accepted is run, and after the gate is closed none is accepted.
// A quorum of confirmations is what is waited for; a node that hangs gets only a moment more, as
// what was sent to it is under way whether we wait or not.
#include <algorithm>
#include <memory>
#include <semaphore>
#include <system_error>
#include <thread>
#include <utility>

#include "api/client_impl.hpp"
#include "api/fork.hpp"

namespace redlock {

namespace {

constexpr std::chrono::microseconds longest_pause(5'000);
constexpr std::chrono::milliseconds moment_for_stragglers(20);

/// A step that another thread waits for.
template <typename Step>
class Errand final : public io::Task {
 public:
  explicit Errand(Step& step) : step_(step) {}
  void run() override {
    step_();
    done_.release();
  }
  void wait() { done_.acquire(); }

 private:
  Step& step_;
  std::binary_semaphore done_{0};
};

/// A step that nobody waits for.
class Closing final : public io::Task {
 public:
  using Step = void (Client::Impl::*)();
  Closing(std::shared_ptr<Client::Impl> client, Step step)
      : client_(std::move(client)), step_(step) {}
  void run() override {
    const std::unique_ptr<Closing> self(this);
    (client_.get()->*step_)();
  }

 private:
  std::shared_ptr<Client::Impl> client_;
  Step step_;
};

}  // namespace

void Client::Impl::shut_down() noexcept {
  if (forked()) {
    // Everything here may be half-written, and the thread that the core would join is not there.
    api::keep_forever(shared_from_this());
  } else if (must_not_wait()) {
    // Nothing can be waited for here, so somebody else does it; what was asked and has not begun
    // must not be granted meanwhile.
    const auto self = shared_from_this();
    if (on_loop_thread()) closing_ = true;
    try {
      std::thread([self] { self->finish_everything(); }).detach();
    } catch (const std::system_error&) {
      // There is no thread to be had: nothing is left locked, but the loop goes on idly.
      auto closing = std::make_unique<Closing>(self, &Impl::begin_closing);
      if (core_->post(*closing)) static_cast<void>(closing.release());
      api::keep_forever(self);
    }
  } else {
    finish_everything();
  }
}

void Client::Impl::finish_everything() {
  run_on_loop([this] { begin_closing(); });

  auto deadline = BootClock::now() + options_.node_timeout;
  auto left = Unfinished::requests;
  for (std::chrono::microseconds pause{50};; pause = std::min(2 * pause, longest_pause)) {
    const auto before = left;
    run_on_loop([this, &left] { left = unfinished(); });
    const auto now = BootClock::now();
    if (left == Unfinished::stragglers && before == Unfinished::requests) {
      deadline = std::min(deadline, now + moment_for_stragglers);
    }
    if (left == Unfinished::nothing || now >= deadline) break;
    std::this_thread::sleep_for(pause);
  }

  gate_.close();
  run_on_loop([this] { fail_leftovers(); });
  core_->stop();  // the loop still looks for it until it has ended
  core_.reset();
  guard_.stop();
}

/// Past the gate: only the thread that closes the client comes here.
template <typename Step>
void Client::Impl::run_on_loop(Step step) {
  Errand<Step> errand(step);
  if (core_->post(errand)) errand.wait();
}

void Client::Impl::begin_closing() {
  closing_ = true;
  const auto now = BootClock::now();
  takings_.close();
  for (const auto& [id, call] : calls_) call->close(core_->engine(), now, id);
  for (const auto& [grant, lease] : std::exchange(leases_, {})) {
    // First, so that a holder on another thread knows before somebody else can have the lock.
    const bool is_new = lease->lose(LossReason::closed);
    if (is_new && options_.observer) {
      options_.observer->on_lost(*lease->name, lease->token, LossReason::closed);
    }
    last_releases_.insert(++last_request_);
    core_->engine().release(now, last_request_, grant);
  }
}

Client::Impl::Unfinished Client::Impl::unfinished() {
  if (!calls_.empty() || !leases_.empty() || !last_releases_.empty()) return Unfinished::requests;
  return core_->engine().releases_under_way() == 0 ? Unfinished::nothing : Unfinished::stragglers;
}

void Client::Impl::fail_leftovers() {
  // A callback may come back to this client, so it must not find the table half-walked.
  for (const auto& [id, call] : std::exchange(calls_, {})) call->fail(closed_error());
  takings_.close();
  leases_.clear();
}

}  // namespace redlock
