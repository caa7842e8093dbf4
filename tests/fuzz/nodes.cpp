// SPDX-License-Identifier: MIT
// Lists of nodes as people write them: a configuration file, REDLOCK_NODES. What is accepted names
// each node as an address that is read again as the same, and no sentence or label repeats a
// password.
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include <redlock/options.hpp>

#include "fuzz/inputs.hpp"
#include "wire/node_address.hpp"
#include "wire/percent.hpp"

namespace redlock::fuzz {

void fuzz_one(std::string_view input) {
  const auto decoded = wire::percent_decode(wire::percent_encode(input));
  if (input.find('\0') == std::string_view::npos) {
    CHECK(decoded == std::string(input));
  } else {
    CHECK_FALSE(decoded.has_value());
  }

  const auto nodes = parse_nodes(input);
  if (!nodes) {
    CHECK_FALSE(nodes.error().message.empty());
    return;
  }
  CHECK_FALSE(nodes->empty());
  for (const std::string& node : *nodes) {
    const auto address = wire::parse_node_uri(node);
    REQUIRE(address.has_value());
    CHECK((address->unix_path.empty() != address->host.empty()));
    // What is shown of it lacks nothing but the password.
    std::string with_password = address->label;
    if (!address->user.empty()) with_password.insert(with_password.find('@'), ":sesame");
    const auto shown = wire::parse_node_uri(with_password);
    REQUIRE(shown.has_value());
    CHECK(shown->host == address->host);
    CHECK(shown->port == address->port);
    CHECK(shown->unix_path == address->unix_path);
    CHECK(shown->db == address->db);
    CHECK(shown->user == address->user);
    CHECK(shown->label == address->label);
  }
}

}  // namespace redlock::fuzz
