// SPDX-License-Identifier: MIT
#include "simulation/node_server.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace redlock::simulation {
namespace {

constexpr std::string_view loading = "LOADING Redis is loading the dataset in memory";
constexpr std::string_view busy =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
constexpr std::string_view misconf =
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "
    "disk. Commands that may modify the data set are disabled.";
constexpr std::string_view read_only = "READONLY You can't write against a read only replica.";
constexpr std::string_view out_of_memory =
    "OOM command not allowed when used memory > 'maxmemory'.";
constexpr std::string_view no_script = "NOSCRIPT No matching script. Please use EVAL.";

constexpr std::array<std::string_view, static_cast<std::size_t>(Denied::count)> denied_commands{
    "client|kill", "client|id", "client|setname", "info",    "time",
    "config|get",  "subscribe", "hello",          "publish", "pexpire"};

std::string push_of(bool resp3, std::string_view channel, std::string_view text) {
  std::string bytes;
  RespReply push(bytes, resp3);
  push.push(3);
  push.bulk("message");
  push.bulk(channel);
  push.bulk(text);
  return bytes;
}

}  // namespace

/// A command that is about the server, not its keys.
struct NodeServer::Row {
  std::string_view name;
  int arity = 0;
  bool before_auth = false;
  bool while_loading = false;
  bool while_busy = false;
  void (NodeServer::*run)(Asked& asked) = nullptr;
};

const NodeServer::Row* NodeServer::find_row(std::string_view name) {
  static constexpr auto rows = std::to_array<Row>({
      {"EVALSHA", -3, false, false, false, &NodeServer::run_evalsha},
      {"EVAL", -3, false, false, false, &NodeServer::run_eval},
      {"CLIENT", -2, false, true, false, &NodeServer::run_client},
      {"CONFIG", 3, false, true, false, &NodeServer::run_config},
      {"INFO", -1, false, true, false, &NodeServer::run_info},
      {"SCRIPT", -2, false, false, false, &NodeServer::run_script},
      {"SUBSCRIBE", 2, false, true, false, &NodeServer::run_subscribe},
      {"HELLO", 2, false, true, true, &NodeServer::run_hello},
      {"AUTH", -2, true, true, true, &NodeServer::run_auth},
      {"SELECT", 2, false, true, false, &NodeServer::run_select},
      {"PING", 1, false, false, false, &NodeServer::run_ping},
  });
  const auto* const found =
      std::ranges::find_if(rows, [&](const Row& row) { return is_word(name, row.name); });
  return found == rows.end() ? nullptr : found;
}

NodeServer::NodeServer(NodeData& data, const Settings& settings, NodeServerHost& host)
    : data_(data), settings_(settings), host_(host) {}

void NodeServer::start(std::string run_id, std::int64_t now_us) {
  run_id_ = std::move(run_id);
  replid_ = "a" + run_id_;
  was_replica_ = false;
  started_s_ = now_us / 1'000'000;
  last_id_ = 0;
  sessions_.clear();
  forget_scripts();
}

void NodeServer::promote() {
  replid_ = static_cast<char>(replid_.front() + 1) + run_id_;
  was_replica_ = true;
}

void NodeServer::demote() {
  for (auto& [stream, session] : sessions_) session.knows_its_role = false;
}

bool NodeServer::demotion_is_known() const {
  return std::ranges::all_of(sessions_,
                             [](const auto& entry) { return entry.second.knows_its_role; });
}

void NodeServer::accept(StreamId stream) {
  Session& session = sessions_[stream];
  session = {};
  session.id = ++last_id_;
  session.authenticated = settings_.password.empty();
}

