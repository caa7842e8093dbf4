// SPDX-License-Identifier: MIT
// Host names of this program, in place of those that the system knows: all lead to one address,
// which can be changed. The C library's look-up is replaced, for the whole program.
#pragma once

#include <cstddef>
#include <string>

namespace redlock::soak {

/// Where every name leads from now on: "127.0.0.2".
void set_address(const std::string& address);

/// How often a name was looked up.
std::size_t look_ups();

}  // namespace redlock::soak
