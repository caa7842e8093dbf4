// SPDX-License-Identifier: MIT
#include "simulation/node_server.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <fmt/format.h>
#include <span>
#include <utility>
#include <vector>

#include "engine/stripe.hpp"
#include "wire/redlock_scripts.hpp"
#include "wire/script_set.hpp"

namespace redlock::simulation {
namespace {

using std::chrono::milliseconds;
using wire::Script;
using wire::ScriptSet;

constexpr std::string_view marker_key = "redlock:node";
constexpr std::string_view notes_key = "redlock:node:notes";

// Each script of a command with flags, then each without, then those about markers.
constexpr std::size_t texts = 2 * wire::script_count + 2;

/// A text by its place among all texts; a digest is that place.
std::string_view text_at(std::size_t place) {
  static const ScriptSet flagged(ScriptSet::Flags::understood);
  static const ScriptSet plain(ScriptSet::Flags::unknown);
  if (place == texts - 2) return wire::scripts::adopt;
  if (place == texts - 1) return wire::scripts::pending;
  const auto script = static_cast<Script>(place % wire::script_count);
  return (place < wire::script_count ? flagged : plain).source(script);
}

std::optional<std::size_t> place_of_text(std::string_view text) {
  for (std::size_t place = 0; place < texts; ++place) {
    if (text_at(place) == text) return place;
  }
  return std::nullopt;
}

constexpr std::string_view place_digits = "0123456789abcdef";
static_assert(texts <= place_digits.size());

/// Of 40 hexadecimal digits, as SHA-1 has.
std::string digest_of(std::size_t place) {
  return std::string(39, 'f') + place_digits[place];
}

std::optional<std::size_t> place_of_digest(std::string_view digest) {
  if (digest.size() != 40 || !digest.starts_with(std::string(39, 'f'))) return std::nullopt;
  const std::size_t place = place_digits.find(digest.back());
  return place < texts ? std::optional(place) : std::nullopt;
}

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  return problem == std::errc() && rest == end && !text.empty();
}

bool read_lease(std::string_view text, milliseconds& lease) {
  std::int64_t count = 0;
  if (!read_number(text, count) || count <= 0) return false;
  lease = milliseconds(count);
  return true;
}

bool read_owner(std::string_view text, engine::OwnerId& owner) {
  if (text.size() != 32) return false;
  for (std::size_t half = 0; half < 2; ++half) {
    const char* const begin = text.data() + 16 * half;
    const auto [rest, problem] = std::from_chars(begin, begin + 16, owner.bits[half], 16);
    if (problem != std::errc() || rest != begin + 16) return false;
  }
  return true;
}

/// "", "0", "WAITER", or "WAITER TICKET w" or p, and then who that is. With ! before it, perhaps.
bool read_order(std::string_view text, Order& order, engine::Waiter& waiter) {
  order.first_only = text.starts_with('!');
  if (order.first_only) text.remove_prefix(1);
  order.in_order = !text.empty();
  if (text.empty() || text == "0") return true;
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::size_t colon = std::min(text.find(':'), end);
  order.waiter = text.substr(0, end);
  if (colon != 16 || !read_number(text.substr(colon + 1, end - colon - 1), waiter.number)) {
    return false;
  }
  if (end == text.size()) return true;
  text.remove_prefix(end + 1);
  const std::size_t space = text.find(' ');
  if (space >= text.size() - 1 || !read_number(text.substr(0, space), order.ticket)) return false;
  order.manner = text[space + 1];
  text.remove_prefix(space + 2);
  if (!text.empty() && text.front() != ' ') return false;
  waiter.ticket = order.ticket;
  return order.manner == 'w' || order.manner == 'p';
}

// --- replies

void write_line(std::string& out, char type, std::string_view text) {
  out += type;
  out += text;
  out += "\r\n";
}

void write_number(std::string& out, char type, std::int64_t number) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  write_line(out, type, {digits.data(), static_cast<std::size_t>(end - digits.data())});
}

