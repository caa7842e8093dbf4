// SPDX-License-Identifier: MIT
// A call goes from stage to stage on the loop thread; what other threads want of it is posted. A
// call whose turn comes later than it arrived is posted as well, so that a release which its owner
// asked for before is sent before.
#include "client/taking.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "client/client_impl.hpp"
#include "client/requests.hpp"
#include "client/sentence.hpp"

namespace redlock::client {

namespace {

engine::Instant end_of(std::chrono::milliseconds wait) {
  // Beyond a year a wait is for ever, and would overflow the clock.
  if (wait > std::chrono::hours(24 * 365)) return engine::never;
  return BootClock::now() + wait;
}

}  // namespace

// Its call is answered, and the client there, not before this has returned.
void Taking::Stopper::operator()() const noexcept {
  const auto stopped = taking.lock();
  if (!stopped) return;
  static_cast<void>(stopped->client_.post([stopped] {
    stopped->give_up({Errc::cancelled, "the call was cancelled", {}});
  }));
}

Taking::Taking(Client::Impl& client, const TakeRequest& request, Callback<std::size_t> callback)
    : client_(client),
      key_(request.key),
      handle_(request.handle),
      options_(request.options),
      wait_until_(end_of(options_.wait)),
      callback_(std::move(callback)) {}

bool Taking::begin(Client::Impl& client, const TakeRequest& request,
                   Callback<std::size_t>& callback) {
  const auto taking = std::make_shared<Taking>(client, request, std::move(callback));
  taking->self_ = taking;
  if (client.post(*taking)) return true;
  taking->self_.reset();
  callback = std::move(*taking->callback_);
  return false;
}

std::optional<Result<std::size_t>> PreparedTaking::start(
    std::unique_ptr<PreparedOperation<std::size_t>> /*self*/,
    Callback<std::size_t>& callback) noexcept {
  if (client_->forked()) return tl::make_unexpected(client_->closed_error());
  const auto ask = ask_acquire(request_.key.name, request_.options, client_->options());
  if (!ask) return tl::make_unexpected(ask.error());
  if (auto over = ask->before_start(*client_)) return tl::make_unexpected(std::move(*over));
  if (Taking::begin(*client_, request_, callback)) return std::nullopt;
  return tl::make_unexpected(client_->closed_error());
}

void Taking::run() {
  const auto self = std::move(self_);
  if (!callback_) return;  // it was given up meanwhile
  stage_ == Stage::arriving ? arrive() : attempt();
}

void Taking::arrive() {
  if (client_.closing()) return answer(tl::make_unexpected(client_.closed_error()));
  Takings& takings = client_.takings();
  const bool first = !takings.has_line(key_);
  if (!first && left().count() == 0) return answer(tl::make_unexpected(out_of_time()));
  takings.join(shared_from_this());
  stage_ = Stage::queued;
  if (options_.stop.stop_possible()) stop_.emplace(options_.stop, Stopper{weak_from_this()});
  if (first) return attempt();
  takings.look_by(std::min(wait_until_, options_.deadline.value_or(engine::never)));
}

void Taking::post_attempt() {
  if (stage_ == Stage::posted) return;
  stage_ = Stage::posted;
  self_ = shared_from_this();
  // Refused only at the very end of the client, which then closes what is left in the lines.
  if (!client_.post(*this)) self_.reset();
}

void Taking::attempt() {
  AcquireOptions rest = options_;
  rest.wait = left();
  if (const auto lease = client_.held().find(key_)) return enter(lease, rest);
  auto ask = ask_acquire(key_.name, rest, client_.options());
  if (!ask) return end(tl::make_unexpected(std::move(ask.error())));
  stage_ = Stage::acquiring;
  client_.begin<AskAcquire>(std::move(*ask), [self = shared_from_this()](Result<Lease> lease) {
    self->acquired(std::move(lease));
  });
}

void Taking::enter(const std::shared_ptr<Lease::State>& lease, const AcquireOptions& options) {
  auto ask = ask_enter(lease, options, client_.options());
  if (!ask) return end(tl::make_unexpected(std::move(ask.error())));
  stage_ = Stage::entering;
  if (options.deadline) client_.takings().look_by(*options.deadline);
  client_.begin<AskEnter>(std::move(*ask),
                          [self = shared_from_this(), lease](Result<std::uint32_t> count) {
                            self->entered(lease, std::move(count));
                          });
}

void Taking::entered(const std::shared_ptr<Lease::State>& lease, Result<std::uint32_t> result) {
  HeldLocks& held = client_.held();
  if (result) {
    auto handle = callback_ ? handle_.lock() : nullptr;
    if (!handle) {
      Lease::State::leave(lease);
      return end(tl::make_unexpected(handle_gone()));
    }
    const bool closing = client_.closing();
    const std::size_t count = closing ? 0 : held.enter(key_, *handle, lease);
    // Its RedLock may go as soon as the call is answered, and must give back when it does.
    handle.reset();
    if (closing) return end(tl::make_unexpected(client_.closed_error()));
    if (count > 0) return end_holding(count);
  }
  if (!callback_) return end(tl::make_unexpected(std::move(result.error())));
  // Somebody else of this owner gave back what was being entered: then it is taken anew.
  if (result || held.find(key_) != lease) return post_attempt();
  if (result.error().code == Errc::lost) {
    result.error().message += ": unlock() what is held of it before locking it again";
  }
  pause_or_end(std::move(result.error()));
}

void Taking::acquired(Result<Lease> result) {
  if (!result) return end(tl::make_unexpected(std::move(result.error())));
  auto handle = handle_.lock();
  if (!handle) return end(tl::make_unexpected(handle_gone()));
  client_.held().hold(key_, *handle, std::move(*result));
  handle.reset();  // before the answer: see entered()
  end_holding(1);
}

/// Unless the RedLock went at this very moment, and so gave it back.
void Taking::end_holding(std::size_t count) {
  if (handle_.expired()) return end(tl::make_unexpected(handle_gone()));
  end(count);
}

void Taking::pause_or_end(Error error) {
  const auto rest = left();
  if (error.code != Errc::no_quorum || rest.count() == 0 || client_.closing()) {
    return end(tl::make_unexpected(std::move(error)));
  }
  stage_ = Stage::pausing;
  next_attempt_ = BootClock::now() + std::min(client_.options().retry_max, rest);
  const auto deadline = options_.deadline.value_or(engine::never);
  client_.takings().look_by(std::min(next_attempt_, deadline));
}

engine::Instant Taking::on_time(engine::Instant now) {
  engine::Instant ends = engine::never;
  if (callback_ && stage_ != Stage::acquiring) ends = options_.deadline.value_or(engine::never);
  if (stage_ == Stage::queued) ends = std::min(ends, wait_until_);
  if (now >= ends) {
    give_up(out_of_time());
    return engine::never;
  }
  if (stage_ != Stage::pausing) return ends;
  if (now < next_attempt_) return std::min(ends, next_attempt_);
  post_attempt();
  return ends;
}

void Taking::close() {
  if (waits()) give_up(client_.closed_error());
}

void Taking::give_up(Error error) {
  if (!callback_ || stage_ == Stage::acquiring) return;  // an acquisition is ended by the engine
  if (waits()) return end(tl::make_unexpected(std::move(error)));
  const auto self = shared_from_this();
  answer(tl::make_unexpected(std::move(error)));
}

void Taking::end(Result<std::size_t> result) {
  const auto self = shared_from_this();
  client_.takings().leave(*this);
  answer(std::move(result));
}

void Taking::answer(Result<std::size_t> result) {
  stop_.reset();
  if (auto callback = std::exchange(callback_, std::nullopt)) (*callback)(std::move(result));
}

bool Taking::waits() const {
  return stage_ == Stage::queued || stage_ == Stage::posted || stage_ == Stage::pausing;
}

std::chrono::milliseconds Taking::left() const {
  if (wait_until_ == engine::never) return forever;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(wait_until_ - BootClock::now());
  return std::max(left, std::chrono::milliseconds::zero());
}

Error Taking::out_of_time() const {
  const std::string name = client::quoted(*key_.name);
  if (stage_ == Stage::entering || stage_ == Stage::pausing) {
    return {Errc::timed_out, "the deadline of the call for " + name + " has passed", {}};
  }
  return {Errc::timed_out, "another call of the same owner is still taking " + name, {}};
}

Error Taking::handle_gone() const {
  return {Errc::cancelled,
          "the RedLock that was to hold " + client::quoted(*key_.name) +
              " has gone: keep it until the call is answered",
          {}};
}

void Takings::join(const std::shared_ptr<Taking>& taking) {
  lines_[taking->key()].push_back(taking);
}

void Takings::leave(const Taking& taking) {
  const auto found = lines_.find(taking.key());
  Line& line = found->second;
  const bool was_first = line.front().get() == &taking;
  std::erase_if(line, [&](const auto& other) { return other.get() == &taking; });
  if (line.empty()) {
    lines_.erase(found);
  } else if (was_first) {
    line.front()->post_attempt();
  }
}

void Takings::look_by(engine::Instant when) {
  if (when == engine::never) return;
  next_look_ = std::min(next_look_, when);
  client_.core().wake_by(next_look_);
}

void Takings::on_time(engine::Instant now) {
  const auto due = std::exchange(next_look_, engine::never);
  if (now < due) return look_by(due);
  for (const auto& taking : all()) look_by(taking->on_time(now));
}

void Takings::close() {
  for (const auto& taking : all()) taking->close();
}

std::vector<std::shared_ptr<Taking>> Takings::all() const {
  std::vector<std::shared_ptr<Taking>> result;
  for (const auto& [key, line] : lines_) result.insert(result.end(), line.begin(), line.end());
  return result;
}

}  // namespace redlock::client
