// SPDX-License-Identifier: MIT
// Looks a host name up without blocking the loop. getaddrinfo() cannot be interrupted while it
// waits for a name server, so each look-up runs on a thread of its own: libuv gives look-ups two of
// its threads, so that two which hang would hold up those of all other nodes, and of the program.
// The thread owns nothing of the loop, which can therefore be closed while a look-up goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <vector>

#include "net/loop.hpp"

namespace redlock::net {

/// The result of a look-up: addresses in the system's order of preference, or why there are none.
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
  /// `resolved` is not called any more. A look-up under way ends by itself.
  ~Resolver() { give_up(); }
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// Starts a look-up, unless one is under way: a name server that does not answer must not be
  /// given a thread for each attempt. False if the system has no thread for it.
  [[nodiscard]] bool resolve(const std::string& host, std::uint16_t port);
  /// In the child of a fork, where the thread does not exist and may have had the mutex: forgets
  /// the look-up under way.
  void abandon();

 private:
  struct LookUp;
  struct Waker;
  void finished();
  void give_up();

  Loop& loop_;
  const Resolved resolved_;
  std::shared_ptr<LookUp> look_up_;  // null: none is under way
  Waker* waker_ = nullptr;           // while one is
};

}  // namespace redlock::net
