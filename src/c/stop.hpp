// SPDX-License-Identifier: MIT
#pragma once

#include <stop_token>

struct redlock_stop {
  std::stop_source source;
};
