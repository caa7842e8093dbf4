// SPDX-License-Identifier: MIT
// Where a node is and how to log in: the parsed form of the URIs that users write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "wire/secrets.hpp"

namespace redlock::wire {

struct NodeAddress {
  std::string host;  ///< name or IPv4/IPv6 address; empty for a Unix socket
  std::uint16_t port = 6379;
  std::string unix_path;  ///< empty for TCP
  bool tls = false;
  std::string tls_name;  ///< that its certificate must have; empty: the host
  std::uint32_t db = 0;
  std::string user;      ///< empty: the default user
  std::string password;  ///< empty: no AUTH, or with one that the client is given later
  Secrets later;         ///< passwords that the client was given for it since
  /// The URI without its password, for logs and errors.
  std::string label;
  /// The same without user and tls_name, as markers name it: clients may differ in these.
  std::string address;

  [[nodiscard]] Secrets secrets() const {
    Secrets all = later;
    all.add(password);
    return all;
  }
};

/// Why a certificate cannot be for this name, as the end of a sentence about it; nothing for a host
/// name or an address.
[[nodiscard]] std::optional<std::string> fault_of_server_name(std::string_view name);

/// The address of a URI, or of host:port; or one sentence that says what is wrong and what to write
/// instead. The sentence never repeats a password.
[[nodiscard]] tl::expected<NodeAddress, std::string> parse_node_uri(std::string_view uri);

/// The URI of a member of a set: its address, with the login and the ?name= of another node where
/// it has none.
[[nodiscard]] std::string uri_of(const NodeAddress& member, const NodeAddress& other);

/// The server at a member's address, as a marker has it, that is logged in to as this node is.
[[nodiscard]] NodeAddress moved_to(const NodeAddress& node, std::string_view address);

}  // namespace redlock::wire