bool NodeServer::take(StreamId stream, std::string_view bytes, std::int64_t now_us,
                      std::string& replies) {
  const auto found = sessions_.find(stream);
  if (found == sessions_.end()) return false;
  now_us_ = now_us;
  Session& session = found->second;
  session.reader.feed(bytes);
  for (;;) {
    switch (session.reader.next()) {
      case RequestReader::Outcome::incomplete:
        return true;
      case RequestReader::Outcome::broken:
        RespReply(replies, false).error("ERR Protocol error");
        host_.on_misread(stream, "these bytes are no RESP array of bulk strings");
        sessions_.erase(stream);
        return false;
      case RequestReader::Outcome::complete:
        run(stream, session, session.reader.request(), replies);
    }
  }
}

std::string_view NodeServer::refusal(bool while_loading, bool while_busy) const {
  if (data_.ailment == Ailment::busy && !while_busy) return busy;
  return data_.ailment == Ailment::loading && !while_loading ? loading : std::string_view();
}

/// Of what writes; empty if it may.
std::string_view NodeServer::refusal_to_write(const CommandRow& row) const {
  if (data_.ailment == Ailment::full && row.may_grow) return out_of_memory;
  if (data_.ailment == Ailment::misconf && row.writes) return misconf;
  return is_replica() && row.writes ? read_only : std::string_view();
}

bool NodeServer::denies(Denied what, Reply& reply) const {
  if (!denies(what)) return false;
  reply.error(fmt::format("NOPERM this user has no permissions to run the '{}' command",
                          denied_commands[static_cast<std::size_t>(what)]));
  return true;
}

void NodeServer::run(StreamId stream, Session& session, Words words, std::string& out) {
  Asked asked{stream, session, words, out, {out, session.resp3}};
  const CommandRow* const data = find_command(words.front());
  const Row* const row = data == nullptr ? find_row(words.front()) : nullptr;
  if (!session.authenticated && (row == nullptr || !row->before_auth)) {
    return asked.reply.error("NOAUTH Authentication required.");
  }
  if (data != nullptr) return run_data(asked, *data);
  const bool fits =
      row != nullptr && (row->arity < 0 ? words.size() >= static_cast<std::size_t>(-row->arity)
                                        : words.size() == static_cast<std::size_t>(row->arity));
  if (!fits) return misread(asked, words.front());
  const std::string_view why = refusal(row->while_loading, row->while_busy);
  why.empty() ? (this->*row->run)(asked) : asked.reply.error(why);
}

void NodeServer::run_data(Asked& asked, const CommandRow& row) {
  if (!row.takes(asked.words.size())) return misread(asked, row.name);
  const bool tells_time = row.name == "TIME";
  if (tells_time && denies(Denied::time, asked.reply)) return;
  if (row.name == "PUBLISH" && denies(Denied::publish, asked.reply)) return;
  std::string_view why = refusal_to_write(row);
  if (why.empty()) why = refusal(row.while_loading, false);
  if (!why.empty()) return asked.reply.error(why);
  CommandCall call{asked.words, data_.keys, now_us_, !is_replica(), *this, asked.reply};
  row.run(call);
  if (tells_time) host_.on_time_told(asked.stream);
  if (row.name != "PTTL") return;  // clients ask it of nothing but the note
  const std::int64_t now_ms = now_us_ / 1'000;
  const Keyspace::Entry* const note = data_.keys.find(asked.words[1], now_ms);
  const std::int64_t lasts = note == nullptr ? 0 : note->ends_ms.value_or(now_ms) - now_ms;
  host_.on_note_told(asked.stream, std::chrono::milliseconds(lasts));
}

void NodeServer::run_client(Asked& asked) {
  const Words words = asked.words;
  std::int64_t id = 0;
  if (is_word(words[1], "SETNAME") && words.size() == 3) {
    if (!denies(Denied::client_setname, asked.reply)) asked.reply.status("OK");
  } else if (is_word(words[1], "ID") && words.size() == 2) {
    if (!denies(Denied::client_id, asked.reply)) asked.reply.integer(asked.session.id);
  } else if (is_word(words[1], "KILL") && words.size() == 4 && is_word(words[2], "ID") &&
             read_integer(words[3], id)) {
    if (denies(Denied::client_kill, asked.reply)) return;
    asked.reply.integer(kill(asked.stream, id) ? 1 : 0);
  } else {
    misread(asked, "CLIENT");
  }
}

