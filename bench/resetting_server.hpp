// SPDX-License-Identifier: MIT
// A node that is there and useless: accepts every connection and resets it at once.
#pragma once

#include <arpa/inet.h>
#include <cstdint>
#include <netinet/in.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace bench {

class ResettingServer {
 public:
  ResettingServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (listener_ < 0 || ::bind(listener_, generic, size) != 0 || ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, generic, &size) != 0) {
      throw std::runtime_error("no loopback socket to be had");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~ResettingServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  ResettingServer(const ResettingServer&) = delete;
  ResettingServer& operator=(const ResettingServer&) = delete;

  [[nodiscard]] std::string uri() const { return "redis://127.0.0.1:" + std::to_string(port_); }

 private:
  void serve() const {
    for (int fd = ::accept(listener_, nullptr, nullptr); fd >= 0;
         fd = ::accept(listener_, nullptr, nullptr)) {
      const linger at_once{1, 0};
      ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
      ::close(fd);
    }
  }

  int listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace bench
