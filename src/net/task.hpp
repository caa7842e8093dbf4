// SPDX-License-Identifier: MIT
// Work that other threads give to the loop thread.
#pragma once

namespace redlock::net {

/// Work for the loop thread, linked into the mailbox itself: posting allocates nothing, so a
/// blocking caller can keep its task on its own stack. run() is called once, on the loop thread;
/// the task may destroy itself there.
class Task {
 public:
  virtual void run() = 0;

 protected:
  ~Task() = default;

 private:
  friend class Mailbox;
  Task* next_ = nullptr;
};

}  // namespace redlock::net
