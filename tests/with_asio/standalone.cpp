// SPDX-License-Identifier: MIT
// The tests with Asio itself.
#define REDLOCK_ASIO_STANDALONE
#include "with_asio/asio_tests.hpp"
