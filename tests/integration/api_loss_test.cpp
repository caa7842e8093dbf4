// SPDX-License-Identifier: MIT
// lost() and what is tied to it: on which thread it runs, that it runs once and knows the reason,
// and that it comes although the client's loop thread does not.
#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

struct Told {
  std::optional<LossReason> reason;
  std::thread::id thread;
  std::promise<void> told;

  void record(const Lease& lease) {
    reason = lease.loss_reason();
    thread = std::this_thread::get_id();
    told.set_value();
  }
};

std::thread::id loop_thread_of(const Client& client) {
  std::promise<std::thread::id> here;
  client.lock("whose thread").async_acquire().start([&](const auto&) {
    here.set_value(std::this_thread::get_id());
  });
  return get_soon(here);
}

/// Holds the loop thread of a client up, from within a callback, until it goes.
class HeldUp {
 public:
  explicit HeldUp(const Client& client) {
    client.lock("held up").async_acquire().start(
        [this, until = go_on_.get_future().share()](const auto&) {
          started_.set_value();
          until.wait();
        });
    get_soon(started_);
  }
  ~HeldUp() { go_on_.set_value(); }
  HeldUp(const HeldUp&) = delete;
  HeldUp& operator=(const HeldUp&) = delete;

 private:
  std::promise<void> started_;
  std::promise<void> go_on_;
};

TEST_CASE("a function tied to lost() runs once, and knows the reason, which is kept") {
  const auto here = std::this_thread::get_id();
  within_a_lease([&] {
    std::optional<Client> client = start_client(three_nodes());
    const Lease lease = must(client->lock("told").acquire({.lease = 500ms, .wait = patience}));
    Told told;
    const std::stop_callback on_lost(lease.lost(), [&] { told.record(lease); });
    get_soon(told.told);
    CHECK(told.reason == LossReason::expired);
    // Too late to be called on another thread: it is called here, at once.
    Told late;
    const std::stop_callback at_once(lease.lost(), [&] { late.record(lease); });
    CHECK(late.thread == here);
    client.reset();
    CHECK(lease.loss_reason() == LossReason::expired);
    CHECK_FALSE(lease.valid());
    return told.thread != here;
  });
}

TEST_CASE("lost() comes while the loop thread is held up, for explicit and renewed leases") {
  const Client client =
      start_client(three_nodes(), [](ClientOptions& options) { options.lease = 2s; });
  const auto loop = loop_thread_of(client);
  within_a_lease([&] {
    const Lease fixed = must(client.lock("fixed").acquire({.lease = 1s, .wait = patience}));
    const Lease renewed = must(client.lock("renewed").acquire({.wait = patience}));
    Told of_fixed;
    Told of_renewed;
    const std::stop_callback fixed_lost(fixed.lost(), [&] { of_fixed.record(fixed); });
    const std::stop_callback renewed_lost(renewed.lost(), [&] { of_renewed.record(renewed); });
    auto awaited = fixed.async_lost().as_future();
    {
      const HeldUp held_up(client);
      if (fixed.lost().stop_requested()) return false;
      get_soon(of_fixed.told);
      get_soon(of_renewed.told);
      CHECK(must(get_soon(awaited)) == LossReason::expired);
      CHECK(of_fixed.thread != loop);
      CHECK(of_fixed.reason == LossReason::expired);
      CHECK(of_renewed.reason == LossReason::nodes_unavailable);
    }
    // What the loop finds when it goes on revives nothing.
    must(client.lock("another").acquire({.wait = patience}));
    CHECK(renewed.loss_reason() == LossReason::nodes_unavailable);
    return true;
  });
}

TEST_CASE("what the guard has given up is not renewed for ever") {
  const Fleet fleet({.nodes = 1});
  const Client client = start_client(fleet);
  warm_up(client, fleet);
  Lease lease = must(client.lock("given up").acquire({.lease = 2s, .renewal = Renewal::always}));
  const std::stop_token lost = lease.lost();
  std::this_thread::sleep_for(1s);  // past its first renewal
  std::promise<void> over;
  std::promise<Errc> extended;
  // In one turn of the loop: an answer whose callback does not return, and behind it a new
  // validity.
  client.lock("first").async_acquire().start([&](const auto&) {
    client.lock("second").async_acquire().start([&](const auto&) {
      CHECK(eventually([&] { return lost.stop_requested(); }));
      over.set_value();
    });
    lease.async_extend(2s).start(
        [&](const auto& answer) { extended.set_value(answer ? Errc{} : answer.error().code); });
  });
  get_soon(over);
  CHECK(get_soon(extended) == Errc::lost);
  CHECK(lease.loss_reason() == LossReason::nodes_unavailable);
  // A lease that the loop itself loses ends on the nodes within its length.
  CHECK(client.lock("given up").acquire({.wait = patience}).has_value());
}

