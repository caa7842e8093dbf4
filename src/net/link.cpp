// SPDX-License-Identifier: MIT
// Four states: waiting (for the next attempt to connect), connecting (with the handshake; commands
// queue), up, stopped. Whatever goes wrong ends in drop(), which answers everything outstanding.
#include "net/link.hpp"

#include <algorithm>
#include <utility>

namespace redlock::net {

using std::chrono::milliseconds;

namespace {

// A connection that lasted this long was a success: the next attempt comes soon.
constexpr milliseconds success_after{1'000};

milliseconds now_of(const Loop& loop) {
  return milliseconds(uv_now(&loop.uv));
}

}  // namespace

Link::Link(Loop& loop, engine::NodeIndex node, const wire::NodeAddress& address, const Config& config,
           engine::RandomSource& random, LinkListener& listener)
    : loop_(loop),
      node_(node),
      address_(address),
      config_(config),
      random_(random),
      listener_(listener),
      connector_(loop, address, config.timeouts, *this),
      timer_(loop, [this] { timer_expired(); }) {}

void Link::start() {
  state_ = State::connecting;
  connector_.start();
}

void Link::stop() {
  state_ = State::stopped;
  connector_.cancel();
  timer_.stop();
  const auto connection = std::move(connection_);
  failure_ = {Cause::connection_lost, engine::Delivery::unknown, "the client was closed"};
  std::vector<std::shared_ptr<Question>> questions;
  if (connection) {
    connection->let_arrive();  // a last release, perhaps
    for (Unanswered& unanswered : connection->take_unanswered()) {
      if (unanswered.question) questions.push_back(std::move(unanswered.question));
    }
  }
  for (Queued& queued : std::exchange(queue_, {})) {
    if (auto* question = std::get_if<std::shared_ptr<Question>>(&queued)) {
      questions.push_back(std::move(*question));
    }
  }
  for (const auto& question : questions) question->answer(tl::unexpected(failure_));
}

void Link::submit(const engine::Tag& tag, engine::Command command, engine::Form form) {
  if (state_ == State::up) {
    connection_->send(tag, std::move(command), form);
    has_output();
  } else if (state_ == State::connecting) {
    queue_.emplace_back(QueuedCommand{tag, std::move(command), form});
  } else {
    listener_.on_reply(node_, tag, failure_);
  }
}

void Link::ask(std::shared_ptr<Question> question) {
  if (state_ == State::up) {
    connection_->send(std::move(question));
    has_output();
  } else if (state_ == State::connecting) {
    queue_.emplace_back(std::move(question));
  } else {
    question->answer(tl::unexpected(failure_));
  }
}

void Link::has_output() {
  // Within `silence` somebody must look whether the node has answered.
  const milliseconds now = now_of(loop_);
  if (watch_at_ > now + config_.silence) {
    watch_at_ = now + config_.silence;
    timer_.start(config_.silence);
  }
  if (!std::exchange(output_waiting_, true)) listener_.on_output_waiting(*this);
}

void Link::flush() {
  output_waiting_ = false;
  if (connection_) connection_->flush();
  if (connection_ && connection_->unsent() > config_.unsent_limit) {
    drop({Cause::timed_out, engine::Delivery::unknown,
          "it does not read what is sent to it; the connection was given up"});
  }
}

void Link::joined(std::string set) {
  if (state_ == State::up) connection_->joined(std::move(set));
}

void Link::look_anew() {
  if (state_ != State::up) return;
  backoff_.reset();
  drop({Cause::connection_lost, engine::Delivery::unknown, "its marker was written"});
}

void Link::probe() {
  if (state_ != State::up) return;  // connecting will show the clock
  probe_at_ = now_of(loop_) + config_.probe_interval;
  connection_->send_probe();
  has_output();
}

void Link::on_stream(Stream::Owned stream, milliseconds left) {
  timer_.start(left);
  ConnectionListener& self = *this;
  connection_ = std::make_unique<Connection>(std::move(stream), address_, config_.terms,
                                             loop_.hold_text, loop_.holder_text, lost_, self);
  connection_->start();
}

void Link::on_no_stream(engine::Unavailable why) {
  drop(std::move(why));
}

void Link::on_moved() {
  // The backoff stays: a name whose answers rotate would otherwise be connected to without end.
  drop(
      {Cause::connection_lost, engine::Delivery::unknown, "its name leads to another address now"});
}

std::optional<std::string> Link::on_ready(wire::ServerFacts& facts) {
  if (auto objection = listener_.find_objection(node_, facts)) {
    if (config_.terms.unfit == wire::UnfitNodes::refuse) return objection;
    facts.warn(*objection);
  }
  state_ = State::up;
  lost_.reset();
  reported_.reset();
  suspected_ = false;
  up_since_ = now_of(loop_);
  probe_at_ = watch_at_ = up_since_ + config_.probe_interval;
  timer_.start(config_.probe_interval);
  listener_.on_node_facts(node_, facts);
  // The queue first: what the node is owed comes behind what was asked of it.
  for (Queued& queued : std::exchange(queue_, {})) {
    if (auto* command = std::get_if<QueuedCommand>(&queued)) {
      if (std::holds_alternative<engine::AcquireCommand>(command->command)) {
        if (const auto why = listener_.objection_to_ask(node_)) {
          listener_.on_reply(node_, command->tag, *why);
          continue;
        }
      }
      submit(command->tag, std::move(command->command), command->form);
    } else {
      ask(std::move(std::get<std::shared_ptr<Question>>(queued)));
    }
  }
  listener_.on_link_up(node_, facts);
  return {};
}

void Link::on_reply(const engine::Tag& tag, const engine::Reply& reply) {
  listener_.on_reply(node_, tag, reply);
}

void Link::on_clock(engine::Instant now, std::int64_t unix_us, engine::Duration uncertainty) {
  listener_.on_clock(now, node_, unix_us, uncertainty);
}

void Link::on_broken(engine::Unavailable why) {
  drop(std::move(why));
}

void Link::timer_expired() {
  switch (state_) {
    case State::waiting:
      start();
      break;
    case State::connecting:
      drop({Cause::timed_out, engine::Delivery::not_sent,
            "no answer to the handshake within " +
                std::to_string(config_.timeouts.connect.count()) + " ms"});
      break;
    case State::up:
      watch();
      break;
    case State::stopped:
      break;
  }
}

void Link::watch() {
  const milliseconds now = now_of(loop_);
  const bool silent =
      !connection_->all_answered() && now - connection_->silent_since() >= config_.silence;
  if (silent && suspected_) {
    drop({Cause::timed_out, engine::Delivery::unknown,
          "silent for " + std::to_string(config_.silence.count()) +
              " ms; the connection was given up"});
    return;
  }
  // If it was us who did not run, the answer may have arrived unread: read once before judging.
  suspected_ = silent;
  if (!silent && now >= probe_at_) probe();
  watch_at_ = connection_->all_answered()
                  ? probe_at_
                  : std::min(probe_at_, connection_->silent_since() + config_.silence);
  watch_at_ = std::max(watch_at_, now + milliseconds(1));
  timer_.start(watch_at_ - now);
}

void Link::drop(engine::Unavailable why) {
  const bool was_up = state_ == State::up;
  const auto connection = std::move(connection_);
  connector_.cancel();
  if (was_up) {
    lost_ = connection->identity();
    if (now_of(loop_) - up_since_ >= success_after) backoff_.reset();
  }
  state_ = State::waiting;
  timer_.start(backoff_.next(random_));
  failure_ = std::move(why);
  failure_.delivery = engine::Delivery::not_sent;
  fail_outstanding(connection.get(), std::exchange(queue_, {}), engine::Unavailable(failure_));
  report_down();
}

void Link::fail_outstanding(Connection* connection, std::vector<Queued> queued,
                            const engine::Unavailable& why) {
  if (connection != nullptr) {
    engine::Unavailable reply = why;
    for (const Unanswered& unanswered : connection->take_unanswered()) {
      reply.delivery = unanswered.delivery;
      if (unanswered.question) {
        unanswered.question->answer(tl::unexpected(reply));
      } else {
        listener_.on_reply(node_, unanswered.tag, reply);
      }
    }
  }
  for (const Queued& entry : queued) {
    if (const auto* command = std::get_if<QueuedCommand>(&entry)) {
      listener_.on_reply(node_, command->tag, why);
    } else {
      std::get<std::shared_ptr<Question>>(entry)->answer(tl::unexpected(why));
    }
  }
}

void Link::report_down() {
  if (reported_ && reported_->cause == failure_.cause && reported_->detail == failure_.detail) {
    return;
  }
  reported_ = failure_;
  listener_.on_link_down(node_, failure_);
}

}  // namespace redlock::net
