// SPDX-License-Identifier: MIT
//
// Commands are taken apart here with no help from the library under test. Bytes that are no command
// are never answered.
#include "support/stub_server.hpp"

#include <charconv>
#include <fmt/core.h>
#include <optional>

namespace redlock::testing {
namespace {

// Reads "<mark><number>\r\n" at `at`, and moves behind it.
std::optional<std::size_t> read_count(const std::string& input, char mark, std::size_t& at) {
  const auto end = input.find("\r\n", at);
  if (end == std::string::npos || input[at] != mark) return std::nullopt;
  std::size_t count = 0;
  const auto result = std::from_chars(input.data() + at + 1, input.data() + end, count);
  if (result.ec != std::errc{} || result.ptr != input.data() + end) return std::nullopt;
  at = end + 2;
  return count;
}

// Takes one whole command off the front of `input`; nothing if it is not all there.
std::optional<RedisCommand> take_command(std::string& input) {
  std::size_t at = 0;
  const auto count = input.empty() ? std::nullopt : read_count(input, '*', at);
  if (!count) return std::nullopt;
  RedisCommand command;
  for (std::size_t i = 0; i < *count; ++i) {
    if (at >= input.size()) return std::nullopt;
    const auto size = read_count(input, '$', at);
    if (!size || input.size() < at + *size + 2) return std::nullopt;
    command.push_back(input.substr(at, *size));
    at += *size + 2;
  }
  input.erase(0, at);
  return command;
}

}  // namespace

StubServer::StubServer(StubScript script)
    : listener_(cluster::listen_on_loopback()),
      port_(cluster::port_of(listener_)),
      script_(std::move(script)),
      thread_(
          [this](std::vector<pollfd>& polled) -> std::optional<PollThread::TimePoint> {
            prepare(polled);
            return std::nullopt;
          },
          [this](const std::vector<pollfd>& polled) { perform(polled); }) {}

StubServer StubServer::silent() {
  return StubServer([](const RedisCommand&) { return StubReply::silence(); });
}

std::string StubServer::uri() const {
  return fmt::format("redis://127.0.0.1:{}", port_);
}

void StubServer::reset_all() {
  thread_.end_all(connections_);
}

std::size_t StubServer::accepted() const {
  return thread_.read([&] { return accepted_; });
}

std::vector<RedisCommand> StubServer::commands() const {
  return thread_.read([&] { return commands_; });
}

std::size_t StubServer::letters_sent() const {
  return thread_.read([&] { return letters_sent_; });
}

void StubServer::prepare(std::vector<pollfd>& polled) const {
  polled.push_back({listener_.get(), POLLIN, 0});
  for (const auto& connection : connections_) {
    const int events = connection.output.empty() ? POLLIN : POLLIN | POLLOUT;
    polled.push_back({connection.socket.get(), static_cast<short>(events), 0});
  }
}

void StubServer::perform(const std::vector<pollfd>& polled) {
  auto entry = polled.begin() + 1;
  for (auto connection = connections_.begin(); connection != connections_.end(); ++entry) {
    if (connection->doomed) cluster::reset(connection->socket);
    const bool alive = !connection->doomed && (entry->revents == 0 || serve(*connection));
    connection = alive ? std::next(connection) : connections_.erase(connection);
  }
  if (polled.front().revents != 0) accept_all();
}

void StubServer::accept_all() {
  while (auto socket = cluster::accept_from(listener_)) {
    ++accepted_;
    connections_.push_back({.socket = std::move(socket)});
  }
}

// False: the connection is over.
bool StubServer::serve(Session& connection) {
  auto received = cluster::receive(connection.socket);
  connection.input += received.bytes;
  answer_commands(connection);
  if (!cluster::send_some(connection.socket, connection.output)) return false;
  if (!connection.repeated.empty()) return go_on_for_ever(connection);
  return received.end == cluster::Received::End::open;
}

// As much as the connection takes now, but no more than leaves time for the others. False: it is
// over.
bool StubServer::go_on_for_ever(Session& connection) {
  constexpr std::size_t at_once = 65'536;
  for (int i = 0; i < 16 && connection.output.empty(); ++i) {
    while (connection.output.size() < at_once) connection.output += connection.repeated;
    letters_sent_ += connection.output.size();
    if (!cluster::send_some(connection.socket, connection.output)) return false;
  }
  if (connection.output.empty()) connection.output = connection.repeated;  // to be polled for room
  return true;
}

void StubServer::answer_commands(Session& connection) {
  while (connection.repeated.empty()) {
    auto command = take_command(connection.input);
    if (!command) return;
    auto reply = script_(*command);
    connection.output += reply.bytes;
    connection.repeated = std::move(reply.repeated);
    commands_.push_back(std::move(*command));
  }
}

}  // namespace redlock::testing
