// SPDX-License-Identifier: MIT
#include "simulation/script_talk.hpp"

#include <algorithm>
#include <chrono>
#include <doctest/doctest.h>
#include <map>
#include <span>
#include <utility>

#include "simulation/any_server.hpp"
#include "simulation/request_reader.hpp"
#include "wire/redlock_scripts.hpp"
#include "wire/script_call.hpp"
#include "wire/words.hpp"

namespace redlock::simulation {
namespace {

using engine::Command;
using wire::Script;
using wire::ScriptRow;
using wire::ScriptSet;

constexpr const wire::KeyLayout& layout = wire::redlock_layout;
constexpr const char* the_name = "n";

/// The words of a step that calls a script, as commands of the library.
class Call {
 public:
  explicit Call(const Strings& step) {
    for (std::size_t at = 1; at < step.size(); ++at) {
      const std::string& word = step[at];
      if (word == "as" || word == "to") {
        set_waiter(step.at(++at));
        place_.line = line_;
        place_.waited = std::chrono::milliseconds(std::stoll(step.at(++at)));
        place_.is_new = word == "to";
      } else if (word.find(':') != std::string::npos) {
        set_waiter(word);
      } else if (word == "behind" || word == "first" || word == "poll") {
        options_[word] = word;
      } else if (options_.contains(word)) {
        options_[word] = step.at(++at);
      } else {
        owners_.push_back(word);
      }
    }
    place_.turn = ms("turn");
    holder_ = wire::HolderText(option("text"), 1, "script_talk");
  }

  [[nodiscard]] std::vector<Command> commands(Script script) const {
    if (script != wire::pass_script) return {command<>(script)};
    return {engine::ReleaseCommand{.name = name_, .owner = owner(0)},
            filled<engine::AcquireCommand>(owner(1))};
  }
  [[nodiscard]] wire::CallContext context() {
    return {.holder = option("text").empty() ? nullptr : &holder_,
            .membership = std::string_view(option("in")).substr(names_members() ? 1 : 0),
            .client = client_,
            .subscribed = option("poll").empty()};
  }
  /// With the owners and the text as the step has them.
  [[nodiscard]] Strings as_the_step_says(std::span<const std::string_view> words) {
    Strings said(words.begin(), words.end());
    for (std::string& word : said) {
      if (word == holder_.since({})) word = option("text");
      for (std::size_t i = 0; i < owners_.size(); ++i) {
        const std::size_t at = word.find(engine::to_hex(owner(i)));
        if (at != std::string::npos) word.replace(at, std::string::npos, owners_[i]);
      }
    }
    return said;
  }

 private:
  void set_waiter(const std::string& waiter) {
    client_ = waiter.substr(0, waiter.find(':'));
    line_ = std::stoull(waiter.substr(client_.size() + 1));
  }
  [[nodiscard]] const std::string& option(const char* name) const { return options_.at(name); }
  [[nodiscard]] std::chrono::milliseconds ms(const char* name) const {
    return std::chrono::milliseconds(std::stoll(option(name)));
  }
  [[nodiscard]] bool names_members() const { return option("in").starts_with('='); }
  static engine::OwnerId owner(std::size_t place) { return {{1, place}}; }

  /// Members of one name mean the same in all commands.
  template <typename Kind>
  [[nodiscard]] Kind filled(engine::OwnerId its_owner) const {
    Kind command;
    command.name = name_;
    if constexpr (requires { command.owner; }) command.owner = its_owner;
    if constexpr (requires { command.lease; }) command.lease = ms("lease");
    if constexpr (requires { command.keep_out; }) {
      command.keep_out = ms("for");
      command.longest_lease = ms("longest");
    }
    if constexpr (requires { command.floor; }) command.floor = std::stoull(option("floor"));
    if constexpr (requires { command.token; }) command.token = std::stoull(option("token"));
    if constexpr (requires { command.count; }) {
      command.count = static_cast<std::uint32_t>(std::stoul(option("count")));
    }
    if constexpr (requires { command.marker_wanted; }) command.marker_wanted = names_members();
    if constexpr (requires { command.first_only; }) command.first_only = !option("first").empty();
    if constexpr (requires { command.in_order; }) {
      command.in_order = place_.line != 0 || !option("behind").empty();
    }
    if constexpr (requires { command.place; }) command.place = place_;
    if constexpr (requires { command.next_waited; }) {
      if (!option("next").empty()) command.next_waited = ms("next");
    }
    if constexpr (requires { command.line; }) command.line = line_;
    if constexpr (requires { command.next; }) command.next = place_;
    return command;
  }
  /// That of this script.
  template <std::size_t at = 0>
  [[nodiscard]] Command command(Script script) const {
    if constexpr (at + 1 < std::variant_size_v<Command>) {
      if (script != static_cast<Script>(at)) return command<at + 1>(script);
    }
    return filled<std::variant_alternative_t<at, Command>>(owner(0));
  }

