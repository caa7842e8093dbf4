// SPDX-License-Identifier: MIT
// A step for which the user lacks a permission is skipped with a warning where the lock stays safe
// without it; any other refusal ends the handshake with the reason.
#include "wire/handshake.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/nodes/set_configuration.hpp"
#include "engine/rules.hpp"
#include "wire/command_writer.hpp"
#include "wire/error_reply.hpp"
#include "wire/info_text.hpp"
#include "wire/wake.hpp"

namespace redlock::wire {

using Kind = ReplyView::Kind;

Handshake::Handshake(const NodeAddress& address, Passwords& passwords, const Config& config,
                     std::optional<LostConnection> lost, std::string identity_key)
    : address_(address),
      passwords_(passwords),
      to_try_(passwords.to_try()),
      config_(config),
      lost_(std::move(lost)),
      identity_key_(std::move(identity_key)),
      channel_(config.set.layout.channel(config.client)) {}

void Handshake::send(std::string& out, Step step, std::initializer_list<std::string_view> command) {
  CommandWriter::write(out, command);
  expected_.push_back(step);
}

void Handshake::start(std::string& out) {
  if (to_try_.empty()) {
    // No AUTH.
  } else if (address_.user.empty()) {
    send(out, Step::auth, {"AUTH", to_try_.front()});
  } else {
    send(out, Step::auth, {"AUTH", address_.user, to_try_.front()});
  }
  if (!config_.client.empty()) send(out, Step::hello, {"HELLO", "3"});
  if (address_.db != 0) send(out, Step::select, {"SELECT", std::to_string(address_.db)});
  if (!config_.client_name.empty()) {
    send(out, Step::set_name, {"CLIENT", "SETNAME", config_.client_name});
  }
  send(out, Step::client_id, {"CLIENT", "ID"});
  send(out, Step::info, {"INFO"});
  send(out, Step::marker, {"HGETALL", config_.set.layout.marker});
  send(out, Step::clock_note, {"PTTL", config_.set.layout.clock});
  // Redis 6.2 takes one name at a time; a pattern that covers them would bring passwords along.
  send(out, Step::appendonly, {"CONFIG", "GET", "appendonly"});
  send(out, Step::appendfsync, {"CONFIG", "GET", "appendfsync"});
  send(out, Step::maxmemory_policy, {"CONFIG", "GET", "maxmemory-policy"});
}

void Handshake::send_second_part(std::string& out) {
  second_part_ = true;
  // Only on the server that numbered it: after a restart the number may belong to another client.
  // Where INFO is denied the server is not known, and the other client will connect again.
  const bool same_server = lost_ && lost_->client_id != 0 && lost_->run_id == facts_.run_id;
  if (engine::rules::kills_what_it_replaces(same_server)) {
    send(out, Step::kill, {"CLIENT", "KILL", "ID", std::to_string(lost_->client_id)});
  }
  if (resp3_) {
    send(out, Step::subscribe, {"SUBSCRIBE", channel_});
    // An empty message wakes nobody. Its answer is how many receive it.
    if (config_.may_be_shared) send(out, Step::name, {"PUBLISH", channel_, ""});
  }
  for (const ScriptRow& row : script_rows()) {
    if (!row.loaded) continue;
    send(out, Step::load, {"SCRIPT", "LOAD", facts_.scripts.source(row.script)});
    loading_.push_back(row.script);
  }
  if (!identity_key_.empty()) send(out, Step::identity, {"GET", identity_key_});
  send(out, Step::time, {"TIME"});  // last: it is fresh when the handshake is complete
}

void Handshake::on_push(const ReplyView& push) {
  const bool awaited = !expected_.empty() && expected_.front() == Step::subscribe;
  if (!awaited || !confirms_subscription(push, channel_)) return;
  expected_.pop_front();
  facts_.subscribed = true;
}

Handshake::Progress Handshake::on_reply(const ReplyView& reply, std::string& out) {
  if (to_skip_ > 0) {
    if (--to_skip_ == 0) start(out);
    return Progress::going_on;
  }
  if (expected_.empty()) {
    garbled();
    return Progress::failed;
  }
  const Step step = expected_.front();
  expected_.pop_front();
  if (step == Step::auth && is_wrong(reply)) return try_next_password();
  if (!take(step, reply)) return Progress::failed;
  if (!expected_.empty()) return Progress::going_on;
  if (second_part_) return Progress::complete;
  send_second_part(out);
  return Progress::going_on;
}

bool Handshake::is_wrong(const ReplyView& reply) const {
  return to_try_.size() > 1 && reply.is(Kind::error) && reply.text().starts_with("WRONGPASS");
}

/// Commands behind the wrong password are refused as well, and sent again.
Handshake::Progress Handshake::try_next_password() {
  to_try_.erase(to_try_.begin());
  to_skip_ = expected_.size();
  expected_.clear();
  return Progress::going_on;
}

bool Handshake::take(Step step, const ReplyView& reply) {
  return reply.is(Kind::error) ? take_error(step, reply.text()) : take_answer(step, reply);
}

bool Handshake::take_error(Step step, std::string_view error) {
  engine::Unavailable why = to_unavailable(error, passwords_.secrets());
  if (why.cause == Cause::loading || why.cause == Cause::busy) {
    return fail(why.cause, why.detail);
  }
  if (step == Step::auth) return take_auth_error(error, std::move(why));
  const bool denied = error.starts_with("NOPERM") || error.starts_with("NOPROTO") ||
                      (error.starts_with("ERR") && !error.starts_with("ERR max number"));
  if (!denied) return fail(why.cause, why.detail);
  switch (step) {
    case Step::hello:
    case Step::name:
    case Step::appendfsync:
    case Step::maxmemory_policy:
      return true;
    default:
      break;
  }
  return take_denial(step, std::move(why));
}

/// A missing right that safety does not need is only a warning.
bool Handshake::take_denial(Step step, engine::Unavailable why) {
  const auto warn = [&](const char* refused, const char* therefore) {
    facts_.warn(std::string("it refuses ") + refused + ", so " + therefore + " (" + why.detail +
                ")");
    return true;
  };
  constexpr const char* may_be_late = "commands of a lost connection may arrive late";
  switch (step) {
    case Step::set_name:
      return warn("CLIENT SETNAME", "its CLIENT LIST does not show this client's name");
    case Step::appendonly:
      return warn("CONFIG GET", "it is not known whether it is durable");
    case Step::subscribe:
      return warn("the channel of turns", "it cannot tell waiting calls that their turn has come");
    case Step::identity:
      facts_.identity_refusal = std::move(why.detail);
      return true;
    case Step::time:
      return warn("TIME", "a jump of its clock goes unnoticed");
    case Step::clock_note:
      return warn("PTTL of redlock:node:clock",
                  "a jump of its clock that another client saw goes unnoticed");
    case Step::info:
      return warn("INFO", "its version, role and identity are not checked");
    case Step::client_id:
      return warn("CLIENT ID", may_be_late);
    case Step::kill:
      if (why.cause != Cause::permission) return true;  // there is no such connection any more
      return warn("CLIENT KILL", may_be_late);
    case Step::select:
      // No such database: only another URI helps.
      return fail(why.cause == Cause::server_error ? Cause::incompatible : why.cause, why.detail);
    default:
      return fail(why.cause, why.detail);
  }
}

bool Handshake::take_auth_error(std::string_view error, engine::Unavailable why) {
  const bool renamed = error.find("unknown command") != std::string_view::npos;
  if (why.cause != Cause::server_error && !renamed) return fail(why.cause, std::move(why.detail));
  if (error.starts_with("ERR AUTH <password> called without any password")) {
    return fail(Cause::authentication,
                "a password was given, but its user has none; leave the password out");
  }
  // An error that we do not know may repeat a part of the password (Redis does so where AUTH was
  // renamed), so it is not shown.
  return fail(Cause::authentication,
              "it refused AUTH; correct the URI or the password file, and do not rename AUTH");
}

bool Handshake::take_answer(Step step, const ReplyView& reply) {
  switch (step) {
    case Step::hello:
      resp3_ = true;
      return reply.is(Kind::array) || garbled();
    case Step::auth:
      passwords_.on_accepted(to_try_.front());
      return reply.is(Kind::text) || garbled();
    case Step::select:
    case Step::set_name:
      return reply.is(Kind::text) || garbled();
    case Step::client_id:
      if (!reply.is(Kind::integer)) return garbled();
      facts_.client_id = reply.integer();
      return true;
    case Step::clock_note:
      if (!reply.is(Kind::integer)) return garbled();
      // -2: there is no such key. The engine believes in no longer time than a lease may last.
      facts_.clock_noted = std::chrono::milliseconds(std::clamp(
          reply.integer(), std::int64_t{0}, std::int64_t{engine::longest_max_lease.count()}));
      return true;
    case Step::info:
      return reply.is(Kind::text) ? take_info(reply.text()) : garbled();
    case Step::time:
      return take_time(reply);
    case Step::marker:
      return take_marker(reply);
    case Step::appendonly:
    case Step::appendfsync:
    case Step::maxmemory_policy:
      return take_setting(step, reply);
    case Step::kill:
      return reply.is(Kind::integer) || reply.is(Kind::text) || garbled();
    case Step::name:
      if (!reply.is(Kind::integer)) return garbled();
      facts_.name_is_shared = reply.integer() > 1;
      return true;
    case Step::load:
      return take_digest(reply);
    case Step::identity:
      return take_identity(reply);
    case Step::subscribe:
      return garbled();  // a push confirms it
  }
  return garbled();
}

bool Handshake::take_info(std::string_view text) {
  const InfoText info(text);
  facts_.run_id = info.value("run_id");
  facts_.promotion = info.promotion();
  facts_.role = info.value("role");
  facts_.replid = info.value("master_replid");
  facts_.was_replica = info.was_replica();
  facts_.uptime = info.uptime();
  const ServerVersion version = info.version();
  if (version.has_script_flags()) facts_.scripts = ScriptSet(ScriptSet::Flags::understood);
  if (!version.supported()) {
    const std::string shown = printable(info.value("redis_version"), passwords_.secrets());
    if (!unfit("its version is " + (shown.empty() ? "unknown" : shown) +
               "; Redis 6.2 or newer is needed")) {
      return false;
    }
  }
  if (info.is_sentinel() && !unfit("it is a sentinel; give the addresses of independent masters")) {
    return false;
  }
  if (info.is_replica() && !unfit("it is a replica; give the addresses of independent masters")) {
    return false;
  }
  if (info.is_in_cluster() &&
      !unfit("it is a node of a Redis Cluster; give the addresses of independent masters")) {
    return false;
  }
  return true;
}

bool Handshake::take_time(const ReplyView& reply) {
  if (reply.size() != 2) return garbled();
  const ReplyView seconds = reply.first();
  const ReplyView rest = seconds.next();
  if (!seconds.is(Kind::text) || !rest.is(Kind::text)) return garbled();
  facts_.unix_us = unix_microseconds(seconds.text(), rest.text());
  return true;
}

bool Handshake::take_marker(const ReplyView& reply) {
  if (!reply.is(Kind::array) || reply.size() % 2 != 0) return garbled();
  const auto marker = NodeMarker::read(reply.to_value());
  if (!marker) {
    return true;
  }
  facts_.marker = marker->membership();
  facts_.vouched = marker->vouched;
  const auto disagreement = marker->disagreement(config_.set, passwords_.secrets());
  return disagreement ? unfit(*disagreement) : true;
}

bool Handshake::take_setting(Step step, const ReplyView& reply) {
  if (!reply.is(Kind::array)) return garbled();
  if (reply.size() < 2) return true;
  const ReplyView value = reply.first().next();
  if (!value.is(Kind::text)) return garbled();
  if (step == Step::appendonly) {
    appendonly_ = value.text();
  } else if (step == Step::appendfsync) {
    if (!appendonly_.empty()) {
      facts_.durable = appendonly_ == "yes" && value.text() == "always";
    }
  } else if (value.text() != "noeviction") {
    facts_.warn("its maxmemory-policy is " + printable(value.text(), passwords_.secrets()) +
                ", which may evict locks; set noeviction");
  }
  return true;
}

bool Handshake::take_digest(const ReplyView& reply) {
  if (!reply.is(Kind::text)) return garbled();
  facts_.scripts.set_digest(loading_.front(), reply.text());
  loading_.pop_front();
  return true;
}

bool Handshake::take_identity(const ReplyView& reply) {
  if (!reply.is(Kind::text) && !reply.is(Kind::nil)) return garbled();
  facts_.identity = reply.is(Kind::text) ? reply.text() : std::string_view();
  return true;
}

bool Handshake::fail(Cause cause, std::string detail) {
  failure_ = {cause, engine::Delivery::not_sent, std::move(detail)};
  return false;
}

bool Handshake::unfit(std::string reason) {
  if (config_.unfit == UnfitNodes::refuse) return fail(Cause::incompatible, std::move(reason));
  facts_.warn(reason);
  return true;
}

bool Handshake::garbled() {
  return fail(Cause::protocol_error, "its answers to the handshake are not those of Redis");
}

}  // namespace redlock::wire
