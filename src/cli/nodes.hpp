// SPDX-License-Identifier: MIT
// Which nodes the command talks to, and the client that it talks through.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <string>

#include <redlock/client.hpp>
#include <redlock/options.hpp>

#include "cli/invocation.hpp"

namespace redlock::cli {

/// The options that every subcommand with nodes has, and the client that they make.
class NodeOptions {
 public:
  /// Adds --nodes, --nodes-file, --password-file, --node-timeout, --max-lease, --trace, and those
  /// for TLS.
  explicit NodeOptions(CLI::App& app, const Invocation& invocation);
  NodeOptions(const NodeOptions&) = delete;

  /// The client's options, after parsing; one or two nodes are asked for the others of their set.
  /// Throws Exit if there are no nodes.
  [[nodiscard]] ClientOptions client_options() const;
  /// A client with these options. Throws Exit with the library's sentence.
  [[nodiscard]] Client connect() const;
  /// The same for a subcommand that asks each node once: a node may take as long for its handshake
  /// as for its answers. Other subcommands try again, and need not wait as long for a connection
  /// that fails.
  [[nodiscard]] Client connect_to_look() const;
  /// The same for a subcommand that changes the set, whatever the longest lease of programs is to
  /// be. Others are told of it by this label.
  [[nodiscard]] Client connect_to_change(const std::string& label) const;
  /// If nodes refused the questions of the client: throws Exit, with both values, if the list has
  /// another number of nodes than the markers say, or the longest lease is longer.
  static void check_markers(const Client& client);

 private:
  void add_tls(CLI::App& app);
  [[nodiscard]] ClientOptions options_with_nodes() const;
  [[nodiscard]] ClientOptions listed_options() const;
  [[nodiscard]] static std::optional<ClientOptions> found_options(const ClientOptions& listed);
  void give_password(ClientOptions& options) const;
  void give_trace(ClientOptions& options) const;

  const Invocation& invocation_;
  std::optional<std::string> list_;
  std::optional<std::string> file_;
  std::optional<std::string> password_file_;
  std::optional<std::chrono::milliseconds> node_timeout_;
  std::optional<std::chrono::milliseconds> max_lease_;
  std::optional<std::string> tls_ca_;
  std::optional<std::string> tls_certificate_;
  std::optional<std::string> tls_key_;
  std::optional<std::string> tls_name_;
  std::optional<std::string> trace_;
};

/// A client with these options. Throws Exit with the library's sentence.
[[nodiscard]] Client make_client(ClientOptions options);

}  // namespace redlock::cli
