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
}

void of_lock(RedLock& lock, const Grant& grant) {
  lock.acquire();                         // lost
  lock.async_acquire();                   // lost
  lock.async_acquire().as_future();       // lost
  lock.attach(grant);                     // lost
  lock.async_attach(grant);               // lost
  lock.async_attach(grant).as_future();   // lost
  lock.async_release(grant);              // lost
  lock.async_release(grant).as_future();  // lost
  lock.try_lock();                        // lost
  lock.try_lock_for(1s);                  // lost
  lock.try_lock_for(1s, 1000ms);          // lost
  lock.try_lock_until(BootClock::now());  // lost
  lock.async_try_lock();                  // lost
  lock.async_try_lock().as_future();      // lost
  lock.async_release();                   // lost
  lock.async_release().as_future();       // lost
  lock.hold_count();                      // lost
  lock.held_by_me();                      // lost
  lock.token();                           // lost
  lock.lost();                            // lost
  // Nothing is lost with these: they answer by a callback, or the lock is given back in any case.
  lock.async_acquire().start([](const Result<Lease>&) {});
  lock.async_attach(grant).start([](const Result<Lease>&) {});
  lock.async_try_lock().start([](const Result<std::size_t>&) {});
  lock.lock();
  lock.unlock();
  lock.release();
  lock.release(grant);
  lock.async_release().start([](const Result<Released>&) {});
  const std::unique_lock guard(lock, 1s);
}

void of_lease(Lease& lease) {
  lease.valid();                       // lost
  lease.remaining();                   // lost
  lease.lost();                        // lost
  lease.loss_reason();                 // lost
  lease.extend(1s);                    // lost
  lease.async_extend(1s);              // lost
  lease.async_extend(1s).as_future();  // lost
  lease.confirm();                     // lost
  lease.async_confirm();               // lost
  lease.async_confirm().as_future();   // lost
  lease.detach();                      // lost
  lease.async_release();               // lost
  lease.async_release().as_future();   // lost
  lease.release();
  lease.async_extend(1s).start([](const Result<BootClock::time_point>&) {});
  lease.async_confirm().start([](const Result<BootClock::time_point>&) {});
}

void of_others(const Admin& admin, FenceGuard& guard) {
  admin.inspect("n");                     // lost
  admin.force_release("n");               // lost
  admin.list();                           // lost
  admin.examine();                        // lost
  admin.adopt();                          // lost
  admin.replace("old", "new");            // lost
  find_set({});                           // lost
  guard.run("r", 1, [] {});               // lost
  guard.stamp("r", 1);                    // lost
  guard.seen("r");                        // lost
  fenced_write("k", "v", 1);              // lost
  fenced_read("k", 1);                    // lost
  fenced_eval("return 1", {"k"}, {}, 1);  // lost
}