  const engine::Name name_ = std::make_shared<const std::string>(the_name);
  Strings owners_;
  std::string client_;
  std::uint64_t line_ = 0;
  engine::Place place_;
  wire::HolderText holder_;
  std::map<std::string, std::string> options_{
      {"lease", "30000"},   {"floor", "1"}, {"count", "1"}, {"token", "1"}, {"for", "40000"},
      {"longest", "30000"}, {"turn", "20"}, {"text", ""},   {"next", ""},   {"behind", ""},
      {"first", ""},        {"poll", ""},   {"in", ""}};
};

/// Null: no script of that name is in the table.
const ScriptRow* row_named(std::string_view name) {
  const auto rows = wire::script_rows();
  const auto row =
      std::ranges::find(rows, name, [](const ScriptRow& each) { return each.source.name; });
  return row == rows.end() ? nullptr : &*row;
}

/// As what the library reads the reply to each command of the call; none of its own has `pass`.
std::string meaning_of(const wire::ScriptRow& row, const wire::ReplyView& reply) {
  std::string words;
  if (row.read == nullptr || reply.is(wire::ReplyView::Kind::error)) return words;
  const std::size_t count = row.many_in_a_call ? reply.size() : 1;
  wire::ReplyView element = row.many_in_a_call ? reply.first() : reply;
  for (std::size_t i = 0; i < count; ++i, element = element.next()) {
    const auto read = wire::read_element(row.script, element, {});
    REQUIRE(read.has_value());
    words += (i == 0 ? "" : ", ") + wire::in_words(*read);
  }
  return words;
}

class ScriptTalk {
 public:
  ScriptTalk(AnyServer& server, ScriptSet::Flags flags) : server_(server), scripts_(flags) {
    for (const std::string client : {"aa", "bb"}) server_.subscribe(layout.channel(client));
  }

