// SPDX-License-Identifier: MIT
// What a build without TLS says; see REDLOCK_TLS. This program has the whole library in it.
#include <doctest/doctest.h>

#include <redlock/redlock.hpp>

#include "tls/tls_context.hpp"

namespace {

const std::string sentence =
    "this redlock was built without TLS (rediss://): build it with REDLOCK_TLS=ON, or use redis:// "
    "through a trusted network or a tunnel";

TEST_CASE("a build without TLS says so in one sentence") {
  const auto context = redlock::tls::load({});
  REQUIRE_FALSE(context.has_value());
  CHECK(context.error() == sentence);
}

TEST_CASE("a client of such a build refuses nodes with TLS, and takes the others") {
  const auto refused = redlock::Client::create({.nodes = {"rediss://127.0.0.1:1"}});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == redlock::Errc::invalid_argument);
  CHECK(refused.error().message.find(sentence) != std::string::npos);
  CHECK(redlock::Client::create({.nodes = {"redis://127.0.0.1:1"}}).has_value());
}

}  // namespace