/// Not oneself: a client that may not read INFO can name a number that is its own by now.
bool NodeServer::kill(StreamId asking, std::int64_t id) {
  for (const auto& [stream, session] : sessions_) {
    if (session.id != id || stream == asking) continue;
    const StreamId killed = stream;
    sessions_.erase(killed);
    host_.on_killed(killed);
    return true;
  }
  return false;
}

void NodeServer::run_config(Asked& asked) {
  if (!is_word(asked.words[1], "GET")) return misread(asked, "CONFIG");
  if (denies(Denied::config, asked.reply)) return;
  const std::string_view name = asked.words[2];
  const std::string_view value = name == "appendonly" ? (settings_.durable ? "yes" : "no")
                                 : name == "appendfsync"
                                     ? (settings_.durable ? "always" : "everysec")
                                 : name == "maxmemory-policy" ? "noeviction"
                                                              : "";
  asked.reply.map(value.empty() ? 0 : 1);
  if (value.empty()) return;
  asked.reply.bulk(name);
  asked.reply.bulk(value);
}

void NodeServer::run_hello(Asked& asked) {
  if (denies(Denied::hello, asked.reply)) return;
  const std::string_view version = asked.words[1];
  if (version != "2" && version != "3") {
    return asked.reply.error("NOPROTO unsupported protocol version");
  }
  asked.session.resp3 = version == "3";
  RespReply reply(asked.out, asked.session.resp3);
  reply.map(7);
  const auto pair = [&](std::string_view name, std::string_view value) {
    reply.bulk(name);
    reply.bulk(value);
  };
  pair("server", "redis");
  pair("version", settings_.version);
  reply.bulk("proto");
  reply.integer(asked.session.resp3 ? 3 : 2);
  reply.bulk("id");
  reply.integer(asked.session.id);
  pair("mode", "standalone");
  pair("role", is_replica() ? "replica" : "master");
  reply.bulk("modules");
  reply.array(0);
}