/// Begins to give `given` back, whose lease of 2 s began before the call, and holds the loop up
/// until a lease that ends later is told lost. False: this one had been told before.
template <typename Given>
bool gives_back_untold(const Client& client, Given& given) {
  const Lease other = must(client.lock("other").acquire({.lease = 2'500ms, .wait = patience}));
  const std::stop_token lost = given.lost();
  Told told;
  const std::stop_callback on_lost(other.lost(), [&] { told.record(other); });
  std::future<Result<Released>> answer;
  {
    const HeldUp held_up(client);
    answer = given.async_release().as_future();
    if (lost.stop_requested()) return false;
    get_soon(told.told);
    CHECK_FALSE(lost.stop_requested());
  }
  CHECK(get_soon(answer).has_value());
  return true;
}

TEST_CASE("what is being given back is not told lost, though the loop is held up") {
  const Client client = start_client(three_nodes());
  within_a_lease([&] {
    Lease lease = must(client.lock("released").acquire({.lease = 2s, .wait = patience}));
    return gives_back_untold(client, lease);
  });
  within_a_lease([&] {
    RedLock lock = client.lock("left", Owner::create());
    REQUIRE(lock.try_lock_for(patience, 2s));
    return gives_back_untold(client, lock);
  });
}

TEST_CASE("a lock that is taken while its last level is being left is told lost all the same") {
  const Fleet fleet({.nodes = 1});
  const Client client = start_client(fleet);
  warm_up(client, fleet);
  within_a_lease([&] {
    RedLock lock = client.lock("kept", Owner::create());
    REQUIRE(lock.try_lock_for(patience, 2s));
    const std::stop_token lost = lock.lost();
    std::promise<void> left;
    std::promise<bool> entered;
    std::promise<bool> told;
    // In one turn of the loop: an answer whose callback leaves what was taken, and behind it that
    // of a re-entry, which keeps the lease.
    client.lock("first").async_acquire().start([&](const auto&) {
      client.lock("second").async_acquire().start([&](const auto&) {
        lock.unlock();
        left.set_value();
      });
      lock.async_try_lock({.lease = 2s}).start([&](const Result<std::size_t>& count) {
        if (count) CHECK(*count == 1);
        entered.set_value(count.has_value());
        told.set_value(eventually([&] { return lost.stop_requested(); }));  // by the guard
      });
    });
    CHECK(get_soon(told));
    get_soon(left);
    return get_soon(entered);
  });
}

TEST_CASE("a re-entry that the guard was quicker than says what to do") {
  const Fleet fleet({.nodes = 1});
  const Client client = start_client(fleet);
  warm_up(client, fleet);
  RedLock lock = client.lock("too late", Owner::create());
  REQUIRE(lock.try_lock_for(patience, 2s));
  const std::stop_token lost = lock.lost();
  std::promise<Error> refused;
  client.lock("first").async_acquire().start([&](const auto&) {
    client.lock("second").async_acquire().start(
        [&](const auto&) { CHECK(eventually([&] { return lost.stop_requested(); })); });
    lock.async_try_lock({.lease = 2s}).start([&](const Result<std::size_t>& count) {
      refused.set_value(count ? Error{} : count.error());
    });
  });
  const Error error = get_soon(refused);
  CHECK(error.code == Errc::lost);
  CHECK(contains(error.message, "unlock()"));
  CHECK(lock.hold_count() == 1);
  CHECK(lock.release() != Released::still_held);
}

TEST_CASE("a function that is tied to lost() may end the client, but not wait, on either thread") {
  const auto here = std::this_thread::get_id();
  for (const bool held_up : {false, true}) {
    within_a_lease([&] {
      std::optional<Client> client(start_client(three_nodes()));
      Lease lease = must(client->lock("last").acquire({.lease = 500ms, .wait = patience}));
      std::optional<HeldUp> obstacle;
      if (held_up) obstacle.emplace(*client);
      // From here on the client is the function's alone, unless the lease is over already: then
      // this thread calls it, which a client with an obstacle would keep for ever.
      std::promise<bool> gone;
      const std::stop_callback on_lost(lease.lost(), [&] {
        const bool in_time = std::this_thread::get_id() != here;
        if (in_time) {
          CHECK(code_of(client->lock("another").acquire()) == Errc::would_deadlock);
          CHECK(code_of(lease.release()) == Errc::would_deadlock);
          client.reset();
        }
        gone.set_value(in_time);
      });
      const bool in_time = get_soon(gone);
      obstacle.reset();
      CHECK(eventually([&] { return !lease.valid(); }));  // it ends behind its back
      return in_time;
    });
  }
}

}  // namespace
}  // namespace redlock::testing
