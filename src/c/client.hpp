// SPDX-License-Identifier: MIT
#pragma once

#include <redlock/client.hpp>

struct redlock_client {
  redlock::Client client;
};
