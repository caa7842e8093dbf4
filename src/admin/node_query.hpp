// SPDX-License-Identifier: MIT
// Sends commands to all nodes of a client at once and waits for the replies. Every member of Admin
// uses it.
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
#include "engine/quorum.hpp"
#include "net/core.hpp"
#include "wire/node_address.hpp"

namespace redlock::admin {

/// One Redis command: its name and arguments.
using QueryCommand = std::vector<std::string>;

/// One node's replies to the commands sent to it, in their order.
struct NodeAnswers {
  std::vector<wire::Answer> answers;
  BootClock::time_point asked{};
  BootClock::time_point answered{};  ///< the last reply
  /// Why the node does not vote although it replies, by the core that sent the commands.
  std::optional<engine::Unavailable> objection;
  wire::Secrets secrets;  ///< the passwords that the node was given
  /// The certificate that ends first of those by which the node is trusted.
  std::optional<tls::CertificatePeriod> trusted_by{};
  bool wakes = false;  ///< whether it would wake waiters; known to a query that inspects
};

/// Whether the nodes are told user and password.
enum class Login { as_configured, none };

/// The nodes to query, and the connections for it.
class NodeQuery {
 public:
  /// Uses the client's own connections. A node that the client refuses as unfit is not connected.
  static NodeQuery of(Client::Impl& client);
  /// Makes connections of its own, to unfit nodes as well. Fails only if the system has no thread
  /// or descriptor left. The client must outlive the query.
  static Result<NodeQuery> inspecting(Client::Impl& client, Login login = Login::as_configured);

  /// Valid until the query ends; each ask() adds the passwords that must not be shown.
  [[nodiscard]] const std::vector<wire::NodeAddress>& nodes() const;
  [[nodiscard]] const ClientOptions& options() const;
  /// Null if no node has TLS.
  [[nodiscard]] const std::shared_ptr<tls::TlsContext>& tls() const;
  /// Of the nodes, or of the members that they show, if these are more.
  [[nodiscard]] std::uint32_t quorum() const { return quorum_; }
  /// How many members are not among the nodes, at most: nothing is known of them.
  [[nodiscard]] std::uint32_t unlisted() const {
    const auto listed = static_cast<std::uint32_t>(nodes_.size());
    return quorum_ > engine::quorum_of(listed) ? 2 * quorum_ - 1 - listed : 0;
  }
  /// Whether the client has gone on to other nodes since this query began.
  [[nodiscard]] bool is_outdated() const;

  /// The node timeout plus the timeouts for resolving and connecting.
  [[nodiscard]] std::chrono::milliseconds patience() const;
  /// For that long at least; between questions, whose answers say that the caller may wait.
  static void pause(std::chrono::milliseconds time);

  /// Sends each node its commands, by the node's place in the list; a node may have none. All are
  /// sent in one turn of the loop. The call blocks until all have their replies, or the timeout is
  /// over. Fails only if the client is closed or this is its loop thread.
  Result<std::vector<NodeAnswers>> ask(std::vector<std::vector<QueryCommand>> commands,
                                       std::chrono::milliseconds timeout);
  /// The same commands to every node.
  Result<std::vector<NodeAnswers>> ask_all(const std::vector<QueryCommand>& commands,
                                           std::chrono::milliseconds timeout);

 private:
  class Round;
  struct Own;

  explicit NodeQuery(Client::Impl& client);
  [[nodiscard]] net::Core& core() const;
  [[nodiscard]] bool wakes(engine::NodeIndex node) const;
  [[nodiscard]] bool post(net::Task& task) const;

  Client::Impl* client_;
  std::vector<wire::NodeAddress> nodes_;    // with the passwords that were used
  std::vector<engine::NodeIndex> numbers_;  // of these nodes, to the core that asks them
  std::uint32_t quorum_ = 0;
  std::shared_ptr<Own> own_;
};

/// What `look` finds by a query, which is done anew if the client goes on to other nodes meanwhile.
template <typename Look>
auto on_members(Client::Impl& client, const Look& look) {
  constexpr int most = 3;
  for (int tries = 1;; ++tries) {
    auto query = NodeQuery::of(client);
    auto found = look(query);
    if (tries == most || !found || !query.is_outdated()) return found;
  }
}

/// Why there is no usable reply: none came, or it is an error. Cause::none if it is usable.
/// `script` is the text of the script that gave it, if one did.
[[nodiscard]] NodeTrouble trouble_of(const wire::Answer& answer, const wire::NodeAddress& node,
                                     std::string_view script = {});

/// The reply as text (a string or a number) or as a number; nothing if it is something else.
[[nodiscard]] std::optional<std::string> text_of(const wire::Answer& answer);
[[nodiscard]] std::optional<std::int64_t> number_of(const wire::Answer& answer);
/// A flat array of strings; empty if it is something else.
[[nodiscard]] std::vector<std::string> texts_of(const wire::Answer& answer);
/// A flat array of field, value, field, value.
[[nodiscard]] std::map<std::string, std::string> fields_of(const wire::Answer& answer);

}  // namespace redlock::admin
