// SPDX-License-Identifier: MIT
// Many acquisitions, one after the other and by several processes at once, over three real nodes.
#include <csignal>
#include <iterator>

#include "integration/api_fixture.hpp"
#include "support/temporary_directory.hpp"

namespace redlock::testing {
namespace {

namespace fs = std::filesystem;

/// Reads the counter, thinks, writes it back one higher: loses an update unless it is alone.
void increment(const fs::path& counter) {
  long value = 0;
  std::ifstream(counter) >> value;
  ::usleep(200);
  std::ofstream(counter) << value + 1;
}

/// The exit code of a process that increments under the lock, noting its tokens in the log.
int increment_many_times(const ClientOptions& options, const fs::path& directory, int times) {
  auto client = Client::create(options);
  if (!client) return 2;
  RedLock lock = client->lock("counter");
  for (int i = 0; i < times; ++i) {
    auto lease = lock.acquire({.wait = forever});
    if (!lease) return 3;
    increment(directory / "counter");
    std::ofstream(directory / "tokens", std::ios::app) << lease->token() << '\n';
    if (!lease->valid()) return 4;  // the machine was too busy for what this test is about
    if (lease->release() != Released::released) return 5;
  }
  return 0;
}

TEST_CASE("five processes of 200 increments lose none, and their tokens rise") {
  constexpr int processes = 5;
  constexpr int times = 200;
  const Fleet fleet({.nodes = 3});
  const TemporaryDirectory directory;
  std::ofstream(directory.path() / "counter") << 0;
  ClientOptions options = options_for(fleet.uris());
  options.retry_min = 1ms;
  options.retry_max = 5ms;
  options.retry_cap = 20ms;

  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) ::_exit(increment_many_times(options, directory.path(), times));
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }

  long counter = 0;
  std::ifstream(directory.path() / "counter") >> counter;
  CHECK(counter == processes * times);
  std::ifstream log(directory.path() / "tokens");
  const std::vector<std::uint64_t> tokens{std::istream_iterator<std::uint64_t>(log), {}};
  CHECK(tokens.size() == processes * times);
  CHECK(std::adjacent_find(tokens.begin(), tokens.end(), std::greater_equal<>()) == tokens.end());
}

TEST_CASE("a thousand cycles over three nodes, one of them dead, leave no lock key") {
  Fleet fleet({.nodes = 3});
  fleet.kill(1);
  const Client client = start_client(fleet);
  RedLock lock = client.lock("cycled");
  std::uint64_t last = 0;
  for (int cycle = 0; cycle < 1000; ++cycle) {
    Lease lease = must(lock.acquire());
    REQUIRE(lease.token() > last);
    last = lease.token();
    REQUIRE(must(lease.release()) == Released::released);
  }
  CHECK(eventually([&] {
    return fleet.run(0, {"KEYS", "redlock:[lw]*"}) == "(empty array)" &&
           fleet.run(2, {"KEYS", "redlock:[lw]*"}) == "(empty array)";
  }));
}

TEST_CASE("a thousand acquisitions at once by one client all end, one after the other") {
  const Fleet fleet({.nodes = 3});
  const Client client = start_client(fleet);
  std::vector<std::future<Result<Lease>>> acquiring;
  for (int i = 0; i < 1000; ++i) {
    acquiring.push_back(client.lock("name " + std::to_string(i)).async_acquire().as_future());
  }
  std::size_t held = 0;
  for (auto& future : acquiring) held += get_soon(future).has_value() ? 1 : 0;
  CHECK(held == 1000);
  CHECK(eventually([&] { return fleet.run(0, {"KEYS", "redlock:[lw]*"}) == "(empty array)"; }));
}

}  // namespace
}  // namespace redlock::testing
