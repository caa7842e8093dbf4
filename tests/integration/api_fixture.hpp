// SPDX-License-Identifier: MIT
// What the tests of the public interface share: options for a fleet, a client that must start, and
// a look at the keys on the nodes that does not go through the library.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

#include <redlock/admin.hpp>
#include <redlock/client.hpp>
#include <redlock/clock.hpp>
#include <redlock/lease.hpp>
#include <redlock/observer.hpp>
#include <redlock/redlock.hpp>

#include "cluster/fleet.hpp"
#include "support/nodes.hpp"
#include "support/processes.hpp"
#include "support/text.hpp"

namespace redlock::testing {

using namespace std::chrono_literals;
using cluster::Fleet;

/// Long enough for any machine to do what is asked for; nobody waits for it in a test that passes.
inline constexpr auto patience = 30s;

inline ClientOptions options_for(std::vector<std::string> nodes) {
  ClientOptions options;
  options.nodes = std::move(nodes);
  // A busy machine must not look like a node that is gone.
  options.node_timeout = 10s;
  options.connect_timeout = 10s;
  // The nodes are as new as the test, and nobody has adopted them.
  options.quarantine = Quarantine::off;
  return options;
}

/// With the quarantine that those options leave out.
inline ClientOptions careful_options_for(std::vector<std::string> nodes) {
  ClientOptions options = options_for(std::move(nodes));
  options.quarantine = Quarantine::on;
  return options;
}

/// For tests that leave their nodes as they are.
inline const Fleet& three_nodes() {
  static const Fleet fleet({.nodes = 3});
  return fleet;
}

inline Client start_client(ClientOptions options) {
  auto client = Client::create(std::move(options));
  REQUIRE_MESSAGE(client.has_value(), client.error().message);
  return std::move(*client);
}

inline Client start_client(const Fleet& fleet) {
  return start_client(options_for(fleet.uris()));
}

/// With options that `change` has changed.
template <typename Change>
Client start_client(const Fleet& fleet, const Change& change) {
  ClientOptions options = options_for(fleet.uris());
  change(options);
  return start_client(std::move(options));
}

inline Client start_observed(const Fleet& fleet, const std::shared_ptr<Observer>& observer) {
  return start_client(fleet, [&](ClientOptions& options) { options.observer = observer; });
}

/// The value, or the test ends with the error's sentence.
template <typename T>
T must(Result<T> result) {
  REQUIRE_MESSAGE(result.has_value(), result.error().message);
  return std::move(*result);
}

template <typename T>
Errc code_of(const Result<T>& result) {
  REQUIRE_FALSE(result.has_value());
  return result.error().code;
}

/// That of the std::system_error which the call must throw.
template <typename Call>
Errc code_thrown_by(const Call& call) {
  try {
    call();
  } catch (const std::system_error& error) {
    REQUIRE(error.code().category() == error_category());
    return static_cast<Errc>(error.code().value());
  }
  FAIL("nothing was thrown");
  return {};
}

template <typename Future>
requires requires(Future& future) {
  future.wait_for(patience);
}
auto get_soon(Future&& future) {
  REQUIRE(future.wait_for(patience) == std::future_status::ready);
  return future.get();
}

template <typename T>
T get_soon(std::promise<T>& promise) {
  return get_soon(promise.get_future());
}

template <typename T>
Result<T> get_soon(Operation<T> operation) {
  return get_soon(std::move(operation).as_future());
}

/// Stores what it is called with, and that this happened on this thread.
template <typename T>
Callback<T> note_in(std::optional<Result<T>>& noted) {
  return [&noted, here = std::this_thread::get_id()](Result<T> result) {
    CHECK(std::this_thread::get_id() == here);
    CHECK_FALSE(noted.has_value());
    noted.emplace(std::move(result));
  };
}

/// What `program` returned in the child of a fork; -1 if it did not end by itself.
template <typename Program>
int exit_code_of_child(const Program& program) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(100);
    ::_exit(program());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Stragglers are released behind the caller's back.
inline bool soon_free_everywhere(const Fleet& fleet, const std::string& name) {
  return eventually([&] { return nodes_with_lock(fleet, name) == 0; });
}

inline bool soon_locked_everywhere(const Fleet& fleet, const std::string& name) {
  return eventually([&] { return nodes_with_lock(fleet, name) == fleet.size(); });
}

/// Waiters in the line of one node.
inline std::size_t waiters_on(const Fleet& fleet, std::size_t node, const std::string& name) {
  return std::stoul(fleet.run(node, {"ZCARD", "redlock:line:{" + name + "}"}));
}

inline bool soon_waited_for(const Fleet& fleet, const std::string& name, std::size_t count) {
  return eventually([&] {
    for (std::size_t node = 0; node < fleet.size(); ++node) {
      if (waiters_on(fleet, node, name) != count) return false;
    }
    return true;
  });
}

/// Held on every node, so that whatever is found was not a straggler.
inline Lease lock_everywhere(const Client& client, const Fleet& fleet, const std::string& name,
                             AcquireOptions options = {.wait = patience}) {
  Lease lease = must(client.lock(name).acquire(options));
  REQUIRE(soon_locked_everywhere(fleet, name));
  return lease;
}

/// For what has to happen while a short lease is valid: `round` says whether it did. A machine that
/// stood still for that long has another try.
template <typename Round>
void within_a_lease(const Round& round) {
  for (int i = 0; i < 20; ++i) {
    if (round()) return;
  }
  FAIL("a lease was over before what it was taken for had begun, each time");
}

/// Until the client has taken and left a lock on every node: connections stand, scripts are known.
inline void warm_up(const Client& client, const Fleet& fleet, const std::string& name = "warm-up") {
  must(lock_everywhere(client, fleet, name).release());
  REQUIRE(soon_free_everywhere(fleet, name));
}

}  // namespace redlock::testing
