// SPDX-License-Identifier: MIT
//
// A loopback port that nobody uses, kept for one node while the node itself may be dead. Ports come
// from outside the kernel's ephemeral range, so that no outgoing connection of anybody's can sit on
// a port whose node is just being restarted.
#pragma once

#include <cstdint>

#include "unique_fd.hpp"

namespace redlock::cluster {

class FreePort {
 public:
  /// A port that is free on 127.0.0.1 and ::1 and that no other program's FreePort has.
  static FreePort pick();

  /// This port. Throws FleetError if another program has it.
  static FreePort take(std::uint16_t port);

  [[nodiscard]] std::uint16_t number() const { return number_; }

 private:
  FreePort(std::uint16_t number, UniqueFd reservation)
      : number_(number), reservation_(std::move(reservation)) {}

  std::uint16_t number_;
  UniqueFd reservation_;  // an abstract socket named after the port; the kernel frees it with us
};

}  // namespace redlock::cluster
