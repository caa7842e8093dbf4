// SPDX-License-Identifier: MIT
// The tests with Boost.Asio.
#define REDLOCK_ASIO_BOOST
#include "with_asio/asio_tests.hpp"
