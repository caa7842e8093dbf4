// SPDX-License-Identifier: MIT
// One connection from its handshake to its end: commands go out in order, and each reply is
// matched with what it answers. It ends at the first thing that is wrong with it; a new one is then
// made by the link.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/messages.hpp"
#include "wire/handshake.hpp"
#include "wire/hold_text.hpp"
#include "wire/holder_text.hpp"
#include "net/question.hpp"
#include "wire/reply_reader.hpp"
#include "wire/script_call.hpp"
#include "net/stream.hpp"

namespace redlock::net {

/// A command or question that a connection leaves unanswered.
struct Unanswered {
  engine::Tag tag{};                   ///< of a command
  std::shared_ptr<Question> question;  ///< null for a command
  engine::Delivery delivery{};         ///< whether the node can have seen it
};

class ConnectionListener {
 public:
  /// The handshake is complete. A sentence refuses the node: the connection then ends.
  virtual std::optional<std::string> on_ready(wire::ServerFacts& facts) = 0;
  virtual void on_reply(const engine::Tag& tag, const engine::Reply& reply) = 0;
  /// The node's clock as it stood `now` (a moment ago, which would else count as its error), by the
  /// middle of the round trip that brought it; half of that is how wrong it may be.
  virtual void on_clock(engine::Instant now, std::int64_t unix_us,
                        engine::Duration uncertainty) = 0;
  /// It cannot go on. To be destroyed; only this call may destroy it.
  virtual void on_broken(engine::Unavailable why) = 0;

 protected:
  ~ConnectionListener() = default;
};

class Connection final : StreamListener {
 public:
  /// All references must outlive the connection.
  Connection(Stream::Owned stream, const wire::NodeAddress& address, const wire::Handshake::Terms& terms,
             wire::HoldText& hold_text, wire::HolderText& holder_text, std::optional<wire::LostConnection> lost,
             ConnectionListener& listener);

  /// Sends the handshake. False: the listener has heard on_broken().
  bool start();

  // Once ready: these only collect output, for flush().

  /// Holds of one turn go out together, up to a hundred in one call, and so do releases: renewing
  /// many leases costs the node and us little more than renewing one. Where one of the holds is for
  /// a name that the user may not touch, which fails the call, each is sent again alone, and that
  /// one from then on.
  void send(const engine::Tag& tag, engine::Command command, engine::Form form);
  void send(std::shared_ptr<Question> question);
  /// The node's marker has been written, and names this set.
  void joined(std::string set) { set_ = std::move(set); }
  /// Asks for the node's clock, and whether it is what the handshake saw. It may have become a
  /// replica and a master again, with the data of another one, without a command that noticed.
  void send_probe();
  /// When this is destroyed, what was written may still arrive.
  void let_arrive() { stream_->let_arrive(); }
  /// Writes. Tells the listener if that cannot be done.
  void flush();

  [[nodiscard]] bool ready() const { return !handshake_; }
  /// How this connection is to be named to the node once it is lost.
  [[nodiscard]] wire::LostConnection identity() const { return {run_id_, client_id_}; }
  [[nodiscard]] bool all_answered() const { return awaited_.empty() && together_.count() == 0; }
  /// Since when the node owes an answer without having said anything, on the loop's clock.
  [[nodiscard]] std::chrono::milliseconds silent_since() const;

  /// Bytes that wait to be written.
  [[nodiscard]] std::size_t unsent() const { return stream_->unsent(); }

  /// Takes over what is unanswered, oldest first.
  [[nodiscard]] std::vector<Unanswered> take_unanswered();

 private:
  /// What was sent in one piece. Its commands' tags stand in tags_.
  struct Awaited {
    enum class Kind : std::uint8_t { commands, question, time, role };
    Kind kind = Kind::time;
    wire::Script script{};              // of commands
    std::uint32_t commands = 0;   // that are not answered yet
    std::uint64_t begins_at = 0;  // its first byte, counted over the whole connection
    std::shared_ptr<Question> question;
    engine::Instant sent{};  // of TIME
    engine::Name name = {};  // of a hold that went alone
  };

  void on_connected() override {}
  void on_bytes(std::string_view bytes) override;
  void on_stream_failed(int uv_status) override;

  [[nodiscard]] bool take_reply(const wire::ReplyView& reply);
  [[nodiscard]] bool take_handshake_reply(const wire::ReplyView& reply);
  [[nodiscard]] bool take_command_reply(Awaited& awaited, const wire::ReplyView& reply);
  [[nodiscard]] bool take_replies_together(Awaited& awaited, const wire::ReplyView& replies);
  void answer_next(Awaited& awaited, const engine::Reply& reply);
  [[nodiscard]] bool take_role(const wire::ReplyView& reply);
  void take_time(const Awaited& awaited, const wire::ReplyView& reply);
  void tell_clock(std::int64_t unix_us, engine::Instant asked);
  void await(Awaited awaited);
  void write_together();
  void write_hold_alone(const engine::Tag& tag, engine::HoldCommand hold);
  [[nodiscard]] bool goes_alone(const engine::HoldCommand& hold, engine::Form form) const;
  void refused_hold(Awaited& awaited);
  [[nodiscard]] bool awaits_question() const;
  [[nodiscard]] std::size_t reply_limit() const;
  [[nodiscard]] std::chrono::milliseconds loop_now() const;
  bool broken(Cause cause, std::string detail);

  Stream::Owned stream_;
  const wire::NodeAddress& address_;
  ConnectionListener& listener_;
  std::unique_ptr<wire::Handshake> handshake_;  // none once complete
  engine::Instant handshake_sent_{};
  wire::ScriptSet scripts_{wire::ScriptSet::Flags::unknown};
  std::string set_;  // that its marker names
  std::string run_id_;
  std::int64_t client_id_ = 0;
  std::string role_;  // as the handshake saw it, as is replid_
  std::string replid_;
  wire::ReplyReader reader_;
  std::deque<Awaited> awaited_;
  std::deque<engine::Tag> tags_;  // of the commands awaited, then those of together_
  wire::HoldText& hold_text_;
  wire::HolderText& holder_text_;
  wire::CallParts together_;  // holds or releases that are to be written as one call
  wire::Script together_script_{};
  engine::Form together_form_{};
  std::uint32_t to_repeat_alone_ = 0;  // holds of calls that were refused for one name in them
  std::set<std::string> forbidden_;    // names of holds that were refused alone
  std::chrono::milliseconds last_heard_{};
  std::chrono::milliseconds first_awaited_{};  // when awaited_ was empty last
  bool first_unsent_ = false;                  // what was then awaited waits for flush()
};

}  // namespace redlock::net
