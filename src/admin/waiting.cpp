// SPDX-License-Identifier: MIT
#include "admin/waiting.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
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

/// The waiter whose turn it is, if that is not over.
std::string turn_of(const std::string& text, std::int64_t now) {
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || !is_ahead(text.substr(space + 1), now)) return {};
  return text.substr(0, space);
}

/// A place is the time, in microseconds of the node's clock, at which the call began.
std::optional<std::chrono::milliseconds> waited_since(std::int64_t place, std::int64_t now) {
  if (now == 0) return std::nullopt;
  return std::chrono::milliseconds(std::max<std::int64_t>(now - place / 1000, 0));
}

/// The id of a waiter without the digits of its client's connection to the node.
std::string on_every_node(const std::string& id) {
  constexpr std::size_t of_client = 16;
  const std::size_t colon = std::min(id.find(':'), id.size());
  return id.substr(0, std::min(of_client, colon)) + id.substr(colon);
}

/// ZRANGE with scores: members and scores in turn, or (by RESP3) pairs of them.
std::vector<std::pair<std::string, std::int64_t>> ids_and_places(const wire::Answer& range) {
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
  return {{"ZRANGE", wire::redlock_layout.line(name), "0", "-1", "WITHSCORES"},
          {"HGETALL", wire::redlock_layout.waiters(name)},
          {"TIME"}};
}

std::optional<std::vector<WaitingCall>> read_waiting(const std::string& name,
                                                     const wire::NodeAddress& node,
                                                     const wire::Answer* answers) {
  if (trouble_of(answers[0], node).cause != Cause::none) return std::nullopt;
  const Fields records = fields_of(answers[1]);
  const std::int64_t now = clock_of(answers[2]);
  std::vector<WaitingCall> waiting;
  const std::string turn = turn_of(field_of(records, wire::redlock_layout.lock(name)), now);
  for (auto& [id, place] : ids_and_places(answers[0])) {
    // A record: until when the node counts the waiter as alive, how it is woken, how long its turns
    // are.
    const std::string record = field_of(records, id);
    if (!is_ahead(record, now)) continue;
    const auto note = records.find("@" + id);
    waiting.push_back(
        {.id = client::cleaned(on_every_node(id), node),
         .who = note == records.end() ? std::nullopt : read_holder(note->second, node),
         .waited = waited_since(place, now),
         .polls = record.find(" p ") != std::string::npos,
         .has_turn = id == turn});
  }
  return waiting;
}

std::vector<WaitingCall> waiting_on_any(const std::vector<NodeLock>& nodes) {
  std::map<std::string, WaitingCall> all;
  for (const NodeLock& node : nodes) {
    if (!node.waiting) continue;
    for (const WaitingCall& call : *node.waiting) {
      WaitingCall& known = all.try_emplace(call.id, call).first->second;
      if (!known.who) known.who = call.who;
      known.waited = std::max(known.waited, call.waited);
      known.polls = known.polls || call.polls;
      known.has_turn = known.has_turn || call.has_turn;
    }
  }
  std::vector<WaitingCall> waiting;
  waiting.reserve(all.size());
  for (auto& [id, call] : all) waiting.push_back(std::move(call));
  std::ranges::stable_sort(waiting, std::ranges::greater(), &WaitingCall::waited);
  return waiting;
}

}  // namespace redlock::admin
