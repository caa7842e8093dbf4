// SPDX-License-Identifier: MIT
//
// Thin covers of the system calls; SIGPIPE is asked not to come.
#include "cluster/sockets.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <system_error>

namespace redlock::cluster {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

bool is_temporary(int error) {
  return error == EAGAIN || error == EINTR;
}

void send_at_once(const UniqueFd& connection) {
  const int on = 1;
  ::setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

UniqueFd listen_on_loopback(std::uint16_t port) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) fail("socket");
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto address = loopback(port);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fail("bind");
  }
  if (::listen(listener.get(), 128) != 0) fail("listen");
  return listener;
}

std::uint16_t port_of(const UniqueFd& socket) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    fail("getsockname");
  }
  return ntohs(address.sin_port);
}

UniqueFd accept_from(const UniqueFd& listener) {
  UniqueFd connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection) send_at_once(connection);
  return connection;
}

UniqueFd connect_to_loopback(std::uint16_t port) {
  UniqueFd connection(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!connection) fail("socket");
  const auto address = loopback(port);
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
      0) {
    return {};
  }
  send_at_once(connection);
  return connection;
}

SocketAddress address_of_path(const std::string& path) {
  SocketAddress result;
  auto& address = reinterpret_cast<sockaddr_un&>(result.storage);
  if (path.size() >= sizeof address.sun_path) {
    throw std::system_error(ENAMETOOLONG, std::generic_category(), path);
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  result.length = sizeof address;
  return result;
}

UniqueFd listen_on_path(const std::string& path) {
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) fail("socket");
  const auto address = address_of_path(path);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) !=
      0) {
    fail("bind");
  }
  if (::listen(listener.get(), 128) != 0) fail("listen");
  return listener;
}

UniqueFd connect_to(const SocketAddress& address, std::chrono::milliseconds at_most) {
  UniqueFd connection(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!connection) return {};
  const auto seconds = std::chrono::floor<std::chrono::seconds>(at_most);
  const timeval time{seconds.count(), (at_most - seconds).count() * 1000};
  ::setsockopt(connection.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address.storage),
                address.length) != 0) {
    return {};
  }
  send_at_once(connection);
  return connection;
}

void reset(UniqueFd& connection) {
  const linger at_once{1, 0};
  ::setsockopt(connection.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  connection.reset();
}

Received receive(const UniqueFd& connection) {
  std::array<char, 65536> chunk{};
  const auto count = ::recv(connection.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
  if (count > 0) return {{chunk.data(), static_cast<std::size_t>(count)}, Received::End::open};
  if (count == 0) return {{}, Received::End::closed};
  return {{}, is_temporary(errno) ? Received::End::open : Received::End::broken};
}

bool send_some(const UniqueFd& connection, std::string& bytes) {
  while (!bytes.empty()) {
    const auto count =
        ::send(connection.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0) return is_temporary(errno);
    bytes.erase(0, static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace redlock::cluster
