// SPDX-License-Identifier: MIT
//
// The one exception of cluster/: a sentence that says what went wrong and what to do about it.
#pragma once

#include <stdexcept>

namespace redlock::cluster {

class FleetError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace redlock::cluster
