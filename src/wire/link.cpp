// SPDX-License-Identifier: MIT
// Four states: waiting (for the next attempt to connect), connecting (with the handshake; commands
// queue), up, stopped. Every fault ends in drop(), which answers all outstanding commands.
#include "wire/link.hpp"

#include <algorithm>
#include <utility>

namespace redlock::wire {

using engine::Instant;
using std::chrono::milliseconds;

namespace {

// A connection that lasted this long was a success: the next attempt comes soon.
constexpr milliseconds success_after{1'000};

Instant after(Instant since, milliseconds time) {
  return since == engine::never ? since : since + time;
}

}  // namespace

Link::Link(engine::NodeIndex node, const NodeAddress& address, const Config& config,
           SharedTexts& texts, engine::RandomSource& random, Streams& streams,
           LinkListener& listener)
    : node_(node),
      address_(address),
      passwords_(address.password),
      config_(config),
      texts_(texts),
      random_(random),
      streams_(streams),
      listener_(listener) {}

void Link::start() {
  state_ = State::connecting;
  at_ = engine::never;  // on_connected() sets the limit of the handshake
  streams_.connect(node_);
}

void Link::stop(Instant now) {
  state_ = State::stopped;
  at_ = engine::never;
  const auto connection = std::move(connection_);
  streams_.disconnect(node_, Closing::deliver);  // a last release, perhaps
  failure_ = {Cause::connection_lost, engine::Delivery::unknown, "the client was closed"};
  queue_.clear();
  for (const auto& question : std::exchange(questions_, {})) {
    question->answer(now, tl::unexpected(failure_));
  }
  first_timeout_ = engine::never;
}

void Link::drop_questions() noexcept {
  connection_.reset();
  queue_.clear();
  questions_.clear();
}

void Link::submit(Instant now, const engine::Tag& tag, engine::Command command, engine::Form form) {
  if (state_ == State::up) {
    // It may have been decided before the connection showed that the node must not be asked.
    const bool asks = std::holds_alternative<engine::AcquireCommand>(command) ||
                      std::holds_alternative<engine::HoldCommand>(command);
    const auto why = asks ? listener_.objection_to_ask(now, node_, tag) : std::nullopt;
    if (why) return listener_.on_reply(now, node_, tag, *why);
    connection_->send(tag, command, form);
    has_output();
  } else if (state_ == State::connecting) {
    queue_.emplace_back(QueuedCommand{tag, std::move(command), form});
  } else {
    listener_.on_reply(now, node_, tag, failure_);
  }
}

void Link::ask(Instant now, std::shared_ptr<Question> question) {
  if (state_ != State::up && state_ != State::connecting) {
    return question->answer(now, tl::unexpected(failure_));
  }
  first_timeout_ = std::min(first_timeout_, question->deadline());
  forget_answered();
  questions_.push_back(question);
  if (state_ == State::up) {
    connection_->send(std::move(question));
    has_output();
  } else {
    queue_.emplace_back(std::move(question));
  }
}

/// Otherwise a caller that asks often with long timeouts would fill the memory with its questions.
void Link::forget_answered() {
  if (questions_.size() < most_questions_) return;
  std::erase_if(questions_, [](const auto& question) { return question->answered(); });
  most_questions_ = std::max(few_questions, 2 * questions_.size());
}

void Link::has_output() {
  if (!std::exchange(output_waiting_, true)) listener_.on_output_waiting(*this);
}

void Link::flush(Instant now) {
  output_waiting_ = false;
  if (!connection_) return;
  connection_->flush(streams_, node_);
  if (connection_->unsent() > config_.unsent_limit) {
    cut_off(now, {Cause::timed_out, engine::Delivery::unknown,
                  "it does not read its commands; the connection was given up"});
  } else if (connection_->unanswered() > config_.unanswered_limit) {
    cut_off(now, {Cause::timed_out, engine::Delivery::unknown,
                  "it leaves more than " + std::to_string(config_.unanswered_limit) +
                      " commands unanswered; the connection was given up"});
  }
}

void Link::on_flushed(Instant now) {
  if (!connection_) return;
  connection_->on_flushed(now);
  // Within `silence` it is to be judged whether the node has answered.
  if (state_ == State::up) at_ = std::min(at_, now + config_.silence);
}

bool Link::answers_former_name() const {
  return state_ == State::up && connection_->answers_former_name();
}

std::string Link::on_membership(const std::string& membership) {
  return state_ == State::up ? connection_->on_membership(membership) : std::string();
}

void Link::move(Instant now, std::string why) {
  if (state_ == State::stopped) return;
  const bool had_node = state_ != State::waiting || at_ != engine::never;
  backoff_.reset();
  if (had_node) give_up(now, {Cause::connection_lost, engine::Delivery::unknown, std::move(why)});
  lost_.reset();
  streams_.move(node_, address_);
  if (address_.label.empty()) {
    at_ = engine::never;
  } else if (!had_node) {
    passwords_ = Passwords(address_.password);
    at_ = now;
  }
}

void Link::reconnect(Instant now, std::string why) {
  if (state_ != State::up) return;
  backoff_.reset();
  give_up(now, {Cause::connection_lost, engine::Delivery::unknown, std::move(why)});
}

void Link::probe(Instant now) {
  if (state_ != State::up) return;  // connecting will show the clock
  probe_at_ = now + config_.probe_interval;
  connection_->send_probe(now);
  has_output();
}

/// A copy of this machine may be connected with the name that this client had in lines. A new name
/// is no copy's.
bool Link::shares_its_name(const ServerFacts& facts) {
  const bool drawn_now = std::exchange(name_is_new_, false);
  if (!facts.name_is_shared || drawn_now) return false;
  own_part_ = engine::to_hex({{random_.next(), 0}}).substr(8, 8);
  name_is_new_ = true;
  return true;
}

Handshake::Config Link::of_next_connection() const {
  auto config = config_.handshake;
  if (!config.client.empty()) config.client += own_part_;
  config.may_be_shared = !name_is_new_;
  return config;
}

void Link::on_connected(Instant now, Instant give_up_at, std::string password,
                        std::string warning) {
  at_ = give_up_at;
  warning_ = std::move(warning);
  passwords_.offer(std::move(password));
  ConnectionListener& self = *this;
  connection_ = std::make_unique<Connection>(address_, passwords_, of_next_connection(), texts_,
                                             lost_, listener_.identity_key(now, node_), self);
  connection_->start(now);
  has_output();
}

void Link::on_bytes(Instant now, std::string_view bytes) {
  const bool was_up = state_ == State::up;
  if (auto end = connection_->on_bytes(now, bytes)) {
    return connection_->exceeded() ? cut_off(now, std::move(*end)) : give_up(now, std::move(*end));
  }
  if (!was_up) has_output();  // the handshake's next part
}

void Link::on_stream_closed(Instant now, StreamEnd end) {
  const Cause network = state_ == State::up ? Cause::connection_lost : Cause::connection_failed;
  const Cause cause = end.cause == Cause::none ? network : end.cause;
  drop(now, {cause, engine::Delivery::unknown, std::move(end.why)});
}

void Link::on_writable() {
  if (connection_) has_output();
}

std::optional<engine::Unavailable> Link::on_ready(Instant now, ServerFacts& facts) {
  if (shares_its_name(facts)) {
    return engine::Unavailable{Cause::connection_lost, engine::Delivery::not_sent,
                               "a copy of this client is connected by its name; this one connects "
                               "again with a new name"};
  }
  if (auto objection = listener_.find_objection(now, node_, facts)) {
    if (config_.handshake.unfit == UnfitNodes::refuse) {
      return engine::Unavailable{Cause::incompatible, engine::Delivery::not_sent,
                                 std::move(*objection)};
    }
    facts.warn(*objection);
  }
  if (!warning_.empty()) facts.warn(warning_);
  state_ = State::up;
  lost_.reset();
  reported_.reset();
  suspected_ = false;
  up_since_ = now;
  at_ = probe_at_ = now + config_.probe_interval;
  listener_.on_node_facts(now, node_, facts);
  // The queue first: releases that are owed to the node come behind the commands that waited.
  for (QueuedItem& queued : std::exchange(queue_, {})) {
    if (auto* command = std::get_if<QueuedCommand>(&queued)) {
      submit(now, command->tag, std::move(command->command), command->form);
    } else {
      connection_->send(std::move(std::get<std::shared_ptr<Question>>(queued)));
      has_output();
    }
  }
  listener_.on_link_up(now, node_, facts);
  return {};
}

void Link::on_reply(Instant now, const engine::Tag& tag, const engine::Reply& reply) {
  listener_.on_reply(now, node_, tag, reply);
}

void Link::on_clock(Instant now, std::int64_t unix_us, engine::Duration uncertainty,
                    engine::Duration round_trip) {
  listener_.on_clock(now, node_, unix_us, uncertainty, round_trip);
}

void Link::on_wake(Instant now, const Wake& wake) {
  listener_.on_wake(now, node_, wake);
}

Instant Link::deadline() const {
  return std::min(at_, first_timeout_);
}

void Link::on_deadline(Instant now) {
  if (now >= first_timeout_) time_out_questions(now);
  if (now < at_) return;
  switch (state_) {
    case State::waiting:
      return start();
    case State::connecting:
      return give_up(now, {Cause::timed_out, engine::Delivery::not_sent,
                           "no answer to the handshake within " +
                               std::to_string(config_.connect_timeout.count()) + " ms"});
    case State::up:
      return watch(now);
    case State::stopped:
      return;
  }
}

void Link::time_out_questions(Instant now) {
  // A callback may ask again.
  const auto questions = std::exchange(questions_, {});
  first_timeout_ = engine::never;
  for (const auto& question : questions) {
    if (now >= question->deadline()) {
      question->time_out(now);
    } else if (!question->answered()) {
      first_timeout_ = std::min(first_timeout_, question->deadline());
      questions_.push_back(question);
    }
  }
}

void Link::watch(Instant now) {
  const Instant silent_at = after(connection_->silent_since(), config_.silence);
  const Instant late_at = after(connection_->oldest_since(), config_.unanswered_for);
  const Instant judged_at = std::min(silent_at, late_at);
  const bool guilty = now >= judged_at;
  if (guilty && suspected_ && now >= silent_at) {
    return give_up(now, {Cause::timed_out, engine::Delivery::unknown,
                         "silent for " + std::to_string(config_.silence.count()) +
                             " ms; the connection was given up"});
  }
  if (guilty && suspected_) {
    return cut_off(now, {Cause::timed_out, engine::Delivery::unknown,
                         "it is " + std::to_string(connection_->unanswered()) +
                             " answers behind, the first of them for " +
                             std::to_string(config_.unanswered_for.count()) +
                             " ms; the connection was given up"});
  }
  // If this process did not run, the answer may have arrived unread: read once before judging. If
  // it did not run for long (the machine was suspended, say), the answer may still be on its way.
  const bool overslept = now - at_ >= config_.silence;
  const auto grace = guilty && overslept ? config_.silence : milliseconds(1);
  suspected_ = guilty;
  if (!guilty && now >= probe_at_) probe(now);
  at_ = std::max(std::min(probe_at_, judged_at), now + grace);
}

/// Of a connection whose stream is still open, perhaps.
void Link::give_up(Instant now, engine::Unavailable why) {
  streams_.disconnect(node_, Closing::reset);
  drop(now, std::move(why));
}

/// The same because the node exceeded a bound: the next connection would cost as much.
void Link::cut_off(Instant now, engine::Unavailable why) {
  backoff_.lengthen(state_ == State::up ? now - up_since_ : engine::Duration::zero());
  give_up(now, std::move(why));
}

void Link::drop(Instant now, engine::Unavailable why) {
  const bool was_up = state_ == State::up;
  const auto connection = std::move(connection_);
  if (was_up) {
    lost_ = connection->identity();
    if (now - up_since_ >= success_after) backoff_.reset();
  }
  state_ = State::waiting;
  at_ = now + backoff_.next(random_);
  failure_ = std::move(why);
  failure_.delivery = engine::Delivery::not_sent;
  fail_outstanding(now, connection.get(), std::exchange(queue_, {}), engine::Unavailable(failure_));
  report_down(now);
}

void Link::fail_outstanding(Instant now, Connection* connection, std::vector<QueuedItem> queued,
                            const engine::Unavailable& why) {
  if (connection != nullptr) {
    engine::Unavailable reply = why;
    for (const Unanswered& unanswered : connection->take_unanswered()) {
      reply.delivery = unanswered.delivery;
      if (unanswered.question) {
        unanswered.question->answer(now, tl::unexpected(reply));
      } else {
        listener_.on_reply(now, node_, unanswered.tag, reply);
      }
    }
  }
  for (const QueuedItem& entry : queued) {
    if (const auto* command = std::get_if<QueuedCommand>(&entry)) {
      listener_.on_reply(now, node_, command->tag, why);
    } else {
      std::get<std::shared_ptr<Question>>(entry)->answer(now, tl::unexpected(why));
    }
  }
}

void Link::report_down(Instant now) {
  if (reported_ && reported_->cause == failure_.cause && reported_->detail == failure_.detail) {
    return;
  }
  reported_ = failure_;
  listener_.on_link_down(now, node_, failure_);
}

}  // namespace redlock::wire
