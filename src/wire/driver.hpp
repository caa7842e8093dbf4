// SPDX-License-Identifier: MIT
// One client down to the bytes: the engine, one link for each node, and the translation between
// them. It is driven by bytes and by time, and does no I/O: no socket, thread or clock.
//
// Its inputs only change its state. turn() performs the consequences (commands as bytes, outputs of
// the engine), so that all messages of a turn for one node are one write. After any input:
//
//     while (driver.pending()) driver.turn(now());
//     sleep_until(driver.deadline());
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "wire/driver_config.hpp"
#include "wire/driver_host.hpp"
#include "wire/link.hpp"
#include "wire/marker_tending.hpp"
#include "wire/node_standings.hpp"
#include "wire/server_identities.hpp"
#include "wire/streams.hpp"
#include "wire/value.hpp"

namespace redlock::wire {

class Driver final : LinkListener {
 public:
  /// All that are references must outlive the driver.
  Driver(DriverConfig config, engine::RandomSource& random, Streams& streams, DriverHost& host);
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// Connects to every node. `unix_us` is this machine's own wall clock.
  void start(engine::Instant now, std::int64_t unix_us);
  /// This machine's wall clock, to be repeated now and then: it may have been set.
  void on_own_clock(engine::Instant now, std::int64_t unix_us);
  /// Closes every connection and answers every question. Nothing may follow.
  void stop(engine::Instant now);

  /// In place of stop(), when an input or a turn was left by an exception: destroys every question
  /// without an answer. Nothing may follow.
  void drop_questions() noexcept;

  /// The link that takes the reports of Streams about this node, in their order.
  [[nodiscard]] Link& link(engine::NodeIndex node) { return *links_[node]; }

  /// The engine, for requests, also by on_output().
  [[nodiscard]] engine::Engine& engine() {
    engine_touched_ = true;
    return engine_;
  }

  /// Sends one command to one node, for inspection and administration. Answered exactly once, at
  /// the timeout at the latest; before this returns if the node is known to be down.
  void ask(engine::Instant now, engine::NodeIndex node, std::vector<std::string> command,
           std::chrono::milliseconds timeout, Question::OnAnswer callback);

  /// Whether there is something for turn() to do.
  [[nodiscard]] bool pending() const {
    return engine_touched_ || !to_flush_.empty() || !flushed_.empty() || !to_reconnect_.empty();
  }
  /// Performs the engine's outputs and writes the messages. To be called until nothing is pending,
  /// each time with the time by then: performing takes time, and the nodes' silence is counted from
  /// after the write.
  void turn(engine::Instant now);

  /// When on_deadline() must be called at the latest.
  [[nodiscard]] engine::Instant deadline() const;
  void on_deadline(engine::Instant now);

 private:
  void perform(engine::Instant now, engine::NodeOutput&& output);
  void take(engine::Instant now, engine::NodeIndex node, const engine::Tag& tag,
            const engine::Reply& reply);
  void read_members(engine::Instant now, engine::NodeIndex node);
  void tend(engine::Instant now, const engine::TendMarker& what);
  [[nodiscard]] const NodeAddress& some_node() const;
  void move(engine::Instant now, engine::MoveNode&& what);
  void note_clock(engine::Instant now, const engine::NoteClock& note);
  void check_identity(engine::Instant now, engine::NodeIndex node);
  [[nodiscard]] std::string refusal_of(const ServerIdentities::Suspicion& suspicion,
                                       const ServerFacts& facts) const;
  void judge_nodes(engine::Instant now);
  void read_clocks_often_enough();
  void ask_to_write_nothing(engine::Instant now, engine::NodeIndex node);

  void on_reply(engine::Instant now, engine::NodeIndex node, const engine::Tag& tag,
                const engine::Reply& reply) override;
  std::string identity_key(engine::Instant now, engine::NodeIndex node) override {
    return identities_.key_to_read(now, node);
  }
  std::optional<std::string> find_objection(engine::Instant now, engine::NodeIndex node,
                                            const ServerFacts& facts) override;
  void on_node_facts(engine::Instant now, engine::NodeIndex node,
                     const ServerFacts& facts) override;
  std::optional<engine::Unavailable> objection_to_ask(engine::Instant now, engine::NodeIndex node,
                                                      const engine::Tag& tag) override;
  void on_link_up(engine::Instant now, engine::NodeIndex node, const ServerFacts& facts) override;
  void on_link_down(engine::Instant now, engine::NodeIndex node,
                    const engine::Unavailable& why) override;
  void on_clock(engine::Instant now, engine::NodeIndex node, std::int64_t unix_us,
                engine::Duration uncertainty, engine::Duration round_trip) override;
  void on_wake(engine::Instant now, engine::NodeIndex node, const Wake& wake) override;
  void on_output_waiting(Link& link) override { to_flush_.push_back(&link); }

  DriverConfig config_;
  Link::Config link_config_;
  DriverHost& host_;
  engine::RandomSource& random_;
  engine::Engine engine_;
  SharedTexts texts_;
  ServerIdentities identities_;
  MarkerTending markers_;
  NodeStandings standings_;
  /// By node: commands that it refused because they named other members than its marker.
  std::vector<std::vector<std::pair<engine::Tag, engine::Reply>>> refused_by_members_;
  std::vector<engine::Instant> members_read_;  // by node, when that was begun
  std::vector<std::unique_ptr<Link>> links_;
  bool engine_touched_ = false;
  engine::Outputs outputs_;
  std::vector<Link*> to_flush_;
  std::vector<Link*> flushed_;
  std::vector<std::pair<engine::NodeIndex, std::string>> to_reconnect_;  // and why
};

}  // namespace redlock::wire
