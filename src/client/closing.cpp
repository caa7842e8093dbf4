// SPDX-License-Identifier: MIT
// How a client ends: acquisitions are cancelled, leases released a part at a time, releases awaited
// for as long as they are confirmed; then the gate is closed, what is left fails, and the loop
// stops. Two facts make it safe: a task that was accepted is run, and after the gate is closed none
// is accepted. A quorum of confirmations is what is waited for; a node that hangs gets only a
// moment more, as what was sent to it is under way whether we wait or not. On a loop that the
// program gave, nobody waits: its timer comes back to look, and libuv tells when nothing of ours is
// left there.
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
#include "client/stderr_warning.hpp"
#include "engine/quorum.hpp"
#include "net/signals.hpp"

namespace redlock {

namespace {

constexpr std::chrono::microseconds longest_pause(5'000);
constexpr std::chrono::milliseconds moment_for_stragglers(20);
/// What the slowest nodes have not answered when a quorum has: more than this may not all have been
/// written, so these nodes get a node timeout to go on.
constexpr std::size_t few_stragglers = 100;
/// Leases that are being released at once: a few calls to each node.
constexpr std::size_t releases_at_once = 200;

/// A step that another thread waits for.
template <typename Step>
class LoopStep final : public net::Task {
 public:
  explicit LoopStep(Step& step) : step_(step) {}
  void run() override {
    // Also if the step is left by an exception: then the client has failed, and there is no more.
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
    // Nothing can be waited for here, so somebody else does it; what was asked and has not begun
    // must not be granted meanwhile.
    const auto self = shared_from_this();
    if (on_loop_thread()) closing_ = true;
    try {
      std::thread([self] { self->finish_everything(forever); }).detach();
    } catch (const std::exception&) {
      // There is no thread to be had: nothing is left locked, but the loop goes on idly.
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
  return report_;
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
  own_->stop();  // before core_ is reset: tasks on the loop reach the core by it
  core_.reset();
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
      if (of.guest_ == nullptr) return;  // without a thread to wait
      of.guest_->call_after(std::chrono::milliseconds(0),
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
    guest_->call_after(std::chrono::milliseconds(0), [this] { go_on_closing(); });
    throw;
  }
  if (!pause) return guest_->end([this] { leave_given_loop(); });
  guest_->call_after(std::chrono::ceil<std::chrono::milliseconds>(*pause),
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
    (*tell)(failed() ? Result<CloseReport>(tl::make_unexpected(closed_error())) : report_);
  } catch (...) {
    // Of the program's function; the client has ended already.
  }
}

std::optional<std::chrono::microseconds> Client::Impl::await_answers() {
  if (failed()) return std::nullopt;
  if (last_wait_.for_quorum) {
    if (!quorum_is_worth_waiting()) {
      release_rest();
      const auto now = BootClock::now();
      last_wait_ = {.for_quorum = false,
                    .end = std::max(last_wait_.end, now + moment_for_stragglers),
                    .last_progress = now};
    }
  } else if (!stragglers_are_worth_waiting()) {
    return std::nullopt;
  }
  const auto pause = last_wait_.pause;
  last_wait_.pause = std::min(2 * pause, longest_pause);
  return pause;
}

bool Client::Impl::quorum_is_worth_waiting() {
  LastWait& wait = last_wait_;
  const Progress current = progress();
  if (!current.quorum_awaited) return false;
  const auto now = BootClock::now();
  // While leases are released, only a quorum is progress: answers of fewer nodes free no lock.
  const bool answered = current.only_dropped && current.unanswered < wait.before.unanswered;
  if (answered || current.confirmed > wait.before.confirmed) wait.last_progress = now;
  wait.before = current;
  return now < std::min(wait.end, wait.last_progress + options_.node_timeout);
}

bool Client::Impl::stragglers_are_worth_waiting() {
  LastWait& wait = last_wait_;
  const Progress current = progress();
  if (current.unanswered == 0) return false;
  const auto now = BootClock::now();
  if (current.unanswered < wait.before.unanswered) wait.last_progress = now;
  wait.before = current;
  const auto patience = std::chrono::milliseconds(
      current.unanswered <= few_stragglers ? moment_for_stragglers : options_.node_timeout);
  return now < std::min(wait.end, wait.last_progress + patience);
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
  const auto longest =
      std::chrono::floor<std::chrono::milliseconds>(BootClock::time_point::max() - now);
  last_wait_.last_progress = now;
  last_wait_.end = at_most >= longest ? BootClock::time_point::max()
                                      : now + std::max(at_most, std::chrono::milliseconds(0));
  for (const auto& [id, call] : calls_) call->close(now, id);
  // All at first, so that a holder on another thread knows before somebody else can have the lock.
  leases_.for_each([&](const KnownLease& known) { report_closed(*known.lease); });
  auto all = std::exchange(leases_, {});
  all.for_each([&](const KnownLease& known) {
    // The rest waits for its turn, and is not to be renewed meanwhile.
    to_release_.push_back(known.lease->grant);
    if (to_release_.size() <= releases_at_once) return;
    core_->engine().give_up(now, known.lease->grant, LossReason::closed);
  });
  release_more();
}

void Client::Impl::report_closed(Lease::State& lease) {
  const bool is_new = lease.lose(LossReason::closed);
  if (!is_new || !options_.observer) return;
  options_.observer->on_lost(lease.name(), lease.key->token, LossReason::closed);
}

void Client::Impl::release_more() {
  while (last_releases_.size() < releases_at_once && !to_release_.empty()) {
    last_releases_.insert(++last_request_);
    core_->engine().release(BootClock::now(), last_request_, to_release_.front());
    to_release_.pop_front();
  }
}

void Client::Impl::released_last(engine::RequestId request, const engine::Finish& finish) {
  if (last_releases_.erase(request) == 0) return;
  const auto* const done = std::get_if<engine::ReleaseDone>(&finish.result);
  if (done != nullptr && done->outcome == Released::released) {
    ++report_.released;
  } else if (done != nullptr && done->outcome == Released::already_gone) {
    ++report_.already_gone;
  } else {
    ++report_.unconfirmed;
  }
  release_more();
}

Client::Impl::Progress Client::Impl::progress() {
  const auto& engine = core_->engine();
  const auto nodes = static_cast<std::uint32_t>(nodes_.size());
  // Of a lease that was dropped without asking, as long as a quorum may not have it released.
  const bool quorum_is_done = nodes - engine.nodes_releasing() >= engine::quorum_of(nodes);
  Progress progress;
  progress.confirmed = report_.released + report_.already_gone;
  progress.unanswered = engine.releases_under_way();
  progress.only_dropped = last_releases_.empty() && to_release_.empty();
  progress.quorum_awaited =
      !calls_.empty() || !leases_.empty() || !progress.only_dropped || !quorum_is_done;
  return progress;
}

void Client::Impl::release_rest() {
  report_.unconfirmed += last_releases_.size() + to_release_.size();
  last_releases_.clear();
  for (const engine::GrantId grant : std::exchange(to_release_, {})) {
    core_->engine().release(BootClock::now(), 0, grant);
  }
}

void Client::Impl::on_failure(const std::exception_ptr& why) noexcept {
  const auto self = shared_from_this();  // a lease may be the last that knows this client
  describe_failure(why);
  failed_.store(true, std::memory_order_release);
  closing_ = true;
  // Whatever users do wrong in here changes nothing any more.
  const auto in_any_case = [](const auto& step) {
    try {
      step();
    } catch (...) {
    }
  };
  report_.unconfirmed += leases_.size() + last_releases_.size() + to_release_.size();
  leases_.for_each(
      [&](const KnownLease& known) { in_any_case([&] { report_closed(*known.lease); }); });
  leases_ = {};
  last_releases_.clear();
  to_release_.clear();
  put_off_.clear();
  while (!calls_.empty()) {
    const auto taken = calls_.extract(calls_.begin());
    in_any_case([&] { taken.mapped()->fail(closed_error()); });
  }
  if (options_.observer) {
    in_any_case([&] { tell_nodes(&Observer::on_node_removed); });
    in_any_case([&] { options_.observer->on_closed(report_); });
  } else if (options_.warn_on_stderr) {
    client::warn_of_failure(failure_.data());
  }
}

void Client::Impl::describe_failure(const std::exception_ptr& why) noexcept {
  const auto say = [this](const char* sentence, const char* what) {
    std::snprintf(failure_.data(), failure_.size(), sentence, what);
  };
  try {
    std::rethrow_exception(why);
  } catch (const std::bad_alloc&) {
    say("the client has ended, as the program had no memory left for it: create a new Client", "");
  } catch (const std::exception& exception) {
    say("the client has ended, as an exception left a function of the program that it called: %s",
        exception.what());
  } catch (...) {
    say("the client has ended, as an exception left a function of the program that it called", "");
  }
}

void Client::Impl::fail_leftovers() {
  if (failed()) return;
  while (!calls_.empty()) {
    const auto taken = calls_.extract(calls_.begin());
    taken.mapped()->fail(closed_error());
  }
  leases_ = {};
  tell_nodes(&Observer::on_node_removed);
  if (options_.observer) options_.observer->on_closed(report_);
}

}  // namespace redlock
