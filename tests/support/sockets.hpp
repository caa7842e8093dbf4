// SPDX-License-Identifier: MIT
//
// The few socket calls that the stub server and the proxy share. Everything is loopback TCP and
// non-blocking.
#pragma once

#include <cstdint>
#include <string>

#include "cluster/unique_fd.hpp"

namespace redlock::testing {

using cluster::UniqueFd;

/// A listening socket on 127.0.0.1; port 0: the kernel chooses one. Throws std::system_error.
UniqueFd listen_on_loopback(std::uint16_t port = 0);

/// The port that a socket is bound to.
std::uint16_t port_of(const UniqueFd& socket);

/// The next waiting connection, or an empty descriptor.
UniqueFd accept_from(const UniqueFd& listener);

/// A connection to 127.0.0.1, or an empty descriptor when nobody listens there.
UniqueFd connect_to_loopback(std::uint16_t port);

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

}  // namespace redlock::testing
