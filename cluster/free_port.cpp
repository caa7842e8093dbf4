// SPDX-License-Identifier: MIT
//
// Two programs that look for a port at the same moment are kept apart by the reservation; anything
// else that takes the port first makes redis-server exit, and the Fleet tries another port.
#include "free_port.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/core.h>
#include <fstream>
#include <netinet/in.h>
#include <random>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <utility>

#include "fleet_error.hpp"

namespace redlock::cluster {
namespace {

// The ports to choose from, both ends included.
std::pair<int, int> candidates() {
  int low = 32768;
  int high = 60999;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> low >> high;
  if (low >= 22000) return {20000, low - 1};
  if (high <= 64000) return {high + 1, 65000};
  return {20000, 32000};
}

UniqueFd reserve(int port) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto name = fmt::format("redlock-fleet-port-{}", port);
  std::copy(name.begin(), name.end(), address.sun_path + 1);  // a leading NUL: no file
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) fd.reset();
  return fd;
}

// Binds as redis-server will. A machine without IPv6 says EADDRNOTAVAIL or EAFNOSUPPORT: no matter.
template <typename Address>
bool can_bind(const Address& address, int family) {
  const UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno == EAFNOSUPPORT;
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return ::listen(fd.get(), 1) == 0;
  }
  return errno == EADDRNOTAVAIL;
}

bool is_free(int port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<std::uint16_t>(port));
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = v4.sin_port;
  v6.sin6_addr = in6addr_loopback;
  return can_bind(v4, AF_INET) && can_bind(v6, AF_INET6);
}

}  // namespace

FreePort FreePort::pick() {
  std::random_device random;
  const auto [low, high] = candidates();
  std::uniform_int_distribution<int> any(low, high);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const int port = any(random);
    auto reservation = reserve(port);
    if (reservation && is_free(port)) {
      return {static_cast<std::uint16_t>(port), std::move(reservation)};
    }
  }
  throw FleetError(fmt::format("found no free port between {} and {} on 127.0.0.1", low, high));
}

FreePort FreePort::take(std::uint16_t port) {
  auto reservation = reserve(port);
  if (reservation && is_free(port)) return {port, std::move(reservation)};
  throw FleetError(fmt::format(
      "port {} of this machine is taken; choose other ports, or end the program that has it",
      port));
}

}  // namespace redlock::cluster
