// SPDX-License-Identifier: MIT
// A process that takes, holds and gives back the same few locks as others of its kind, and writes
// on the board what it held, how long calls took, and what the library told it.
#pragma once

#include "soak/crew.hpp"

namespace redlock::soak {

inline constexpr std::size_t rivals = 8;  // processes
inline constexpr std::size_t rival_names = 6;
inline constexpr std::size_t kept_name = rival_names;  // perhaps held all the time
inline constexpr milliseconds longest_rival_wait = 10s;

class Worker {
 public:
  /// A call may end so long after its deadline.
  Worker(Board& board, std::size_t number, milliseconds bound)
      : board_(board),
        number_(number),
        bound_(bound),
        random_(static_cast<std::uint32_t>(board.lives++)) {}

  /// Until the board says that the run has ended.
  void run(ClientOptions options);

  /// Holds the kept name as long, and is ready once it does.
  void keep(ClientOptions options);

 private:
  Client start(ClientOptions options);
  void take_one(const Client& client);
  void hold(const Client& client, const Lease& lease, std::size_t name, milliseconds length);
  void release(Lease& lease);
  void take_own(RedLock& own);
  [[nodiscard]] Call call_until(BootClock::time_point deadline) const {
    return {board_, stalls_, deadline, bound_};
  }

  Board& board_;
  const std::size_t number_;
  const milliseconds bound_;
  milliseconds node_timeout_{};
  Stalls stalls_;
  Random random_;
};

}  // namespace redlock::soak
