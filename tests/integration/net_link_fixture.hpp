// SPDX-License-Identifier: MIT
// One link over a real socket on a loop of its own, run by the test's thread: what happens between
// two run_until() happens at no other time. Nothing of the engine is needed: commands go in by
// number.
#pragma once

#include <uv.h>

#include "integration/net_common.hpp"
#include "net/kernel_random.hpp"
#include "net/loop.hpp"
#include "net/timer.hpp"
#include "net/transport.hpp"
#include "wire/healthy_node.hpp"
#include "wire/link_recorder.hpp"

namespace redlock::net {

class LinkFixture final : public LinkRecorder, Streams {
 public:
  explicit LinkFixture(const std::string& uri, std::function<void(Link::Config&)> change = {},
                       tls::TlsContext* tls = nullptr) {
    const auto parsed = parse_node_uri(uri);
    REQUIRE(parsed);
    address_ = *parsed;
    config_.handshake = {.set = {.max_lease = milliseconds(60'000)}, .client_name = "redlock-test"};
    config_.connect_timeout = milliseconds(10'000);
    config_.silence = milliseconds(10'000);
    config_.probe_interval = milliseconds(60'000);
    if (change) change(config_);
    REQUIRE(uv_loop_init(&uv_) == 0);
    timer_ = std::make_unique<Timer>(loop_, [this] {
      if (link_ && link_->deadline() <= BootClock::now()) link_->on_deadline(BootClock::now());
    });
    LinkListener& listener = *this;
    Streams& streams = *this;
    texts_.holder = HolderText("host", 1, "test");
    link_ = std::make_unique<Link>(0, address_, config_, texts_, random_, streams, listener);
    transport_ = std::make_unique<Transport>(
        loop_, address_,
        Connector::Timeouts{.resolve = milliseconds(2'000), .connect = config_.connect_timeout},
        tls, *link_, no_password_);
    link_->start();
  }

  ~LinkFixture() {
    if (link_) stop();
    timer_.reset();
    uv_run(&loop_.uv, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop_.uv) == 0);
  }
  LinkFixture(const LinkFixture&) = delete;
  LinkFixture& operator=(const LinkFixture&) = delete;

  void stop() {
    link_->stop(BootClock::now());
    transport_.reset();
    link_.reset();
  }

  /// Runs the loop until then; a test that waits for half a minute has failed.
  void run_until(const std::function<bool()>& done) {
    Timer limit(loop_, [this] { expired_ = true; });
    limit.start(std::chrono::seconds(30));
    while (!done() && !expired_) {
      turn();
      uv_run(&loop_.uv, UV_RUN_ONCE);
      turn();
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
    turn();
    uv_run(&loop_.uv, UV_RUN_NOWAIT);
    turn();
  }

  void submit(std::uint64_t number, engine::Command command,
              engine::Form form = engine::Form::digest) {
    link_->submit(BootClock::now(), {.grant = number}, command, form);
  }
  /// Sends it and waits for its reply.
  engine::Reply call(engine::Command command, engine::Form form = engine::Form::digest) {
    const std::size_t before = replies.size();
    submit(1'000 + before, std::move(command), form);
    run_until([&] { return replies.size() > before; });
    CHECK(replies.back().first == 1'000 + before);
    return replies.back().second;
  }
  [[nodiscard]] bool resumed_session() const { return transport_->resumed_session(); }
  void ask(std::vector<std::string> command, milliseconds timeout = std::chrono::seconds(20)) {
    const auto now = BootClock::now();
    link_->ask(now, question_of(now, std::move(command), timeout));
  }
  Answer question(std::vector<std::string> command) {
    const std::size_t before = answers.size();
    ask(std::move(command));
    run_until([&] { return answers.size() > before; });
    return answers.back();
  }

 private:
  void turn() {
    if (!link_) return;
    do {
      if (auto why = transport_->take_failure()) {
        link_->on_stream_closed(BootClock::now(), std::move(*why));
      }
      if (take_output_waiting()) {
        link_->flush(BootClock::now());
        link_->on_flushed(BootClock::now());
      }
    } while (output_waiting());
    const auto left = std::chrono::ceil<milliseconds>(
        std::min<engine::Duration>(link_->deadline() - BootClock::now(), std::chrono::hours(1)));
    timer_->start(left);
  }

  void move(engine::NodeIndex, const NodeAddress&) override {}
  void connect(engine::NodeIndex) override { transport_->connect(); }
  void disconnect(engine::NodeIndex, Closing how) override { transport_->disconnect(how); }
  std::size_t write(engine::NodeIndex, std::string& bytes) override {
    return transport_->write(bytes);
  }

  uv_loop_t uv_{};
  Loop loop_{uv_};
  std::unique_ptr<Timer> timer_;
  KernelRandom random_;
  NodeAddress address_;
  Link::Config config_;
  SharedTexts texts_;
  const Transport::PasswordSource no_password_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Link> link_;
  bool expired_ = false;
};

}  // namespace redlock::net