void write_bulk(std::string& out, std::string_view text) {
  write_number(out, '$', static_cast<std::int64_t>(text.size()));
  out += text;
  out += "\r\n";
}

void write_array(std::string& out, std::initializer_list<std::int64_t> numbers) {
  write_number(out, '*', static_cast<std::int64_t>(numbers.size()));
  for (const std::int64_t number : numbers) write_number(out, ':', number);
}

/// The head of a map, which is an array of both in RESP2.
void write_pairs(std::string& out, char type, std::int64_t pairs) {
  write_number(out, type, type == '%' ? pairs : 2 * pairs);
}

/// The model says in a few words what Redis says at length.
std::string_view in_full(std::string_view words) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> known{{
      {"LOADING", "LOADING Redis is loading the dataset in memory"},
      {"BUSY",
       "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."},
      {"MISCONF",
       "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "
       "disk. Commands that may modify the data set are disabled."},
      {"READONLY", "READONLY You can't write against a read only replica."},
      {"OOM", "OOM command not allowed when used memory > 'maxmemory'."},
      {"HASMARKER", "HASMARKER redlock: it has a marker or soon will; use Quarantine::on"},
      {"NOMARKER", "NOMARKER redlock: this node has no marker: it is new or was wiped"},
      {"OTHERSET", "OTHERSET redlock: the marker of this node names another set by now"},
      {"WRONGTYPE", "WRONGTYPE Operation against a key holding the wrong kind of value"},
      {"not an integer", "ERR value is not an integer or out of range"},
  }};
  for (const auto& [few, many] : known) {
    if (few == words) return many;
  }
  return {};
}

void write_refusal(std::string& out, const engine::Unavailable& why) {
  out += '-';
  const std::string_view text = in_full(why.detail);
  if (text.empty()) out += "ERR redlock: ";
  out += text.empty() ? std::string_view(why.detail) : text;
  // Redis says which line of which script it was.
  if (why.cause == Cause::server_error) out += " script: 5eed, on @user_script:42.";
  out += "\r\n";
}

constexpr std::string_view no_script = "NOSCRIPT No matching script. Please use EVAL.";

/// A reply that is not the call's result but an error. Its call has no other reply then.
bool write_error(std::string& out, const engine::Reply& reply) {
  if (std::holds_alternative<engine::NoScript>(reply)) {
    write_line(out, '-', no_script);
    return true;
  }
  const auto* const why = std::get_if<engine::Unavailable>(&reply);
  if (why != nullptr) write_refusal(out, *why);
  return why != nullptr;
}

void write_acquired(std::string& out, const engine::Reply& reply, bool has_place) {
  if (write_error(out, reply)) return;
  if (const auto* granted = std::get_if<engine::Granted>(&reply)) {
    write_array(out, {1, static_cast<std::int64_t>(granted->token)});
  } else if (const auto* refused = std::get_if<engine::Refused>(&reply)) {
    if (refused->foreign_type) return write_array(out, {2});
    const std::int64_t left = refused->expires_in ? refused->expires_in->count() : -1;
    if (has_place) return write_array(out, {0, left, refused->place});
    write_array(out, {0, left});
  } else {
    write_array(out, {std::holds_alternative<engine::ForcedOut>(reply) ? 3 : 4});
  }
}

void write_held(std::string& out, const engine::Reply& reply) {
  if (const auto* held = std::get_if<engine::Held>(&reply)) {
    write_array(out, {1, static_cast<std::int64_t>(held->fence)});
  } else if (std::holds_alternative<engine::Free>(reply)) {
    write_array(out, {0});
  } else if (const auto* taken = std::get_if<engine::Taken>(&reply)) {
    write_array(out, {taken->foreign_type ? -2 : -1});
  } else {
    write_array(out, {-3});
  }
}

