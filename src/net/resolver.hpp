// SPDX-License-Identifier: MIT
// Looks a host name up without blocking the loop. getaddrinfo() cannot be interrupted while it
// waits for a name server, so each look-up runs on a thread of its own: libuv's four threads would
// make the look-up of one node wait for those of others. The thread owns nothing of the loop, which
// can therefore be closed while a look-up goes on. On a loop that the program gave no thread is
// started: there libuv's threads look names up, and what they are at is waited for in the end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <vector>

#include "net/loop.hpp"

namespace redlock::net {

/// What a look-up found: addresses in the system's order of preference, or why there are none.
struct Resolution {
  std::vector<sockaddr_storage> addresses;
  std::string problem;
  bool unknown_name = false;  ///< the name server answered: there is no such name, or no address
};

class Resolver {
 public:
  using Resolved = std::function<void(Resolution)>;

  /// `resolved` is called on the loop thread, once for each look-up, never by resolve() itself.
  Resolver(Loop& loop, Resolved resolved) : loop_(loop), resolved_(std::move(resolved)) {}
  /// Nothing is called back any more. A look-up under way ends by itself.
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// Starts a look-up, unless one is under way: a name server that does not answer must not be
  /// given a thread for each attempt. False if the system has no thread for it.
  [[nodiscard]] bool resolve(const std::string& host, std::uint16_t port);
  [[nodiscard]] bool under_way() const { return look_up_ != nullptr || pooled_ != nullptr; }

 private:
  struct LookUp;
  struct PooledLookUp;
  [[nodiscard]] bool start_thread(const std::string& host, std::uint16_t port);
  [[nodiscard]] bool ask_pool(const std::string& host, std::uint16_t port);
  void finished();
  void close_waker();

  Loop& loop_;
  const Resolved resolved_;
  std::shared_ptr<LookUp> look_up_;  // null: none is under way on a thread of its own
  uv_async_t* waker_ = nullptr;      // while one is; libuv frees it a turn after it is closed
  PooledLookUp* pooled_ = nullptr;   // null: none is under way on a thread of libuv's
};

}  // namespace redlock::net
