// SPDX-License-Identifier: MIT
// One connection from its handshake to its end, without its socket: commands become bytes in
// order, and each reply is matched with its command or question. A connection ends at its first
// fault; the link then makes a new one.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/messages.hpp"
#include "wire/encoded_command.hpp"
#include "wire/handshake.hpp"
#include "wire/holder_text.hpp"
#include "wire/question.hpp"
#include "wire/reply_reader.hpp"
#include "wire/script_call.hpp"
#include "wire/streams.hpp"
#include "wire/wake.hpp"

namespace redlock::wire {

/// A command or question that a connection leaves unanswered.
struct Unanswered {
  engine::Tag tag{};                   ///< of a command
  std::shared_ptr<Question> question;  ///< null for a command
  engine::Delivery delivery{};         ///< whether the node can have received it
};

/// Texts that all connections of a client share, so that they are written once.
struct SharedTexts {
  EncodedCommand command;
  HolderText holder;
};

class ConnectionListener {
 public:
  /// The handshake is complete. A reason refuses the node: the connection then ends.
  virtual std::optional<engine::Unavailable> on_ready(engine::Instant now, ServerFacts& facts) = 0;
  virtual void on_reply(engine::Instant now, const engine::Tag& tag,
                        const engine::Reply& reply) = 0;
  /// The node's clock as it stood `now`, reckoned from the middle of the time since it was asked;
  /// half of that time is how wrong it may be. The round trip is that of a message that keeps the
  /// node busy for no time.
  virtual void on_clock(engine::Instant now, std::int64_t unix_us, engine::Duration uncertainty,
                        engine::Duration round_trip) = 0;
  /// Once ready. A hint: anybody may have published it.
  virtual void on_wake(engine::Instant now, const Wake& wake) = 0;

 protected:
  ~ConnectionListener() = default;
};

class Connection {
 public:
  /// Why the connection cannot go on, and is to be destroyed; none: it can go on.
  using EndReason = std::optional<engine::Unavailable>;

  /// All references must outlive the connection. `config.client` is of this connection alone.
  Connection(const NodeAddress& address, Passwords& passwords, Handshake::Config config,
             SharedTexts& texts, std::optional<LostConnection> lost, std::string identity_key,
             ConnectionListener& listener);

  /// Begins the handshake.
  void start(engine::Instant now);
  [[nodiscard]] EndReason on_bytes(engine::Instant now, std::string_view bytes);

  // Once ready: these only collect output, for flush().

  /// Holds of one turn go out together, up to a hundred in one call, and so do releases: renewing
  /// many leases costs node and client little more than renewing one. If the user may not touch one
  /// of the names, Redis refuses the whole call: then each hold is sent again alone, and the one
  /// that is refused alone is sent alone from then on. Acquires of other names may be sent before
  /// releases that were given earlier, so that these stay together. A release and the acquire of
  /// the same name behind it go as one call, too: no other client comes between them on the node,
  /// which has less to do.
  void send(const engine::Tag& tag, const engine::Command& command, engine::Form form);
  void send(std::shared_ptr<Question> question);
  /// The node's marker names this configuration of the set by now. The one that it named before.
  std::string on_membership(const std::string& membership) {
    if (membership != membership_) renamed_at_ = appended();
    return std::exchange(membership_, membership);
  }
  /// Whether the command whose reply is being told was sent before that.
  [[nodiscard]] bool answers_former_name() const { return answering_ < renamed_at_; }
  /// Asks for the node's clock, and whether the node is still as the handshake saw it. It may have
  /// become a replica and a master again, with the data of another, without a command that noticed.
  void send_probe(engine::Instant now);

  /// Writes what was collected.
  void flush(Streams& streams, engine::NodeIndex node);
  /// To be called after flush(), with the time by then: writing a burst may take longer than the
  /// node may be silent.
  void on_flushed(engine::Instant now);

  [[nodiscard]] bool ready() const { return !handshake_; }
  /// How a later connection names this one to the node once it is lost.
  [[nodiscard]] LostConnection identity() const { return {run_id_, client_id_}; }
  /// Since when the node owes an answer and has sent none; `never` if it owes none, or the command
  /// is not written yet.
  [[nodiscard]] engine::Instant silent_since() const;

  /// The oldest unanswered command was sent by then, at the latest; `never` if none is known. The
  /// precision is the time from one of these moments to the next.
  [[nodiscard]] engine::Instant oldest_since() const {
    return awaited_.empty() ? engine::never : marked_at_;
  }
  /// Commands and questions that are unanswered; a little fewer if both are under way.
  [[nodiscard]] std::size_t unanswered() const { return std::max(tags_.size(), awaited_.size()); }
  /// Whether the connection ended because the node exceeded a bound.
  [[nodiscard]] bool exceeded() const { return exceeded_; }

  /// Bytes that wait in this process, as of the last flush().
  [[nodiscard]] std::size_t unsent() const { return output_.size() + kept_by_stream_; }

