// SPDX-License-Identifier: MIT
#include "wire/connection.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/rules.hpp"
#include "wire/buffer_room.hpp"
#include "wire/command_writer.hpp"
#include "wire/error_reply.hpp"
#include "wire/info_text.hpp"

namespace redlock::wire {
namespace {

// Replies of the scripts take a hundred bytes; INFO and an error text a few thousand. Questions may
// list keys.
constexpr std::size_t command_reply_limit = std::size_t{1} << 20;
constexpr std::size_t question_reply_limit = std::size_t{64} << 20;
// The node does them one behind the other and nothing else meanwhile: a millisecond or so.
constexpr std::size_t locks_in_one_call = 100;
// Beyond this number a refused name fails its shared call again each time.
constexpr std::size_t most_forbidden = 1'000;

const std::string& named(const engine::Name& name) {
  return *name;
}

// A node pushes two wake-ups for a waiter before the waiter asks again, and one for each other call
// that barges in: this is enough for ten thousand names that become free at once. It must be far
// less than the client can read in a second, or a flood would be read for ever. A large push counts
// as several.
constexpr std::size_t most_pushes_in_a_second = 20'000;
constexpr std::size_t small_push = 256;

constexpr const char* not_of_the_script = "its answer is none that the script can give";

}  // namespace

Connection::Connection(const NodeAddress& address, Passwords& passwords, Handshake::Config config,
                       SharedTexts& texts, std::optional<LostConnection> lost,
                       std::string identity_key, ConnectionListener& listener)
    : passwords_(passwords),
      config_(std::move(config)),
      texts_(texts),
      listener_(listener),
      channel_(layout_.channel(config_.client)),
      handshake_(std::make_unique<Handshake>(address, passwords, config_, std::move(lost),
                                             std::move(identity_key))) {}

void Connection::start(engine::Instant now) {
  handshake_->start(output_);
  handshake_sent_ = now;
}

CallContext Connection::context() {
  return {.layout = layout_,
          .holder = &texts_.holder,
          .membership = membership_,
          .client = config_.client,
          .subscribed = subscribed_};
}

void Connection::send(const engine::Tag& tag, const engine::Command& command, engine::Form form) {
  if (std::holds_alternative<engine::AcquireCommand>(command)) {
    return send_acquire(tag, command, form);
  }
  const Script script = script_of(command);
  const auto* const release = std::get_if<engine::ReleaseCommand>(&command);
  const auto* const hold = std::get_if<engine::HoldCommand>(&command);
  const bool lone_hold = hold != nullptr && goes_alone(*hold, form);
  const bool lone_release = release != nullptr && (release->alone || release->place.line != 0);
  const bool joins = row_of(script).many_in_a_call && !lone_hold && !lone_release;
  const bool fits = joins && script == call_script_ && form == call_form_ &&
                    call_tags_.size() < locks_in_one_call;
  if (!fits) write_call();
  call_script_ = script;
  call_form_ = lone_hold ? engine::Form::digest : form;
  call_tags_.push_back(tag);
  if (lone_hold) {
    if (to_repeat_alone_ > 0) --to_repeat_alone_;
    lone_hold_ = hold->name;
  }
  const CallParts& parts = texts_.command.of(command, context());
  if (release != nullptr) {
    call_.add(last_release_);
    last_release_ = parts;
    freed_.push_back(release->name);
  } else {
    call_.add(parts);
  }
  if (!joins) write_call();
}

/// Releases that are being collected are written behind it, unless one is of its name.
void Connection::send_acquire(const engine::Tag& tag, const engine::Command& command,
                              engine::Form form) {
  const engine::Name& name = std::get<engine::AcquireCommand>(command).name;
  acquire_.clear();
  Script script = script_for<engine::AcquireCommand>;
  if (passes(name, form)) {
    std::swap(acquire_, last_release_);
    freed_.pop_back();
    tags_.push_back(call_tags_.back());
    call_tags_.pop_back();
    script = pass_script;
  } else if (freed_.empty() || std::ranges::find(freed_, *name, named) != freed_.end()) {
    write_call();
  }
  tags_.push_back(tag);
  acquire_.add(texts_.command.of(command, context()));
  write(acquire_, script, form);
}

/// Whether it takes the lock that the newest release gives back.
bool Connection::passes(const engine::Name& name, engine::Form form) const {
  if (last_release_.count() == 0 || form != call_form_) return false;
  if (form != engine::Form::digest) return false;
  return *freed_.back() == *name && std::ranges::count(freed_, *name, named) == 1;
}

/// Of the call that is being collected.
void Connection::write_call() {
  if (call_tags_.empty()) return;
  call_.add(last_release_);
  last_release_.clear();
  tags_.insert(tags_.end(), call_tags_.begin(), call_tags_.end());
  call_tags_.clear();
  freed_.clear();
  write(call_, call_script_, call_form_);
}

void Connection::write(CallParts& call, Script script, engine::Form form) {
  const auto index = static_cast<std::size_t>(script);
  if (!row_of(script).loaded || to_load_.test(index)) form = engine::Form::source;
  if (form == engine::Form::source) to_load_.reset(index);
  // An acquire has it among its own. That of a node that has shown no marker is empty: if it gets
  // one, it is to be read before the node confirms anything.
  if (row_of(script).names_members) call.name_members(context());
  await({.kind = Awaited::Kind::commands,
         .script = script,
         .commands = call.count(),
         .begins_at = appended(),
         .question = nullptr,
         .name = std::exchange(lone_hold_, nullptr)});
  call.write(output_, scripts_, form, script);
  call.clear();
}

bool Connection::goes_alone(const engine::HoldCommand& hold, engine::Form form) const {
  if (to_repeat_alone_ > 0 && form == engine::Form::source) return true;
  return !forbidden_.empty() && forbidden_.contains(*hold.name);
}

/// Redis refuses a call as a whole if the user may not touch one of its keys. NoScript makes the
/// engine send each hold again.
void Connection::refused_hold(engine::Instant now, Awaited& awaited) {
  if (awaited.commands > 1) {
    to_repeat_alone_ += awaited.commands;
    while (awaited.commands > 0) answer_next(now, awaited, engine::NoScript{});
  } else if (awaited.name && forbidden_.size() < most_forbidden) {
    forbidden_.insert(*awaited.name);
  }
}

void Connection::send(std::shared_ptr<Question> question) {
  if (question->answered()) return;  // its time was over before there was a connection
  write_call();
  const std::uint64_t begins_at = appended();
  CommandWriter writer(output_, question->command().size());
  for (const std::string& argument : question->command()) writer.bulk(argument);
  await({.kind = Awaited::Kind::question, .begins_at = begins_at, .question = std::move(question)});
}

void Connection::send_probe(engine::Instant now) {
  write_call();
  await({.kind = Awaited::Kind::time, .begins_at = appended(), .question = nullptr, .sent = now});
  CommandWriter::write(output_, {"TIME"});
  if (role_.empty()) return;  // it refuses INFO, and would log each refusal
  await({.kind = Awaited::Kind::role, .begins_at = appended(), .question = nullptr});
  CommandWriter::write(output_, {"INFO", "replication"});
}

void Connection::await(Awaited awaited) {
  if (awaited_.empty()) first_awaited_ = marked_at_ = engine::never;
  awaited_.push_back(std::move(awaited));
  ++sent_;
}

void Connection::flush(Streams& streams, engine::NodeIndex node) {
  write_call();
  if (output_.empty()) return;
  const std::size_t before = output_.size();
  kept_by_stream_ = streams.write(node, output_);
  handed_over_ += before - output_.size();
  if (output_.empty()) make_empty(output_);
}

void Connection::on_flushed(engine::Instant now) {
  if (first_awaited_ == engine::never) first_awaited_ = now;
  if (marked_at_ == engine::never) mark(now);
}

/// When what was sent by the last mark is answered, the next one is set.
void Connection::mark(engine::Instant now) {
  marked_at_ = now;
  marked_ = sent_;
}

engine::Instant Connection::silent_since() const {
  return awaited_.empty() ? engine::never : std::max(last_reply_, first_awaited_);
}

std::vector<Unanswered> Connection::take_unanswered() {
  std::vector<Unanswered> unanswered;
  auto tag = tags_.begin();
  for (Awaited& awaited : awaited_) {
    const auto delivery =
        awaited.begins_at < handed_over_ ? engine::Delivery::unknown : engine::Delivery::not_sent;
    if (awaited.question) unanswered.push_back({{}, std::move(awaited.question), delivery});
    for (; awaited.commands > 0; --awaited.commands) {
      unanswered.push_back({*tag++, nullptr, delivery});
    }
  }
  for (const engine::Tag& collected : call_tags_) {
    unanswered.push_back({collected, nullptr, engine::Delivery::not_sent});
  }
  awaited_.clear();
  call_.clear();
  last_release_.clear();
  freed_.clear();
  call_tags_.clear();
  tags_.clear();
  return unanswered;
}

Connection::EndReason Connection::on_bytes(engine::Instant now, std::string_view bytes) {
  reader_.feed(bytes);
  for (;;) {
    switch (reader_.next(reply_limit())) {
      case ReplyReader::Outcome::incomplete:
        // A piece of a reply counts as a sign of life only where replies may be long: a node that
        // drips bytes would otherwise never be given up.
        if (awaits_question() && reader_.amid_reply()) {
          last_reply_ = now;
          mark(now);
        }
        return {};
      case ReplyReader::Outcome::push:
        if (!take_push(now, reader_.reply())) return std::move(end_);
        break;
      case ReplyReader::Outcome::broken:
        fail(Cause::protocol_error, reader_.problem());
        return std::move(end_);
      case ReplyReader::Outcome::complete:
        last_reply_ = now;
        if (!take_reply(now, reader_.reply())) return std::move(end_);
        if (sent_ - awaited_.size() >= marked_) mark(now);
    }
  }
}

bool Connection::take_reply(engine::Instant now, const ReplyView& reply) {
  if (handshake_) return take_handshake_reply(now, reply);
  if (awaited_.empty()) return take_unsolicited(reply);
  // Stays in the queue while it is read: if the connection ends it is answered with the others.
  Awaited& awaited = awaited_.front();
  switch (awaited.kind) {
    case Awaited::Kind::commands:
      if (!take_command_reply(now, awaited, reply)) return false;
      break;
    case Awaited::Kind::question: {
      const auto question = awaited.question;
      awaited_.pop_front();
      if (!question->answered()) question->answer(now, reply.to_value());
      return true;
    }
    case Awaited::Kind::time:
      take_time(now, awaited, reply);
      break;
    case Awaited::Kind::role:
      if (!take_role(reply)) return false;
      break;
  }
  awaited_.pop_front();
  return true;
}

/// Not a sign of life: other clients make the node send pushes, even when it does not get our
/// messages.
bool Connection::take_push(engine::Instant now, const ReplyView& push) {
  if (now - pushes_since_ >= std::chrono::seconds(1)) {
    pushes_since_ = now;
    pushes_ = 0;
  }
  pushes_ += 1 + reader_.reply_size() / small_push;
  if (pushes_ > most_pushes_in_a_second) {
    exceeded_ = true;
    return fail(Cause::protocol_error, "it sent more than " +
                                           std::to_string(most_pushes_in_a_second) +
                                           " unrequested messages within a second; the "
                                           "connection was given up");
  }
  if (handshake_) {
    handshake_->on_push(push);
  } else if (const auto wake = read_wake(push, channel_)) {
    listener_.on_wake(now, *wake);
  }
  return true;
}

/// A reply without a question. No command of the client makes a node send one.
bool Connection::take_unsolicited(const ReplyView& reply) {
  // A server that shuts down, or has too many clients, may send an error before it closes.
  const bool error = reply.is(ReplyView::Kind::error);
  const std::string said = error ? ": " + printable(reply.text(), passwords_.secrets()) : "";
  return fail(Cause::protocol_error, "it sent a reply to no command" + said);
}

bool Connection::take_handshake_reply(engine::Instant now, const ReplyView& reply) {
  const std::size_t before = output_.size();
  switch (handshake_->on_reply(reply, output_)) {
    case Handshake::Progress::failed: {
      const engine::Unavailable& why = handshake_->failure();
      return fail(why.cause, why.detail);
    }
    case Handshake::Progress::going_on:
      if (output_.size() > before) {
        first_round_trip_ = now - handshake_sent_;
        handshake_sent_ = now;
      }
      return true;
    case Handshake::Progress::complete:
      break;
  }
  const auto handshake = std::move(handshake_);
  ServerFacts& facts = handshake->facts();
  scripts_ = facts.scripts;
  if (facts.marker) membership_ = facts.marker->configuration.name();
  subscribed_ = facts.subscribed;
  run_id_ = facts.run_id;
  client_id_ = facts.client_id;
  role_ = facts.role;
  replid_ = facts.replid;
  if (const auto refusal = listener_.on_ready(now, facts)) {
    return fail(refusal->cause, refusal->detail);
  }
  const engine::Duration asked_ago = now - handshake_sent_;
  // The node has compiled the scripts meanwhile; it had not before it answered the first part.
  report_clock(now, facts.unix_us, asked_ago, std::min(first_round_trip_, asked_ago));
  return true;
}

bool Connection::take_command_reply(engine::Instant now, Awaited& awaited, const ReplyView& reply) {
  answering_ = awaited.begins_at;
  if (row_of(awaited.script).many_in_a_call && !reply.is(ReplyView::Kind::error)) {
    return take_replies_together(now, awaited, reply);
  }
  const auto answer =
      read_answer(awaited.script, reply, passwords_.secrets(), scripts_.source(awaited.script));
  if (!answer) return fail(Cause::protocol_error, not_of_the_script);
  // Who sent it sends it again, or does not need it any more; the next one is to find it loaded.
  if (std::holds_alternative<engine::NoScript>(*answer)) {
    to_load_.set(static_cast<std::size_t>(awaited.script));
  }
  const auto* refusal = std::get_if<engine::Unavailable>(&*answer);
  const bool forbidden = refusal != nullptr && refusal->cause == Cause::permission;
  if (forbidden && awaited.script == script_for<engine::HoldCommand>) refused_hold(now, awaited);
  while (awaited.commands > 0) answer_next(now, awaited, *answer);
  return judge_refusal(*answer);
}

/// False if the connection ends with it.
bool Connection::judge_refusal(const engine::Reply& answer) {
  const auto* refusal = std::get_if<engine::Unavailable>(&answer);
  const bool replica = refusal != nullptr &&
                       (refusal->cause == Cause::read_only || refusal->cause == Cause::master_down);
  // When the node is a master again it has the data of another: a handshake finds that out.
  if (replica && engine::rules::replica_ends_connection())
    return fail(Cause::read_only, "it has become a replica");
  // A foreign RESET, or a proxy that has connected again: a handshake logs in.
  if (refusal != nullptr && refusal->cause == Cause::authentication) {
    return fail(Cause::authentication, "it no longer regards the connection as logged in");
  }
  return true;
}

bool Connection::take_replies_together(engine::Instant now, Awaited& awaited,
                                       const ReplyView& replies) {
  if (replies.size() != awaited.commands) return fail(Cause::protocol_error, not_of_the_script);
  ReplyView reply = replies.first();
  bool goes_on = true;
  for (;;) {
    const Script script = script_of_next(awaited);
    const auto answer =
        read_element(script, reply, passwords_.secrets(), scripts_.source(awaited.script));
    if (!answer) return fail(Cause::protocol_error, not_of_the_script);
    answer_next(now, awaited, *answer);
    goes_on = judge_refusal(*answer) && goes_on;
    if (awaited.commands == 0) return goes_on;
    reply = reply.next();
  }
}

/// Of a call that gives a lock back and takes it.
Script Connection::script_of_next(const Awaited& awaited) {
  if (awaited.script != pass_script) return awaited.script;
  return awaited.commands == 2 ? script_for<engine::ReleaseCommand>
                               : script_for<engine::AcquireCommand>;
}

/// One at a time, so that what is not answered is always known.
void Connection::answer_next(engine::Instant now, Awaited& awaited, const engine::Reply& reply) {
  const engine::Tag tag = tags_.front();
  tags_.pop_front();
  --awaited.commands;
  listener_.on_reply(now, tag, reply);
}

/// Only a handshake judges a new role; here it is enough to notice the change.
bool Connection::take_role(const ReplyView& reply) {
  if (!reply.is(ReplyView::Kind::text)) return true;  // an error
  const InfoText info(reply.text());
  const std::string_view role = info.value("role");
  const bool changed = !role.empty() && role != role_;
  if (changed && engine::rules::role_change_ends_connection()) {
    return fail(Cause::read_only, "its role has changed");
  }
  // It has a new id also with its first replica, and an hour after its last.
  const std::string_view replid = info.value("master_replid");
  const bool promoted = info.was_replica() && !replid_.empty() && replid != replid_;
  if (!promoted || !engine::rules::promotion_ends_connection()) return true;
  return fail(Cause::connection_lost, "it has been a replica meanwhile");
}

void Connection::take_time(engine::Instant now, const Awaited& awaited, const ReplyView& reply) {
  if (reply.size() != 2) return;  // an error, from a busy node say, is a sign of life as well
  const ReplyView seconds = reply.first();
  const engine::Duration asked_ago = now - awaited.sent;
  report_clock(now, unix_microseconds(seconds.text(), seconds.next().text()), asked_ago, asked_ago);
}

/// The reading was taken since it was asked for, wherever in the batch of replies it stands.
void Connection::report_clock(engine::Instant now, std::int64_t unix_us, engine::Duration asked_ago,
                              engine::Duration round_trip) {
  if (unix_us == 0) return;  // not a time
  const engine::Duration half = asked_ago / 2;
  listener_.on_clock(now, unix_us + half / std::chrono::microseconds(1), half, round_trip);
}

bool Connection::awaits_question() const {
  return !awaited_.empty() && awaited_.front().kind == Awaited::Kind::question;
}

std::size_t Connection::reply_limit() const {
  return awaits_question() ? question_reply_limit : command_reply_limit;
}

bool Connection::fail(Cause cause, std::string detail) {
  end_ = {cause, engine::Delivery::unknown, std::move(detail)};
  return false;
}

}  // namespace redlock::wire