std::string push_of(bool resp3, std::string_view channel, std::string_view text) {
  std::string push;
  write_number(push, resp3 ? '>' : '*', 3);
  write_bulk(push, "message");
  write_bulk(push, channel);
  write_bulk(push, text);
  return push;
}

}  // namespace

/// In the order of the table of scripts, and then the two about markers.
enum class NodeServer::Kind : std::uint8_t { acquire, hold, release, force, pass, adopt, pending };

struct NodeServer::Call {
  Kind kind{};
  engine::Form form{};
  std::span<const std::string_view> keys;
  std::span<const std::string_view> arguments;
};

NodeServer::Kind NodeServer::kind_of(std::size_t place) {
  constexpr std::size_t commands = wire::script_count;
  return static_cast<Kind>(place < 2 * commands ? place % commands : place - commands);
}

NodeServer::NodeServer(NodeModel& model, const Settings& settings, NodeServerHost& host)
    : model_(model), settings_(settings), host_(host) {}

void NodeServer::start(std::string run_id, std::int64_t now_us) {
  run_id_ = std::move(run_id);
  replid_ = "a" + run_id_;
  was_replica_ = false;
  started_s_ = now_us / 1'000'000;
  last_id_ = 0;
  sessions_.clear();
  model_.forget_scripts();
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
        write_line(replies, '-', "ERR Protocol error");
        host_.on_misread(stream, "these bytes are no RESP array of bulk strings");
        sessions_.erase(stream);
        return false;
      case RequestReader::Outcome::complete:
        run(stream, session, session.reader.request(), replies);
    }
  }
}

/// What the dispatcher says instead of running the command; null if it runs it.
const char* NodeServer::refusal(const Session& session, std::string_view command) const {
  if (command == "AUTH") return nullptr;
  if (!session.authenticated) return "NOAUTH Authentication required.";
  if (command == "HELLO") return nullptr;
  if (model_.ailment() == Ailment::busy) return in_full("BUSY").data();
  const bool while_loading = command == "SELECT" || command == "CLIENT" || command == "INFO" ||
                             command == "CONFIG" || command == "TIME";
  if (model_.ailment() == Ailment::loading && !while_loading) return in_full("LOADING").data();
  return nullptr;
}

bool NodeServer::denies(Denied what, std::string& out) const {
  if (!settings_.denied.test(static_cast<std::size_t>(what))) return false;
  static constexpr std::array<std::string_view, static_cast<std::size_t>(Denied::count)> commands{
      "client|kill", "client|id", "client|setname", "info",   "time",
      "config|get",  "subscribe", "hello",          "publish"};
  out += "-NOPERM this user has no permissions to run the '";
  out += commands[static_cast<std::size_t>(what)];
  out += "' command\r\n";
  return true;
}

