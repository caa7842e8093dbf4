// SPDX-License-Identifier: MIT
// One node as the driver sees it: commands go in, each comes out with exactly one reply, whatever
// the network does. The link connects, waits, connects again, notices silence, and reports when the
// node is up and why it is not.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/messages.hpp"
#include "wire/backoff.hpp"
#include "wire/connection.hpp"
#include "wire/handshake.hpp"
#include "wire/node_address.hpp"
#include "wire/passwords.hpp"
#include "wire/question.hpp"
#include "wire/streams.hpp"

namespace redlock::wire {

class Link;

/// The reports of a link. No call may destroy the link, or report anything of its stream.
class LinkListener {
 public:
  virtual void on_reply(engine::Instant now, engine::NodeIndex node, const engine::Tag& tag,
                        const engine::Reply& reply) = 0;
  /// The key that the handshake of a new connection is to read, see ServerIdentities; empty: none.
  virtual std::string identity_key(engine::Instant now, engine::NodeIndex node) = 0;
  /// A connection is about to be used. A sentence refuses it.
  virtual std::optional<std::string> find_objection(engine::Instant now, engine::NodeIndex node,
                                                    const ServerFacts& facts) = 0;
  /// The facts that the new connection shows; before anything is sent on it.
  virtual void on_node_facts(engine::Instant now, engine::NodeIndex node,
                             const ServerFacts& facts) = 0;
  /// Why the node may not be asked for a lock, or to hold it for so long, right before it would be.
  virtual std::optional<engine::Unavailable> objection_to_ask(engine::Instant now,
                                                              engine::NodeIndex node,
                                                              const engine::Tag& tag) = 0;
  virtual void on_link_up(engine::Instant now, engine::NodeIndex node,
                          const ServerFacts& facts) = 0;
  /// After every outstanding command was answered. Reported once for each reason.
  virtual void on_link_down(engine::Instant now, engine::NodeIndex node,
                            const engine::Unavailable& why) = 0;
  /// See ConnectionListener.
  virtual void on_clock(engine::Instant now, engine::NodeIndex node, std::int64_t unix_us,
                        engine::Duration uncertainty, engine::Duration round_trip) = 0;
  virtual void on_wake(engine::Instant now, engine::NodeIndex node, const Wake& wake) = 0;
  /// There is output: flush() is to be called at the end of this turn.
  virtual void on_output_waiting(Link& link) = 0;

 protected:
  ~LinkListener() = default;
};

class Link final : ConnectionListener {
 public:
  struct Config {
    Handshake::Config handshake;
    std::chrono::milliseconds connect_timeout{};  ///< for the sentence of a handshake that ends so
    std::chrono::milliseconds silence{};          ///< without a reply for that long, the connection
                                                  ///< is given up
    std::chrono::milliseconds probe_interval{};
    /// How much may wait to be written, by the stream as well. This only bounds memory: a node
    /// that does not read is recognised by its silence, because bursts may be large.
    std::size_t unsent_limit = std::size_t{256} << 20;
    /// As unsent_limit, of what was written: how many commands may be unanswered, and for how long
    /// the oldest. A node that replies now and then is not silent.
    std::size_t unanswered_limit = 2'000'000;
    std::chrono::milliseconds unanswered_for{30'000};
  };

  /// All of them must outlive the link.
  Link(engine::NodeIndex node, const NodeAddress& address, const Config& config, SharedTexts& texts,
       engine::RandomSource& random, Streams& streams, LinkListener& listener);

  /// Begins to connect.
  void start();
  /// Closes; questions are answered, commands are not. Nothing may be submitted any more.
  void stop(engine::Instant now);

  /// In place of stop(): see Driver.
  void drop_questions() noexcept;

