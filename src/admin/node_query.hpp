// SPDX-License-Identifier: MIT
// Puts questions to all nodes of a client at once and waits for the answers: what every member of
// Admin is made of.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <redlock/admin.hpp>
#include <redlock/client.hpp>

#include "engine/messages.hpp"
#include "net/core.hpp"
#include "wire/node_address.hpp"

namespace redlock::client {

using Command = std::vector<std::string>;

/// What one node answered to the commands put to it, in their order.
struct NodeAnswers {
  std::vector<wire::Answer> answers;
  BootClock::time_point asked{};
  BootClock::time_point answered{};  ///< the last of them
  /// Of the core that asked, why the node does not vote though it answers.
  std::optional<engine::Unavailable> objection;
};

/// Whom to ask: nodes behind a core.
class NodeQuery {
 public:
  /// The nodes as the client itself has them: one that it refuses as unfit does not answer.
  static NodeQuery of(Client::Impl& client);
  /// Connections of its own, for looking at nodes, unfit ones too. Fails only if the system gives
  /// no thread or descriptor. The client must live as long.
  static Result<NodeQuery> inspecting(Client::Impl& client);

  [[nodiscard]] const std::vector<wire::NodeAddress>& nodes() const;
  [[nodiscard]] const ClientOptions& options() const;
  [[nodiscard]] std::uint32_t quorum() const {
    return static_cast<std::uint32_t>(nodes().size() / 2 + 1);
  }

  /// The node timeout and the time that it may take to connect before.
  [[nodiscard]] std::chrono::milliseconds patience() const;

  /// Puts commands to each node, by its place in the list. A node without commands is left alone.
  /// All are sent in one turn of the loop; the call returns when all are answered, after the
  /// timeout at the latest. Fails only if the client is closed or this is its loop thread.
  Result<std::vector<NodeAnswers>> ask(std::vector<std::vector<Command>> commands,
                                       std::chrono::milliseconds timeout);
  /// The same commands to every node, with the node timeout.
  Result<std::vector<NodeAnswers>> ask_all(const std::vector<Command>& commands);

 private:
  class Round;
  struct Own;

  explicit NodeQuery(Client::Impl& client) : client_(&client) {}
  [[nodiscard]] net::Core& core() const;
  [[nodiscard]] bool post(net::Task& task) const;

  Client::Impl* client_;
  std::shared_ptr<Own> own_;
};

/// Why this is not an answer: not answered at all, or an error reply. Cause::none if it is one.
[[nodiscard]] NodeTrouble trouble_of(const wire::Answer& answer, const wire::NodeAddress& node);

/// The answer as text (strings, numbers) or list, nothing if it is something else.
[[nodiscard]] std::optional<std::string> text_of(const wire::Answer& answer);
[[nodiscard]] std::optional<std::int64_t> number_of(const wire::Answer& answer);
/// A flat array of strings; empty if it is something else.
[[nodiscard]] std::vector<std::string> texts_of(const wire::Answer& answer);
/// A flat array of field, value, field, value.
[[nodiscard]] std::map<std::string, std::string> fields_of(const wire::Answer& answer);

}  // namespace redlock::client
