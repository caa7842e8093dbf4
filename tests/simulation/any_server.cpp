// SPDX-License-Identifier: MIT
#include "simulation/any_server.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <stdexcept>

#include "wire/command_writer.hpp"
#include "wire/info_text.hpp"

namespace redlock::simulation {
namespace {

using Kind = wire::ReplyView::Kind;

std::string bytes_of(const Strings& words) {
  std::string bytes;
  wire::CommandWriter writer(bytes, words.size());
  for (const std::string& word : words) writer.bulk(word);
  return bytes;
}

std::string message_of(const wire::ReplyView& push) {
  if (push.size() != 3) return "";
  const wire::ReplyView channel = push.first().next();
  return "[" + std::string(channel.text()) + " " + std::string(channel.next().text()) + "]";
}

}  // namespace

Strings split(std::string_view text, char space) {
  Strings words;
  for (std::size_t at = 0; (at = text.find_first_not_of(space, at)) != std::string_view::npos;) {
    const bool quoted = text[at] == '\'';
    const std::size_t begin = at + (quoted ? 1 : 0);
    const std::size_t end = std::min(text.find(quoted ? '\'' : space, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    at = end + 1;
  }
  return words;
}

std::string AnyServer::in_words(const wire::ReplyView& reply) {
  if (reply.is(Kind::integer)) return std::to_string(reply.integer());
  if (reply.is(Kind::nil)) return "nil";
  if (reply.is(Kind::text)) return "'" + (text_ = reply.text()) + "'";
  if (reply.is(Kind::error)) {
    text_ = reply.text();
    return "error " + text_.substr(0, text_.find(' '));
  }
  std::string words = "[";
  wire::ReplyView element = reply.size() > 0 ? reply.first() : reply;
  for (std::size_t i = 0; i < reply.size(); ++i) {
    words += in_words(element) + (i + 1 < reply.size() ? " " : "");
    if (i + 1 < reply.size()) element = element.next();
  }
  return words + "]";
}

std::string AnyServer::ask(std::string_view request) {
  return ask(split(request));
}

std::string AnyServer::ask(const Strings& words) {
  return in_words(reply_.emplace(reply_to(bytes_of(words))));
}

std::string AnyServer::run(std::string_view script, const Strings& keys, const Strings& arguments) {
  Strings words{"EVAL", std::string(script), std::to_string(keys.size())};
  words.insert(words.end(), keys.begin(), keys.end());
  words.insert(words.end(), arguments.begin(), arguments.end());
  return ask(words);
}

// --- the simulator's

SimulatedServer::SimulatedServer(const NodeServer::Settings& settings)
    : server_(data, settings, *this) {
  server_.start("run", now_us_);
  server_.accept(1);
}

wire::ReplyView SimulatedServer::reply_to(std::string bytes) {
  std::string replies;
  static_cast<void>(server_.take(1, bytes, now_us_, replies));
  reader_.feed(replies);
  while (reader_.next(1'000'000) == wire::ReplyReader::Outcome::push) {
  }
  return reader_.reply();
}

std::string SimulatedServer::ask(StreamId stream, std::string_view request) {
  std::string replies;
  static_cast<void>(server_.take(stream, bytes_of(split(request)), now_us_, replies));
  reader_.feed(replies);
  const bool whole = reader_.next(1'000'000) == wire::ReplyReader::Outcome::complete;
  return whole ? in_words(reader_.reply()) : "nothing";
}

double SimulatedServer::score(const std::string& key, const std::string& member) {
  const Keyspace::Entry* const entry = data.keys.find(key, now_us_ / 1'000);
  return *std::get<SortedSet>(entry->value).score(member);
}

void SimulatedServer::subscribe(const std::string& channel) {
  server_.accept(++last_stream_);
  ask(last_stream_, "SUBSCRIBE " + channel);
}

void SimulatedServer::on_push(StreamId, std::string_view bytes) {
  wire::ReplyReader reader;
  reader.feed(bytes);
  static_cast<void>(reader.next(100'000));
  told_ += message_of(reader.reply());
}

// --- a real one

RealServer::RealServer(cluster::Fleet& fleet)
    : fleet_(fleet), connection_(fleet.port(0)), narrow_(fleet.port(0)) {
  heal();
  command({"FLUSHALL"});
  command({"SCRIPT", "FLUSH", "SYNC"});
  command({"ACL", "SETUSER", "narrow", "reset", "on", "nopass", "allchannels", "+@all"});
  narrow_.ask(bytes_of({"AUTH", "narrow", "any"}));
}

RealServer::~RealServer() {
  try {
    heal();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the next one will say so
  }
}

bool RealServer::is_redis_7() const {
  const std::string info = command({"INFO", "server"});
  return wire::ServerVersion::parse(wire::InfoText(info).value("redis_version")).at_least(7, 0);
}

/// Asks again and again; a server that has not come there in half a minute will not.
template <typename Done>
void RealServer::until(const Done& done) {
  const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!done()) {
    if (std::chrono::steady_clock::now() > latest) {
      throw std::runtime_error("the server does not get there");
    }
  }
}

void RealServer::become(Ailment ailment) {
  heal();
  if (ailment == Ailment::full) command({"CONFIG", "SET", "maxmemory", "1"});
  if (ailment == Ailment::read_only) {
    static const cluster::FreePort nobody = cluster::FreePort::pick();
    command({"REPLICAOF", "127.0.0.1", std::to_string(nobody.number())});
  }
  if (ailment == Ailment::misconf) fail_to_save();
  if (ailment == Ailment::busy) {
    command({"CONFIG", "SET", is_redis_7() ? "busy-reply-threshold" : "lua-time-limit", "1"});
    occupier_ = std::make_unique<ServerConnection>(fleet_.port(0));
    occupier_->send(bytes_of({"EVAL", "while true do end", "0"}));
    until([&] { return command({"PING"}).find("BUSY") != std::string::npos; });
  }
}

std::filesystem::path RealServer::snapshot() const {
  const std::string directory = command({"CONFIG", "GET", "dir"});
  return std::filesystem::path(directory.substr(directory.find('\n') + 1)) / "dump.rdb";
}

/// A snapshot fails, because a directory stands in its place.
void RealServer::fail_to_save() {
  std::filesystem::create_directories(snapshot() / "in the way");
  command({"CONFIG", "SET", "save", "86400 1000000"});
  command({"BGSAVE"});
  until([&] {
    return command({"INFO", "persistence"}).find("rdb_last_bgsave_status:err") != std::string::npos;
  });
}

void RealServer::heal() {
  if (occupier_) {
    command({"SCRIPT", "KILL"});
    until([&] { return command({"PING"}).find("BUSY") == std::string::npos; });
    occupier_.reset();
  }
  command({"CONFIG", "SET", "maxmemory", "0"});
  command({"CONFIG", "SET", "save", ""});
  command({"REPLICAOF", "NO", "ONE"});
  std::filesystem::remove_all(snapshot());
}

void RealServer::pass_ms(std::int64_t time) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(time);
  until([&] { return std::chrono::steady_clock::now() > end; });
}

std::string RealServer::run_narrowly(std::string_view script, const Strings& keys,
                                     const Strings& arguments) {
  Strings rights{"ACL", "SETUSER", "narrow", "resetkeys"};
  for (const std::string& key : keys) rights.push_back("~" + key);
  command(rights);
  asked_ = &narrow_;
  std::string reply = run(script, keys, arguments);
  asked_ = &connection_;
  return reply;
}

double RealServer::score(const std::string& key, const std::string& member) {
  return std::stod(command({"ZSCORE", key, member}));
}

void RealServer::subscribe(const std::string& channel) {
  if (!subscriber_) subscriber_ = std::make_unique<ServerConnection>(fleet_.port(0));
  subscriber_->ask(bytes_of({"SUBSCRIBE", channel}));
}

std::string RealServer::told() {
  std::string all;
  for (auto reply = subscriber_->ask(bytes_of({"PING"}));; reply = subscriber_->receive()) {
    if (reply.size() == 2 || reply.is(Kind::text)) return all;  // what PING is answered
    all += message_of(reply);
  }
}

void RealServer::permit_publish(bool permitted) {
  command({"ACL", "SETUSER", "default", permitted ? "+publish" : "-publish"});
}

}  // namespace redlock::simulation