  std::string reply_to(const Strings& step) {
    const std::string& what = step.front();
    if (what == "clock") return now_ms_ += std::stoll(step.at(1)), "";
    if (what == "full") return server_.become(Ailment::full), "";
    if (what == "replica") return server_.become(Ailment::read_only), "";
    if (what == "waiting") return line_up(step);
    if (what == "lock") return lock();
    if (what == "line") return line();
    if (what == "place") {
      const double place = server_.score(keys_.at("line"), step.at(1));
      return std::to_string(now_ms_ - static_cast<long long>(place / 1'000));
    }
    if (what == "record") return relative(ask("HGET waiters " + step.at(1)), 0);
    if (what == "script") return run_as_written(step);
    const ScriptRow* const row = row_named(what);
    return row != nullptr ? run_as_sent(*row, Call(step)) : server_.ask(with_keys(step));
  }

  /// As what the library reads the reply of the script that ran since the last call.
  std::string meaning() { return std::exchange(meaning_, {}); }
  /// What the clients were told since the last call.
  std::string messages() {
    std::string all = server_.told();
    for (std::size_t at = 0; (at = all.find(layout.wake_prefix, at)) != std::string::npos;) {
      all.erase(at, layout.wake_prefix.size());
    }
    return all;
  }

 private:
  /// A script as a client sends it, but for the clock.
  std::string run(const ScriptRow* row, std::string text, const Strings& keys,
                  const Strings& arguments) {
    constexpr std::string_view clock = "redis.call('TIME')";
    const std::string now = std::to_string(now_ms_);
    const std::size_t seconds = now.size() - 3;
    if (const std::size_t at = text.find(clock); at != std::string::npos) {
      text.replace(at, clock.size(),
                   "{'" + now.substr(0, seconds) + "', '" + now.substr(seconds) + "000'}");
    }
    std::string reply = server_.run_narrowly(text, keys, arguments);
    if (row != nullptr) meaning_ = meaning_of(*row, server_.reply());
    return reply;
  }
  std::string run_as_sent(const ScriptRow& row, Call call) {
    wire::CallParts parts;
    for (const Command& command : call.commands(row.script)) parts.add(command, call.context());
    if (row.names_members) parts.name_members(call.context());
    std::string bytes;
    parts.write(bytes, scripts_, engine::Form::source, row.script);
    RequestReader reader;
    reader.feed(bytes);
    REQUIRE(reader.next() == RequestReader::Outcome::complete);
    const Strings words = call.as_the_step_says(reader.request());
    const auto arguments = words.begin() + 3 + std::stol(words.at(2));
    return run(&row, words[1], {words.begin() + 3, arguments}, {arguments, words.end()});
  }
  std::string run_as_written(const Strings& step) {
    const auto* const script =
        std::ranges::find(wire::scripts::all, step.at(1), &wire::ScriptText::name);
    REQUIRE(script != std::end(wire::scripts::all));
    const ScriptRow* const row = row_named(script->name);
    const auto bar = std::ranges::find(step, "|");
    return run(row, std::string(row != nullptr ? scripts_.source(row->script) : script->text),
               with_keys({step.begin() + 2, bar}), {bar + 1, step.end()});
  }
  std::string ask(const std::string& request) { return server_.ask(with_keys(split(request))); }
  std::string line_up(const Strings& step) {
    std::string reply = reply_to({"acquire", "holder"});
    Strings waiter{"acquire", "x", "as"};
    for (std::size_t at = 1; at < step.size() && !reply.starts_with("error"); ++at) {
      const bool is_last = at + 1 == step.size() || step[at].ends_with(',');
      waiter.push_back(step[at].substr(0, step[at].find(',')));
      if (!is_last) continue;
      reply = reply_to(std::exchange(waiter, {"acquire", "x", "as"}));
    }
    return reply.starts_with("[0 ") ? "" : reply;
  }
  std::string lock() {
    const std::string holder = without_quotes(ask("HGETALL lock"));
    return (holder.empty() ? "free" : holder + " for " + ask("PTTL lock")) + ", fence " +
           without_quotes(ask("GET fence"));
  }
  std::string line() {
    const std::string turn = relative(ask("HGET waiters lock"), 1);
    std::string all;
    for (const std::string& waiter : split(without_quotes(ask("ZRANGE line 0 -1")))) {
      const bool has_turn = turn.starts_with(waiter + " ");
      all += (all.empty() ? "" : " ") + waiter;
      if (has_turn) all += "(" + turn.substr(waiter.size() + 1) + ")";
    }
    if (turn != "nil" && all.find('(') == std::string::npos) all += " and the turn of " + turn;
    return ask("EXISTS waiters") == "0" && all.empty() ? "none" : all;
  }
  /// The word at this place is a time of the node's clock: in ms from now on.
  [[nodiscard]] std::string relative(const std::string& reply, std::size_t place) const {
    if (reply == "nil") return reply;
    std::string all;
    Strings words = split(without_quotes(reply));
    words.at(place) = std::to_string(std::stoll(words.at(place)) - now_ms_);
    for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
    return all;
  }
  [[nodiscard]] Strings with_keys(Strings words) const {
    for (std::string& word : words) {
      if (const auto key = keys_.find(word); key != keys_.end()) word = key->second;
      if (word.starts_with("forced:")) word = layout.forced(the_name, word.substr(7));
    }
    return words;
  }
  static std::string without_quotes(std::string reply) {
    std::erase_if(reply, [](char c) { return c == '\'' || c == '[' || c == ']'; });
    return reply;
  }

  AnyServer& server_;
  const ScriptSet scripts_;
  const std::map<std::string, std::string> keys_{
      {"lock", layout.lock(the_name)},        {"fence", layout.fence(the_name)},
      {"line", layout.line(the_name)},        {"waiters", layout.waiters(the_name)},
      {"marker", std::string(layout.marker)}, {"notes", std::string(layout.notes)},
      {"change", std::string(layout.change)}};
  long long now_ms_ = 1'800'000'000'000;
  std::string meaning_;
};

std::string trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return std::string(text.substr(begin, text.find_last_not_of(' ') + 1 - begin));
}

/// With the lease of the reply instead of ~LEASE, if it is nearly as long.
std::string with_lease(std::string expected, const std::string& reply) {
  const std::size_t at = expected.find('~');
  if (at == std::string::npos || at >= reply.size() || reply[at] < '0' || reply[at] > '9') {
    return expected;
  }
  const long long most = std::stoll(expected.substr(at + 1));
  const long long left = std::stoll(reply.substr(at));
  const long long over = std::max(most / 3, 2'400LL);  // the machine may be busy
  if (left > most || left <= most - over) return expected;
  return expected.replace(at, 1 + std::to_string(most).size(), std::to_string(left));
}

/// With the words that are expected of its error, if they are in its text.
std::string with_error(std::string reply, std::string_view expected, std::string_view text) {
  constexpr std::string_view error = "error ";
  const std::size_t at = expected.find(error);
  if (at == std::string::npos || !reply.substr(std::min(at, reply.size())).starts_with(error)) {
    return reply;
  }
  const std::size_t begin = at + error.size();
  const std::string_view words = expected.substr(begin).substr(
      0, std::min(expected.find(']', begin), expected.find(" [", begin)) - begin);
  if (text.find(words) == std::string_view::npos) return reply;
  const std::size_t end = std::min(reply.find_first_of(" ]", begin), reply.size());
  return reply.replace(begin, end - begin, words);
}

/// What is expected may stand on a line of its own.
Strings steps_of(std::string_view conversation) {
  Strings steps;
  for (std::size_t at = 0; at < conversation.size();) {
    const std::size_t end = std::min(conversation.find('\n', at), conversation.size());
    const std::string line = trimmed(conversation.substr(at, end - at));
    if (line.starts_with("->")) {
      steps.back() += " " + line;
    } else if (!line.empty()) {
      steps.push_back(line);
    }
    at = end + 1;
  }
  return steps;
}

/// With this value of those that are named behind `each`.
Strings with_value(Strings steps, const std::string& value) {
  for (std::string& step : steps) {
    while (step.find('$') != std::string::npos) step.replace(step.find('$'), 1, value);
  }
  return steps;
}

void talk(AnyServer& server, ScriptSet::Flags flags, const Strings& steps) {
  ScriptTalk node(server, flags);
  for (const std::string& step : steps) {
    CAPTURE(step);
    const std::size_t arrow = std::min(step.find("->"), step.size());
    std::string reply = node.reply_to(split(step.substr(0, arrow)));
    if (const std::string messages = node.messages(); !messages.empty()) reply += " " + messages;
    const std::size_t equals = std::min(step.find(" = ", arrow), step.size());
    const std::string meaning = node.meaning();
    if (equals < step.size()) CHECK(meaning == step.substr(equals + 3));
    const std::string expected =
        arrow == step.size() ? "" : trimmed(step.substr(arrow + 2, equals - arrow - 2));
    CAPTURE(reply);
    CHECK(with_error(reply, expected, server.text()) == with_lease(expected, reply));
  }
}

void talk_in_each_form(const Strings& steps) {
  for (const auto flags : {ScriptSet::Flags::understood, ScriptSet::Flags::unknown}) {
    const std::string form = flags == ScriptSet::Flags::understood ? "for Redis 7" : "for 6.2";
    INFO("in the form ", form);
    {
      INFO("on the simulator's server");
      SimulatedServer simulated;
      talk(simulated, flags, steps);
    }
    INFO("on a real server");
    RealServer real(fleet());
    if (flags == ScriptSet::Flags::unknown || real.is_redis_7()) talk(real, flags, steps);
  }
}

}  // namespace

cluster::Fleet& fleet() {
  static cluster::Fleet one({.nodes = 1});
  return one;
}

void talk(std::string_view conversation) {
  Strings steps = steps_of(conversation);
  Strings values{""};
  if (steps.front().starts_with("each ")) {
    values = split(steps.front().substr(5));
    steps.erase(steps.begin());
  }
  for (const std::string& value : values) talk_in_each_form(with_value(steps, value));
}

}  // namespace redlock::simulation
