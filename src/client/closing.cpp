// SPDX-License-Identifier: MIT
// How a client ends: acquisitions are cancelled, leases released a part at a time, releases awaited
// for as long as they are confirmed; then the gate is closed, calls that are left fail, and the
// loop stops. Two facts make it safe: a task that was accepted is run, and after the gate is closed
// none is accepted. On a loop that the program gave, no thread waits: the loop's timer checks
// again, and libuv reports when nothing of the client is left there.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <semaphore>
#include <thread>
#include <utility>

#include "client/call_for.hpp"
#include "client/client_impl.hpp"
#include "client/fork.hpp"
#include "net/signals.hpp"

namespace redlock {

namespace {

/// A step that another thread waits for.
template <typename Step>
class LoopStep final : public net::Task {
 public:
  explicit LoopStep(Step& step) : step_(step) {}
  void run() override {
    // Also if an exception leaves the step: then the client has failed, and no step follows.
    const std::unique_ptr<Done, EndWait> in_any_case(&done_);
    step_();
  }
  void wait() { done_.acquire(); }

 private:
  using Done = std::binary_semaphore;
  struct EndWait {
    void operator()(Done* done) const { done->release(); }
  };

  Step& step_;
  Done done_{0};
};

}  // namespace

void Client::Impl::shut_down() noexcept {
  if (forked()) {
    // Everything here may be half-written, and the thread that the core would join does not exist.
    client::keep_forever(shared_from_this());
    return;
  }
  if (ended_.exchange(true)) return;
  if (on_given_loop()) {
    finish_behind(forever);
  } else if (must_not_wait()) {
    // This thread cannot wait, so another does; calls that have not begun must not be granted
    // meanwhile.
    const auto self = shared_from_this();
    if (on_loop_thread()) closing_ = true;
    try {
      std::thread([self] { self->finish_everything(forever); }).detach();
    } catch (const std::exception&) {
      // The system gives no thread: no lock is left, but the loop goes on idly.
      finish_behind(forever);
    }
  } else {
    finish_everything(forever);
  }
}

Result<CloseReport> Client::Impl::close(std::chrono::milliseconds at_most) {
  if (forked()) return tl::make_unexpected(closed_error());
  if (must_not_wait()) return tl::make_unexpected(would_deadlock_error());
  if (ended_.exchange(true)) return tl::make_unexpected(closed_error());
  finish_everything(at_most);
  if (failed()) return tl::make_unexpected(closed_error());
  return final_releases_.report();
}

std::optional<Result<CloseReport>> Client::Impl::start_closing(std::chrono::milliseconds at_most,
                                                               Callback<CloseReport>& callback) {
  if (forked() || ended_.exchange(true)) return tl::make_unexpected(closed_error());
  closed_callback_.emplace(std::move(callback));
  if (on_given_loop()) {
    finish_behind(at_most);
    return std::nullopt;
  }
  try {
    const net::AllSignalsBlocked blocked;
    std::thread([self = shared_from_this(), at_most] {
      self->finish_everything(at_most);
      self->tell_closed();
    }).detach();
    return std::nullopt;
  } catch (const std::exception&) {
    callback = std::move(*closed_callback_);
    ended_ = false;  // as if it had not been asked for
    return tl::make_unexpected(
        Error{Errc::closed, "the client cannot end: the system has no thread for it", {}});
  }
}

void Client::Impl::finish_everything(std::chrono::milliseconds at_most) {
  run_on_loop([this, at_most] { begin_closing(at_most); });
  for (;;) {
    std::optional<std::chrono::microseconds> pause;
    run_on_loop([this, &pause] { pause = await_answers(); });
    if (!pause) break;
    std::this_thread::sleep_for(*pause);
  }
  gate_.close();
  run_on_loop([this] { fail_leftovers(); });
  core_->end([this] { core_.reset(); });
  guard_.stop();
}

/// The thread that calls is perhaps not the loop's.
void Client::Impl::finish_behind(std::chrono::milliseconds at_most) noexcept {
  kept_ = shared_from_this();
  begin_closing_.at_most = at_most;
  static_cast<void>(post(begin_closing_));  // through the gate: the core may be gone soon after
}

void Client::Impl::BeginClosing::run() {
  // Also if an exception leaves it: the client has failed then.
  struct GoOn {
    ~GoOn() {
      if (!of.on_given_loop()) return;  // without a thread to wait
      of.core_->call_after(std::chrono::milliseconds(0),
                           [client = &of] { client->go_on_closing(); });
    }
    Impl& of;
  } const go_on{client};
  client.begin_closing(at_most);
}

/// By the loop's timer.
void Client::Impl::go_on_closing() {
  if (forked()) return;
  std::optional<std::chrono::microseconds> pause;
  try {
    pause = await_answers();
    if (!pause) {
      gate_.close();
      fail_leftovers();
    }
  } catch (...) {
    // The client has failed by then, and has nothing left to wait for.
    core_->call_after(std::chrono::milliseconds(0), [this] { go_on_closing(); });
    throw;
  }
  if (!pause) return core_->end([this] { leave_given_loop(); });
  core_->call_after(std::chrono::ceil<std::chrono::milliseconds>(*pause),
                    [this] { go_on_closing(); });
}

void Client::Impl::leave_given_loop() {
  core_.reset();
  const auto self = std::move(kept_);
  tell_closed();
}

/// The result of async_close(), if that ended the client.
void Client::Impl::tell_closed() noexcept {
  auto tell = std::exchange(closed_callback_, std::nullopt);
  if (!tell) return;
  try {
    (*tell)(failed() ? Result<CloseReport>(tl::make_unexpected(closed_error()))
                     : final_releases_.report());
  } catch (...) {
    // Of the program's function; the client has ended already.
  }
}

std::optional<std::chrono::microseconds> Client::Impl::await_answers() {
  if (failed()) return std::nullopt;
  return final_releases_.await_answers(core_->engine(), !calls_.empty() || !leases_.empty());
}

/// Past the gate: only the thread that closes the client comes here.
template <typename Step>
void Client::Impl::run_on_loop(Step step) {
  LoopStep<Step> posted(step);
  if (core_->post(posted)) posted.wait();
}

void Client::Impl::begin_closing(std::chrono::milliseconds at_most) {
  if (failed()) return;
  closing_ = true;
  const auto now = BootClock::now();
  final_releases_.begin(now, at_most);
  calls_.for_each([&](const KnownCall& known) { known.call->close(now, known.request); });
  // Requests all losses first, so that a holder on another thread learns of its loss before another
  // holder can have the lock.
  leases_.for_each([&](const KnownLease& known) { report_closed(*known.lease); });
  auto all = std::exchange(leases_, {});
  all.for_each([&](const KnownLease& known) {
    final_releases_.add(core_->engine(), now, known.lease->grant);
  });
  final_releases_.release_some(core_->engine());
}

void Client::Impl::report_closed(Lease::State& lease) {
  if (lease.lose(LossReason::closed)) reporter_.closed(lease);
}

void Client::Impl::on_failure(const std::exception_ptr& why) noexcept {
  const auto self = shared_from_this();  // a lease may be the last that knows this client
  describe_failure(why);
  failed_.store(true, std::memory_order_release);
  closing_ = true;
  // An exception of users' code in here changes nothing any more.
  const auto in_any_case = [](const auto& step) {
    try {
      step();
    } catch (...) {
    }
  };
  final_releases_.abandon(leases_.size());
  leases_.for_each(
      [&](const KnownLease& known) { in_any_case([&] { report_closed(*known.lease); }); });
  leases_ = {};
  put_off_.clear();
  const auto calls = std::exchange(calls_, {});
  calls.for_each(
      [&](const KnownCall& known) { in_any_case([&] { known.call->fail(closed_error()); }); });
  reporter_.client_failed(failure_.data(), final_releases_.report());
}

void Client::Impl::describe_failure(const std::exception_ptr& why) noexcept {
  const auto say = [this](const char* sentence, const char* what) {
    std::snprintf(failure_.data(), failure_.size(), sentence, what);
  };
  try {
    std::rethrow_exception(why);
  } catch (const std::bad_alloc&) {
    say("the client has ended, because the program is out of memory: create a new Client", "");
  } catch (const std::exception& exception) {
    say("the client has ended, because an exception left a function of the program that it called: "
        "%s",
        exception.what());
  } catch (...) {
    say("the client has ended, because an exception left a function of the program that it called",
        "");
  }
}

void Client::Impl::fail_leftovers() {
  if (failed()) return;
  for (const engine::RequestId id : calls_.ids()) {
    KnownCall* const known = calls_.find(id);
    client::Call& call = *known->call;
    calls_.take(*known);
    call.fail(closed_error());  // it may throw: on_failure() finds those that are left
  }
  leases_ = {};
  reporter_.nodes_removed();
  reporter_.client_closed(final_releases_.report());
}

}  // namespace redlock