  /// Takes over the unanswered commands and questions, oldest first.
  [[nodiscard]] std::vector<Unanswered> take_unanswered();

 private:
  /// The commands that were sent in one piece. Their tags are in tags_.
  struct Awaited {
    enum class Kind : std::uint8_t { commands, question, time, role };
    Kind kind = Kind::time;
    Script script{};              // of commands
    std::uint32_t commands = 0;   // that are not answered yet
    std::uint64_t begins_at = 0;  // its first byte, counted over the whole connection
    std::shared_ptr<Question> question;
    engine::Instant sent{};  // of TIME
    engine::Name name = {};  // of a hold that went alone
  };

  // Each returns false after it has set end_.
  [[nodiscard]] bool take_reply(engine::Instant now, const ReplyView& reply);
  [[nodiscard]] bool take_push(engine::Instant now, const ReplyView& push);
  [[nodiscard]] bool take_handshake_reply(engine::Instant now, const ReplyView& reply);
  [[nodiscard]] bool take_unsolicited(const ReplyView& reply);
  [[nodiscard]] bool take_command_reply(engine::Instant now, Awaited& awaited,
                                        const ReplyView& reply);
  [[nodiscard]] bool take_replies_together(engine::Instant now, Awaited& awaited,
                                           const ReplyView& replies);
  [[nodiscard]] bool take_role(const ReplyView& reply);
  bool fail(Cause cause, std::string detail);

  void take_time(engine::Instant now, const Awaited& awaited, const ReplyView& reply);
  void report_clock(engine::Instant now, std::int64_t unix_us, engine::Duration asked_ago,
                    engine::Duration round_trip);
  [[nodiscard]] static Script script_of_next(const Awaited& awaited);
  void answer_next(engine::Instant now, Awaited& awaited, const engine::Reply& reply);
  void await(Awaited awaited);
  void mark(engine::Instant now);
  void write_call();
  void write(CallParts& call, Script script, engine::Form form);
  void send_acquire(const engine::Tag& tag, const engine::Command& command, engine::Form form);
  [[nodiscard]] bool goes_alone(const engine::HoldCommand& hold, engine::Form form) const;
  [[nodiscard]] bool passes(const engine::Name& name, engine::Form form) const;
  [[nodiscard]] CallContext context();
  [[nodiscard]] bool judge_refusal(const engine::Reply& answer);
  void refused_hold(engine::Instant now, Awaited& awaited);
  [[nodiscard]] bool awaits_question() const;
  [[nodiscard]] std::size_t reply_limit() const;
  [[nodiscard]] std::uint64_t appended() const { return handed_over_ + output_.size(); }

  const Passwords& passwords_;
  const Handshake::Config config_;
  const KeyLayout& layout_ = config_.set.layout;
  SharedTexts& texts_;
  ConnectionListener& listener_;
  const std::string channel_;
  std::unique_ptr<Handshake> handshake_;  // none once complete
  engine::Instant handshake_sent_{};      // its newest part
  engine::Duration first_round_trip_{};   // of the part before
  ScriptSet scripts_{ScriptSet::Flags::unknown};
  std::bitset<script_count> to_load_;  // the node has them no more: they go in full once
  std::string membership_;             // that its marker names
  std::uint64_t renamed_at_ = 0;       // bytes before that name the one before
  std::uint64_t answering_ = 0;        // where the command that is answered begins
  bool subscribed_ = false;
  std::string run_id_;
  std::int64_t client_id_ = 0;
  std::string role_;  // as the handshake saw it, as is replid_
  std::string replid_;
  ReplyReader reader_;
  std::string output_;
  std::size_t kept_by_stream_ = 0;
  std::uint64_t handed_over_ = 0;  // bytes that were taken out of output_
  std::deque<Awaited> awaited_;
  std::deque<engine::Tag> tags_;        // of the commands awaited
  CallParts call_;                      // is being collected
  CallParts last_release_;              // belongs to call_, unless an acquire takes up its lock
  std::vector<engine::Tag> call_tags_;  // of both
  std::vector<engine::Name> freed_;     // by the releases of both
  Script call_script_{};
  engine::Form call_form_{};
  engine::Name lone_hold_;             // of call_
  CallParts acquire_;                  // kept for its memory
  std::uint32_t to_repeat_alone_ = 0;  // holds of calls that were refused for one name in them
  std::set<std::string> forbidden_;    // names of holds that were refused alone
  engine::Instant last_reply_{};
  engine::Instant first_awaited_{};  // when awaited_ was empty last; `never` until it is flushed
  // The age of the oldest command, without a time for each: so many pieces had been sent by then.
  engine::Instant marked_at_{};
  std::uint64_t marked_ = 0;
  std::uint64_t sent_ = 0;  // pieces
  engine::Instant pushes_since_{};
  std::size_t pushes_ = 0;  // of the second that began then
  bool exceeded_ = false;
  EndReason end_;
};

}  // namespace redlock::wire