void NodeServer::run(StreamId stream, Session& session, const Request& request, std::string& out) {
  const std::string_view command = request.front();
  if (command == "EVALSHA" || command == "EVAL") {
    // Loading and busy are the model's to say for scripts.
    if (!session.authenticated) return write_line(out, '-', refusal(session, command));
    return run_call(stream, request, out);
  }
  if (const char* const why = refusal(session, command)) return write_line(out, '-', why);
  if (command == "TIME") {
    if (denies(Denied::time, out)) return;
    out += "*2\r\n";
    write_bulk(out, std::to_string(now_us_ / 1'000'000));
    write_bulk(out, std::to_string(now_us_ % 1'000'000));
    host_.on_time_told(stream);
  } else if (command == "INFO") {
    if (denies(Denied::info, out)) return;
    session.knows_its_role = true;
    const std::string text = info(request.size() > 1 ? request[1] : "");
    if (!session.resp3) return write_bulk(out, text);
    write_number(out, '=', static_cast<std::int64_t>(text.size()) + 4);
    out += "txt:" + text + "\r\n";
  } else if (command == "CLIENT" && request.size() > 1) {
    run_client(stream, session, request, out);
  } else if (command == "CONFIG" && request.size() == 3 && request[1] == "GET") {
    run_config(session, request, out);
  } else if (command == "AUTH") {
    run_auth(session, request, out);
  } else if (command == "HELLO") {
    run_hello(session, request, out);
  } else if (command == "SUBSCRIBE" && request.size() == 2) {
    run_subscribe(session, request, out);
  } else if (command == "SELECT") {
    write_line(out, '+', "OK");
  } else if (command == "HGETALL" && request.size() == 2 && request[1] == marker_key) {
    write_marker(session.resp3 ? '%' : '*', out);
  } else if (command == "EXISTS") {
    run_exists(request, out);
  } else if (command == "SET" && request.size() == 4 && request[3] == "XX") {
    // Of a key that nobody has: only a question whether anything may be written.
    if (const auto why = model_.refusal_to_write()) return write_refusal(out, *why);
    out += session.resp3 ? "_\r\n" : "$-1\r\n";
  } else if (command == "SCRIPT" && request.size() == 3 && request[1] == "LOAD") {
    const auto place = place_of_text(request[2]);
    if (!place) return misread(stream, "SCRIPT LOAD of a text that nobody knows", out);
    const Kind kind = kind_of(*place);
    if (kind == Kind::acquire) model_.load_script(engine::AcquireCommand{});
    if (kind == Kind::hold) model_.load_script(engine::HoldCommand{});
    if (kind == Kind::release) model_.load_script(engine::ReleaseCommand{});
    if (kind == Kind::force) model_.load_script(engine::ForceCommand{});
    if (kind == Kind::pass) model_.load_pass();
    write_bulk(out, digest_of(*place));
  } else {
    misread(stream, command, out);
  }
}

