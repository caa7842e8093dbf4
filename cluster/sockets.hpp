// SPDX-License-Identifier: MIT
//
// The few socket calls that relays, and servers in tests, share.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <sys/socket.h>

#include "cluster/unique_fd.hpp"

namespace redlock::cluster {

/// A listening socket on 127.0.0.1; port 0: the kernel chooses one. Throws std::system_error.
UniqueFd listen_on_loopback(std::uint16_t port = 0);

/// The port that a socket is bound to.
std::uint16_t port_of(const UniqueFd& socket);

/// The next waiting connection, or an empty descriptor.
UniqueFd accept_from(const UniqueFd& listener);

/// A connection to 127.0.0.1, or an empty descriptor when nobody listens there.
UniqueFd connect_to_loopback(std::uint16_t port);

/// A listening Unix socket, which must not exist yet. Throws std::system_error.
UniqueFd listen_on_path(const std::string& path);

/// The address of a Unix socket; the path must fit in it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};
SocketAddress address_of_path(const std::string& path);

/// A connection to this address, or an empty descriptor if there is none within this time.
UniqueFd connect_to(const SocketAddress& address, std::chrono::milliseconds at_most);

/// Closes with RST instead of FIN: the peer's next read or write fails.
void reset(UniqueFd& connection);

/// What one read brought.
struct Received {
  enum class End { open, closed, broken };
  std::string bytes;
  End end = End::open;
};
Received receive(const UniqueFd& connection);

/// Sends what the socket takes and removes it from `bytes`. False: the connection is broken.
bool send_some(const UniqueFd& connection, std::string& bytes);

}  // namespace redlock::cluster
