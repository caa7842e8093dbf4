// SPDX-License-Identifier: MIT
// lost() and what is tied to it: on which thread it runs, that it knows the reason, and that it
// comes although the client's loop thread does not. And async_lost(): what ends it, with which
// result, and where the program then continues. (The child of a fork is in api_lifetime_test.cpp.)
#include "integration/api_coroutines.hpp"
#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

struct Told {
  std::optional<LossReason> reason;
  std::thread::id thread;
  bool in_time = false;
  std::promise<void> told;

  void record(const Lease& lease) {
    reason = lease.loss_reason();
    thread = std::this_thread::get_id();
    in_time = lease.valid();
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

FireAndForget await_loss(const Lease& lease, std::promise<Result<LossReason>>& done) {
  done.set_value(co_await lease.async_lost());
}

bool is_awaited(const std::future<Result<LossReason>>& loss) {
  return loss.wait_for(0s) == std::future_status::timeout;
}

TEST_CASE("a loss is told while the lease is valid, with its reason, which is kept") {
  const auto here = std::this_thread::get_id();
  within_a_lease([&] {
    std::optional<Client> client = start_client(three_nodes());
    const Lease lease = must(client->lock("told").acquire({.lease = 1s, .wait = patience}));
    Told told;
    const std::stop_callback on_lost(lease.lost(), [&] { told.record(lease); });
    std::promise<Result<LossReason>> awaited;
    await_loss(lease, awaited);
    get_soon(told.told);
    CHECK(told.reason == LossReason::expired);
    CHECK(must(get_soon(awaited)) == LossReason::expired);
    const bool in_time = lease.valid() && told.thread != here;

    // Too late to be called on another thread: it is called here, at once.
    Told late;
    const std::stop_callback at_once(lease.lost(), [&] { late.record(lease); });
    CHECK(late.thread == here);
    auto known = lease.async_lost().as_future();
    REQUIRE_FALSE(is_awaited(known));
    CHECK(must(known.get()) == LossReason::expired);
    client.reset();
    CHECK(lease.loss_reason() == LossReason::expired);
    CHECK_FALSE(lease.valid());
    return in_time;
  });
}

TEST_CASE("lost() comes while the loop thread is held up, for explicit and renewed leases") {
  const Client client =
      start_client(three_nodes(), [](ClientOptions& options) { options.lease = 2s; });
  const auto loop = loop_thread_of(client);
  within_a_lease([&] {
    Told of_fixed;
    Told of_renewed;
    const Lease renewed = must(client.lock("renewed").acquire({.wait = patience}));
    const std::stop_callback renewed_lost(renewed.lost(), [&] { of_renewed.record(renewed); });
    // It ends before the one that is watched already.
    const Lease fixed = must(client.lock("fixed").acquire({.lease = 1s, .wait = patience}));
    const std::stop_callback fixed_lost(fixed.lost(), [&] { of_fixed.record(fixed); });
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
    return of_fixed.in_time && of_renewed.in_time;  // unless the machine is busy
  });
}

TEST_CASE("what the guard has given up is neither renewed nor entered, and who tries is told why") {
  const Fleet fleet({.nodes = 1});
  const Client client = start_client(fleet);
  warm_up(client, fleet);
  Lease lease = must(client.lock("given up").acquire({.lease = 2s, .renewal = Renewal::always}));
  std::this_thread::sleep_for(1s);  // past its first renewal
  RedLock lock = client.lock("too late", Owner::create());
  REQUIRE(lock.try_lock_for(patience, 2s));
  const std::stop_token lost = lease.lost();
  const std::stop_token lock_lost = lock.lost();
  std::promise<Result<BootClock::time_point>> extended;
  std::promise<Result<std::size_t>> entered;
  // In one turn of the loop: an answer whose callback does not return, and behind it a new validity
  // and a level.
  client.lock("first").async_acquire().start([&](const auto&) {
    client.lock("second").async_acquire().start([&](const auto&) {
      CHECK(eventually([&] { return lost.stop_requested() && lock_lost.stop_requested(); }));
    });
    lease.async_extend(2s).start([&](const auto& answer) { extended.set_value(answer); });
    lock.async_try_lock({.lease = 2s}).start([&](const auto& count) { entered.set_value(count); });
  });
  CHECK(code_of(get_soon(extended)) == Errc::lost);
  CHECK(lease.loss_reason() == LossReason::nodes_unavailable);
  const auto refused = get_soon(entered);
  CHECK(code_of(refused) == Errc::lost);
  CHECK(contains(refused.error().message, "unlock()"));
  CHECK(lock.hold_count() == 1);
  CHECK(lock.release() != Released::still_held);
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

TEST_CASE("who awaits a loss is told when the lease is given back, in whichever way") {
  const Client client = start_client(three_nodes());
  RedLock lock = client.lock("given back");
  const std::vector<std::function<void(Lease&)>> ways{
      [](Lease& lease) { must(lease.release()); },
      [](Lease& lease) { must(get_soon(lease.async_release())); },
      [](Lease& lease) { lease = Lease(); },
      [&](Lease& lease) { lease = must(client.lock("next").acquire({.wait = patience})); },
      [&](Lease& lease) { must(lock.release(lease.detach())); },
      [](Lease& lease) { std::thread([dropped = std::move(lease)] {}).join(); }};
  for (std::size_t way = 0; way < ways.size(); ++way) {
    CAPTURE(way);
    Lease lease = must(lock.acquire({.wait = patience}));
    auto first = lease.async_lost().as_future();
    auto second = lease.async_lost().as_future();
    Lease moved = std::move(lease);
    CHECK(is_awaited(first));
    ways[way](moved);
    CHECK(code_of(get_soon(first)) == Errc::lost);
    CHECK(code_of(get_soon(second)) == Errc::lost);
    CHECK(soon_free_everywhere(three_nodes(), "given back"));
    moved = Lease();
    CHECK(code_of(get_soon(moved.async_lost())) == Errc::lost);
  }
  CHECK(soon_free_everywhere(three_nodes(), "next"));
}

TEST_CASE(
    "awaiting a loss is ended by a stop_token, a release or the client, where resume_on says") {
  for (const bool resumes : {false, true}) {
    CAPTURE(resumes);
    std::atomic<int> resumed{0};
    std::optional<Client> client = start_client(three_nodes(), [&](ClientOptions& options) {
      if (!resumes) return;
      options.resume_on = [&](Continuation it) {
        ++resumed;
        it();
      };
    });
    Lease released = must(client->lock("on 1").acquire({.wait = patience}));
    const Lease closed = must(client->lock("on 2").acquire({.wait = patience}));
    auto first = released.async_lost().as_future();
    auto second = closed.async_lost().as_future();
    std::stop_source stop;
    auto stopped = closed.async_lost(stop.get_token()).as_future();
    stop.request_stop();
    CHECK(code_of(get_soon(stopped)) == Errc::cancelled);
    CHECK(code_of(get_soon(closed.async_lost(stop.get_token()))) == Errc::cancelled);
    CHECK(is_awaited(second));
    CHECK(closed.valid());
    CHECK_FALSE(closed.lost().stop_requested());
    must(released.release());
    CHECK(code_of(get_soon(first)) == Errc::lost);

    client.reset();
    REQUIRE_FALSE(is_awaited(second));
    CHECK(must(second.get()) == LossReason::closed);
    CHECK(resumed == (resumes ? 4 : 0));
    CHECK(must(get_soon(closed.async_lost())) == LossReason::closed);
  }
}

TEST_CASE("whatever ends the awaiting of a loss first, it has one result") {
  for (int turn = 0; turn < 40; ++turn) {
    std::optional<Client> client = start_client(three_nodes());
    Lease lease = must(client->lock("raced").acquire({.wait = patience}));
    std::vector<std::stop_source> stops(20);
    std::atomic<int> results{0};
    std::latch go(3);
    {
      std::jthread starting([&] {
        go.arrive_and_wait();
        for (auto& stop : stops) {
          lease.async_lost(stop.get_token()).start([&](const Result<LossReason>&) { ++results; });
        }
      });
      std::jthread stopping([&] {
        go.arrive_and_wait();
        for (auto& stop : stops) stop.request_stop();
      });
      go.arrive_and_wait();
      if (turn % 2 == 0) client.reset();
    }
    if (turn % 3 == 0) lease = Lease();
    CHECK(eventually([&] { return results == 20; }));
    client.reset();
    CHECK(results == 20);
  }
}

}  // namespace
}  // namespace redlock::testing
