// SPDX-License-Identifier: MIT
// One link with a node that the test scripts, over a stream in memory and in virtual time: nothing
// happens but what the test calls for, and no time passes but what it lets pass.
#pragma once

#include <algorithm>
#include <chrono>
#include <doctest/doctest.h>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "support/commands_in.hpp"
#include "support/stub_replies.hpp"
#include "support/text.hpp"
#include "wire/healthy_node.hpp"
#include "wire/link_recorder.hpp"

namespace redlock::wire {

namespace engine = redlock::engine;
using namespace redlock::testing;
using namespace std::chrono_literals;
using engine::Delivery;
using engine::Granted;
using redlock::Cause;
using std::chrono::milliseconds;

class NumberedRandom final : public engine::RandomSource {
 public:
  std::uint64_t next() override { return ++last_; }

 private:
  std::uint64_t last_ = 0;
};

class LinkRig : public LinkRecorder, Streams {
 public:
  using Script = std::function<std::string(const testing::RedisCommand&)>;

  explicit LinkRig(Script script = healthy, const std::function<void(Link::Config&)>& change = {},
                   const std::string& uri = "redis://host")
      : node(std::move(script)), address_(*parse_node_uri(uri)) {
    config_.handshake = {.set = {.max_lease = milliseconds(60'000)}, .client_name = "redlock-test"};
    config_.connect_timeout = milliseconds(1'000);
    config_.silence = milliseconds(1'000);
    config_.probe_interval = milliseconds(60'000);
    if (change) change(config_);
    LinkListener& listener = *this;
    Streams& streams = *this;
    link_ = std::make_unique<Link>(0, address_, config_, texts_, random_, streams, listener);
    link_->start();
  }

  // The network and the node.

  Script node;                  ///< what it answers to each command; empty: nothing
  bool accepts = true;          ///< connections, at once
  bool delivers = true;         ///< what the link writes
  std::size_t room = SIZE_MAX;  ///< how many bytes the stream takes until writable() is called

  /// Everything that can happen without time.
  void run() {
    while (connecting_ && accepts) {
      connecting_ = false;
      open_ = true;
      ++connections;
      reader_ = std::make_unique<ReplyReader>();
      link_->on_connected(now, now + config_.connect_timeout);
      exchange();
    }
    exchange();
  }
  /// Lets time pass, with a stop at every deadline.
  void pass(engine::Duration time) {
    const engine::Instant until = now + time;
    run();
    while (link_->deadline() <= until) {
      now = std::max(now, link_->deadline());
      link_->on_deadline(now);
      run();
    }
    now = until;
  }
  /// Lets time pass in which this process does not run, a suspended one say.
  void stand_still(engine::Duration time) { now += time; }
  void refuse_connection(const std::string& why) {
    REQUIRE(connecting_);
    connecting_ = false;
    link_->on_stream_closed(now, {why});
    run();
  }
  [[nodiscard]] bool is_open() const { return open_; }
  /// Bytes from the node, whether it was asked or not.
  void receive(std::string_view bytes) {
    REQUIRE(open_);
    link_->on_bytes(now, bytes);
    run();
  }
  void break_stream(const std::string& why = "the node closed the connection") {
    REQUIRE(open_);
    open_ = false;
    undelivered_.clear();
    link_->on_stream_closed(now, {why});
    run();
  }
  void writable() {
    room = SIZE_MAX;
    link_->on_writable();
    run();
  }

  // The client.

  void submit(std::uint64_t number, engine::Command command,
              engine::Form form = engine::Form::digest) {
    engine::Tag tag{.grant = number};
    if (std::holds_alternative<engine::HoldCommand>(command)) tag.kind = engine::Tag::Kind::hold;
    link_->submit(now, tag, std::move(command), form);
  }
  /// These, numbered from 1, and what comes of them without time.
  void submit_all(std::initializer_list<engine::Command> all) {
    std::uint64_t number = 0;
    for (const engine::Command& command : all) submit(++number, command);
    run();
  }
  engine::Reply call(engine::Command command, engine::Form form = engine::Form::digest) {
    const std::size_t before = replies.size();
    submit(1'000 + before, std::move(command), form);
    run();
    REQUIRE(replies.size() == before + 1);
    CHECK(replies.back().first == 1'000 + before);
    return replies.back().second;
  }
  void ask(std::vector<std::string> command, milliseconds timeout = std::chrono::seconds(20)) {
    link_->ask(now, question_of(now, std::move(command), timeout));
  }
  void flush() {
    if (take_output_waiting()) link_->flush(now);
  }
  void flushed() { link_->on_flushed(now); }
  void probe() { link_->probe(now); }
  void stop() { link_->stop(now); }
  [[nodiscard]] Link& link() { return *link_; }
  /// The reply to the so-many-th command that was answered, as a node's that did not vote.
  [[nodiscard]] const engine::Unavailable& fault(std::size_t at) const {
    return unavailable(replies.at(at).second);
  }
  /// Why the node is down, for the only reason until now.
  [[nodiscard]] const engine::Unavailable& only_down() const {
    REQUIRE(downs.size() == 1);
    return downs.front();
  }
  /// How often the node was sent a command of this name.
  [[nodiscard]] std::size_t said(std::string_view name) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(commands, [&](const auto& one) { return is(one, name); }));
  }
  /// Asks, and takes the answer that comes without time.
  const Answer& answer_to(std::vector<std::string> command) {
    ask(std::move(command));
    run();
    return answers.back();
  }
  /// The numbers of what was answered, in this order.
  [[nodiscard]] std::vector<std::uint64_t> answered() const {
    std::vector<std::uint64_t> numbers;
    for (const auto& entry : replies) numbers.push_back(entry.first);
    return numbers;
  }

  engine::Instant now{std::chrono::hours(1)};
  int connections = 0;
  int writes = 0;  ///< pieces that the stream took
  std::size_t bytes_taken = 0;
  std::vector<Closing> closings;                ///< of streams that were open
  std::vector<testing::RedisCommand> commands;  ///< that reached the node

 private:
  void exchange() {
    while (output_waiting() || (delivers && !undelivered_.empty())) {
      flush();
      link_->on_flushed(now);
      if (!delivers) continue;
      for (const auto& command : commands_in(std::exchange(undelivered_, {}), *reader_)) {
        commands.push_back(command);
        const std::string answer = node(command);
        if (!answer.empty() && open_) link_->on_bytes(now, answer);
      }
    }
  }

  void move(engine::NodeIndex, const NodeAddress&) override {}
  void connect(engine::NodeIndex) override {
    REQUIRE_FALSE(open_);
    connecting_ = true;
  }
  void disconnect(engine::NodeIndex, Closing how) override {
    if (open_) closings.push_back(how);
    open_ = connecting_ = false;
    undelivered_.clear();
  }
  std::size_t write(engine::NodeIndex, std::string& bytes) override {
    REQUIRE(open_);
    const std::size_t taken = std::min(room, bytes.size());
    if (taken > 0) ++writes;
    bytes_taken += taken;
    undelivered_ += bytes.substr(0, taken);
    bytes.erase(0, taken);
    if (room != SIZE_MAX) room -= taken;
    return delivers ? 0 : undelivered_.size();
  }

  NodeAddress address_;
  Link::Config config_;
  SharedTexts texts_;
  NumberedRandom random_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<ReplyReader> reader_;
  std::string undelivered_;
  bool connecting_ = false;
  bool open_ = false;
};

/// One that is connected already.
class ConnectedRig : public LinkRig {
 public:
  explicit ConnectedRig(Script script = healthy,
                        const std::function<void(Link::Config&)>& change = {})
      : LinkRig(std::move(script), change) {
    run();
  }
};

using Numbers = std::vector<std::uint64_t>;

/// A node that answers nothing.
inline std::string silent(const testing::RedisCommand&) {
  return "";
}

/// Healthy but for its answers to the scripts.
inline LinkRig::Script node_answering(const std::string& reply) {
  return [reply](const testing::RedisCommand& command) {
    return is(command, "EVALSHA") ? reply : healthy(command);
  };
}

}  // namespace redlock::wire