void NodeServer::run_auth(Asked& asked) {
  if (settings_.password.empty()) {
    return asked.reply.error(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?");
  }
  asked.session.authenticated = asked.words.back() == settings_.password;
  if (asked.session.authenticated) return asked.reply.status("OK");
  asked.reply.error("WRONGPASS invalid username-password pair or user is disabled.");
}

void NodeServer::run_info(Asked& asked) {
  if (denies(Denied::info, asked.reply)) return;
  asked.session.knows_its_role = true;
  asked.reply.verbatim(info(asked.words.size() == 1));
}

std::string NodeServer::info(bool all) const {
  std::string text;
  if (all) {
    text = fmt::format(
        "# Server\r\nredis_version:{}\r\nredis_mode:standalone\r\nprocess_id:1\r\nrun_id:{}\r\n"
        "tcp_port:6379\r\nuptime_in_seconds:{}\r\n\r\n",
        settings_.version, run_id_, now_us_ / 1'000'000 - started_s_);
  }
  text += fmt::format(
      "# Replication\r\nrole:{}\r\nconnected_slaves:0\r\nmaster_replid:{}\r\n"
      "second_repl_offset:{}\r\n",
      is_replica() ? "slave" : "master", replid_, was_replica_ ? "42" : "-1");
  if (all) text += "\r\n# Cluster\r\ncluster_enabled:0\r\n";
  return text;
}

void NodeServer::run_select(Asked& asked) {
  asked.reply.status("OK");
}

void NodeServer::run_ping(Asked& asked) {
  asked.reply.status("PONG");
}

void NodeServer::misread(Asked& asked, std::string_view why) {
  asked.reply.error("ERR unknown command, or wrong arguments");
  host_.on_misread(asked.stream, why);
}

// --- Pub/Sub

void NodeServer::run_subscribe(Asked& asked) {
  if (denies(Denied::subscribe)) {
    return asked.reply.error(
        "NOPERM this user has no permissions to access one of the channels used as arguments");
  }
  asked.session.channel = asked.words[1];
  asked.reply.push(3);
  asked.reply.bulk("subscribe");
  asked.reply.bulk(asked.session.channel);
  asked.reply.integer(1);
}

/// Also to the one whose script it is: before the reply.
std::size_t NodeServer::publish(std::string_view channel, std::string_view text) {
  std::size_t reached = 0;
  for (const auto& [stream, session] : sessions_) {
    if (session.channel != channel) continue;
    ++reached;
    const std::string push = push_of(session.resp3, channel, text);
    for (std::uint32_t copies = host_.on_publish(stream, channel, text); copies > 0; --copies) {
      if (stream == asking_) {
        own_pushes_ += push;
      } else {
        host_.on_push(stream, push);
      }
    }
  }
  if (reached > 0) ++told_;
  return reached;
}

void NodeServer::publish_text(const std::string& channel, const std::string& text) {
  for (const auto& [stream, session] : sessions_) {
    if (session.channel != channel) continue;
    host_.on_push(stream, push_of(session.resp3, channel, text));
  }
}

std::vector<std::string> NodeServer::channels() const {
  std::vector<std::string> channels;
  for (const auto& [stream, session] : sessions_) {
    if (!session.channel.empty()) channels.push_back(session.channel);
  }
  return channels;
}

// --- scripts

/// Null if it cannot be compiled, which is replied then.
const Script* NodeServer::take_in(Asked& asked, std::string_view text) {
  const Script& script = Interpreter::of_this_thread().compile(text);
  if (script.problem.empty()) return &script;
  asked.reply.error("ERR Error compiling script (new function): " + script.problem);
  host_.on_misread(asked.stream, script.problem);
  return nullptr;
}

void NodeServer::run_script(Asked& asked) {
  const Words words = asked.words;
  if (is_word(words[1], "LOAD") && words.size() == 3) {
    const Script* const script = take_in(asked, words[2]);
    if (script == nullptr) return;
    scripts_[script->digest] = script;
    asked.reply.bulk(script->digest);
  } else if (is_word(words[1], "FLUSH")) {
    forget_scripts();
    asked.reply.status("OK");
  } else {
    misread(asked, "SCRIPT");
  }
}

void NodeServer::run_evalsha(Asked& asked) {
  const auto known = scripts_.find(asked.words[1]);
  if (known == scripts_.end()) return asked.reply.error(no_script);
  call_script(asked, *known->second);
}

/// A script that declares what it does is judged before it is taken in.
void NodeServer::run_eval(Asked& asked) {
  const Script* const script = take_in(asked, asked.words[1]);
  if (script == nullptr || refuses(*script, asked.reply)) return;
  scripts_[script->digest] = script;
  call_script(asked, *script);
}

/// One that declares nothing is judged by what its commands do.
bool NodeServer::refuses(const Script& script, Reply& reply) const {
  if (!script.flagged) return false;
  const std::string_view why =
      refusal_to_write({.name = {}, .writes = true, .may_grow = !script.at_maxmemory});
  if (!why.empty()) reply.error(why);
  return !why.empty();
}

void NodeServer::call_script(Asked& asked, const Script& script) {
  std::int64_t keys = 0;
  const Words rest = asked.words.subspan(3);
  if (!read_integer(asked.words[2], keys) || keys < 0 ||
      static_cast<std::size_t>(keys) > rest.size()) {
    return misread(asked, "a script call whose number of keys is wrong");
  }
  if (refuses(script, asked.reply)) return;
  const bool lies = settings_.lie != Lie::none && settings_.lie != Lie::members;
  if (lies && lie_about(script, keys, asked.reply)) return;
  const ScriptRun run{.script = script.name,
                      .keys = rest.first(static_cast<std::size_t>(keys)),
                      .arguments = rest.subspan(static_cast<std::size_t>(keys)),
                      .reply = {}};
  NodeData before;
  for (const std::string_view key : run.keys) {
    const auto* const entry = data_.keys.find(key, now_us_ / 1'000);
    if (entry != nullptr) before.keys.put(key, entry->value).ends_ms = entry->ends_ms;
  }
  asking_ = asked.stream;
  told_ = 0;
  at_maxmemory_ = script.at_maxmemory;
  wrote_ = false;
  was_denied_ = false;
  const bool was_marked = data_.is_marked(now_us_ / 1'000);
  std::string bytes;
  RespReply reply(bytes, asked.session.resp3);
  const bool works =
      Interpreter::of_this_thread().run(script, run.keys, run.arguments, *this, reply);
  if (!works) host_.on_misread(asked.stream, bytes);
  asked.out += std::exchange(own_pushes_, {});
  asked.out += bytes;
  if (is_replica() && bytes.find("READONLY") != std::string::npos) {
    asked.session.knows_its_role = true;
  }
  if (!was_marked && data_.is_marked(now_us_ / 1'000)) host_.on_marked(asked.stream);
  const bool disturbed = data_.ailment != Ailment::none || was_denied_;
  host_.on_executed(asked.stream,
                    {run.script, run.keys, run.arguments, bytes, &before, told_, disturbed});
}

/// Whether the script is about locks: then nothing of it is run.
bool NodeServer::lie_about(const Script& script, std::int64_t keys, Reply& reply) {
  Lie lie = settings_.lie;
  if (lie == Lie::any) lie = static_cast<Lie>(1 + ++lies_ % 4);
  const auto refused = [&](Reply& to) {
    to.array(lie == Lie::taken ? 2 : 1);
    to.integer(lie == Lie::taken ? 0 : lie == Lie::shared_owner ? 4 : lie == Lie::forced ? 3 : 2);
    if (lie == Lie::taken) to.integer(-1);
  };
  if (script.name == "acquire") {
    refused(reply);
  } else if (script.name == "pass") {
    reply.array(2);
    reply.integer(0);
    refused(reply);
  } else if (script.name == "hold" || script.name == "release") {
    reply.array(static_cast<std::size_t>(keys / 3));
    for (std::int64_t i = 0; i < keys / 3; ++i) {
      if (script.name == "hold") reply.array(1);
      const int not_held = lie == Lie::forced ? -3 : lie == Lie::foreign ? -2 : -1;
      reply.integer(script.name == "hold" ? not_held : 0);
    }
  } else {
    return false;
  }
  return true;
}

void NodeServer::call_from_script(Words words, Reply& reply) {
  const CommandRow* const row = find_command(words.front());
  if (row == nullptr) {
    return reply.error(find_row(words.front()) == nullptr
                           ? "ERR Unknown Redis command called from script"
                           : "ERR This Redis command is not allowed from script");
  }
  if (!row->takes(words.size())) {
    return reply.error("ERR Wrong number of args calling Redis command from script");
  }
  const bool denied_a_message = row->name == "PUBLISH" && denies(Denied::publish);
  const bool denied = (row->name == "TIME" && denies(Denied::time)) ||
                      (row->name == "PEXPIRE" && denies(Denied::pexpire));
  was_denied_ = was_denied_ || denied;
  if (denied || denied_a_message) {
    return reply.error("ERR The user executing the script can't run this command or subcommand");
  }
  // What has begun to write goes on. At maxmemory also what says so beforehand.
  const std::string_view why = wrote_ ? std::string_view() : refusal_to_write(*row);
  const bool goes_on = why == out_of_memory && at_maxmemory_;
  if (!why.empty() && !goes_on) return reply.error(why);
  wrote_ = wrote_ || row->writes;
  CommandCall call{words, data_.keys, now_us_, !is_replica(), *this, reply};
  row->run(call);
}

}  // namespace redlock::simulation
