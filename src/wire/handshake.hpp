// SPDX-License-Identifier: MIT
// The conversation that opens a connection: log in, look the node over, load the scripts. It does
// no I/O: it appends what is to be sent to a string and is fed the replies in order. Two round
// trips: the texts of the scripts depend on the version that the first one brings. A node that
// refuses RESP3 or the channel wakes no waiter; its locks are as good.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/messages.hpp"
#include "wire/node_address.hpp"
#include "wire/node_marker.hpp"
#include "wire/passwords.hpp"
#include "wire/reply_view.hpp"
#include "wire/server_facts.hpp"
#include "wire/unfit_nodes.hpp"

namespace redlock::wire {

/// A connection that was lost after commands were sent on it. Until the server has closed it too,
/// its commands may still be executed.
struct LostConnection {
  std::string run_id;  ///< client numbers start anew with every start of the server
  std::int64_t client_id = 0;
};

class Handshake {
 public:
  struct Config {
    SetTerms set;
    std::string client_name;
    /// As which the node knows this client's waiters, hexadecimal digits (see draw_client, Link);
    /// empty: it has none.
    std::string client = {};
    /// Whether another client may have that name, so that it is looked for.
    bool may_be_shared = false;
    UnfitNodes unfit = UnfitNodes::refuse;
  };
  enum class Progress : std::uint8_t { going_on, complete, failed };

  /// `address`, `passwords` and `config` must outlive the handshake. Where the node says that a
  /// password is wrong, the next one is tried on the same connection. `identity_key`: to be read,
  /// see ServerIdentities; empty: none.
  Handshake(const NodeAddress& address, Passwords& passwords, const Config& config,
            std::optional<LostConnection> lost, std::string identity_key = {});

  /// Appends the first commands.
  void start(std::string& out);
  /// The next reply; may append commands.
  [[nodiscard]] Progress on_reply(const ReplyView& reply, std::string& out);
  /// A push: unrequested, or the confirmation of the subscription, which is never the last expected
  /// reply.
  void on_push(const ReplyView& push);

  /// After `complete`.
  [[nodiscard]] ServerFacts& facts() { return facts_; }
  /// After `failed`: why. Its delivery says not_sent, for the commands that waited.
  [[nodiscard]] const engine::Unavailable& failure() const { return failure_; }

 private:
  enum class Step : std::uint8_t {
    auth,
    hello,
    select,
    set_name,
    client_id,
    info,
    marker,
    clock_note,
    appendonly,
    appendfsync,
    maxmemory_policy,
    kill,
    subscribe,
    name,
    load,
    identity,
    time,
  };

  void send(std::string& out, Step step, std::initializer_list<std::string_view> command);
  void send_second_part(std::string& out);
  [[nodiscard]] bool is_wrong(const ReplyView& reply) const;
  [[nodiscard]] Progress try_next_password();

  // Each returns false after it has set failure_.
  bool take(Step step, const ReplyView& reply);
  bool take_error(Step step, std::string_view error);
  bool take_denial(Step step, engine::Unavailable why);
  bool take_auth_error(std::string_view error, engine::Unavailable why);
  bool take_answer(Step step, const ReplyView& reply);
  bool take_info(std::string_view text);
  bool take_time(const ReplyView& reply);
  bool take_marker(const ReplyView& reply);
  bool take_setting(Step step, const ReplyView& reply);
  bool take_digest(const ReplyView& reply);
  bool take_identity(const ReplyView& reply);

  bool fail(Cause cause, std::string detail);
  bool unfit(std::string reason);
  bool garbled();

  const NodeAddress& address_;
  Passwords& passwords_;
  std::vector<std::string> to_try_;
  std::size_t to_skip_ = 0;  // replies to commands behind a wrong password
  const Config& config_;
  std::optional<LostConnection> lost_;
  const std::string identity_key_;
  const std::string channel_;
  std::deque<Step> expected_;
  std::deque<Script> loading_;  // of the load steps
  bool second_part_ = false;
  bool resp3_ = false;
  ServerFacts facts_;
  std::string appendonly_;  // until appendfsync is known too
  engine::Unavailable failure_;
};

}  // namespace redlock::wire
