// SPDX-License-Identifier: MIT
#include "admin/waiting.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>

#include "client/sentence.hpp"
#include "wire/key_layout.hpp"

namespace redlock::admin {
namespace {

using Fields = std::map<std::string, std::string>;

/// Of the node's clock, in milliseconds; 0 if it did not tell.
std::int64_t clock_of(const wire::Answer& time) {
  const auto parts = texts_of(time);
  if (parts.size() != 2) return 0;
  const auto number = [](const std::string& text) { return number_of(wire::Value{text}); };
  return number(parts[0]).value_or(0) * 1000 + number(parts[1]).value_or(0) / 1000;
}

std::string field_of(const Fields& records, const std::string& name) {
  const auto found = records.find(name);
  return found == records.end() ? "" : found->second;
}

/// Whether the time at the beginning of the text is still to come.
bool is_ahead(const std::string& text, std::int64_t now) {
  return number_of(wire::Value{text.substr(0, text.find(' '))}).value_or(0) > now;
}

/// A ticket is the time, in microseconds, at which the call began.
std::optional<std::chrono::milliseconds> waited_since(std::int64_t ticket, std::int64_t now) {
  if (now == 0) return std::nullopt;
  return std::chrono::milliseconds(std::max<std::int64_t>(now - ticket / 1000, 0));
}

/// ZRANGE with scores: members and scores in turn, or (by RESP3) pairs of them.
std::vector<std::pair<std::string, std::int64_t>> ids_and_tickets(const wire::Answer& range) {
  std::vector<std::string> flat;
  if (const auto* items = std::get_if<std::vector<wire::Value>>(&range->data)) {
    for (const wire::Value& item : *items) {
      if (std::holds_alternative<std::vector<wire::Value>>(item.data)) {
        for (auto& text : texts_of(item)) flat.push_back(std::move(text));
      } else {
        flat.push_back(text_of(item).value_or(""));
      }
    }
  }
  std::vector<std::pair<std::string, std::int64_t>> all;
  for (std::size_t i = 0; i + 1 < flat.size(); i += 2) {
    // Some servers write large scores with an exponent.
    all.emplace_back(flat[i], static_cast<std::int64_t>(std::strtod(flat[i + 1].c_str(), nullptr)));
  }
  return all;
}

}  // namespace

std::vector<QueryCommand> waiting_questions(const std::string& name) {
  return {{"ZRANGE", wire::redlock_layout.queue(name), "0", "-1", "WITHSCORES"},
          {"HGETALL", wire::redlock_layout.waiters(name)},
          {"TIME"}};
}

std::optional<std::vector<QueuedCall>> read_waiting(const wire::NodeAddress& node,
                                                    const wire::Answer* answers) {
  if (trouble_of(answers[0], node).cause != Cause::none) return std::nullopt;
  const Fields records = fields_of(answers[1]);
  const std::int64_t now = clock_of(answers[2]);
  std::vector<QueuedCall> waiting;
  const std::string turn =
      is_ahead(field_of(records, "until"), now) ? field_of(records, "turn") : std::string();
  for (auto& [id, ticket] : ids_and_tickets(answers[0])) {
    // A record: until when the node counts the waiter as alive, and how it is woken.
    const std::string record = field_of(records, id);
    if (!is_ahead(record, now)) continue;
    const auto note = records.find("@" + id);
    waiting.push_back(
        {.id = client::cleaned(id, node),
         .ticket = ticket,
         .who = note == records.end() ? std::nullopt : read_holder(note->second, node),
         .waited = waited_since(ticket, now),
         .polls = record.ends_with(" p"),
         .has_turn = id == turn});
  }
  return waiting;
}

std::vector<QueuedCall> waiting_on_any(const std::vector<NodeLock>& nodes) {
  std::map<std::pair<std::int64_t, std::string>, QueuedCall> all;
  for (const NodeLock& node : nodes) {
    if (!node.waiting) continue;
    for (const QueuedCall& call : *node.waiting) {
      auto& known = all.try_emplace({call.ticket, call.id}, call).first->second;
      if (!known.who) known.who = call.who;
      if (!known.waited) known.waited = call.waited;
      known.polls = known.polls || call.polls;
      known.has_turn = known.has_turn || call.has_turn;
    }
  }
  std::vector<QueuedCall> waiting;
  waiting.reserve(all.size());
  for (auto& [place, call] : all) waiting.push_back(std::move(call));
  return waiting;
}

}  // namespace redlock::admin
