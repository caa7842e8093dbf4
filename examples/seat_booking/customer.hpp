// SPDX-License-Identifier: MIT
// The customers, each a process of its own. What they do with the lock is what any program would
// do: acquire, work, release. They write to the stage through standard output and wait for its word
// on standard input.
#pragma once

#include <string>
#include <vector>

namespace seat_booking {

/// Runs the customer that these arguments describe (name, role, record, seat, ...); the exit code.
int be_customer(const std::vector<std::string>& arguments);

}  // namespace seat_booking
