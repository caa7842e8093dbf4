// SPDX-License-Identifier: MIT
// Statements that throw away what the library answers. The compiler must warn of each line that
// ends in "lost", and of no other: discards.sh compares. Of functions with a Result or an Operation
// there is one each: style_rules_test.cpp reads that all the former have the attribute, and the
// latter have it as a type.
#include <mutex>

#include <redlock/redlock.hpp>

using namespace redlock;
using namespace std::chrono_literals;

void of_client(Client& client) {
  Client::create({});                 // lost
  client.lock("n");                   // lost
  client.lock("n", Owner::create());  // lost
  Owner::create();                    // lost
  Owner::this_thread();               // lost
  client.options();                   // lost
}

void of_lock(RedLock& lock, const Grant& grant) {
  lock.async_acquire();                   // lost
  lock.async_acquire().as_future();       // lost
  lock.try_lock();                        // lost
  lock.try_lock_for(1s);                  // lost
  lock.try_lock_for(1s, 1000ms);          // lost
  lock.try_lock_until(BootClock::now());  // lost
  lock.hold_count();                      // lost
  lock.held_by_me();                      // lost
  lock.token();                           // lost
  lock.lost();                            // lost
  // Nothing is lost with these: they answer by a callback, or the lock is given back in any case.
  lock.async_acquire().start([](const Result<Lease>&) {});
  lock.lock();
  lock.unlock();
  lock.release();
  lock.release(grant);
  const std::unique_lock guard(lock, 1s);
}

void of_lease(Lease& lease) {
  lease.valid();        // lost
  lease.remaining();    // lost
  lease.lost();         // lost
  lease.loss_reason();  // lost
  lease.detach();       // lost
  lease.release();
}

void of_others(FenceGuard& guard) {
  guard.run("r", 1, [] {});               // lost
  guard.stamp("r", 1);                    // lost
  guard.seen("r");                        // lost
  fenced_write("k", "v", 1);              // lost
  fenced_read("k", 1);                    // lost
  fenced_eval("return 1", {"k"}, {}, 1);  // lost
}
