// SPDX-License-Identifier: MIT
// The story of the seat, in five acts, on five real redis-server processes.
#pragma once

namespace seat_booking {

/// Plays it. 0 if every step happened as told, 1 otherwise.
int play();

}  // namespace seat_booking
