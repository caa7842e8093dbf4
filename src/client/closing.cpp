// SPDX-License-Identifier: MIT
// How a client ends: acquisitions are cancelled, leases released a part at a time, releases awaited
// for as long as they are confirmed; then the gate is closed, what is left fails, and the loop
// stops. Two facts make it safe: a task that was accepted is run, and after the gate is closed none
// is accepted. A quorum of confirmations is what is waited for; a node that hangs gets only a
// moment more, as what was sent to it is under way whether we wait or not.
#include <algorithm>
#include <memory>
#include <semaphore>
#include <system_error>
#include <thread>
#include <utility>

#include "client/client_impl.hpp"
#include "client/fork.hpp"
#include "engine/quorum.hpp"

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
    step_();
    done_.release();
  }
  void wait() { done_.acquire(); }

 private:
  Step& step_;
  std::binary_semaphore done_{0};
};

}  // namespace

void Client::Impl::shut_down() noexcept {
  if (forked()) {
    // Everything here may be half-written, and the thread that the core would join does not exist.
    client::keep_forever(shared_from_this());
    return;
  }
  if (ended_.exchange(true)) return;
  if (must_not_wait()) {
    // Nothing can be waited for here, so somebody else does it; what was asked and has not begun
    // must not be granted meanwhile.
    const auto self = shared_from_this();
    if (on_loop_thread()) closing_ = true;
    try {
      std::thread([self] { self->finish_everything(forever); }).detach();
    } catch (const std::system_error&) {
      // There is no thread to be had: nothing is left locked, but the loop goes on idly.
      static_cast<void>(post([self] { self->begin_closing(); }));
      client::keep_forever(self);
    }
  } else {
    finish_everything(forever);
  }
}

Result<CloseReport> Client::Impl::close(std::chrono::milliseconds at_most) {
  if (forked()) return tl::make_unexpected(closed_error());
  if (must_not_wait()) {
    return tl::make_unexpected(Error{Errc::would_deadlock,
                                     "close() from the client's own thread (in a callback) would "
                                     "never end: destroy the client, or call from another thread",
                                     {}});
  }
  if (ended_.exchange(true)) return tl::make_unexpected(closed_error());
  finish_everything(at_most);
  return report_;
}

void Client::Impl::finish_everything(std::chrono::milliseconds at_most) {
  run_on_loop([this] { begin_closing(); });
  await_releases(at_most);
  gate_.close();
  run_on_loop([this] { fail_leftovers(); });
  core_->stop();  // before core_ is reset: tasks on the loop reach the core by it
  core_.reset();
  guard_.stop();
}

void Client::Impl::await_releases(std::chrono::milliseconds at_most) {
  const auto begin = BootClock::now();
  const auto longest = BootClock::time_point::max() - begin;
  const bool endless = at_most >= std::chrono::floor<std::chrono::milliseconds>(longest);
  const auto end = endless ? BootClock::time_point::max()
                           : begin + std::max(at_most, std::chrono::milliseconds(0));
  await_quorum(end);
  run_on_loop([this] { release_rest(); });
  await_stragglers(end);
}

void Client::Impl::await_quorum(BootClock::time_point end) {
  auto last_progress = BootClock::now();
  Progress before;
  for (std::chrono::microseconds pause{50};; pause = std::min(2 * pause, longest_pause)) {
    Progress current;
    run_on_loop([this, &current] { current = progress(); });
    if (!current.quorum_awaited) return;
    const auto now = BootClock::now();
    // While leases are released, only a quorum is progress: answers of fewer nodes free no lock.
    const bool answered = current.only_dropped && current.unanswered < before.unanswered;
    if (answered || current.confirmed > before.confirmed) last_progress = now;
    before = current;
    if (now >= std::min(end, last_progress + options_.node_timeout)) return;
    std::this_thread::sleep_for(pause);
  }
}

void Client::Impl::await_stragglers(BootClock::time_point end) {
  end = std::max(end, BootClock::now() + moment_for_stragglers);
  auto last_progress = BootClock::now();
  Progress before;
  for (std::chrono::microseconds pause{50};; pause = std::min(2 * pause, longest_pause)) {
    Progress current;
    run_on_loop([this, &current] { current = progress(); });
    if (current.unanswered == 0) return;
    const auto now = BootClock::now();
    if (current.unanswered < before.unanswered) last_progress = now;
    before = current;
    const auto patience = std::chrono::milliseconds(
        current.unanswered <= few_stragglers ? moment_for_stragglers : options_.node_timeout);
    if (now >= std::min(end, last_progress + patience)) return;
    std::this_thread::sleep_for(pause);
  }
}

/// Past the gate: only the thread that closes the client comes here.
template <typename Step>
void Client::Impl::run_on_loop(Step step) {
  LoopStep<Step> posted(step);
  if (core_->post(posted)) posted.wait();
}

void Client::Impl::begin_closing() {
  closing_ = true;
  const auto now = BootClock::now();
  for (const auto& [id, call] : calls_) call->close(now, id);
  auto all = std::exchange(leases_, {});
  all.for_each([&](const KnownLease& known) {
    const auto& lease = known.lease;
    // First, so that a holder on another thread knows before somebody else can have the lock.
    const bool is_new = lease->lose(LossReason::closed);
    if (is_new && options_.observer) {
      options_.observer->on_lost(lease->name(), lease->key->token, LossReason::closed);
    }
    // The rest waits for its turn, and is not to be renewed meanwhile.
    to_release_.push_back(lease->grant);
    if (to_release_.size() <= releases_at_once) return;
    core_->engine().give_up(now, lease->grant, LossReason::closed);
  });
  release_more();
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

void Client::Impl::fail_leftovers() {
  // A callback may come back to this client, so it must not find the table half-walked.
  for (const auto& [id, call] : std::exchange(calls_, {})) call->fail(closed_error());
  leases_ = {};
  if (options_.observer) options_.observer->on_closed(report_);
}

}  // namespace redlock
