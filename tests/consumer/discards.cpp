// SPDX-License-Identifier: MIT
// Statements that throw away what the library answers. The compiler must warn of each line that
// ends in "lost", and of no other: discards.sh compares.
#include <mutex>

#include <redlock/admin.hpp>
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
  client.submit(AcquireRequest{"n"}, {});
}

void of_lock(RedLock& lock, const Grant& grant) {
  lock.acquire();                         // lost
  lock.acquire_future();                  // lost
  lock.co_acquire();                      // lost
  lock.attach(grant);                     // lost
  lock.attach_future(grant);              // lost
  lock.co_attach(grant);                  // lost
  lock.release_future(grant);             // lost
  lock.co_release(grant);                 // lost
  lock.try_lock();                        // lost
  lock.try_lock_for(1s);                  // lost
  lock.try_lock_for(1s, 1000ms);          // lost
  lock.try_lock_until(BootClock::now());  // lost
  lock.try_lock_future();                 // lost
  lock.co_try_lock();                     // lost
  lock.release_future();                  // lost
  lock.co_release();                      // lost
  lock.hold_count();                      // lost
  lock.held_by_me();                      // lost
  lock.token();                           // lost
  lock.lost();                            // lost
  // Nothing is lost with these: they answer by a callback, or the lock is given back in any case.
  lock.acquire({}, {});
  lock.attach(grant, {}, {});
  lock.try_lock({}, {});
  lock.lock();
  lock.unlock();
  lock.release();
  lock.release(grant);
  lock.release([](const Result<Released>&) {});
  const std::unique_lock guard(lock, 1s);
}

void of_lease(Lease& lease) {
  lease.valid();            // lost
  lease.remaining();        // lost
  lease.lost();             // lost
  lease.loss_reason();      // lost
  lease.extend(1s);         // lost
  lease.extend_future(1s);  // lost
  lease.co_extend(1s);      // lost
  lease.confirm();          // lost
  lease.confirm_future();   // lost
  lease.co_confirm();       // lost
  lease.detach();           // lost
  lease.release_future();   // lost
  lease.co_release();       // lost
  lease.release();
  lease.extend(1s, {});
  lease.confirm({});
}

void of_others(const Admin& admin, FenceGuard& guard) {
  admin.inspect("n");                     // lost
  admin.force_release("n");               // lost
  admin.list();                           // lost
  admin.examine();                        // lost
  admin.adopt();                          // lost
  guard.run("r", 1, [] {});               // lost
  guard.stamp("r", 1);                    // lost
  guard.seen("r");                        // lost
  fenced_write("k", "v", 1);              // lost
  fenced_read("k", 1);                    // lost
  fenced_eval("return 1", {"k"}, {}, 1);  // lost
}
