// SPDX-License-Identifier: MIT
// A server that tests ask, one request at a time: the simulator's, or a real one. Replies are in
// words: 3, 'text', nil, [1 'two'], and of an error its first word.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/fleet.hpp"
#include "simulation/node_server.hpp"
#include "simulation/server_connection.hpp"

namespace redlock::simulation {

using Strings = std::vector<std::string>;

/// The words between spaces, however many of these; one in quotes may have some, or be empty.
Strings split(std::string_view text, char space = ' ');

class AnyServer {
 public:
  virtual ~AnyServer() = default;
  AnyServer() = default;
  AnyServer(const AnyServer&) = delete;
  AnyServer& operator=(const AnyServer&) = delete;

  /// The words between spaces.
  std::string ask(std::string_view request);
  std::string ask(const Strings& words);
  /// A script; of its text a line may be left out.
  std::string run(std::string_view script, const Strings& keys = {}, const Strings& arguments = {});
  /// The same, for a user that may touch no key but these.
  virtual std::string run_narrowly(std::string_view script, const Strings& keys,
                                   const Strings& arguments) {
    return run(script, keys, arguments);
  }
  /// Of a sorted set's member.
  virtual double score(const std::string& key, const std::string& member) = 0;
  /// The whole text of what was replied last, if it was a text or an error.
  [[nodiscard]] const std::string& text() const { return text_; }
  /// What was replied last; valid until the next request.
  [[nodiscard]] const wire::ReplyView& reply() const { return reply_.value(); }

  /// One that Redis 7 began: functions of scripts, flags, and words of errors.
  [[nodiscard]] virtual bool is_redis_7() const { return true; }
  virtual void become(Ailment ailment) = 0;
  /// So much of its time is over, at least.
  virtual void pass_ms(std::int64_t time) = 0;
  /// Another client is subscribed there; what all of them were told since the last `told`, as
  /// [CHANNEL TEXT].
  virtual void subscribe(const std::string& channel) = 0;
  virtual std::string told() = 0;
  /// The user may publish.
  virtual void permit_publish(bool permitted) = 0;

 protected:
  std::string in_words(const wire::ReplyView& reply);

 private:
  virtual wire::ReplyView reply_to(std::string bytes) = 0;

  std::string text_;
  std::optional<wire::ReplyView> reply_;
};

class SimulatedServer final : public AnyServer, NodeServerHost {
 public:
  explicit SimulatedServer(const NodeServer::Settings& settings = {});

  using AnyServer::ask;
  /// On another connection; "nothing" if it was closed.
  std::string ask(StreamId stream, std::string_view request);
  [[nodiscard]] NodeServer& server() { return server_; }
  void become(Ailment ailment) override { data.ailment = ailment; }
  void pass_ms(std::int64_t time) override { now_us_ += time * 1'000; }
  double score(const std::string& key, const std::string& member) override;
  void subscribe(const std::string& channel) override;
  std::string told() override { return std::exchange(told_, {}); }
  void permit_publish(bool permitted) override { server_.set_denied(Denied::publish, !permitted); }

  NodeData data;
  std::vector<StreamId> killed;
  int misread = 0;
  int executed = 0;
  int marked = 0;

 private:
  wire::ReplyView reply_to(std::string bytes) override;
  void on_executed(StreamId, const ScriptRun&) override { ++executed; }
  void on_marked(StreamId) override { ++marked; }
  void on_push(StreamId, std::string_view bytes) override;
  void on_killed(StreamId stream) override { killed.push_back(stream); }
  void on_misread(StreamId, std::string_view) override { ++misread; }

  std::int64_t now_us_ = 1'767'225'600'000'000;
  NodeServer server_;
  StreamId last_stream_ = 1;
  wire::ReplyReader reader_;
  std::string told_;
};

class RealServer final : public AnyServer {
 public:
  /// The fleet's first node, without keys, scripts or anything wrong with it.
  explicit RealServer(cluster::Fleet& fleet);
  ~RealServer() override;

  [[nodiscard]] bool is_redis_7() const override;
  void become(Ailment ailment) override;
  void pass_ms(std::int64_t time) override;
  std::string run_narrowly(std::string_view script, const Strings& keys,
                           const Strings& arguments) override;
  double score(const std::string& key, const std::string& member) override;
  void subscribe(const std::string& channel) override;
  std::string told() override;
  void permit_publish(bool permitted) override;

 private:
  wire::ReplyView reply_to(std::string bytes) override { return asked_->ask(std::move(bytes)); }
  std::string command(const Strings& words) const {  // NOLINT(modernize-use-nodiscard)
    return fleet_.run(0, words);
  }
  [[nodiscard]] std::filesystem::path snapshot() const;
  void fail_to_save();
  void heal();
  template <typename Done>
  static void until(const Done& done);

  cluster::Fleet& fleet_;
  ServerConnection connection_;
  ServerConnection narrow_;
  ServerConnection* asked_ = &connection_;
  std::unique_ptr<ServerConnection> occupier_;  // its script keeps the server busy
  std::unique_ptr<ServerConnection> subscriber_;
};

}  // namespace redlock::simulation
