// SPDX-License-Identifier: MIT
// Stands between a client and a node, and cuts them off when told to: connections stay open, and no
// byte goes through until they are joined again.
#pragma once

#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>
#include <list>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace bench {

class Relay {
 public:
  explicit Relay(std::uint16_t node_port) : node_port_(node_port) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, generic, length) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, generic, &length) != 0) {
      throw std::runtime_error("no port for a relay");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay() {
    thread_.request_stop();
    thread_.join();
    for (const Pair& pair : pairs_) close(pair);
    ::close(listener_);
  }

  [[nodiscard]] std::string uri() const { return fmt::format("redis://127.0.0.1:{}", port_); }
  void cut() { is_cut_ = true; }
  void join() { is_cut_ = false; }

 private:
  struct Pair {
    int client;
    int node;
  };

  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static void close(const Pair& pair) {
    ::close(pair.client);
    ::close(pair.node);
  }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (is_cut_) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      std::vector<pollfd> polled{{listener_, POLLIN, 0}};
      for (const Pair& pair : pairs_) {
        polled.push_back({pair.client, POLLIN, 0});
        polled.push_back({pair.node, POLLIN, 0});
      }
      if (::poll(polled.data(), polled.size(), 1) <= 0 || is_cut_) continue;
      std::size_t at = 1;
      for (auto pair = pairs_.begin(); pair != pairs_.end(); at += 2) {
        const bool open = (polled[at].revents == 0 || pass_on(pair->client, pair->node)) &&
                          (polled[at + 1].revents == 0 || pass_on(pair->node, pair->client));
        if (!open) close(*pair);
        pair = open ? std::next(pair) : pairs_.erase(pair);
      }
      if (polled[0].revents != 0) accept();
    }
  }

  void accept() {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int node = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(node_port_);
    pairs_.push_back({client, node});
    static_cast<void>(::connect(node, reinterpret_cast<const sockaddr*>(&address), sizeof address));
  }

  /// Whether both are still there. What is sent here is little, and never fills a socket.
  static bool pass_on(int from, int to) {
    std::array<char, 16'384> bytes{};
    const ssize_t count = ::recv(from, bytes.data(), bytes.size(), 0);
    return count > 0 &&
           ::send(to, bytes.data(), static_cast<std::size_t>(count), MSG_NOSIGNAL) == count;
  }

  std::uint16_t node_port_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  std::atomic<bool> is_cut_ = false;
  std::list<Pair> pairs_;
  std::jthread thread_;
};

}  // namespace bench