void NodeServer::run_client(StreamId stream, const Session& session, const Request& request,
                            std::string& out) {
  std::int64_t id = 0;
  if (request[1] == "SETNAME" && request.size() == 3) {
    if (!denies(Denied::client_setname, out)) write_line(out, '+', "OK");
  } else if (request[1] == "ID") {
    if (!denies(Denied::client_id, out)) write_number(out, ':', session.id);
  } else if (request[1] == "KILL" && request.size() == 4 && request[2] == "ID" &&
             read_number(request[3], id)) {
    if (!denies(Denied::client_kill, out)) write_number(out, ':', kill(stream, id) ? 1 : 0);
  } else {
    misread(stream, "CLIENT", out);
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

void NodeServer::run_config(const Session& session, const Request& request,
                            std::string& out) const {
  if (denies(Denied::config, out)) return;
  const std::string_view name = request[2];
  const std::string_view value = name == "appendonly" ? (settings_.durable ? "yes" : "no")
                                 : name == "appendfsync"
                                     ? (settings_.durable ? "always" : "everysec")
                                 : name == "maxmemory-policy" ? "noeviction"
                                                              : "";
  write_pairs(out, session.resp3 ? '%' : '*', value.empty() ? 0 : 1);
  if (value.empty()) return;
  write_bulk(out, name);
  write_bulk(out, value);
}

void NodeServer::run_hello(Session& session, const Request& request, std::string& out) {
  if (denies(Denied::hello, out)) return;
  int version = 0;
  if (request.size() != 2 || !read_number(request[1], version) || version < 2 || version > 3) {
    return write_line(out, '-', "NOPROTO unsupported protocol version");
  }
  session.resp3 = version == 3;
  write_pairs(out, session.resp3 ? '%' : '*', 7);
  const auto pair = [&](std::string_view name, std::string_view value) {
    write_bulk(out, name);
    write_bulk(out, value);
  };
  pair("server", "redis");
  pair("version", settings_.version);
  write_bulk(out, "proto");
  write_number(out, ':', version);
  write_bulk(out, "id");
  write_number(out, ':', session.id);
  pair("mode", "standalone");
  pair("role", model_.ailment() == Ailment::read_only ? "replica" : "master");
  write_bulk(out, "modules");
  write_number(out, '*', 0);
}

void NodeServer::run_subscribe(Session& session, const Request& request, std::string& out) const {
  if (settings_.denied.test(static_cast<std::size_t>(Denied::subscribe))) {
    return write_line(out, '-',
                      "NOPERM this user has no permissions to access one of the channels used as "
                      "arguments");
  }
  session.channel = request[1];
  write_number(out, session.resp3 ? '>' : '*', 3);
  write_bulk(out, "subscribe");
  write_bulk(out, session.channel);
  write_number(out, ':', 1);
}

/// Also to the one whose script it is: before the reply.
std::optional<std::size_t> NodeServer::publish(const std::string& client, const std::string& text) {
  if (settings_.denied.test(static_cast<std::size_t>(Denied::publish))) return std::nullopt;
  const std::string channel = "redlock:wake:" + client;
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

void NodeServer::run_auth(Session& session, const Request& request, std::string& out) {
  if (settings_.password.empty()) {
    return write_line(out, '-',
                      "ERR AUTH <password> called without any password configured for the default "
                      "user. Are you sure your configuration is correct?");
  }
  session.authenticated = request.back() == settings_.password;
  if (session.authenticated) return write_line(out, '+', "OK");
  write_line(out, '-', "WRONGPASS invalid username-password pair or user is disabled.");
}

void NodeServer::run_exists(const Request& request, std::string& out) const {
  std::int64_t count = 0;
  for (const std::string_view key : request) {
    if (key == marker_key && model_.marker()) ++count;
    if (key == notes_key && model_.is_pending(now_us_ / 1'000)) ++count;
  }
  write_number(out, ':', count);
}

void NodeServer::write_marker(char type, std::string& out) const {
  std::string fields;
  std::int64_t count = 0;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (value.empty()) return;
    write_bulk(fields, name);
    write_bulk(fields, value);
    ++count;
  };
  if (const auto& marker = model_.marker()) {
    add("id", marker->id);
    add("layout", marker->layout);
    add("nodes", marker->nodes);
    add("max_lease_ms", marker->max_lease_ms);
    add("set", marker->set);
    add("vouched", marker->vouched);
  }
  write_pairs(out, type, count);
  out += fields;
}

std::string NodeServer::info(std::string_view section) const {
  const bool replica = model_.ailment() == Ailment::read_only;
  std::string text;
  if (section.empty()) {
    text = fmt::format(
        "# Server\r\nredis_version:{}\r\nredis_mode:standalone\r\nprocess_id:1\r\nrun_id:{}\r\n"
        "tcp_port:6379\r\nuptime_in_seconds:{}\r\n\r\n",
        settings_.version, run_id_, now_us_ / 1'000'000 - started_s_);
  }
  text += fmt::format(
      "# Replication\r\nrole:{}\r\nconnected_slaves:0\r\nmaster_replid:{}\r\n"
      "second_repl_offset:{}\r\n",
      replica ? "slave" : "master", replid_, was_replica_ ? "42" : "-1");
  if (section.empty()) text += "\r\n# Cluster\r\ncluster_enabled:0\r\n";
  return text;
}

void NodeServer::misread(StreamId stream, std::string_view why, std::string& out) {
  write_line(out, '-', "ERR unknown command, or wrong arguments");
  host_.on_misread(stream, why);
}

// --- scripts

void NodeServer::run_call(StreamId stream, const Request& request, std::string& out) {
  const bool by_digest = request.front() == "EVALSHA";
  std::size_t keys = 0;
  if (request.size() < 3 || !read_number(request[2], keys) || keys > request.size() - 3) {
    return misread(stream, "a script call whose number of keys is wrong", out);
  }
  const auto place = by_digest ? place_of_digest(request[1]) : place_of_text(request[1]);
  if (!place && by_digest) return write_line(out, '-', no_script);
  if (!place) return misread(stream, "EVAL of a text that nobody knows", out);
  const std::span<const std::string_view> rest = std::span(request).subspan(3);
  const Call call{.kind = kind_of(*place),
                  .form = by_digest ? engine::Form::digest : engine::Form::source,
                  .keys = rest.first(keys),
                  .arguments = rest.subspan(keys)};
  asking_ = stream;
  std::string reply;
  run_script(stream, call, reply);
  out += std::exchange(own_pushes_, {});
  out += reply;
}

void NodeServer::run_script(StreamId stream, const Call& call, std::string& out) {
  switch (call.kind) {
    case Kind::acquire:
      return run_acquire(stream, call, out);
    case Kind::hold:
      return run_holds(stream, call, out);
    case Kind::release:
      return run_releases(stream, call, out);
    case Kind::force:
      return run_force(stream, call, out);
    case Kind::pass:
      return run_pass(stream, call, out);
    case Kind::adopt:
    case Kind::pending:
      return run_marker_script(stream, call, out);
  }
}

/// Null: it is no lock's key.
const NodeServer::Keys* NodeServer::keys_of(std::string_view lock) {
  const auto known = keys_.find(lock);
  if (known != keys_.end()) return &known->second;
  constexpr std::string_view prefix = "redlock:lock:{";
  if (!lock.starts_with(prefix) || !lock.ends_with('}') || lock.size() <= prefix.size() + 1) {
    return nullptr;
  }
  const std::string name(lock.substr(prefix.size(), lock.size() - prefix.size() - 1));
  Keys keys{.name = std::make_shared<const std::string>(name),
            .fence = "redlock:fence:" + std::to_string(engine::stripe_of(name)),
            .forced = std::string(lock) + ":forced"};
  return &keys_.emplace(lock, std::move(keys)).first->second;
}

engine::Reply NodeServer::execute(StreamId stream, const Call& call, const engine::Command& command,
                                  ScriptCaller caller) {
  caller.publisher = this;
  engine::Reply reply = model_.execute(command, call.form, now_us_ / 1'000, caller);
  const auto* const why = std::get_if<engine::Unavailable>(&reply);
  if (why != nullptr && why->cause == Cause::read_only) sessions_.at(stream).knows_its_role = true;
  host_.on_executed(stream, command, reply);
  return reply;
}

bool NodeServer::read_acquire(const Call& call, engine::AcquireCommand& command,
                              ScriptCaller& caller) {
  const auto arguments = call.arguments;
  const Keys* const keys = call.keys.size() == 3 ? keys_of(call.keys[0]) : nullptr;
  const bool readable =
      keys != nullptr && call.keys[1] == keys->fence && call.keys[2] == marker_key &&
      arguments.size() >= 4 && arguments.size() <= 6 && read_owner(arguments[0], command.owner) &&
      read_lease(arguments[1], command.lease) && read_number(arguments[2], command.floor) &&
      command.floor >= 1 && read_order(arguments[3], caller.order, command.waiter) &&
      (command.waiter.number == 0 || caller.order.manner != 0);
  if (!readable) return false;
  command.name = keys->name;
  command.in_order = caller.order.in_order;
  command.marker_wanted = arguments.size() == 6;
  if (command.marker_wanted) caller.set = arguments[5];
  return true;
}

void NodeServer::run_acquire(StreamId stream, const Call& call, std::string& out) {
  engine::AcquireCommand command;
  ScriptCaller caller;
  if (!read_acquire(call, command, caller)) return misread(stream, "acquire", out);
  const engine::Reply reply = execute(stream, call, command, caller);
  // A node that refuses to put it into the queue says no place.
  write_acquired(out, reply, command.waiter.number != 0 && model_.ailment() == Ailment::none);
}

void NodeServer::run_holds(StreamId stream, const Call& call, std::string& out) {
  const std::size_t locks = call.keys.size() / 2;
  std::vector<engine::HoldCommand> commands(locks);
  bool readable = locks > 0 && call.keys.size() == 2 * locks && call.arguments.size() == 4 * locks;
  for (std::size_t i = 0; i < locks && readable; ++i) {
    const Keys* const keys = keys_of(call.keys[2 * i]);
    const auto arguments = call.arguments.subspan(4 * i, 4);
    readable = keys != nullptr && call.keys[2 * i + 1] == keys->fence &&
               read_owner(arguments[0], commands[i].owner) &&
               read_number(arguments[1], commands[i].count) &&
               read_number(arguments[2], commands[i].token) &&
               read_lease(arguments[3], commands[i].lease);
    if (readable) commands[i].name = keys->name;
  }
  if (!readable) return misread(stream, "hold", out);
  std::string replies;
  for (const engine::HoldCommand& command : commands) {
    const engine::Reply reply = execute(stream, call, command);
    if (write_error(out, reply)) return;  // of the call: the first of its locks shows it
    write_held(replies, reply);
  }
  write_number(out, '*', static_cast<std::int64_t>(locks));
  out += replies;
}

/// How many are before a waiter that a release has put into the queue.
std::optional<std::int64_t> NodeServer::place_of(const std::string& name,
                                                 const Order& order) const {
  const auto* const queue = model_.find_queue(name, now_us_ / 1'000);
  if (order.manner == 0 || queue == nullptr) return std::nullopt;
  const auto at = std::ranges::find(queue->entries, order.waiter, &NodeQueues::Entry::waiter);
  if (at == queue->entries.end()) return std::nullopt;
  return at - queue->entries.begin();
}

void NodeServer::run_releases(StreamId stream, const Call& call, std::string& out) {
  const std::size_t locks = call.keys.size();
  std::vector<engine::ReleaseCommand> commands(locks);
  std::vector<ScriptCaller> callers(locks);
  bool readable = locks > 0 && call.arguments.size() == 2 * locks;
  for (std::size_t i = 0; i < locks && readable; ++i) {
    const Keys* const keys = keys_of(call.keys[i]);
    readable = keys != nullptr && read_owner(call.arguments[2 * i], commands[i].owner) &&
               read_order(call.arguments[2 * i + 1], callers[i].order, commands[i].waiter);
    if (!readable) break;
    commands[i].name = keys->name;
    commands[i].stays = callers[i].order.manner != 0;
  }
  if (!readable) return misread(stream, "release", out);
  std::string replies;
  for (std::size_t i = 0; i < locks; ++i) {
    const engine::Reply reply = execute(stream, call, commands[i], callers[i]);
    if (write_error(out, reply)) return;
    write_released(replies, commands[i], callers[i].order,
                   std::holds_alternative<engine::ReleasedHere>(reply));
  }
  write_number(out, '*', static_cast<std::int64_t>(locks));
  out += replies;
}

void NodeServer::write_released(std::string& out, const engine::ReleaseCommand& command,
                                const Order& order, bool released) const {
  if (const auto place = place_of(*command.name, order)) {
    write_number(out, ':', released ? 2 + *place : -1 - *place);
  } else {
    write_number(out, ':', released ? 1 : 0);
  }
}

void NodeServer::run_pass(StreamId stream, const Call& call, std::string& out) {
  const Keys* const keys = call.keys.size() == 4 ? keys_of(call.keys[0]) : nullptr;
  engine::ReleaseCommand release;
  engine::AcquireCommand acquire;
  ScriptCaller releasing;
  ScriptCaller acquiring;
  const bool readable = keys != nullptr && call.keys[1] == call.keys[0] &&
                        call.arguments.size() > 2 && read_owner(call.arguments[0], release.owner) &&
                        read_order(call.arguments[1], releasing.order, release.waiter) &&
                        read_acquire({.kind = Kind::acquire,
                                      .form = call.form,
                                      .keys = call.keys.subspan(1),
                                      .arguments = call.arguments.subspan(2)},
                                     acquire, acquiring);
  if (!readable) return misread(stream, "pass", out);
  if (const auto why = model_.begin_pass(call.form)) {
    static_cast<void>(write_error(out, *why));
    return;
  }
  release.name = keys->name;
  release.stays = releasing.order.manner != 0;
  const bool passes =
      model_.would_pass(*keys->name, release.owner, acquiring.order.waiter, now_us_ / 1'000);
  releasing.in_pass = acquiring.in_pass = true;
  releasing.passes = acquiring.passes = passes;
  const engine::Reply first = execute(stream, call, release, releasing);
  if (write_error(out, first)) return;
  const bool released = std::holds_alternative<engine::ReleasedHere>(first);
  out += "*2\r\n";
  write_released(out, release, releasing.order, released);
  acquiring.wrote = released;
  const engine::Reply second = execute(stream, call, acquire, acquiring);
  write_acquired(out, second, acquire.waiter.number != 0 && model_.ailment() == Ailment::none);
  const bool granted = std::holds_alternative<engine::Granted>(second);
  if (passes && !granted) model_.not_passed(*keys->name, now_us_ / 1'000, *this);
}

void NodeServer::run_force(StreamId stream, const Call& call, std::string& out) {
  const Keys* const keys = call.keys.size() == 3 ? keys_of(call.keys[0]) : nullptr;
  engine::ForceCommand command;
  const bool readable = keys != nullptr && call.keys[1] == keys->fence &&
                        call.keys[2] == keys->forced && call.arguments.size() == 2 &&
                        read_owner(call.arguments[0], command.owner) &&
                        read_lease(call.arguments[1], command.keep_out);
  if (!readable) return misread(stream, "force", out);
  command.name = keys->name;
  const engine::Reply reply = execute(stream, call, command);
  if (write_error(out, reply)) return;
  write_array(out, {std::holds_alternative<engine::ReleasedHere>(reply) ? 1 : 0});
}

void NodeServer::run_marker_script(StreamId stream, const Call& call, std::string& out) {
  const auto arguments = call.arguments;
  const bool adopts = call.kind == Kind::adopt;
  std::int64_t kept = 0;
  const bool readable =
      call.keys.size() == 2 && call.keys[0] == marker_key && call.keys[1] == notes_key &&
      (adopts ? arguments.size() >= 5 && arguments.size() <= 7
              : arguments.size() == 2 && read_number(arguments[1], kept) && kept > 0);
  if (!readable) return misread(stream, adopts ? "adopt" : "pending", out);
  // A node that has its marker only reads it, which each can do but for loading and busy ones.
  const auto refused = model_.refusal_to_write();
  const bool reads = !adopts && model_.marker() && refused && refused->cause != Cause::loading &&
                     refused->cause != Cause::busy;
  if (refused && !reads) return write_refusal(out, *refused);
  const auto text = [&](std::size_t i) {
    return i < arguments.size() ? std::string(arguments[i]) : std::string();
  };
  const std::int64_t now_ms = now_us_ / 1'000;
  NodeModel::MarkerReply reply{};
  if (adopts) {
    const auto pending = arguments.size() > 6 ? std::optional(text(6)) : std::nullopt;
    reply = model_.adopt({.id = text(0),
                          .layout = text(1),
                          .nodes = text(2),
                          .max_lease_ms = text(3),
                          .set = text(4)},
                         text(5), pending, now_ms);
  } else {
    reply = model_.mark_as_pending(text(0), milliseconds(kept), now_ms);
  }
  switch (reply) {
    case NodeModel::MarkerReply::pending:
      return write_bulk(out, model_.pending());
    case NodeModel::MarkerReply::written:
      host_.on_marked(stream);
      return write_bulk(out, "written");
    case NodeModel::MarkerReply::marked:
      return write_marker('*', out);
  }
}

}  // namespace redlock::simulation
