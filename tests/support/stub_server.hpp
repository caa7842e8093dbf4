// SPDX-License-Identifier: MIT
//
// A TCP server that answers exactly what a test tells it to: a Redis that refuses, one that is
// loading, rubbish, half a reply, silence. It runs on a thread of its own inside the test.
//
//   StubServer node([](const RedisCommand& command) {
//     return is(command, "EVALSHA") ? error("OOM command not allowed") : like_redis(command);
//   });
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "cluster/poll_thread.hpp"
#include "cluster/sockets.hpp"
#include "support/stub_replies.hpp"

namespace redlock::testing {

using cluster::PollThread;
using cluster::UniqueFd;

/// The bytes to send, unchecked.
struct StubReply {
  // Implicit, so that a script can simply return a text.
  StubReply(std::string reply) : bytes(std::move(reply)) {}  // NOLINT(google-explicit-constructor)
  StubReply(const char* reply) : bytes(reply) {}             // NOLINT(google-explicit-constructor)

  /// A reply that begins like this and goes on with one letter, or text, until the connection ends.
  static StubReply without_end(std::string beginning, std::string again = "x") {
    StubReply reply{std::move(beginning)};
    reply.repeated = std::move(again);
    return reply;
  }

  /// No answer, ever; the connection stays open.
  static StubReply silence() { return {""}; }

  std::string bytes;
  std::string repeated = {};  ///< without end
};

/// Called on the server's thread for every command, in the order of their arrival. It must not call
/// the server.
using StubScript = std::function<StubReply(const RedisCommand&)>;

class StubServer {
 public:
  /// Accepts connections and answers every command as the script says.
  explicit StubServer(StubScript script);

  /// Accepts every connection and never sends anything.
  static StubServer silent();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string uri() const;

  /// Resets every connection that is open now.
  void reset_all();

  /// How many connections were accepted so far, and the commands received on all of them.
  [[nodiscard]] std::size_t accepted() const;
  [[nodiscard]] std::vector<RedisCommand> commands() const;

  /// Letters that were sent as parts of replies without end, on all connections.
  [[nodiscard]] std::size_t letters_sent() const;

 private:
  struct Session {
    UniqueFd socket;
    std::string input = {};
    std::string output = {};
    std::string repeated = {};  // once the output has gone out
    bool doomed = false;        // to be reset now
  };

  void prepare(std::vector<pollfd>& polled) const;
  void perform(const std::vector<pollfd>& polled);
  bool serve(Session& connection);
  void answer_commands(Session& connection);
  bool go_on_for_ever(Session& connection);
  void accept_all();

  UniqueFd listener_;
  std::uint16_t port_;
  StubScript script_;
  std::list<Session> connections_;
  std::size_t accepted_ = 0;
  std::vector<RedisCommand> commands_;
  std::size_t letters_sent_ = 0;
  PollThread thread_;  // last: it starts when all else exists and ends before anything is gone
};

}  // namespace redlock::testing
