// SPDX-License-Identifier: MIT
#include "simulation/script_talk.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <utility>

#include "simulation/any_server.hpp"
#include "support/lock_keys.hpp"
#include "wire/redlock_scripts.hpp"
#include "wire/script_call.hpp"
#include "wire/words.hpp"

namespace redlock::simulation {
namespace {

using testing::joined;
using wire::ScriptSet;

/// The words of a step that calls a script.
class Call {
 public:
  explicit Call(const Strings& step) {
    for (std::size_t at = 1; at < step.size(); ++at) {
      const std::string& word = step[at];
      if (word == "as" || word == "to") {
        waiter_ = step.at(++at);
        waited_ = step.at(++at) + "000";
        to_another_ = word == "to";
      } else if (word == "behind" || word == "first" || word == "poll") {
        options_[word] = word;
      } else if (options_.contains(word)) {
        options_[word] = step.at(++at);
      } else {
        names_.push_back(word);
      }
    }
  }

  [[nodiscard]] const std::string& owner() const { return names_.at(0); }
  [[nodiscard]] const std::string& next() const { return names_.at(1); }
  [[nodiscard]] const std::string& operator[](const std::string& option) const {
    return options_.at(option);
  }
  [[nodiscard]] Strings acquire(const std::string& owner) const {
    const auto& call = *this;
    const Strings begin{owner, call["lease"], call["floor"], call["text"], call["in"]};
    if (waiter_.empty()) return joined(begin, {call["behind"].empty() ? "" : "0"});
    const std::string next = call["next"].empty() ? "" : call["next"] + "000";
    return joined(joined(begin, {how(), waiter_, waited_, call["turn"], next}), another());
  }
  [[nodiscard]] Strings release() const {
    const Strings begin{owner(), options_.at("first").empty() ? "2" : "1"};
    if (waiter_.empty()) return begin;
    return joined(joined(begin, place()), another());
  }
  [[nodiscard]] Strings leave() const { return waiter_.empty() ? names_ : place(); }

 private:
  [[nodiscard]] Strings another() const { return to_another_ ? Strings{"1"} : Strings{}; }
  [[nodiscard]] std::string how() const { return options_.at("poll").empty() ? "w" : "p"; }
  [[nodiscard]] Strings place() const {
    return {waiter_, how(), waited_, options_.at("turn"), options_.at("text")};
  }

