// SPDX-License-Identifier: MIT
// A client that cannot be created for want of descriptors keeps none and does not end the program.
// The first case must be the first that makes a client: libuv then opens what it keeps for ever.
#include <cstddef>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <string>
#include <sys/resource.h>
#include <uv.h>

#include <redlock/client.hpp>

#include "support/text.hpp"

using namespace redlock;

namespace {

constexpr int looked_at = 1'024;

bool is_open(int descriptor) {
  return ::fcntl(descriptor, F_GETFD) >= 0;
}

std::size_t open_descriptors() {
  std::size_t open = 0;
  for (int descriptor = 0; descriptor < looked_at; ++descriptor) {
    if (is_open(descriptor)) ++open;
  }
  return open;
}

/// Of descriptors that can be opened beside those that are open.
class DescriptorLimit {
 public:
  DescriptorLimit() { ::getrlimit(RLIMIT_NOFILE, &before_); }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

  void leave(std::size_t free) const {
    int limit = 0;
    while (limit < looked_at && (is_open(limit) || free-- > 0)) ++limit;
    rlimit lower = before_;
    lower.rlim_cur = static_cast<rlim_t>(limit);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &lower) == 0);
  }

 private:
  rlimit before_{};
};

ClientOptions options() {
  ClientOptions options;
  options.nodes = {"redis://127.0.0.1:1"};
  return options;
}

}  // namespace

TEST_CASE("a client that finds too few descriptors says so and keeps none") {
  const DescriptorLimit limit;
  const std::size_t before = open_descriptors();
  std::size_t failed = 0;
  for (std::size_t free = 0;; ++free) {
    REQUIRE(free < 32);
    limit.leave(free);
    auto client = Client::create(options());
    if (client) break;
    ++failed;
    CAPTURE(free);
    CHECK(testing::contains(client.error().message, "the client could not start"));
    CHECK(open_descriptors() == before);
  }
  CHECK(failed > 4);

  // What the program keeps of the first client serves all others.
  const std::size_t kept = open_descriptors();
  for (std::size_t free = 0; free < 16; ++free) {
    limit.leave(free);
    { const auto client = Client::create(options()); }
    CAPTURE(free);
    CHECK(open_descriptors() == kept);
  }
}

TEST_CASE("on a given loop a client that finds too few descriptors says so and leaves the loop") {
  uv_loop_t uv{};
  REQUIRE(uv_loop_init(&uv) == 0);
  {
    const DescriptorLimit limit;
    const std::size_t before = open_descriptors();
    for (std::size_t free = 0; free < 2; ++free) {
      limit.leave(free);
      const auto client = Client::create(options(), &uv);
      REQUIRE_FALSE(client.has_value());
      CHECK(testing::contains(client.error().message, "cannot use the loop"));
      CHECK(uv_run(&uv, UV_RUN_DEFAULT) == 0);
      CHECK(open_descriptors() == before);
    }
    limit.leave(2);
    CHECK(Client::create(options(), &uv).has_value());
    CHECK(uv_run(&uv, UV_RUN_DEFAULT) == 0);
    CHECK(open_descriptors() == before);
  }
  CHECK(uv_loop_close(&uv) == 0);
}