  /// Answered by on_reply(), at once if the link is waiting to connect again.
  void submit(engine::Instant now, const engine::Tag& tag, engine::Command command,
              engine::Form form);
  void ask(engine::Instant now, std::shared_ptr<Question> question);
  /// Writes what was collected.
  void flush(engine::Instant now);
  /// After a flush, with the time by then.
  void on_flushed(engine::Instant now);
  /// Asks for the node's clock and role now, and not when it would be time to.
  void probe(engine::Instant now);
  /// By an answer to a question of this connection its marker names this configuration. The one
  /// that it named before; empty if there is no connection.
  std::string on_membership(const std::string& membership);
  [[nodiscard]] bool answers_former_name() const;
  /// The address has changed: connects to the server there. Without a label there is none.
  void move(engine::Instant now, std::string why);
  /// Replaces the connection, so that a handshake judges the node again.
  void reconnect(engine::Instant now, std::string why);

  // The reports of Streams, in their order.

  /// The connection is there. Its handshake is given up at that time. The newest password; empty:
  /// as in the address. What is unsafe about how the connection was made; empty: nothing.
  void on_connected(engine::Instant now, engine::Instant give_up_at, std::string password = {},
                    std::string warning = {});
  void on_bytes(engine::Instant now, std::string_view bytes);
  /// It is closed, or could not be made.
  void on_stream_closed(engine::Instant now, StreamEnd end);
  /// Streams::write() takes bytes again, after it left some.
  void on_writable();

  /// Which passwords the node is, or was, given.
  [[nodiscard]] const Secrets& secrets() const { return passwords_.secrets(); }

  [[nodiscard]] engine::Instant deadline() const;
  void on_deadline(engine::Instant now);

 private:
  enum class State : std::uint8_t { waiting, connecting, up, stopped };
  struct QueuedCommand {
    engine::Tag tag;
    engine::Command command;
    engine::Form form;
  };
  using QueuedItem = std::variant<QueuedCommand, std::shared_ptr<Question>>;

  std::optional<engine::Unavailable> on_ready(engine::Instant now, ServerFacts& facts) override;
  void on_reply(engine::Instant now, const engine::Tag& tag, const engine::Reply& reply) override;
  void on_clock(engine::Instant now, std::int64_t unix_us, engine::Duration uncertainty,
                engine::Duration round_trip) override;
  void on_wake(engine::Instant now, const Wake& wake) override;

  void watch(engine::Instant now);
  void time_out_questions(engine::Instant now);
  void forget_answered();
  void has_output();
  [[nodiscard]] Handshake::Config of_next_connection() const;
  [[nodiscard]] bool shares_its_name(const ServerFacts& facts);
  void give_up(engine::Instant now, engine::Unavailable why);
  void cut_off(engine::Instant now, engine::Unavailable why);
  void drop(engine::Instant now, engine::Unavailable why);
  void fail_outstanding(engine::Instant now, Connection* connection, std::vector<QueuedItem> queued,
                        const engine::Unavailable& why);
  void report_down(engine::Instant now);

  const engine::NodeIndex node_;
  const NodeAddress& address_;
  Passwords passwords_;
  const Config& config_;
  SharedTexts& texts_;
  std::string own_part_;     // of this client's name, behind what all links have
  bool name_is_new_ = true;  // no copy of this machine can have it
  engine::RandomSource& random_;
  Streams& streams_;
  LinkListener& listener_;

  State state_ = State::waiting;
  std::unique_ptr<Connection> connection_;  // with its handshake, while connecting
  std::vector<QueuedItem> queue_;           // while connecting
  std::optional<LostConnection> lost_;
  std::string warning_;  // of the connection
  Backoff backoff_;
  engine::Unavailable failure_;  // of the last connection, or of the attempt to make one
  std::optional<engine::Unavailable> reported_;

  // When the state asks for something: to connect, to give up the handshake, to judge the silence.
  engine::Instant at_ = engine::never;
  engine::Instant up_since_{};
  engine::Instant probe_at_{};
  bool suspected_ = false;
  bool output_waiting_ = false;

  static constexpr std::size_t few_questions = 16;
  std::vector<std::shared_ptr<Question>> questions_;  // of which some may be answered already
  std::size_t most_questions_ = few_questions;        // before those are looked for
  engine::Instant first_timeout_ = engine::never;     // of the questions
};

}  // namespace redlock::wire
