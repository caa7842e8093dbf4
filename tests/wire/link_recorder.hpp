// SPDX-License-Identifier: MIT
// What tests send over a link, and all that it says of itself, kept until a test asks.
#pragma once

#include <chrono>
#include <cstdint>
#include <doctest/doctest.h>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "wire/link.hpp"

namespace redlock::wire {

inline const engine::Unavailable& unavailable(const engine::Reply& reply) {
  REQUIRE(std::holds_alternative<engine::Unavailable>(reply));
  return std::get<engine::Unavailable>(reply);
}

/// For those who drive a link.
class LinkRecorder : protected LinkListener {
 public:
  static engine::AcquireCommand acquire(const std::string& name = "n", std::uint64_t owner = 1) {
    return {.name = std::make_shared<const std::string>(name),
            .owner = {{owner, 0}},
            .lease = std::chrono::milliseconds(30'000),
            .floor = 1};
  }
  static engine::HoldCommand hold(const std::string& name = "n", std::uint64_t owner = 1) {
    return {.name = std::make_shared<const std::string>(name),
            .owner = {{owner, 0}},
            .lease = std::chrono::milliseconds(30'000),
            .count = 1,
            .token = 1};
  }
  static engine::ReleaseCommand release(const std::string& name = "n", std::uint64_t owner = 1) {
    return {.name = std::make_shared<const std::string>(name), .owner = {{owner, 0}}};
  }

  std::vector<std::pair<std::uint64_t, engine::Reply>> replies;
  std::vector<std::string> warnings;       ///< one for each time that the node came up
  std::vector<engine::Unavailable> downs;  ///< one for each reason
  struct Clock {
    engine::Instant now;
    std::int64_t unix_us;
    engine::Duration uncertainty;
    engine::Duration round_trip;
  };
  std::vector<Clock> clocks;
  std::vector<Wake> wakes;
  std::vector<Answer> answers;
  std::function<void()> on_answer;
  std::optional<ServerFacts> facts;  ///< of the latest handshake
  // What the client finds of the node.
  std::optional<std::string> objection;
  std::optional<engine::Unavailable> unfit;

 protected:
  std::shared_ptr<Question> question_of(engine::Instant now, std::vector<std::string> command,
                                        std::chrono::milliseconds timeout) {
    return std::make_shared<Question>(now, std::move(command), timeout,
                                      [this](engine::Instant, Answer answer) {
                                        answers.push_back(std::move(answer));
                                        if (on_answer) on_answer();
                                      });
  }
  /// Whether the link has something to write, since the last time.
  bool take_output_waiting() { return std::exchange(output_waiting_, false); }
  [[nodiscard]] bool output_waiting() const { return output_waiting_; }

 private:
  void on_reply(engine::Instant, engine::NodeIndex, const engine::Tag& tag,
                const engine::Reply& reply) override {
    replies.emplace_back(tag.grant, reply);
  }
  std::string identity_key(engine::Instant, engine::NodeIndex) override { return {}; }
  std::optional<std::string> find_objection(engine::Instant, engine::NodeIndex,
                                            const ServerFacts&) override {
    return objection;
  }
  void on_node_facts(engine::Instant, engine::NodeIndex, const ServerFacts& shown) override {
    facts = shown;
  }
  std::optional<engine::Unavailable> objection_to_ask(engine::Instant, engine::NodeIndex,
                                                      const engine::Tag& tag) override {
    const bool holds = tag.kind == engine::Tag::Kind::hold;
    return holds ? std::nullopt : unfit;
  }
  void on_link_up(engine::Instant, engine::NodeIndex, const ServerFacts& shown) override {
    warnings.push_back(shown.warnings);
  }
  void on_link_down(engine::Instant, engine::NodeIndex, const engine::Unavailable& why) override {
    downs.push_back(why);
  }
  void on_clock(engine::Instant when, engine::NodeIndex, std::int64_t unix_us,
                engine::Duration uncertainty, engine::Duration round_trip) override {
    clocks.push_back({when, unix_us, uncertainty, round_trip});
  }
  void on_wake(engine::Instant, engine::NodeIndex, const Wake& wake) override {
    wakes.push_back(wake);
  }
  void on_output_waiting(Link&) override { output_waiting_ = true; }

  bool output_waiting_ = false;
};

}  // namespace redlock::wire