  Strings names_;
  std::string waiter_, waited_;
  bool to_another_ = false;
  std::map<std::string, std::string> options_{{"lease", "30000"}, {"floor", "1"},   {"count", "1"},
                                              {"token", "1"},     {"for", "40000"}, {"turn", "20"},
                                              {"text", ""},       {"next", ""},     {"behind", ""},
                                              {"first", ""},      {"poll", ""},     {"in", ""}};
};

struct Source {
  std::string text;
  const wire::ScriptRow* row = nullptr;  ///< of the table; null: it is not there
};

/// Each script of the library by its name: those of its table as a connection sends them.
std::map<std::string, Source> sources_of(const ScriptSet& scripts) {
  std::map<std::string, Source> sources;
  const auto rows = wire::script_rows();
  for (const auto& [name, text] : wire::scripts::all) {
    const auto row = std::ranges::find(rows, text, &wire::ScriptRow::source);
    sources.emplace(name, row == rows.end() ? Source{std::string(text)}
                                            : Source{scripts.source(row->script), &*row});
  }
  return sources;
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
  ScriptTalk(AnyServer& server, const ScriptSet& scripts)
      : server_(server), sources_(sources_of(scripts)) {
    for (const std::string client : {"aa", "bb"}) server_.subscribe(channels + client);
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
      const double place = server_.score(keys_.line, step.at(1));
      return std::to_string(now_ms_ - static_cast<long long>(place / 1'000));
    }
    if (what == "record") return relative(field(step.at(1)), 0);
    if (what == "script") return run_as_written(step);
    if (!sources_.contains(what)) return server_.ask(with_keys(step));
    const Call call(step);
    if (what == "acquire") {
      return run(what, keys_.of_acquire(call.owner(), call["in"]), call.acquire(call.owner()));
    }
    if (what == "hold") {
      return run(what, keys_.of_hold(call.owner()),
                 {call.owner(), call["count"], call["token"], call["lease"]});
    }
    if (what == "release") return run(what, keys_.of_release(), call.release());
    if (what == "leave") return run(what, keys_.of_leave(), call.leave());
    if (what == "force") {
      return run(what, keys_.of_force(call.owner()), {call.owner(), call["for"]});
    }
    if (what != "pass") throw std::runtime_error("no step calls the script " + what);
    return run(what, keys_.of_pass(call.next(), call["in"]),
               joined({call.owner(), "2"}, call.acquire(call.next())));
  }

  /// As what the library reads the reply of the script that ran since the last call.
  std::string meaning() { return std::exchange(meaning_, {}); }
  /// What the clients were told since the last call.
  std::string messages() {
    std::string all = server_.told();
    for (std::size_t at = 0; (at = all.find(channels, at)) != std::string::npos;) {
      all.erase(at, std::string_view(channels).size());
    }
    return all;
  }

 private:
  static constexpr const char* channels = "redlock:wake:";

  /// A script as a client sends it, but for the clock.
  std::string run(const std::string& name, const Strings& its_keys, const Strings& arguments) {
    constexpr std::string_view clock = "redis.call('TIME')";
    const Source& source = sources_.at(name);
    std::string text = source.text;
    const std::string now = std::to_string(now_ms_);
    const std::size_t seconds = now.size() - 3;
    if (const std::size_t at = text.find(clock); at != std::string::npos) {
      text.replace(at, clock.size(),
                   "{'" + now.substr(0, seconds) + "', '" + now.substr(seconds) + "000'}");
    }
    std::string reply = server_.run_narrowly(text, its_keys, arguments);
    if (source.row != nullptr) meaning_ = meaning_of(*source.row, server_.reply());
    return reply;
  }
  std::string run_as_written(const Strings& step) {
    const auto bar = std::ranges::find(step, "|");
    return run(step.at(1), with_keys({step.begin() + 2, bar}), {bar + 1, step.end()});
  }
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
    const std::string holder = without_quotes(server_.ask("HGETALL " + keys_.lock));
    const std::string left = server_.ask("PTTL " + keys_.lock);
    return (holder.empty() ? "free" : holder + " for " + left) + ", fence " +
           without_quotes(server_.ask("GET " + keys_.fence));
  }
  std::string line() {
    const std::string turn = relative(field(keys_.lock), 1);
    std::string all;
    for (const std::string& waiter :
         split(without_quotes(server_.ask("ZRANGE " + keys_.line + " 0 -1")))) {
      const bool has_turn = turn.starts_with(waiter + " ");
      all += (all.empty() ? "" : " ") + waiter;
      if (has_turn) all += "(" + turn.substr(waiter.size() + 1) + ")";
    }
    if (turn != "nil" && all.find('(') == std::string::npos) all += " and the turn of " + turn;
    return server_.ask("EXISTS " + keys_.waiters) == "0" && all.empty() ? "none" : all;
  }
  std::string field(const std::string& name) {
    return server_.ask("HGET " + keys_.waiters + " " + name);
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
      if (word == "lock") word = keys_.lock;
      if (word == "fence") word = keys_.fence;
      if (word == "line") word = keys_.line;
      if (word == "waiters") word = keys_.waiters;
      if (word == "marker") word = keys_.layout.marker;
      if (word == "notes") word = keys_.layout.notes;
      if (word.starts_with("forced:")) word = keys_.forced(word.substr(7));
    }
    return words;
  }
  static std::string without_quotes(std::string reply) {
    std::erase_if(reply, [](char c) { return c == '\'' || c == '[' || c == ']'; });
    return reply;
  }

  AnyServer& server_;
  const std::map<std::string, Source> sources_;
  const testing::LockKeys keys_{"n"};
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
  ScriptTalk node(server, ScriptSet(flags));
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
