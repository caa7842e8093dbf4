// SPDX-License-Identifier: MIT
//
// RESP2 over a non-blocking socket; every wait is a poll with the deadline of its command.
#include "node_client.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "fleet_error.hpp"
#include "sockets.hpp"

namespace redlock::cluster {
namespace {

std::string encode(const std::vector<std::string>& argv) {
  std::string bytes = fmt::format("*{}\r\n", argv.size());
  for (const auto& argument : argv) {
    bytes += fmt::format("${}\r\n", argument.size());
    bytes += argument;
    bytes += "\r\n";
  }
  return bytes;
}

}  // namespace

NodeClient::NodeClient(std::uint16_t port, std::chrono::milliseconds timeout)
    : where_(fmt::format("127.0.0.1:{}", port)),
      timeout_(timeout),
      fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  await_connected(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address));
  const int on = 1;
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

NodeClient::NodeClient(const std::filesystem::path& socket, std::chrono::milliseconds timeout)
    : where_(socket.string()),
      timeout_(timeout),
      fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  const SocketAddress address = address_of_path(where_);
  await_connected(
      ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length));
}

void NodeClient::await_connected(int result) {
  if (result == 0) return;
  if (errno != EINPROGRESS) fail("reached", errno);
  await(POLLOUT, std::chrono::steady_clock::now() + timeout_);
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) fail("reached", error);
}

void NodeClient::fail(const char* what, int error) const {
  throw FleetError(
      fmt::format("the node at {} cannot be {}: {}", where_, what, std::strerror(error)));
}

std::string NodeClient::command(const std::vector<std::string>& argv) {
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  send_all(encode(argv), deadline);
  return read_reply(deadline);
}

void NodeClient::await(short event, Deadline deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{fd_.get(), event, 0};
    const int count = ::poll(&waiting, 1, left.count() > 0 ? static_cast<int>(left.count()) : 0);
    if (count > 0) return;
    if (count < 0 && errno != EINTR) fail("polled", errno);
    if (count == 0) {
      throw FleetError(
          fmt::format("the node at {} did not answer within {} ms", where_, timeout_.count()));
    }
  }
}

void NodeClient::send_all(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const auto sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) fail("written to", errno);
    if (!bytes.empty()) await(POLLOUT, deadline);
  }
}

void NodeClient::fill(Deadline deadline) {
  await(POLLIN, deadline);
  std::array<char, 16384> chunk{};
  const auto count = ::recv(fd_.get(), chunk.data(), chunk.size(), 0);
  if (count == 0) fail("read", ECONNRESET);
  if (count < 0 && errno != EAGAIN && errno != EINTR) fail("read", errno);
  if (count > 0) received_.append(chunk.data(), static_cast<std::size_t>(count));
}

std::string NodeClient::read_line(Deadline deadline) {
  std::size_t end = 0;
  while ((end = received_.find("\r\n")) == std::string::npos) fill(deadline);
  auto line = received_.substr(0, end);
  received_.erase(0, end + 2);
  return line;
}

std::string NodeClient::read_bytes(std::size_t count, Deadline deadline) {
  while (received_.size() < count + 2) fill(deadline);
  auto bytes = received_.substr(0, count);
  received_.erase(0, count + 2);
  return bytes;
}

std::string NodeClient::read_reply(Deadline deadline) {
  const auto line = read_line(deadline);
  const auto rest = line.empty() ? line : line.substr(1);
  switch (line.empty() ? '\0' : line.front()) {
    case '+':
    case ':':
      return rest;
    case '-':
      return "(error) " + rest;
    case '$':
      return rest == "-1" ? "(nil)" : read_bytes(std::stoul(rest), deadline);
    case '*': {
      if (rest == "-1") return "(nil)";
      if (rest == "0") return "(empty array)";
      std::string items;
      for (auto left = std::stoul(rest); left > 0; --left) {
        items += read_reply(deadline);
        if (left > 1) items += '\n';
      }
      return items;
    }
    default:
      throw FleetError(fmt::format("the node at {} does not speak RESP", where_));
  }
}

}  // namespace redlock::cluster
