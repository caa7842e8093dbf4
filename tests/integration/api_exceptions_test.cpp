// SPDX-License-Identifier: MIT
// An exception that leaves a function of the program on the client's thread ends the client, and
// nothing else: every call has an answer that says so, every lease is lost, the program goes on.
#include <future>
#include <stdexcept>

#include "integration/api_program_loop.hpp"
#include "support/proxy.hpp"

namespace redlock::testing {
namespace {

constexpr const char* sentence = "this program has a defect";

/// Throws when this name is acquired, and records what it is told of the end.
class ThrowingObserver final : public Observer {
 public:
  void on_acquired(std::string_view name, std::uint64_t, std::chrono::nanoseconds) override {
    if (name == "defect") throw std::runtime_error(sentence);
  }
  void on_lost(std::string_view, std::uint64_t, LossReason reason) override {
    if (reason == LossReason::closed) ++lost;
    throw std::runtime_error(sentence);
  }
  void on_closed(const CloseReport& report) override { unconfirmed = report.unconfirmed; }

  std::atomic<std::size_t> lost{0};
  std::atomic<std::size_t> unconfirmed{0};
};

template <typename T>
void check_says_why(const Result<T>& result) {
  CHECK(code_of(result) == Errc::closed);
  CHECK_MESSAGE(contains(result.error().message, sentence), result.error().message);
}

void check_has_ended(Client& client) {
  check_says_why(client.lock("later").acquire());
  check_says_why(client.close());
}

/// Where resume_on is not set, the callback runs on the client's own thread.
void throw_in_callback(const Client& client) {
  client.lock("called").async_acquire().start(
      [](Result<Lease>) { throw std::runtime_error(sentence); });
}

}  // namespace

TEST_CASE("an observer that throws ends its client: callers are answered, leases lost") {
  const auto observer = std::make_shared<ThrowingObserver>();
  Client client = start_observed(three_nodes(), observer);
  const Lease first = must(client.lock("first").acquire());
  const Lease second = must(client.lock("second").acquire());
  auto waiting = client.lock("first").async_acquire({.wait = forever}).as_future();

  const auto refused = client.lock("defect").acquire();
  CHECK((refused.has_value() || refused.error().code == Errc::closed));
  check_says_why(get_soon(waiting));
  for (const Lease* lease : {&first, &second}) {
    CHECK(lease->lost().stop_requested());
    CHECK(lease->loss_reason() == LossReason::closed);
    CHECK_FALSE(lease->valid());
  }
  CHECK(eventually([&] { return observer->unconfirmed >= 2; }));
  CHECK(observer->lost >= 2);
  check_has_ended(client);
  CHECK(nodes_with_lock(three_nodes(), "first") >= 2);  // nothing was released
}

TEST_CASE("a callback, a password or a trace function that throws ends its client, and no other") {
  const Client other = start_client(three_nodes());
  Client client = start_client(three_nodes());
  const Lease lease = must(client.lock("held").acquire());
  throw_in_callback(client);
  CHECK(eventually([&] { return lease.lost().stop_requested(); }));
  check_has_ended(client);

  client = start_client(three_nodes(), [](ClientOptions& options) {
    options.password = [](std::string_view) -> std::string { throw std::runtime_error(sentence); };
  });
  check_has_ended(client);

  for (const bool caller_drives : {true, false}) {  // as no caller does with an observer
    const auto armed = std::make_shared<std::atomic<bool>>(false);
    client = start_client(three_nodes(), [&](ClientOptions& options) {
      if (!caller_drives) options.observer = std::make_shared<Observer>();
      options.trace = [armed](std::string_view) {
        if (*armed) throw std::runtime_error(sentence);
      };
    });
    warm_up(client, three_nodes());
    *armed = true;
    check_has_ended(client);
  }

  // One that is called where it is started throws there.
  CHECK_THROWS_AS(other.lock("").async_acquire().start(
                      [](Result<Lease>) { throw std::runtime_error(sentence); }),
                  std::runtime_error);
  CHECK(other.lock("other").acquire().has_value());
}

TEST_CASE("a callback that throws as its client closes leaves no other call without an answer") {
  const Proxies proxies = proxies_of(three_nodes());
  Client client = start_client(options_for(uris_of(proxies)));
  Lease first = must(client.lock("first of two").acquire({.wait = patience}));
  Lease second = must(client.lock("second of two").acquire({.wait = patience}));
  for (const auto& proxy : proxies) proxy->hang();
  std::promise<Result<Released>> answered;
  first.async_release().start([](const auto&) { throw std::runtime_error(sentence); });
  second.async_release().start(
      [&](Result<Released> result) { answered.set_value(std::move(result)); });
  static_cast<void>(client.close(0ms));
  CHECK(code_of(get_soon(answered.get_future())) == Errc::closed);
}

TEST_CASE_FIXTURE(ClientOnLoop,
                  "on a loop of the program's own no exception passes through libuv") {
  const Lease lease = must(loop.result_of(client.lock("on a loop").async_acquire()));
  throw_in_callback(client);
  check_says_why(loop.result_of(client.lock("on a loop").async_acquire({.wait = forever})));
  CHECK(lease.loss_reason() == LossReason::closed);
}

}  // namespace redlock::testing
