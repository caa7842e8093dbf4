// SPDX-License-Identifier: MIT
// A client's driver over nodes that are a few lines of code in the same thread, in virtual time:
// what remains is what the client itself does, with no kernel, no network and no server in it.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <redlock/lease.hpp>

#include "support/stub_replies.hpp"
#include "wire/driver.hpp"
#include "wire/reply_reader.hpp"

namespace redlock::bench {

/// Every number another one; nothing here is to be unpredictable.
class CountingRandom final : public engine::RandomSource {
 public:
  std::uint64_t next() override { return last_ += 0x9e3779b97f4a7c15U; }

 private:
  std::uint64_t last_ = 1;
};

class MemoryNodes final : wire::Streams, wire::DriverHost {
 public:
  explicit MemoryNodes(std::size_t nodes) : peers_(nodes) {
    wire::DriverConfig config;
    for (std::size_t node = 0; node < nodes; ++node) {
      config.nodes.push_back(*wire::parse_node_uri("redis://node" + std::to_string(node)));
    }
    config.probe_interval = std::chrono::hours(1'000);
    config.engine.node_timeout = std::chrono::seconds(1);
    wire::Streams& streams = *this;
    wire::DriverHost& host = *this;
    driver_ = std::make_unique<wire::Driver>(std::move(config), random_, streams, host);
    driver_->start(now, 1'700'000'000'000'000);
    run();
  }

  /// Until nothing is left to do at this time.
  void run() {
    for (bool more = true; more;) {
      while (driver_->pending()) driver_->turn(now);
      more = false;
      for (engine::NodeIndex node = 0; node < peers_.size(); ++node) {
        if (!serve(node)) continue;
        more = true;
        while (driver_->pending()) driver_->turn(now);
      }
    }
  }
  /// Lets time pass, with a stop at every deadline.
  void pass(engine::Duration time) {
    const engine::Instant until = now + time;
    while (driver_->deadline() <= until) {
      now = std::max(now, driver_->deadline());
      driver_->on_deadline(now);
      run();
    }
    now = until;
  }

  /// Asks for a lock, which is granted at the next run().
  void acquire(const engine::Name& name, bool renew = false) {
    driver_->engine().acquire(now, ++last_request_,
                              {.name = name,
                               .lease = std::chrono::seconds(30),
                               .renew = renew,
                               .max_hold = {},
                               .in_order = true});
  }
  void release(engine::GrantId grant) { driver_->engine().release(now, ++last_request_, grant); }

  engine::Instant now{std::chrono::hours(1)};
  engine::GrantId granted = 0;  ///< the latest
  std::uint64_t grants = 0;
  std::uint64_t renewals = 0;
  std::uint64_t losses = 0;
  std::uint64_t releases = 0;
  std::uint64_t writes = 0;
  std::uint64_t bytes_written = 0;

 private:
  struct Peer {
    bool connecting = false;
    bool open = false;
    std::string bytes;
    std::string answers;
  };

  /// One command that begins a text: its arguments, as many as are wanted, and its length.
  struct Seen {
    std::array<std::string_view, 3> arguments;
    std::size_t count = 0;
    std::size_t length = 0;
  };

  static std::size_t number_at(std::string_view text, std::size_t& at) {
    std::size_t number = 0;
    for (++at; text[at] != '\r'; ++at)
      number = number * 10 + static_cast<std::size_t>(text[at] - '0');
    at += 2;
    return number;
  }
  static Seen first_command(std::string_view text) {
    Seen seen;
    std::size_t at = 0;
    seen.count = number_at(text, at);
    for (std::size_t i = 0; i < seen.count; ++i) {
      const std::size_t length = number_at(text, at);
      if (i < seen.arguments.size()) seen.arguments[i] = text.substr(at, length);
      at += length + 2;
    }
    seen.length = at;
    return seen;
  }

  /// Scripts are told by their digests, which are this program's. Each grants, holds or releases
  /// what it is asked for.
  void answer_script(const Seen& command, std::string& out) const {
    std::size_t keys = 0;
    for (const char digit : command.arguments[2]) {
      keys = keys * 10 + static_cast<std::size_t>(digit - '0');
    }
    if (command.arguments[1].front() == 'h') {
      append_array(out, keys / 2, "*2\r\n:1\r\n:1700000000000001\r\n");
    } else if (command.arguments[1].front() == 'r') {
      append_array(out, keys, ":1\r\n");
    } else {
      out += "*2\r\n:1\r\n:1700000000000001\r\n";
    }
  }
  static void append_array(std::string& out, std::size_t count, const char* element) {
    out += "*" + std::to_string(count) + "\r\n";
    for (std::size_t i = 0; i < count; ++i) out += element;
  }

  bool serve(engine::NodeIndex node) {
    Peer& peer = peers_[node];
    if (peer.connecting) {
      peer = {.connecting = false, .open = true, .bytes = {}, .answers = {}};
      driver_->link(node).on_connected(now, now + std::chrono::seconds(1));
      return true;
    }
    if (peer.bytes.empty()) return false;
    peer.answers.clear();
    for (std::string_view left = peer.bytes; !left.empty();) {
      const Seen command = first_command(left);
      answer(node, command, peer.answers);
      left.remove_prefix(command.length);
    }
    peer.bytes.clear();
    driver_->link(node).on_bytes(now, peer.answers);
    return true;
  }
  void answer(engine::NodeIndex node, const Seen& command, std::string& out) {
    if (command.arguments[0] == "EVALSHA") return answer_script(command, out);
    testing::RedisCommand words;
    for (std::size_t i = 0; i < std::min(command.count, command.arguments.size()); ++i) {
      words.emplace_back(command.arguments[i]);
    }
    if (testing::is(words, "SCRIPT LOAD")) {
      out += testing::bulk(digest_of(words[2]));
    } else if (testing::is(words, "HGETALL")) {
      out += testing::array({});
    } else if (testing::is(words, "INFO")) {
      out += testing::bulk(
          "redis_version:7.0.15\r\nrole:master\r\nuptime_in_seconds:100000\r\nrun_id:" +
          std::string(40, static_cast<char>('a' + node % 26)) + "\r\n");
    } else {
      out += testing::like_redis(words);
    }
  }
  /// The first letter says which script it is.
  static std::string digest_of(const std::string& source) {
    std::string digest(40, '0');
    if (source.find("-- Confirms locks") != std::string::npos) digest[0] = 'h';
    if (source.find("-- Deletes locks") != std::string::npos) digest[0] = 'r';
    return digest;
  }

  void move(engine::NodeIndex, const wire::NodeAddress&) override {}
  void connect(engine::NodeIndex node) override { peers_[node].connecting = true; }
  void disconnect(engine::NodeIndex node, wire::Closing) override { peers_[node].open = false; }
  std::size_t write(engine::NodeIndex node, std::string& bytes) override {
    ++writes;
    bytes_written += bytes.size();
    peers_[node].bytes += bytes;
    bytes.clear();
    return 0;
  }

  void on_output(engine::ClientOutput&& output) override {
    if (const auto* finish = std::get_if<engine::Finish>(&output)) {
      if (const auto* won = std::get_if<engine::AcquireSucceeded>(&finish->result)) {
        granted = won->grant;
        ++grants;
      }
      if (std::holds_alternative<engine::ReleaseDone>(finish->result)) ++releases;
    } else if (const auto* renewal = std::get_if<engine::RenewalDecided>(&output)) {
      renewals += renewal->ok ? 1 : 0;
    } else if (std::holds_alternative<engine::LeaseLost>(output)) {
      ++losses;
    }
  }
  void on_node_up(engine::NodeIndex, std::string_view) override {}
  void on_node_down(engine::NodeIndex, const engine::Unavailable&) override {}

  CountingRandom random_;
  std::vector<Peer> peers_;
  engine::RequestId last_request_ = 0;
  std::unique_ptr<wire::Driver> driver_;
};

}  // namespace redlock::bench
