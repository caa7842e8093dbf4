// SPDX-License-Identifier: MIT
// A node as the core sees it: commands go in, each comes out with exactly one reply, whatever the
// network does. The link connects, waits, connects again, notices silence, and says when the node
// is up and why it is not.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/messages.hpp"
#include "wire/backoff.hpp"
#include "net/connection.hpp"
#include "net/connector.hpp"
#include "wire/handshake.hpp"
#include "net/loop.hpp"
#include "wire/node_address.hpp"
#include "net/question.hpp"
#include "net/timer.hpp"

namespace redlock::net {

class Link;

/// What a link tells. No call may destroy the link.
class LinkListener {
 public:
  virtual void on_reply(engine::NodeIndex node, const engine::Tag& tag,
                        const engine::Reply& reply) = 0;
  /// A connection is about to be used. A sentence refuses it.
  virtual std::optional<std::string> find_objection(engine::NodeIndex node,
                                                    const wire::ServerFacts& facts) = 0;
  /// What the new connection shows of the node; before anything is sent on it.
  virtual void on_node_facts(engine::NodeIndex node, const wire::ServerFacts& facts) = 0;
  /// Why the node may not be asked for a lock now; for commands that waited for the connection.
  virtual std::optional<engine::Unavailable> objection_to_ask(engine::NodeIndex node) = 0;
  virtual void on_link_up(engine::NodeIndex node, const wire::ServerFacts& facts) = 0;
  /// After every outstanding command was answered. Told once for each reason.
  virtual void on_link_down(engine::NodeIndex node, const engine::Unavailable& why) = 0;
  /// See ConnectionListener.
  virtual void on_clock(engine::Instant now, engine::NodeIndex node, std::int64_t unix_us,
                        engine::Duration uncertainty) = 0;
  /// There is output: flush() is to be called at the end of this turn.
  virtual void on_output_waiting(Link& link) = 0;

 protected:
  ~LinkListener() = default;
};

class Link final : ConnectorListener, ConnectionListener {
 public:
  struct Config {
    wire::Handshake::Terms terms;
    Connector::Timeouts timeouts;
    std::chrono::milliseconds silence{};  ///< this long without a word, it is given up
    std::chrono::milliseconds probe_interval{};
    /// What may wait to be written. Only for memory's sake: it is by its silence that a node which
    /// does not read is known, as a burst may be of any size.
    std::size_t unsent_limit = std::size_t{256} << 20;
  };

  /// All of them must outlive the link.
  Link(Loop& loop, engine::NodeIndex node, const wire::NodeAddress& address, const Config& config,
       engine::RandomSource& random, LinkListener& listener);

  /// Begins to connect.
  void start();
  /// Closes; questions are answered, commands are not. Nothing may be submitted any more.
  void stop();

  /// Answered by on_reply(), at once if the link is waiting to connect again.
  void submit(const engine::Tag& tag, engine::Command command, engine::Form form);
  void ask(std::shared_ptr<Question> question);
  void flush();
  /// Asks for the node's clock and role now, and not when it would be time to.
  void probe();
  /// The marker was written by an answer to a question of this connection.
  void joined(std::string set);
  /// Gives up the connection and makes another, whose handshake looks at the node anew.
  void look_anew();

  [[nodiscard]] const wire::NodeAddress& address() const { return address_; }

 private:
  enum class State : std::uint8_t { waiting, connecting, up, stopped };
  struct QueuedCommand {
    engine::Tag tag;
    engine::Command command;
    engine::Form form;
  };
  using Queued = std::variant<QueuedCommand, std::shared_ptr<Question>>;

  void on_stream(Stream::Owned stream, std::chrono::milliseconds left) override;
  void on_no_stream(engine::Unavailable why) override;
  void on_moved() override;
  std::optional<std::string> on_ready(wire::ServerFacts& facts) override;
  void on_reply(const engine::Tag& tag, const engine::Reply& reply) override;
  void on_clock(engine::Instant now, std::int64_t unix_us, engine::Duration uncertainty) override;
  void on_broken(engine::Unavailable why) override;

  void timer_expired();
  void watch();
  void has_output();
  void drop(engine::Unavailable why);
  void fail_outstanding(Connection* connection, std::vector<Queued> queued,
                        const engine::Unavailable& why);
  void report_down();

  Loop& loop_;
  const engine::NodeIndex node_;
  const wire::NodeAddress& address_;
  const Config& config_;
  engine::RandomSource& random_;
  LinkListener& listener_;

  State state_ = State::waiting;
  Connector connector_;
  std::unique_ptr<Connection> connection_;
  std::vector<Queued> queue_;  // while connecting
  std::optional<wire::LostConnection> lost_;
  wire::Backoff backoff_;
  engine::Unavailable failure_;  // why it is not up
  std::optional<engine::Unavailable> reported_;

  // What the timer means follows from the state: connect, give up the handshake, or watch.
  Timer timer_;
  std::chrono::milliseconds up_since_{};  // these on the loop's clock
  std::chrono::milliseconds probe_at_{};
  std::chrono::milliseconds watch_at_{};
  bool suspected_ = false;
  bool output_waiting_ = false;
};

}  // namespace redlock::net
