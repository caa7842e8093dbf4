// SPDX-License-Identifier: MIT
// Only on_broken() may destroy the connection, so it is always the last thing that a function here
// does; the functions that call it return false.
#include "net/connection.hpp"

#include <utility>

#include "wire/command_writer.hpp"
#include "wire/error_reply.hpp"
#include "wire/info_text.hpp"

namespace redlock::net {
namespace {

// What our scripts answer takes a hundred bytes; INFO and an error text a few thousand. Questions
// may list keys.
constexpr std::size_t command_reply_limit = std::size_t{1} << 20;
constexpr std::size_t question_reply_limit = std::size_t{64} << 20;
// The node does them one behind the other and nothing else meanwhile: a millisecond or so.
constexpr std::size_t locks_in_one_call = 100;
// Beyond it such a name fails its call once more each time.
constexpr std::size_t most_forbidden = 1'000;

constexpr const char* not_of_the_script = "its answer is none that the script can give";

}  // namespace

Connection::Connection(Stream::Owned stream, const wire::NodeAddress& address,
                       const wire::Handshake::Terms& terms, wire::HoldText& hold_text, wire::HolderText& holder_text,
                       std::optional<wire::LostConnection> lost, ConnectionListener& listener)
    : stream_(std::move(stream)),
      address_(address),
      listener_(listener),
      handshake_(std::make_unique<wire::Handshake>(address, terms, std::move(lost))),
      hold_text_(hold_text),
      holder_text_(holder_text) {
  stream_->set_listener(*this);
}

bool Connection::start() {
  handshake_->start(stream_->output());
  handshake_sent_ = BootClock::now();
  const int status = stream_->flush();
  return status == 0 || broken(Cause::connection_failed, uv_strerror(status));
}

void Connection::send(const engine::Tag& tag, engine::Command command, engine::Form form) {
  const wire::Script script = wire::script_of(command);
  auto* const hold = std::get_if<engine::HoldCommand>(&command);
  if (hold != nullptr && goes_alone(*hold, form)) return write_hold_alone(tag, std::move(*hold));
  const auto* const release = std::get_if<engine::ReleaseCommand>(&command);
  if (hold != nullptr || (release != nullptr && !release->alone)) {
    const bool fits = script == together_script_ && form == together_form_ &&
                      together_.count() < locks_in_one_call;
    if (!fits) write_together();
    together_script_ = script;
    together_form_ = form;
    hold != nullptr ? together_.add(hold_text_.of(std::move(*hold))) : together_.add(*release);
    tags_.push_back(tag);
    return;
  }
  write_together();
  await({.kind = Awaited::Kind::commands,
         .script = script,
         .commands = 1,
         .begins_at = stream_->appended(),
         .question = nullptr});
  tags_.push_back(tag);
  const auto* const acquire = std::get_if<engine::AcquireCommand>(&command);
  wire::write_call(stream_->output(), scripts_, form, command,
             acquire != nullptr ? holder_text_.since(acquire->since) : std::string_view(), set_);
}

void Connection::write_together() {
  if (together_.count() == 0) return;
  await({.kind = Awaited::Kind::commands,
         .script = together_script_,
         .commands = together_.count(),
         .begins_at = stream_->appended(),
         .question = nullptr});
  together_.write(stream_->output(), scripts_, together_form_, together_script_);
  together_.clear();
}

bool Connection::goes_alone(const engine::HoldCommand& hold, engine::Form form) const {
  if (to_repeat_alone_ > 0 && form == engine::Form::source) return true;
  return !forbidden_.empty() && forbidden_.contains(*hold.name);
}

void Connection::write_hold_alone(const engine::Tag& tag, engine::HoldCommand hold) {
  write_together();
  if (to_repeat_alone_ > 0) --to_repeat_alone_;
  await({.kind = Awaited::Kind::commands,
         .script = wire::Script::hold,
         .commands = 1,
         .begins_at = stream_->appended(),
         .question = nullptr,
         .name = hold.name});
  tags_.push_back(tag);
  wire::write_call(stream_->output(), scripts_, engine::Form::digest, std::move(hold));
}

/// Redis refuses a call as a whole if the user may not touch one of its keys. NoScript makes the
/// engine say each hold again.
void Connection::refused_hold(Awaited& awaited) {
  if (awaited.commands > 1) {
    to_repeat_alone_ += awaited.commands;
    while (awaited.commands > 0) answer_next(awaited, engine::NoScript{});
  } else if (awaited.name && forbidden_.size() < most_forbidden) {
    forbidden_.insert(*awaited.name);
  }
}

void Connection::send(std::shared_ptr<Question> question) {
  if (question->answered()) return;  // its time was over before there was a connection
  write_together();
  const std::uint64_t begins_at = stream_->appended();
  wire::CommandWriter writer(stream_->output(), question->command().size());
  for (const std::string& argument : question->command()) writer.bulk(argument);
  await({.kind = Awaited::Kind::question, .begins_at = begins_at, .question = std::move(question)});
}

void Connection::send_probe() {
  write_together();
  await({.kind = Awaited::Kind::time,
         .begins_at = stream_->appended(),
         .question = nullptr,
         .sent = BootClock::now()});
  wire::CommandWriter::write(stream_->output(), {"TIME"});
  if (role_.empty()) return;  // it refuses INFO, and would write down each time that it did
  await({.kind = Awaited::Kind::role, .begins_at = stream_->appended(), .question = nullptr});
  wire::CommandWriter::write(stream_->output(), {"INFO", "replication"});
}

void Connection::await(Awaited awaited) {
  if (awaited_.empty()) {
    first_awaited_ = loop_now();
    first_unsent_ = true;
  }
  awaited_.push_back(std::move(awaited));
}

void Connection::flush() {
  write_together();
  const int status = stream_->flush();
  // Not before: to write a burst may take us longer than the node may be silent.
  if (std::exchange(first_unsent_, false)) {
    uv_update_time(stream_->loop());
    first_awaited_ = loop_now();
  }
  if (status != 0) broken(Cause::connection_lost, uv_strerror(status));
}

std::chrono::milliseconds Connection::silent_since() const {
  return std::max(last_heard_, first_awaited_);
}

std::vector<Unanswered> Connection::take_unanswered() {
  std::vector<Unanswered> unanswered;
  auto tag = tags_.begin();
  for (Awaited& awaited : awaited_) {
    const auto delivery = awaited.begins_at < stream_->handed_over() ? engine::Delivery::unknown
                                                                     : engine::Delivery::not_sent;
    if (awaited.question) unanswered.push_back({{}, std::move(awaited.question), delivery});
    for (; awaited.commands > 0; --awaited.commands) {
      unanswered.push_back({*tag++, nullptr, delivery});
    }
  }
  for (; tag != tags_.end(); ++tag) {
    unanswered.push_back({*tag, nullptr, engine::Delivery::not_sent});
  }
  awaited_.clear();
  together_.clear();
  tags_.clear();
  return unanswered;
}

void Connection::on_bytes(std::string_view bytes) {
  // A piece of a reply counts as a word only where replies may be long: a node that drips bytes
  // would otherwise never be given up.
  if (awaits_question()) last_heard_ = loop_now();
  reader_.feed(bytes);
  for (;;) {
    switch (reader_.next(reply_limit())) {
      case wire::ReplyReader::Outcome::incomplete:
        return;
      case wire::ReplyReader::Outcome::broken:
        broken(Cause::protocol_error, reader_.problem());
        return;
      case wire::ReplyReader::Outcome::complete:
        last_heard_ = loop_now();
        if (!take_reply(reader_.reply())) return;
    }
  }
}

bool Connection::take_reply(const wire::ReplyView& reply) {
  if (handshake_) return take_handshake_reply(reply);
  if (awaited_.empty()) {
    // A server that is shut down, or has had enough of us, may say so before it closes.
    const bool error = reply.is(wire::ReplyView::Kind::error);
    const std::string said = error ? ": " + wire::printable(reply.text(), address_.password) : "";
    return broken(Cause::protocol_error, "it sent a reply that nobody asked for" + said);
  }
  // Stays in the queue while it is looked at: if it is broken it is answered with the others.
  Awaited& awaited = awaited_.front();
  switch (awaited.kind) {
    case Awaited::Kind::commands:
      if (!take_command_reply(awaited, reply)) return false;
      break;
    case Awaited::Kind::question: {
      const auto question = awaited.question;
      awaited_.pop_front();
      if (!question->answered()) question->answer(reply.to_value());
      return true;
    }
    case Awaited::Kind::time:
      take_time(awaited, reply);
      break;
    case Awaited::Kind::role:
      if (!take_role(reply)) return false;
      break;
  }
  awaited_.pop_front();
  return true;
}

bool Connection::take_handshake_reply(const wire::ReplyView& reply) {
  std::string& output = stream_->output();
  switch (handshake_->on_reply(reply, output)) {
    case wire::Handshake::Progress::failed: {
      const engine::Unavailable& why = handshake_->failure();
      return broken(why.cause, why.detail);
    }
    case wire::Handshake::Progress::going_on: {
      if (output.empty()) return true;
      handshake_sent_ = BootClock::now();
      const int status = stream_->flush();
      return status == 0 || broken(Cause::connection_failed, uv_strerror(status));
    }
    case wire::Handshake::Progress::complete:
      break;
  }
  const auto handshake = std::move(handshake_);
  wire::ServerFacts& facts = handshake->facts();
  scripts_ = facts.scripts;
  set_ = facts.set;
  run_id_ = facts.run_id;
  client_id_ = facts.client_id;
  role_ = facts.role;
  replid_ = facts.replid;
  if (const auto refusal = listener_.on_ready(facts)) return broken(Cause::incompatible, *refusal);
  tell_clock(facts.unix_us, handshake_sent_);
  return true;
}

bool Connection::take_command_reply(Awaited& awaited, const wire::ReplyView& reply) {
  const bool together = awaited.script == wire::Script::hold || awaited.script == wire::Script::release;
  if (together && !reply.is(wire::ReplyView::Kind::error)) {
    return take_replies_together(awaited, reply);
  }
  const auto answer = wire::read_answer(awaited.script, reply, address_.password);
  if (!answer) return broken(Cause::protocol_error, not_of_the_script);
  const auto* refusal = std::get_if<engine::Unavailable>(&*answer);
  const bool forbidden = refusal != nullptr && refusal->cause == Cause::permission;
  if (forbidden && awaited.script == wire::Script::hold) refused_hold(awaited);
  while (awaited.commands > 0) answer_next(awaited, *answer);
  const bool replica = refusal != nullptr &&
                       (refusal->cause == Cause::read_only || refusal->cause == Cause::master_down);
  // When it is a master again it has the data of another one: a handshake finds that out.
  if (replica) return broken(Cause::read_only, "it has become a replica");
  // What the marker names now is for a handshake to read.
  const bool moved = refusal != nullptr && refusal->detail.starts_with("OTHERSET");
  return moved ? broken(Cause::incompatible, "its marker names another set by now") : true;
}

bool Connection::take_replies_together(Awaited& awaited, const wire::ReplyView& replies) {
  if (replies.size() != awaited.commands) return broken(Cause::protocol_error, not_of_the_script);
  wire::ReplyView reply = replies.first();
  for (;;) {
    const auto answer =
        awaited.script == wire::Script::hold ? wire::read_hold(reply, address_.password) : wire::read_release(reply);
    if (!answer) return broken(Cause::protocol_error, not_of_the_script);
    answer_next(awaited, *answer);
    if (awaited.commands == 0) return true;
    reply = reply.next();
  }
}

/// One at a time, so that what is not answered is always known.
void Connection::answer_next(Awaited& awaited, const engine::Reply& reply) {
  const engine::Tag tag = tags_.front();
  tags_.pop_front();
  --awaited.commands;
  listener_.on_reply(tag, reply);
}

/// Only a handshake judges what is new: here it is enough that it would.
bool Connection::take_role(const wire::ReplyView& reply) {
  if (!reply.is(wire::ReplyView::Kind::text)) return true;  // an error
  const wire::InfoText info(reply.text());
  const std::string_view role = info.value("role");
  if (!role.empty() && role != role_) return broken(Cause::read_only, "its role has changed");
  // It has a new id also with its first replica, and an hour after its last.
  const std::string_view replid = info.value("master_replid");
  const bool promoted = info.was_replica() && !replid_.empty() && replid != replid_;
  return promoted ? broken(Cause::connection_lost, "it has been a replica meanwhile") : true;
}

void Connection::take_time(const Awaited& awaited, const wire::ReplyView& reply) {
  if (reply.size() != 2) return;  // an error, from a busy node say, shows as well that it is alive
  const wire::ReplyView seconds = reply.first();
  tell_clock(wire::unix_microseconds(seconds.text(), seconds.next().text()), awaited.sent);
}

void Connection::tell_clock(std::int64_t unix_us, engine::Instant asked) {
  if (unix_us == 0) return;  // it said something else
  const engine::Instant now = BootClock::now();
  const engine::Duration half = (now - asked) / 2;
  listener_.on_clock(now, unix_us + half / std::chrono::microseconds(1), half);
}

void Connection::on_stream_failed(int uv_status) {
  const Cause cause = ready() ? Cause::connection_lost : Cause::connection_failed;
  broken(cause, uv_status == UV_EOF ? "the node closed the connection" : uv_strerror(uv_status));
}

bool Connection::awaits_question() const {
  return !awaited_.empty() && awaited_.front().kind == Awaited::Kind::question;
}

std::size_t Connection::reply_limit() const {
  return awaits_question() ? question_reply_limit : command_reply_limit;
}

std::chrono::milliseconds Connection::loop_now() const {
  return std::chrono::milliseconds(uv_now(stream_->loop()));
}

bool Connection::broken(Cause cause, std::string detail) {
  listener_.on_broken({cause, engine::Delivery::unknown, std::move(detail)});
  return false;
}

}  // namespace redlock::net
