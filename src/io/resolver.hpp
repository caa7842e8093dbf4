// SPDX-License-Identifier: MIT
// Looks a host name up without blocking the loop. A look-up cannot be interrupted (it waits for a
// name server in a thread of libuv's), so one that is given up goes on unheard.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <netdb.h>
#include <string>
#include <sys/socket.h>
#include <vector>

#include "io/loop.hpp"

namespace redlock::io {

class Resolver {
 public:
  /// The addresses in the system's order of preference; none: `uv_status` says why.
  using Resolved = std::function<void(std::vector<sockaddr_storage> addresses, int uv_status)>;

  explicit Resolver(Loop& loop) : loop_(loop) {}
  ~Resolver() { cancel(); }
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// Calls back once, unless cancelled. An earlier look-up that was cancelled but has not returned
  /// is waited for instead of starting another: a dead name server must not use up all threads.
  void resolve(const std::string& host, std::uint16_t port, Resolved resolved);
  void cancel();

 private:
  struct LookUp;
  static void finished(uv_getaddrinfo_t* request, int uv_status, addrinfo* result);

  Loop& loop_;
  std::shared_ptr<LookUp> look_up_;
};

}  // namespace redlock::io
