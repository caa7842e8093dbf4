// SPDX-License-Identifier: MIT
// A node in protected mode: a file of its own, which counts as skipped where there is no network.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include "integration/api_fixture.hpp"
#include "integration/net_server_kind.hpp"

namespace redlock::testing {
namespace {

/// An IPv4 address of this machine that is not loopback; empty if there is none.
std::string outer_address() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {};
  std::string found;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
    ::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
    if (!std::string_view(text.data()).starts_with("127.")) found = text.data();
  }
  ::freeifaddrs(all);
  return found;
}

TEST_CASE("a node in protected mode says what it needs to take clients of other machines") {
  const std::string address = outer_address();
  if (address.empty()) {
    std::puts(
        "SKIPPED: this machine has no IPv4 address but loopback, which protected mode permits");
    return;
  }
  const Fleet fleet({.nodes = 3, .node_settings = {{0, {"bind 127.0.0.1 " + address}}}});
  if (!is_redis_7(fleet)) {
    std::puts("SKIPPED: before Redis 7 a node with `bind` in its configuration is not protected");
    return;
  }
  auto uris = fleet.uris();
  uris[0] = "redis://" + address + ":" + std::to_string(fleet.port(0));
  const Client of_one = start_client(options_for({uris[0]}));
  const Client of_all = start_client(options_for(uris));
  std::string said;
  CHECK_MESSAGE(eventually([&] {
                  const auto lease = of_one.lock("alone").acquire();
                  if (lease) return false;
                  said = lease.error().message;
                  return lease.error().votes.at(0).cause == Cause::permission &&
                         contains(said, "DENIED ") &&
                         contains(said, "turn that user off, as cluster/users.acl does");
                }),
                said);
  must(must(of_all.lock("seat").acquire()).release());
  REQUIRE(fleet.run(0, {"CONFIG", "SET", "protected-mode", "no"}) == "OK");
  CHECK(eventually([&] { return of_one.lock("alone").acquire().has_value(); }));
}

}  // namespace
}  // namespace redlock::testing
