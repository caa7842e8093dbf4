// SPDX-License-Identifier: MIT
// What a build without TLS says; see REDLOCK_TLS.
#include <doctest/doctest.h>

#include "tls/tls_context.hpp"

TEST_CASE("a build without TLS says so in one sentence") {
  const auto context = redlock::tls::load({});
  REQUIRE_FALSE(context.has_value());
  CHECK(context.error() ==
        "this redlock was built without TLS (rediss://): build it with REDLOCK_TLS=ON, or use "
        "redis:// through a trusted network or a tunnel");
}
