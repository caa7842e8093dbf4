// SPDX-License-Identifier: MIT
// A real server, sent bytes and asked for replies, without the loop and the link around them.
#pragma once

#include <cstdint>
#include <poll.h>
#include <stdexcept>
#include <string>

#include "cluster/sockets.hpp"
#include "wire/reply_reader.hpp"

namespace redlock::simulation {

class ServerConnection {
 public:
  explicit ServerConnection(std::uint16_t port) : socket_(cluster::connect_to_loopback(port)) {
    if (!socket_) throw std::runtime_error("the server cannot be reached");
  }

  /// The answer to these bytes; valid until the next call.
  wire::ReplyView ask(std::string bytes) {
    send(std::move(bytes));
    return receive();
  }
  /// What comes next, asked for or not.
  wire::ReplyView receive() {
    while (reader_.next(100'000) == wire::ReplyReader::Outcome::incomplete) {
      await(POLLIN);
      const cluster::Received received = cluster::receive(socket_);
      if (received.end != cluster::Received::End::open) {
        throw std::runtime_error("the server hung up");
      }
      reader_.feed(received.bytes);
    }
    if (!reader_.problem().empty()) throw std::runtime_error(reader_.problem());
    return reader_.reply();
  }
  /// Does not wait for an answer.
  void send(std::string bytes) {
    while (!bytes.empty()) {
      if (!cluster::send_some(socket_, bytes)) throw std::runtime_error("the server hung up");
      if (!bytes.empty()) await(POLLOUT);
    }
  }

 private:
  void await(short event) const {
    pollfd waiting{socket_.get(), event, 0};
    if (::poll(&waiting, 1, 60'000) == 0) throw std::runtime_error("the server is silent");
  }

  cluster::UniqueFd socket_;
  wire::ReplyReader reader_;
};

}  // namespace redlock::simulation
