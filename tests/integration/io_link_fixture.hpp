// SPDX-License-Identifier: MIT
// One link on a loop of its own, run by the test's thread: what happens between two run_until()
// happens at no other time. Nothing of the engine is needed: commands go in by number.
#pragma once

#include <chrono>
#include <doctest/doctest.h>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <uv.h>
#include <vector>

#include <redlock/clock.hpp>

#include "net/kernel_random.hpp"
#include "net/link.hpp"
#include "net/loop.hpp"
#include "support/stub_server.hpp"
#include "support/text.hpp"

namespace redlock::net {
using namespace wire;

using std::chrono::milliseconds;
using testing::contains;

/// A healthy node of a set of one, adopted.
inline std::string healthy(const testing::Command& command) {
  using namespace testing;
  if (is(command, "HGETALL")) {
    return array({bulk("id"), bulk("x"), bulk("layout"), bulk("redlock-1"), bulk("nodes"),
                  bulk("1"), bulk("max_lease_ms"), bulk("60000")});
  }
  if (is(command, "EVALSHA") || is(command, "EVAL")) return array({integer(1), integer(7)});
  return like_redis(command);
}

class LinkFixture final : LinkListener {
 public:
  explicit LinkFixture(const std::string& uri, std::function<void(Link::Config&)> change = {}) {
    const auto parsed = parse_node_uri(uri);
    REQUIRE(parsed);
    address_ = *parsed;
    config_.terms = {.set = {.nodes = 1, .max_lease = milliseconds(60'000)},
                     .client_name = "redlock-test"};
    config_.timeouts = {.resolve = milliseconds(2'000), .connect = milliseconds(2'000)};
    config_.silence = milliseconds(2'000);
    config_.probe_interval = milliseconds(60'000);
    if (change) change(config_);
    REQUIRE(uv_loop_init(&loop_.uv) == 0);
    loop_.uv.data = &loop_;
    LinkListener& self = *this;
    link_ = std::make_unique<Link>(loop_, 0, address_, config_, random_, self);
    link_->start();
  }

  ~LinkFixture() {
    if (link_) stop();
    uv_run(&loop_.uv, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop_.uv) == 0);
  }
  LinkFixture(const LinkFixture&) = delete;
  LinkFixture& operator=(const LinkFixture&) = delete;

  void stop() {
    link_->stop();
    link_.reset();
  }

  /// Runs the loop until then; a test that waits for half a minute has failed.
  void run_until(const std::function<bool()>& done) {
    Timer limit(loop_, [this] { expired_ = true; });
    limit.start(std::chrono::seconds(30));
    while (!done() && !expired_) {
      flush();
      uv_run(&loop_.uv, UV_RUN_ONCE);
    }
    REQUIRE_FALSE(expired_);
  }
  void run_until_up() {
    const std::size_t before = warnings.size();
    run_until([&] { return warnings.size() > before; });
  }
  void run_until_down() {
    const std::size_t before = downs.size();
    run_until([&] { return downs.size() > before; });
  }
  /// What the loop can do without waiting.
  void run_once() {
    flush();
    uv_run(&loop_.uv, UV_RUN_NOWAIT);
  }

  void submit(std::uint64_t number, engine::Command command,
              engine::Form form = engine::Form::digest) {
    link_->submit({.grant = number}, command, form);
  }
  /// Sends it and waits for its reply.
  engine::Reply call(engine::Command command, engine::Form form = engine::Form::digest) {
    const std::size_t before = replies.size();
    submit(1'000 + before, std::move(command), form);
    run_until([&] { return replies.size() > before; });
    CHECK(replies.back().first == 1'000 + before);
    return replies.back().second;
  }
  void probe() { link_->probe(); }
  void ask(std::vector<std::string> command, milliseconds timeout = std::chrono::seconds(20)) {
    link_->ask(std::make_shared<Question>(
        loop_, std::move(command), timeout,
        [this](Answer answer) { answers.push_back(std::move(answer)); }));
  }
  Answer question(std::vector<std::string> command) {
    const std::size_t before = answers.size();
    ask(std::move(command));
    run_until([&] { return answers.size() > before; });
    return answers.back();
  }

  static engine::AcquireCommand acquire(const std::string& name = "n", std::uint64_t owner = 1) {
    return {.name = std::make_shared<const std::string>(name),
            .owner = {{owner, 0}},
            .lease = milliseconds(30'000),
            .floor = 1};
  }
  static engine::HoldCommand hold(const std::string& name = "n", std::uint64_t owner = 1) {
    return {.name = std::make_shared<const std::string>(name),
            .owner = {{owner, 0}},
            .lease = milliseconds(30'000),
            .count = 1,
            .token = 1};
  }
  static engine::ReleaseCommand release(const std::string& name = "n", std::uint64_t owner = 1) {
    return {.name = std::make_shared<const std::string>(name), .owner = {{owner, 0}}};
  }

  std::vector<std::pair<std::uint64_t, engine::Reply>> replies;
  std::vector<std::string> warnings;       ///< one for each time that the node came up
  std::vector<engine::Unavailable> downs;  ///< one for each reason
  std::vector<std::int64_t> clocks;
  engine::Instant clock_read_at{};
  std::vector<Answer> answers;
  std::optional<std::string> objection;
  std::optional<engine::Unavailable> unfit;
  bool marker = false;
  bool was_replica = false;
  std::chrono::seconds uptime{};

 private:
  void flush() {
    for (Link* link : std::exchange(waiting_, {})) link->flush();
  }
  void on_reply(engine::NodeIndex, const engine::Tag& tag, const engine::Reply& reply) override {
    replies.emplace_back(tag.grant, reply);
  }
  std::optional<std::string> find_objection(engine::NodeIndex, const ServerFacts&) override {
    return objection;
  }
  void on_node_facts(engine::NodeIndex, const ServerFacts& facts) override {
    marker = facts.marker;
    was_replica = facts.was_replica;
    uptime = facts.uptime;
  }
  std::optional<engine::Unavailable> objection_to_ask(engine::NodeIndex) override { return unfit; }
  void on_link_up(engine::NodeIndex, const ServerFacts& facts) override {
    warnings.push_back(facts.warnings);
  }
  void on_link_down(engine::NodeIndex, const engine::Unavailable& why) override {
    downs.push_back(why);
  }
  void on_clock(engine::Instant now, engine::NodeIndex, std::int64_t unix_us,
                engine::Duration) override {
    clocks.push_back(unix_us);
    clock_read_at = now;
  }
  void on_output_waiting(Link& link) override { waiting_.push_back(&link); }

  Loop loop_;
  KernelRandom random_;
  NodeAddress address_;
  Link::Config config_;
  std::unique_ptr<Link> link_;
  std::vector<Link*> waiting_;
  bool expired_ = false;
};

inline const engine::Unavailable& unavailable(const engine::Reply& reply) {
  REQUIRE(std::holds_alternative<engine::Unavailable>(reply));
  return std::get<engine::Unavailable>(reply);
}

}  // namespace redlock::net
